//! The queries that keep some bids of each key: q18 and q19.
//!
//! Nexmark's SQL gives a row whenever another bid gets into the ranking, and takes those back that fall out; here the
//! rankings come at the end of the input.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use flow::{
    pipeline,
    watermark::monotonous,
    window::{global, trigger},
};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::{Bid, Event},
        source::Nexmark,
    },
    stateless::bids,
};

/// q18, find last bid: of each bidder on each auction. Of those in the same millisecond, the largest.
#[pipeline]
pub(crate) fn q18(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(Event::bid)
        .key_by(|bid| (bid.bidder, bid.auction))
        .window(global())
        .trigger(trigger::event_time())
        .reduce(|last, bid| if (last.time, &last) < (bid.time, &bid) { bid } else { last })
        .map(|(_, bid)| bid)
        .sink(out);
}

pub(crate) fn q18_oracle(events: &[Event]) -> Totals {
    let mut sorted: Vec<&Bid> = bids(events).collect();
    sorted.sort_by_key(|bid| (bid.time, *bid));
    let last: HashMap<(u64, u64), &Bid> =
        sorted.into_iter().map(|bid| ((bid.bidder, bid.auction), bid)).collect();
    Totals::of(last.into_values())
}

/// q19, auction top 10 price: the highest bids of each auction with their rank; of equal prices, the earliest first.
#[pipeline]
pub(crate) fn q19(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(Event::bid)
        .key_by(|bid| bid.auction)
        .window(global())
        .trigger(trigger::event_time())
        .fold(Vec::new(), |top: &mut Vec<Bid>, bid| {
            let at = top.partition_point(|other| order(other) < order(bid));
            if at < 10 {
                top.truncate(9);
                top.insert(at, bid.clone());
            }
        })
        .flat_map(|(_, top)| (1..=10u64).zip(top))
        .sink(out);
}

fn order(bid: &Bid) -> (Reverse<u64>, i64, &Bid) {
    (Reverse(bid.price), bid.time, bid)
}

pub(crate) fn q19_oracle(events: &[Event]) -> Totals {
    let mut of_auction: BTreeMap<u64, Vec<&Bid>> = BTreeMap::new();
    for bid in bids(events) {
        of_auction.entry(bid.auction).or_default().push(bid);
    }
    let mut totals = Totals::default();
    for bids in of_auction.values_mut() {
        // One criterion after the other: a stable sort keeps the order of equal ones.
        bids.sort();
        bids.sort_by_key(|bid| bid.time);
        bids.sort_by_key(|bid| Reverse(bid.price));
        bids.iter().take(10).enumerate().for_each(|(i, bid)| totals.add(&(i as u64 + 1, bid)));
    }
    totals
}
