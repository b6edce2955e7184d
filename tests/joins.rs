//! Joins of streams: in windows, by the distance of times, and with a small stream that is everywhere. What comes out is
//! told from all records, whatever their order, the parallelism and the restarts in between. What joins do with late
//! records and at the edges is tested where they are.

mod common;

use std::time::Duration;

use common::{Fuse, deal, halves, often, random, sorted};
use flow::{
    BoxError, Definition, Error, Job, Stream, Summary, pipeline,
    testing::{Harness, Input, Output},
    watermark::{bounded, monotonous},
    window::{session, sliding, tumbling},
};

/// An order, or a payment: when, by which customer, which one.
type Event = (i64, u64, u64);
/// A pair: whose, and which ones.
type Met = (u64, Option<u64>, Option<u64>);

/// Events that are out of order by up to two seconds, of 7 customers over a minute.
fn events(seed: u64, number: i64) -> Vec<Event> {
    let mut random = random(seed);
    (0..number).map(|i| (i * 60_000 / number + random(2_000) as i64, random(7), i as u64)).collect()
}

fn orders() -> Vec<Event> {
    events(0x1234_5678_9abc_def1, 400)
}

fn payments() -> Vec<Event> {
    events(0x9e37_79b9_7f4a_7c15, 300)
}

/// How a job runs: with so many splits of orders and of payments, at a parallelism, and from the middle on at another
/// one, restored, if there is one.
#[derive(Clone, Copy)]
struct How {
    splits: (usize, usize),
    parallelism: usize,
    then: Option<usize>,
}

/// With so many splits at this parallelism.
fn at(parallelism: usize, splits: (usize, usize)) -> How {
    How { splits, parallelism, then: None }
}

/// What comes out of all orders and payments, sorted.
fn outcome<T: Ord + Send + 'static, D: Definition + 'static>(
    how: How,
    job: impl Fn(Input<Event>, Input<Event>, Output<T>) -> Job<D>,
) -> Result<(Vec<T>, Summary), Error> {
    let mut test = Harness::new();
    let (left, right) = (test.input_of(how.splits.0), test.input_of(how.splits.1));
    let out = test.output();
    let job = || job(left.clone(), right.clone(), out.clone());
    let (orders, payments) = (orders(), payments());
    let deal_half = |orders: &[Event], payments: &[Event]| {
        deal(&left, how.splits.0, orders);
        deal(&right, how.splits.1, payments);
    };
    test.parallelism(how.parallelism).start(job())?;
    deal_half(halves(&orders).0, halves(&payments).0);
    let mut records = Vec::new();
    if let Some(parallelism) = how.then {
        let middle = test.snapshot()?;
        records = out.take();
        test.parallelism(parallelism).restore(&middle, job())?;
    }
    deal_half(halves(&orders).1, halves(&payments).1);
    let summary = test.finish()?;
    assert_eq!(summary.late.values().sum::<u64>(), 0);
    records.extend(out.take());
    records.sort();
    Ok((records, summary))
}

/// The order and the payment of which a pair is made.
type Two<'e> = (&'e Event, &'e Event);

/// All pairs of the same customer for which `meets` says so.
fn inner<'e>(orders: &'e [Event], payments: &'e [Event], meets: impl Fn(i64, i64) -> bool) -> Vec<Two<'e>> {
    let mut pairs = Vec::new();
    for order in orders {
        let met = payments.iter().filter(|payment| order.1 == payment.1 && meets(order.0, payment.0));
        pairs.extend(met.map(|payment| (order, payment)));
    }
    pairs
}

fn met((order, payment): Two<'_>) -> Met {
    (order.1, Some(order.2), Some(payment.2))
}

/// Those on the left, and those on the right, that are in no pair.
fn alone(orders: &[Event], payments: &[Event], pairs: &[Two<'_>]) -> (Vec<Met>, Vec<Met>) {
    let left = orders.iter().filter(|order| pairs.iter().all(|pair| pair.0.2 != order.2));
    let right = payments.iter().filter(|payment| pairs.iter().all(|pair| pair.1.2 != payment.2));
    (
        left.map(|order| (order.1, Some(order.2), None)).collect(),
        right.map(|payment| (payment.1, None, Some(payment.2))).collect(),
    )
}

fn in_one_second(a: i64, b: i64) -> bool {
    a.div_euclid(1_000) == b.div_euclid(1_000)
}

fn close(order: i64, payment: i64) -> bool {
    (-500..2_000).contains(&(payment - order))
}

#[pipeline]
fn in_windows(orders: Input<Event>, payments: Input<Event>, out: Output<Met>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .join(payments.key_by(|(_, customer, _)| *customer))
        .window(tumbling("1s"))
        .with(|customer, (_, _, order), (_, _, payment)| (customer, Some(*order), Some(*payment)));
    pairs.sink(out);
}

/// The same streams in all kinds of joins, and a keyed stream with several readers.
#[pipeline]
fn outer(
    orders: Input<Event>,
    payments: Input<Event>,
    left: Output<Met>,
    right: Output<Met>,
    full: Output<Met>,
    counts: Output<(u64, u64)>,
) {
    let orders =
        source(orders).watermarks(bounded("2s"), |(time, _, _)| *time).key_by(|(_, customer, _)| *customer);
    let payments =
        source(payments).watermarks(bounded("2s"), |(time, _, _)| *time).rebalance().filter(|_| true);
    let by_customer = payments.key_by(|(_, customer, _)| *customer);
    orders
        .left_join(by_customer)
        .window(tumbling("1s"))
        .with(|customer, order, payment| (customer, Some(order.2), payment.map(|payment| payment.2)))
        .sink(left);
    orders
        .right_join(by_customer)
        .window(tumbling("1s"))
        .allowed_lateness("1s")
        .with(|customer, order, payment| (customer, order.map(|order| order.2), Some(payment.2)))
        .sink(right);
    let full_pairs = orders
        .full_join(payments.map(|payment| payment).key_by(|(_, customer, _)| *customer))
        .window(tumbling("1s"))
        .with(|customer, order, payment| {
            (customer, order.map(|order| order.2), payment.map(|payment| payment.2))
        });
    full_pairs.sink(full);
    orders.count().sink(counts);
}

#[test]
fn all_records_of_a_key_and_window_meet() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, in_one_second);
    let expected = sorted(pairs.iter().copied().map(met));
    assert!(expected.len() > 100);
    for (parallelism, splits) in [(1, 2), (2, 3), (3, 1), (4, 2)] {
        let (found, _) = outcome(at(parallelism, (splits, 2)), in_windows)?;
        assert_eq!(found, expected, "{parallelism} and {splits}");
    }
    let (lefts, rights) = alone(&orders, &payments, &pairs);
    assert!(lefts.len() > 50 && rights.len() > 50);
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (left, right, full, counts) = (test.output(), test.output(), test.output(), test.output());
        let inputs = (test.input_of(2), test.input_of(3));
        let job = outer(
            inputs.0.clone(),
            inputs.1.clone(),
            left.clone(),
            right.clone(),
            full.clone(),
            counts.clone(),
        );
        test.parallelism(parallelism).start(job)?;
        deal(&inputs.0, 2, &orders);
        deal(&inputs.1, 3, &payments);
        test.finish()?;
        assert_eq!(left.take_sorted(), sorted(expected.iter().chain(&lefts).copied()), "{parallelism}");
        assert_eq!(right.take_sorted(), sorted(expected.iter().chain(&rights).copied()), "{parallelism}");
        assert_eq!(
            full.take_sorted(),
            sorted(expected.iter().chain(&lefts).chain(&rights).copied()),
            "{parallelism}"
        );
        assert_eq!(counts.take().len(), orders.len());
    }
    Ok(())
}

#[pipeline]
fn in_other_windows(
    orders: Input<Event>,
    payments: Input<Event>,
    slid: Output<Met>,
    visits: Output<(u64, u64)>,
) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let (a, b) = (0u64, 0u64);
    let keyed = payments.key_by(move |(_, customer, _)| *customer + a);
    orders
        .key_by(move |(_, customer, _)| *customer + b)
        .join(keyed)
        .window(sliding("2s", "1s"))
        .with(|customer, order, payment| (customer, Some(order.2), Some(payment.2)))
        .sink(slid);
    let visit = orders
        .key_by(|(_, customer, _)| *customer)
        .full_join(keyed)
        .window(session("400ms"))
        .with(|customer, _, _| customer);
    // The results of a session are at its end, and windows that follow see them in order.
    visit.key_by(|customer| *customer).window(tumbling("10s")).count().sink(visits);
}

/// How many pairs, or records alone, each customer has in each ten seconds of the ends of its sessions.
fn sessions(orders: &[Event], payments: &[Event]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, i64, bool)> = orders.iter().map(|order| (order.1, order.0, true)).collect();
    all.extend(payments.iter().map(|payment| (payment.1, payment.0, false)));
    all.sort_unstable();
    let mut counts = std::collections::BTreeMap::new();
    for session in all.chunk_by(|a, b| a.0 == b.0 && b.1 - a.1 <= 400) {
        let left = session.iter().filter(|event| event.2).count();
        let (pairs, last) = (left * (session.len() - left), session[session.len() - 1]);
        let pairs = if pairs == 0 { session.len() } else { pairs };
        *counts.entry((last.0, (last.1 + 399).div_euclid(10_000))).or_insert(0) += pairs as u64;
    }
    sorted(counts.into_iter().map(|((customer, _), count)| (customer, count)))
}

#[test]
fn windows_that_overlap_or_merge() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let together = |a: i64, b: i64| {
        let starts = |time: i64| [time.div_euclid(1_000) - 1, time.div_euclid(1_000)];
        starts(a).into_iter().filter(|start| starts(b).contains(start)).count()
    };
    let mut expected = Vec::new();
    for pair in inner(&orders, &payments, |a, b| together(a, b) > 0) {
        expected.extend((0..together(pair.0.0, pair.1.0)).map(|_| met(pair)));
    }
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (left, right, slid, visits) = (test.input_of(2), test.input(), test.output(), test.output());
        let job = in_other_windows(left.clone(), right.clone(), slid.clone(), visits.clone());
        test.parallelism(parallelism).start(job)?;
        deal(&left, 2, &orders);
        deal(&right, 1, &payments);
        test.finish()?;
        assert_eq!(slid.take_sorted(), sorted(expected.iter().copied()), "{parallelism}");
        assert_eq!(visits.take_sorted(), sessions(&orders, &payments), "{parallelism}");
    }
    Ok(())
}

#[pipeline]
fn by_distance(orders: Input<Event>, payments: Input<Event>, fuse: Fuse, out: Output<Met>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .interval_join(payments.key_by(|(_, customer, _)| *customer))
        .between("-500ms", "2s")
        .exclusive_upper()
        .with(|customer, order, payment| (customer, Some(order.2), Some(payment.2)));
    let checked = pairs.map(|pair| {
        fuse.fail(pair.1 == Some(200))?;
        Ok::<_, BoxError>(pair)
    });
    checked.sink(out);
}

#[test]
fn records_meet_that_are_close_in_time() -> Result<(), Error> {
    let expected = sorted(inner(&orders(), &payments(), close).into_iter().map(met));
    for (parallelism, splits) in [(1, 2), (2, 3), (3, 1), (4, 2)] {
        let job = |orders, payments, out| by_distance(orders, payments, Fuse::never(), out);
        let (found, _) = outcome(at(parallelism, (splits, 2)), job)?;
        assert_eq!(found, expected, "{parallelism} and {splits}");
    }
    Ok(())
}

#[test]
fn a_join_fails_and_goes_on_without_a_pair_too_many() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let expected = sorted(inner(&orders, &payments, close).into_iter().map(met));
    for parallelism in [1, 3] {
        let fuse = Fuse::once();
        let mut test = Harness::new();
        let (left, right, out) = (test.input_of(2), test.input_of(2), test.output());
        let job = by_distance(left.clone(), right.clone(), fuse.clone(), out.clone());
        let config = often(&job, parallelism);
        test.start_with(job, config)?;
        deal(&left, 2, &orders);
        deal(&right, 2, &payments);
        let summary = test.finish()?;
        assert_eq!((fuse.blown(), summary.restarts), (1, 1));
        assert_eq!(out.take_sorted(), expected, "{parallelism}");
    }
    let mut test = Harness::new();
    let (left, right, out) = (test.input(), test.input(), test.output());
    test.start(by_distance(left.clone(), right.clone(), Fuse::always(), out))?;
    deal(&left, 1, &orders);
    deal(&right, 1, &payments);
    let error = test.finish().expect_err("the fuse blows").to_string();
    assert!(error.contains("checked.map") && error.contains("a pair of a join"), "{error}");
    Ok(())
}

#[test]
fn records_that_wait_at_a_checkpoint_meet_at_another_parallelism() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    for (from, to) in [(1, 3), (3, 1), (2, 4), (2, 2)] {
        let how = How { splits: (3, 2), parallelism: from, then: Some(to) };
        let (found, summary) = outcome(how, in_windows)?;
        assert!(summary.resumed_from.is_some());
        let expected = sorted(inner(&orders, &payments, in_one_second).into_iter().map(met));
        assert_eq!(found, expected, "{from} to {to}");

        let (found, _) =
            outcome(how, |orders, payments, out| by_distance(orders, payments, Fuse::never(), out))?;
        let expected = sorted(inner(&orders, &payments, close).into_iter().map(met));
        assert_eq!(found, expected, "{from} to {to}");
    }
    Ok(())
}

/// A join of two streams, within a helper function.
#[pipeline]
fn matched(orders: Stream<Event>, payments: Stream<Event>) -> Stream<(i64, Met)> {
    let paid = payments.watermarks(bounded("3s"), |(time, _, _)| *time);
    orders
        .watermarks(bounded("3s"), |(time, _, _)| *time)
        .key_by(|(_, customer, _)| *customer)
        .full_join(paid.key_by(|(_, customer, _)| *customer))
        .between("-500ms", "1999ms")
        .with(|customer, order, payment| {
            let time = order.map(|order| order.0).max(payment.map(|payment| payment.0));
            (time.unwrap_or(0), (customer, order.map(|order| order.2), payment.map(|payment| payment.2)))
        })
}

#[pipeline]
fn through_a_helper(orders: Input<Event>, payments: Input<Event>, out: Output<Met>) {
    let orders = source(orders);
    let payments = source(payments);
    matched(orders, payments).map(|(_, pair)| pair).sink(out);
}

#[test]
fn who_meets_nobody_within_a_helper_function_comes_out_once() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, close);
    let (left, right) = alone(&orders, &payments, &pairs);
    let expected = sorted(pairs.into_iter().map(met).chain(left).chain(right));
    for parallelism in [1, 2] {
        // In one split each: within the helper they would come mixed.
        let (found, _) = outcome(at(parallelism, (1, 1)), through_a_helper)?;
        assert_eq!(found, expected, "{parallelism}");
    }
    Ok(())
}

/// The time of a pair is the later one of both: windows behind the join tell.
#[pipeline]
fn counted(orders: Input<Event>, payments: Input<Event>, out: Output<(u64, i64, u64)>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .left_join(payments.key_by(|(_, customer, _)| *customer))
        .between("-500ms", "1999ms")
        .with(|customer, _, _| customer);
    pairs
        .key_by(|customer| *customer)
        .window(tumbling("5s"))
        .count()
        .with(|customer, window, count| (customer, window.start.as_millis(), count))
        .sink(out);
}

#[test]
fn event_time_goes_on_behind_a_join() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, close);
    let mut counts = std::collections::BTreeMap::new();
    let mut count = |customer: u64, time: i64| {
        *counts.entry((customer, time.div_euclid(5_000) * 5_000)).or_insert(0) += 1;
    };
    for (order, payment) in &pairs {
        count(order.1, order.0.max(payment.0));
    }
    // That nobody comes any more is clear when the interval is over.
    for order in orders.iter().filter(|order| pairs.iter().all(|pair| pair.0.2 != order.2)) {
        count(order.1, order.0 + 1_999);
    }
    let expected = sorted(counts.into_iter().map(|((customer, start), count)| (customer, start, count)));
    for parallelism in [1, 3] {
        let (found, _) = outcome(at(parallelism, (2, 3)), counted)?;
        assert_eq!(found, expected, "{parallelism}");
    }
    Ok(())
}

#[pipeline]
fn unpaid(orders: Input<Event>, payments: Input<Event>, out: Output<Met>) {
    let orders = source(orders).watermarks(monotonous(), |(time, _, _)| *time);
    let payments =
        source(payments).watermarks(monotonous().with_idleness("50ms"), |(time, _, _)| *time).parallelism(1);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .left_join(payments.key_by(|(_, customer, _)| *customer))
        .between("0s", "1s")
        .with(|customer, order, payment| (customer, Some(order.2), payment.map(|payment| payment.2)));
    pairs.sink(out);
}

#[test]
fn the_slower_stream_counts_unless_it_is_idle_and_what_is_behind_both_is_late() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (orders, payments, out) = (test.input(), test.input(), test.output());
        let job = unpaid(orders.clone(), payments.clone(), out.clone());
        test.parallelism(parallelism).start(job)?;
        orders.push_all([(1_000, 1, 0), (60_000, 1, 1)]);
        payments.push((1_200, 2, 0));
        test.advance(Duration::from_millis(49))?;
        assert!(out.take().is_empty(), "it might still bring a payment of the first order");
        test.advance(Duration::from_millis(1))?;
        assert_eq!(out.take(), [(1, Some(0), None)]);
        payments.push_all([(1_300, 1, 1), (60_500, 1, 2)]);
        test.settle()?;
        assert_eq!(out.take(), [(1, Some(1), Some(2))]);
        let summary = test.finish()?;
        assert!(out.take().is_empty());
        assert_eq!(summary.late.values().sum::<u64>(), 1, "{parallelism}");
    }
    Ok(())
}

/// A rate: of which currency, from when, how much.
type Rate = (String, u64);

#[pipeline]
fn converted(
    orders: Input<(i64, String, u64)>,
    rates: Input<Rate>,
    out: Output<(String, u64, Option<u64>)>,
    seen: Output<u64>,
    per_minute: Output<u64>,
) {
    let rates = source(rates);
    let factor = 1u64;
    let in_euros = source(orders)
        .watermarks(bounded("1s"), |(time, _, _)| *time)
        .broadcast_join(rates, |(_, currency, _)| currency.as_str(), |(currency, _)| currency.as_str())
        .with(|(_, currency, amount), rate| (currency, amount, rate.map(|(_, rate)| rate * amount * factor)));
    in_euros.sink(out);
    in_euros.key_by(|_| ()).window(tumbling("1m")).count().with(|(), _, count| count).sink(per_minute);
    rates.map(|(_, rate)| rate).sink(seen);
}

#[test]
fn a_small_stream_is_everywhere_also_after_a_restore() -> Result<(), Error> {
    let order = |number: u64| (number as i64 * 1_000, format!("C{}", number % 6), number);
    for (from, to) in [(1, 1), (1, 3), (3, 1), (2, 4)] {
        let mut test = Harness::new();
        let (orders, rates, out) = (test.input_of(3), test.input(), test.output());
        let (seen, counts) = (test.output(), test.output());
        let job = || converted(orders.clone(), rates.clone(), out.clone(), seen.clone(), counts.clone());
        test.parallelism(from).start(job())?;
        // The newest one counts, and one currency has none.
        rates.push_all((0..5).map(|n| (format!("C{n}"), 1)).chain((0..5).map(|n| (format!("C{n}"), n + 10))));
        let known = test.snapshot()?;
        test.parallelism(to).restore(&known, job())?;
        (0..3).for_each(|split| orders.push_to(split, (0..100).map(order).skip(split).step_by(3)));
        test.finish()?;
        let rate = |number: u64| (number % 6 < 5).then(|| number * (number % 6 + 10));
        let expected = sorted((0..100).map(|number| (format!("C{}", number % 6), number, rate(number))));
        assert_eq!(out.take_sorted(), expected, "{from} to {to}");
        assert_eq!(counts.take_sorted(), [40, 60], "event time is that of the large stream");
        assert_eq!(seen.take().len(), 10);
    }
    Ok(())
}

/// One result per customer, at the end.
#[pipeline(mode = batch)]
fn at_the_end(orders: Input<Event>, payments: Input<Event>, out: Output<(u64, u64)>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .join(payments.key_by(|(_, customer, _)| *customer))
        .between("-500ms", "1999ms")
        .with(|customer, _, _| customer);
    pairs.key_by(|customer| *customer).count().sink(out);
}

#[test]
fn a_batch_counts_all_pairs_at_the_end() -> Result<(), Error> {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, close);
    let count = |customer| pairs.iter().filter(|pair| pair.0.1 == customer).count() as u64;
    for parallelism in [1, 3] {
        let (found, _) = outcome(at(parallelism, (2, 1)), at_the_end)?;
        assert_eq!(found, (0..7).map(|customer| (customer, count(customer))).collect::<Vec<_>>());
    }
    Ok(())
}
