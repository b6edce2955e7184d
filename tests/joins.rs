//! Joins of streams: in windows, by the distance of times, with a small stream that is everywhere. What comes out is
//! told from all records, whatever their order, the parallelism and the restarts in between.

mod common;

use common::{Collected, Script, Scripted, run, sorted};
use flow::{pipeline, watermark::bounded, window::tumbling};

/// An order, or a payment: when, by which customer, how much.
type Event = (i64, u64, u64);
/// A pair: whose, and how much on both sides.
type Met = (u64, u64, u64);

#[pipeline]
fn in_windows(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<Met>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .join(payments.key_by(|(_, customer, _)| *customer))
        .window(tumbling("1s"))
        .with(|customer, (_, _, order), (_, _, payment)| (customer, *order, *payment));
    pairs.sink(out.transactional());
}

/// Events that are out of order by up to two seconds, of 7 customers over about two minutes.
fn events(seed: u64, number: i64) -> Vec<Event> {
    let mut state = seed;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let step = 60_000 / number;
    (0..number).map(|i| (i * step + random(2_000) as i64, random(7), i as u64)).collect()
}

/// The events in `splits` parts, in batches of 50, each of which keeps their order.
fn scripts(events: &[Event], splits: usize) -> Scripted<Event> {
    Scripted::new((0..splits).map(|split| {
        let own: Vec<_> = events.iter().skip(split).step_by(splits).copied().collect();
        own.chunks(50).fold(Script::new(), |script, batch| script.records(batch.to_vec()))
    }))
}

/// All pairs of the same customer for which `meets` says so.
fn pairs(orders: &[Event], payments: &[Event], meets: impl Fn(i64, i64) -> bool) -> Vec<Met> {
    let met = |order: &Event, payment: &Event| order.1 == payment.1 && meets(order.0, payment.0);
    sorted(orders.iter().flat_map(|order| {
        payments
            .iter()
            .filter(move |payment| met(order, payment))
            .map(|payment| (order.1, order.2, payment.2))
    }))
}

#[test]
fn all_records_of_a_key_and_window_meet() {
    let (orders, payments) = (events(0x1234_5678_9abc_def1, 500), events(0x9e37_79b9_7f4a_7c15, 400));
    let expected = pairs(&orders, &payments, |a, b| a.div_euclid(1_000) == b.div_euclid(1_000));
    for (parallelism, splits) in [(1, 2), (2, 3), (3, 1), (4, 2)] {
        let out = Collected::new();
        let summary =
            run(in_windows(scripts(&orders, splits), scripts(&payments, 2), out.clone()), parallelism);
        assert_eq!(out.sorted(), expected, "{parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
}
