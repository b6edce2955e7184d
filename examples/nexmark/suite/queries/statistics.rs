//! The queries that report on each day (UTC): q15, q16 and q17.
//!
//! Nexmark's SQL gives a new row with each bid and takes the former one back; here the row of a day comes when the day is
//! over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use flow::{
    BoxError, pipeline,
    time::Timestamp,
    watermark::monotonous,
    window::{Aggregate, aggregate, tumbling},
};
use serde::{Deserialize, Serialize};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::{Bid, Event},
        source::Nexmark,
    },
    stateless::bids,
};

/// The ranks of prices: below 100 dollars, below 10,000 dollars, and the others.
fn rank(price: u64) -> usize {
    match price {
        ..10_000 => 0,
        10_000..1_000_000 => 1,
        _ => 2,
    }
}

/// How many bids, bidders and auctions: in all, and of each rank.
type Report = [[u64; 4]; 3];

/// The aggregate behind a [`Report`]. Of twelve aggregates side by side eight would keep a set each; this keeps two tables.
struct Reports;

/// What has been seen of a day.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Seen {
    bids: [u64; 3],
    bidders: Ranks,
    auctions: Ranks,
    /// The time of the last bid.
    last: i64,
}

/// In which ranks each id was seen, a bit for each.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Ranks(HashMap<u64, u8, foldhash::fast::FixedState>);

impl Ranks {
    fn add(&mut self, id: u64, ranks: u8) {
        *self.0.entry(id).or_default() |= ranks;
    }

    fn counts(&self) -> [u64; 4] {
        let mut counts = [self.0.len() as u64, 0, 0, 0];
        for ranks in self.0.values() {
            (0..3).for_each(|rank| counts[rank + 1] += u64::from(ranks >> rank & 1));
        }
        counts
    }
}

impl Aggregate<Bid> for Reports {
    type Accumulator = Seen;
    /// With the time of the last bid.
    type Output = (Report, i64);

    fn create(&self, bid: &Bid, at: Timestamp) -> Result<Seen, BoxError> {
        let mut seen = Seen::default();
        self.add(&mut seen, bid, at)?;
        Ok(seen)
    }

    fn add(&self, seen: &mut Seen, bid: &Bid, _: Timestamp) -> Result<(), BoxError> {
        let rank = rank(bid.price);
        seen.bids[rank] += 1;
        seen.bidders.add(bid.bidder, 1 << rank);
        seen.auctions.add(bid.auction, 1 << rank);
        seen.last = seen.last.max(bid.time);
        Ok(())
    }

    fn merge(&self, seen: &mut Seen, other: Seen) -> Result<(), BoxError> {
        (0..3).for_each(|rank| seen.bids[rank] += other.bids[rank]);
        other.bidders.0.into_iter().for_each(|(id, ranks)| seen.bidders.add(id, ranks));
        other.auctions.0.into_iter().for_each(|(id, ranks)| seen.auctions.add(id, ranks));
        seen.last = seen.last.max(other.last);
        Ok(())
    }

    fn result(&self, seen: &Seen) -> (Report, i64) {
        let [low, middle, high] = seen.bids;
        let bids = [low + middle + high, low, middle, high];
        ([bids, seen.bidders.counts(), seen.auctions.counts()], seen.last)
    }
}

/// `2015-07-15` of a time.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// `23:59` of a time.
fn minute(at: i64) -> String {
    Timestamp::from_millis(at).to_string().chars().skip(11).take(5).collect()
}

/// q15, bidding statistics report: bids, bidders and auctions of a day, in all and by the rank of the price.
#[pipeline]
pub(crate) fn q15(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(Event::bid)
        .window_all(tumbling("1d"))
        .aggregate(Reports)
        .with(|window, (report, _)| (day(window.start), report))
        .sink(out);
}

pub(crate) fn q15_oracle(events: &[Event]) -> Totals {
    let mut days: BTreeMap<String, Vec<&Bid>> = BTreeMap::new();
    for bid in bids(events) {
        days.entry(date(bid.time)).or_default().push(bid);
    }
    Totals::of(days.into_iter().map(|(day, bids)| (day, report(&bids))))
}

/// q16, channel statistics report: the same of each channel, with the minute of the day's last bid on it.
#[pipeline]
pub(crate) fn q16(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(Event::bid)
        .key_by(|bid| &*bid.channel)
        .window(tumbling("1d"))
        .aggregate(Reports)
        .with(|channel, window, (report, last)| (channel.to_owned(), day(window.start), minute(last), report))
        .sink(out);
}

pub(crate) fn q16_oracle(events: &[Event]) -> Totals {
    let mut days: BTreeMap<(&str, String), Vec<&Bid>> = BTreeMap::new();
    for bid in bids(events) {
        days.entry((&bid.channel, date(bid.time))).or_default().push(bid);
    }
    Totals::of(days.into_iter().map(|((channel, day), bids)| {
        let minutes = bids.iter().map(|bid| bid.time / 60_000 % 1440);
        let last = minutes.map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60)).max();
        (channel, day, last.unwrap_or_default(), report(&bids))
    }))
}

/// q17, auction statistics report: how many bids an auction has on a day, also by the rank of the price, and the least,
/// the highest, the average (rounded down) and the sum of the prices.
#[pipeline]
pub(crate) fn q17(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(|event| event.bid().map(|bid| (bid.auction, bid.price)))
        .key_by(|(auction, _)| *auction)
        .window(tumbling("1d"))
        .aggregate((
            aggregate::count(),
            aggregate::sum(|(_, price): &(u64, u64)| u64::from(rank(*price) == 0)),
            aggregate::sum(|(_, price): &(u64, u64)| u64::from(rank(*price) == 1)),
            aggregate::sum(|(_, price): &(u64, u64)| u64::from(rank(*price) == 2)),
            aggregate::min(|(_, price): &(u64, u64)| *price),
            aggregate::max(|(_, price): &(u64, u64)| *price),
            aggregate::sum(|(_, price): &(u64, u64)| *price),
        ))
        .with(|auction, window, (bids, low, middle, high, least, most, sum)| {
            (auction, day(window.start), [bids, low, middle, high], [least, most, sum / bids, sum])
        })
        .sink(out);
}

pub(crate) fn q17_oracle(events: &[Event]) -> Totals {
    let mut days: BTreeMap<(u64, String), Vec<u64>> = BTreeMap::new();
    for bid in bids(events) {
        days.entry((bid.auction, date(bid.time))).or_default().push(bid.price);
    }
    Totals::of(days.into_iter().map(|((auction, day), mut prices)| {
        prices.sort_unstable();
        let (bids, sum) = (prices.len() as u64, prices.iter().sum::<u64>());
        let low = prices.partition_point(|price| *price < 10_000) as u64;
        let high = bids - prices.partition_point(|price| *price < 1_000_000) as u64;
        let (least, most) = (prices[0], prices[prices.len() - 1]);
        (auction, day, [bids, low, bids - low - high, high], [least, most, sum / bids, sum])
    }))
}

/// A [`Report`], column by column.
fn report(bids: &[&Bid]) -> Report {
    let ranks: [fn(u64) -> bool; 4] = [
        |_| true,
        |price| price < 10_000,
        |price| (10_000..1_000_000).contains(&price),
        |price| price >= 1_000_000,
    ];
    let of = |rank: fn(u64) -> bool| bids.iter().filter(move |bid| rank(bid.price));
    let distinct = |ids: BTreeSet<u64>| ids.len() as u64;
    [
        ranks.map(|rank| of(rank).count() as u64),
        ranks.map(|rank| distinct(of(rank).map(|bid| bid.bidder).collect())),
        ranks.map(|rank| distinct(of(rank).map(|bid| bid.auction).collect())),
    ]
}

/// The date of a time, by counting days from new year to new year and month to month.
fn date(time: i64) -> String {
    let mut day = time / 86_400_000;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}
