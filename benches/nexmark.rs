//! Nexmark's queries over events that are generated in the job, some of them against what one would write by hand: a loop
//! over the same events that computes the same.

mod common;
#[allow(dead_code, reason = "oracles and the crate's events are for those who check")]
#[path = "../examples/nexmark/suite/mod.rs"]
mod suite;

use std::{collections::VecDeque, hint::black_box};

use common::{Bench, check, size};
use foldhash::fast::FixedState;
use suite::{
    checksum::{Checksum, Totals},
    generate::{Generator, Light},
    model::{Bid, Event, Text},
    queries::{QUERIES, Query, Run},
    source::Nexmark,
};

type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// All events, in order.
#[inline(always)]
fn events(number: u64) -> impl Iterator<Item = Event> {
    let light = Light::shared();
    (0..black_box(number)).map(move |n| light.event(n))
}

#[inline(always)]
fn bids(number: u64) -> impl Iterator<Item = Bid> {
    events(number).filter_map(Event::bid)
}

fn q0(number: u64) -> Totals {
    Totals::of(bids(number).map(|bid| (bid.auction, bid.bidder, bid.price, bid.time, bid.extra)))
}

fn q1(number: u64) -> Totals {
    Totals::of(bids(number).map(|bid| (bid.auction, bid.bidder, bid.price * 908, bid.time, bid.extra)))
}

fn q2(number: u64) -> Totals {
    Totals::of(bids(number).filter(|bid| bid.auction % 123 == 0).map(|bid| (bid.auction, bid.price)))
}

/// Counts per two seconds, of which five make a window.
fn q5(number: u64) -> Totals {
    let (mut totals, mut slices) = (Totals::default(), VecDeque::<HashMap<u64, u64>>::new());
    let mut sums: HashMap<u64, u64> = HashMap::default();
    let mut number_of_slice = 0;
    let mut slice = HashMap::default();
    let mut close = |slice: HashMap<u64, u64>| {
        for (auction, bids) in &slice {
            *sums.entry(*auction).or_default() += bids;
        }
        slices.push_back(slice);
        let most = sums.values().copied().max().unwrap_or(0);
        sums.iter().filter(|(_, bids)| **bids == most && most > 0).for_each(|hot| totals.add(&hot));
        if slices.len() == 5 {
            for (auction, bids) in slices.pop_front().unwrap_or_default() {
                let sum = sums.entry(auction).or_default();
                *sum -= bids;
                if *sum == 0 {
                    sums.remove(&auction);
                }
            }
        }
    };
    for bid in bids(number) {
        if bid.time / 2000 != number_of_slice {
            if number_of_slice > 0 {
                close(std::mem::take(&mut slice));
            }
            number_of_slice = bid.time / 2000;
        }
        *slice.entry(bid.auction).or_default() += 1;
    }
    close(slice);
    (0..4).for_each(|_| close(HashMap::default()));
    totals
}

fn q7(number: u64) -> Totals {
    let (mut totals, mut window, mut highest) = (Totals::default(), 0, Vec::<Bid>::new());
    let mut close = |highest: &mut Vec<Bid>| {
        for bid in highest.drain(..) {
            totals.add(&(bid.auction, bid.price, bid.bidder, bid.time, bid.extra));
        }
    };
    let mut most = 0;
    for bid in bids(number) {
        if bid.time / 10_000 != window {
            window = bid.time / 10_000;
            close(&mut highest);
            most = 0;
        }
        if bid.price > most {
            most = bid.price;
            highest.clear();
        }
        if bid.price == most {
            highest.push(bid);
        }
    }
    close(&mut highest);
    totals
}

/// Who has registered in the window, and whether they sell.
fn q8(number: u64) -> Totals {
    let (mut totals, mut window) = (Totals::default(), 0);
    let mut persons: HashMap<u64, Text> = HashMap::default();
    let mut sellers: HashMap<u64, ()> = HashMap::default();
    let mut close = |persons: &mut HashMap<u64, Text>, sellers: &mut HashMap<u64, ()>, window: i64| {
        for (id, name) in persons.drain() {
            if sellers.contains_key(&id) {
                totals.add(&(id, name, window * 10_000));
            }
        }
        sellers.clear();
    };
    for event in events(number) {
        let of = event.time() / 10_000;
        if of != window {
            close(&mut persons, &mut sellers, window);
            window = of;
        }
        match event {
            Event::Person(person) => drop(persons.insert(person.id, person.name)),
            Event::Auction(auction) => drop(sellers.insert(auction.seller, ())),
            Event::Bid(_) => {}
        }
    }
    close(&mut persons, &mut sellers, window);
    totals
}

fn flow(query: &Query, number: u64, parallelism: usize) -> u64 {
    let out = Checksum::default();
    let events = Nexmark::new(Generator::Light, number, parallelism as u64);
    let run = Run { parallelism, ..Run::default() };
    (query.run)(events, out.clone(), &run).expect("the job runs");
    value(out.totals())
}

fn value(totals: Totals) -> u64 {
    check(totals.records, totals.checksum)
}

/// Computes the same by hand.
type Floor = fn(u64) -> Totals;

const FLOORS: [(&str, Floor); 6] = [("q0", q0), ("q1", q1), ("q2", q2), ("q5", q5), ("q7", q7), ("q8", q8)];

fn main() {
    let number = size("FLOW_BENCH_RECORDS", 20_000_000);
    let mut bench = Bench::new(
        "nexmark",
        "Nexmark's queries over events that are generated in the job, among them six against loops by hand.",
    );
    for query in QUERIES {
        let case = bench.case(query.name, number);
        if let Some((_, floor)) = FLOORS.into_iter().find(|(name, _)| *name == query.name) {
            case.way("floor: a loop", move || value(floor(number)));
        }
        case.way("flow, parallelism 1", move || flow(query, number, 1));
        // What is not over by the clock at the end depends on how long it takes.
        if query.name != "q12" {
            case.way("flow, parallelism 2", move || flow(query, number, 2));
        }
    }
    bench.run();
}
