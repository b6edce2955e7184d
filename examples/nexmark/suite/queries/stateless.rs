//! The queries that look at one bid at a time: q0, q1, q2, q14, q21 and q22.

use flow::pipeline;

use super::super::{
    checksum::{Checksum, Totals},
    model::{Bid, Event},
    source::Nexmark,
};

/// Prices in dollars become euros at this rate, in thousandths.
pub(super) const EURO: u64 = 908;

/// q0, pass through: all bids, as they are.
#[pipeline]
pub(crate) fn q0(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .map(|bid| (bid.auction, bid.bidder, bid.price, bid.time, bid.extra))
        .sink(out);
}

pub(crate) fn q0_oracle(events: &[Event]) -> Totals {
    Totals::of(bids(events).map(|bid| (bid.auction, bid.bidder, bid.price, bid.time, &bid.extra)))
}

/// q1, currency conversion: what bids are in euros. Prices are in thousandths of a cent, so that they stay exact.
#[pipeline]
pub(crate) fn q1(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .map(|bid| (bid.auction, bid.bidder, bid.price * EURO, bid.time, bid.extra))
        .sink(out);
}

pub(crate) fn q1_oracle(events: &[Event]) -> Totals {
    // Rounded to three digits, which loses nothing at prices like these.
    let euros = |price: u64| (price as f64 * 0.908 * 1000.0).round() as u64;
    Totals::of(bids(events).map(|bid| (bid.auction, bid.bidder, euros(bid.price), bid.time, &bid.extra)))
}

/// q2, selection: what is bid on every 123rd auction.
#[pipeline]
pub(crate) fn q2(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .filter(|bid| bid.auction % 123 == 0)
        .map(|bid| (bid.auction, bid.price))
        .sink(out);
}

pub(crate) fn q2_oracle(events: &[Event]) -> Totals {
    let mut totals = Totals::default();
    for bid in bids(events) {
        if bid.auction / 123 * 123 == bid.auction {
            totals.add(&(bid.auction, bid.price));
        }
    }
    totals
}

/// All bids among some events.
pub(super) fn bids(events: &[Event]) -> impl Iterator<Item = &Bid> {
    events.iter().filter_map(|event| match event {
        Event::Bid(bid) => Some(bid),
        _ => None,
    })
}
