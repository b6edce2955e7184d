//! The queries over windows of event time: q5, q7, q8 and q11.

use std::collections::{BTreeMap, BTreeSet};

use flow::{
    pipeline,
    watermark::monotonous,
    window::{session, sliding, tumbling},
};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::{Bid, Event},
        source::Nexmark,
    },
    stateless::bids,
};

/// q5, hot items: the auctions with the most bids within 10 seconds, every 2 seconds. All of those with equally many.
#[pipeline]
pub(crate) fn q5(events: Nexmark, out: Checksum) {
    let counts = source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(|event| event.bid().map(|bid| bid.auction))
        .key_by(|auction| *auction)
        .window(sliding("10s", "2s"))
        .count();
    // The counts of a window are in its last millisecond, and so in the same two seconds.
    counts
        .window_all(tumbling("2s"))
        .fold((0, Vec::new()), |(most, auctions), (auction, bids)| {
            if bids > most {
                *most = *bids;
                auctions.clear();
            }
            if bids == most {
                auctions.push(*auction);
            }
        })
        .flat_map(|(most, auctions)| auctions.into_iter().map(move |auction| (auction, most)))
        .sink(out);
}

pub(crate) fn q5_oracle(events: &[Event]) -> Totals {
    let mut totals = Totals::default();
    for start in starts(events, 10_000, 2_000) {
        let mut counts = BTreeMap::new();
        for bid in bids(events).filter(|bid| (start..start + 10_000).contains(&bid.time)) {
            *counts.entry(bid.auction).or_insert(0u64) += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        counts.iter().filter(|(_, count)| **count == most).for_each(|hot| totals.add(&hot));
    }
    totals
}

/// q7, highest bid: those with the highest price of each 10 seconds. Windows are half open, where the SQL query also takes
/// bids of the next window's first millisecond that come to the same price.
#[pipeline]
pub(crate) fn q7(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(Event::bid)
        .window_all(tumbling("10s"))
        .fold((0, Vec::new()), |(highest, bids), bid| {
            if bid.price > *highest {
                *highest = bid.price;
                bids.clear();
            }
            if bid.price == *highest {
                bids.push(bid.clone());
            }
        })
        .flat_map(|(_, bids)| bids)
        .map(|bid| (bid.auction, bid.price, bid.bidder, bid.time, bid.extra))
        .sink(out);
}

pub(crate) fn q7_oracle(events: &[Event]) -> Totals {
    let mut totals = Totals::default();
    for start in starts(events, 10_000, 10_000) {
        let window: Vec<&Bid> =
            bids(events).filter(|bid| (start..start + 10_000).contains(&bid.time)).collect();
        let highest = window.iter().map(|bid| bid.price).max();
        for bid in window.iter().filter(|bid| Some(bid.price) == highest) {
            totals.add(&(bid.auction, bid.price, bid.bidder, bid.time, &bid.extra));
        }
    }
    totals
}

/// q8, new users: who registers and opens an auction in the same 10 seconds.
#[pipeline]
pub(crate) fn q8(events: Nexmark, out: Checksum) {
    let events = source(events).watermarks(monotonous(), |event| event.time());
    let persons = events.filter_map(|event| event.person().map(|person| (person.id, person.name)));
    // However many auctions one opens: what a window gives is in the window of the same size.
    let sellers = events
        .filter_map(|event| event.auction().map(|auction| auction.seller))
        .key_by(|seller| *seller)
        .window(tumbling("10s"))
        .count()
        .with(|seller, window, _| (seller, window.start.as_millis()));
    persons
        .key_by(|(id, _)| *id)
        .join(sellers.key_by(|(seller, _)| *seller))
        .window(tumbling("10s"))
        .with(|id, (_, name), (_, start)| (id, name.clone(), *start))
        .sink(out);
}

pub(crate) fn q8_oracle(events: &[Event]) -> Totals {
    let sellers: BTreeSet<(u64, i64)> = events
        .iter()
        .filter_map(|event| match event {
            Event::Auction(auction) => Some((auction.seller, auction.time / 10_000)),
            _ => None,
        })
        .collect();
    Totals::of(events.iter().filter_map(|event| match event {
        Event::Person(person) if sellers.contains(&(person.id, person.time / 10_000)) => {
            Some((person.id, &person.name, person.time / 10_000 * 10_000))
        }
        _ => None,
    }))
}

/// q11, user sessions: how many bids somebody makes until nothing comes for 10 seconds.
#[pipeline]
pub(crate) fn q11(events: Nexmark, out: Checksum) {
    source(events)
        .watermarks(monotonous(), |event| event.time())
        .filter_map(|event| event.bid().map(|bid| bid.bidder))
        .key_by(|bidder| *bidder)
        .window(session("10s"))
        .count()
        .with(|bidder, session, bids| (bidder, bids, session.start.as_millis(), session.end.as_millis()))
        .sink(out);
}

pub(crate) fn q11_oracle(events: &[Event]) -> Totals {
    let mut times: Vec<(u64, i64)> = bids(events).map(|bid| (bid.bidder, bid.time)).collect();
    times.sort_unstable();
    let sessions = times.chunk_by(|one, next| one.0 == next.0 && next.1 - one.1 <= 10_000);
    Totals::of(sessions.map(|session| {
        let (first, last) = (session[0], session[session.len() - 1]);
        (first.0, session.len() as u64, first.1, last.1 + 10_000)
    }))
}

/// The starts of all windows that hold an event.
fn starts(events: &[Event], size: i64, slide: i64) -> impl Iterator<Item = i64> {
    let first = events.iter().map(Event::time).min().unwrap_or(0);
    let last = events.iter().map(Event::time).max().unwrap_or(0);
    (0..)
        .map(move |i| (first - size).div_euclid(slide) * slide + i * slide)
        .skip_while(move |start| start + size <= first)
        .take_while(move |start| *start <= last)
}
