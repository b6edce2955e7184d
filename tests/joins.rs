//! Joins of streams: in windows, by the distance of times, and with a small stream that is everywhere. What comes out is
//! told from all records, whatever their order, the parallelism and the restarts in between. What joins do with late
//! records and at the edges is tested where they are.

mod common;

use std::{path::Path, time::Duration};

use common::{Collected, Fuse, Gate, Script, Scripted, often, run, run_with, sorted, start};
use flow::{
    BoxError, Config, Definition, Ending, Job, Restart, Stream, pipeline,
    watermark::{bounded, monotonous},
    window::{session, sliding, tumbling},
};

/// An order, or a payment: when, by which customer, which one.
type Event = (i64, u64, u64);
/// A pair: whose, and which ones.
type Met = (u64, Option<u64>, Option<u64>);

/// Events that are out of order by up to two seconds, of 7 customers over a minute.
fn events(seed: u64, number: i64) -> Vec<Event> {
    let mut state = seed;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    (0..number).map(|i| (i * 60_000 / number + random(2_000) as i64, random(7), i as u64)).collect()
}

fn orders() -> Vec<Event> {
    events(0x1234_5678_9abc_def1, 400)
}

fn payments() -> Vec<Event> {
    events(0x9e37_79b9_7f4a_7c15, 300)
}

/// Between batches, so that there are checkpoints in between.
const PAUSE: Duration = Duration::from_millis(5);

/// The events in `splits` parts, in batches of 50, each of which keeps their order. After half of each the gate, if any.
fn gated(events: &[Event], splits: usize, gate: Option<&Gate>) -> Scripted<Event> {
    Scripted::new((0..splits).map(|split| {
        let own: Vec<_> = events.iter().skip(split).step_by(splits).copied().collect();
        let (first, second) = own.split_at(own.len() / 2);
        let batches = |script: Script<Event>, part: &[Event]| {
            part.chunks(50).fold(script, |script, batch| script.records(batch.to_vec()).pause(PAUSE))
        };
        let script = batches(Script::new(), first);
        batches(gate.iter().fold(script, |script, gate| script.wait(gate)), second)
    }))
}

fn scripts(events: &[Event], splits: usize) -> Scripted<Event> {
    gated(events, splits, None)
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
fn in_windows(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<Met>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .join(payments.key_by(|(_, customer, _)| *customer))
        .window(tumbling("1s"))
        .with(|customer, (_, _, order), (_, _, payment)| (customer, Some(*order), Some(*payment)));
    pairs.sink(out.transactional());
}

/// The same streams in all kinds of joins, and a keyed stream with several readers.
#[pipeline]
fn outer(
    orders: Scripted<Event>,
    payments: Scripted<Event>,
    left: Collected<Met>,
    right: Collected<Met>,
    full: Collected<Met>,
    counts: Collected<(u64, u64)>,
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
        .sink(left.transactional());
    orders
        .right_join(by_customer)
        .window(tumbling("1s"))
        .allowed_lateness("1s")
        .with(|customer, order, payment| (customer, order.map(|order| order.2), Some(payment.2)))
        .sink(right.transactional());
    let full_pairs = orders
        .full_join(payments.map(|payment| payment).key_by(|(_, customer, _)| *customer))
        .window(tumbling("1s"))
        .with(|customer, order, payment| {
            (customer, order.map(|order| order.2), payment.map(|payment| payment.2))
        });
    full_pairs.sink(full.transactional());
    orders.count().sink(counts.transactional());
}

#[test]
fn all_records_of_a_key_and_window_meet() {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, in_one_second);
    let expected = sorted(pairs.iter().copied().map(met));
    assert!(expected.len() > 100);
    for (parallelism, splits) in [(1, 2), (2, 3), (3, 1), (4, 2)] {
        let out = Collected::new();
        let job = in_windows(scripts(&orders, splits), scripts(&payments, 2), out.clone());
        let summary = run(job, parallelism);
        assert_eq!(out.sorted(), expected, "{parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
    let (lefts, rights) = alone(&orders, &payments, &pairs);
    assert!(lefts.len() > 50 && rights.len() > 50);
    for parallelism in [1, 3] {
        let (left, right, full, counts) =
            (Collected::new(), Collected::new(), Collected::new(), Collected::new());
        let job = outer(
            scripts(&orders, 2),
            scripts(&payments, 3),
            left.clone(),
            right.clone(),
            full.clone(),
            counts.clone(),
        );
        run(job, parallelism);
        assert_eq!(left.sorted(), sorted(expected.iter().chain(&lefts).copied()), "{parallelism}");
        assert_eq!(right.sorted(), sorted(expected.iter().chain(&rights).copied()), "{parallelism}");
        assert_eq!(
            full.sorted(),
            sorted(expected.iter().chain(&lefts).chain(&rights).copied()),
            "{parallelism}"
        );
        assert_eq!(counts.len(), orders.len());
    }
}

#[pipeline]
fn in_other_windows(
    orders: Scripted<Event>,
    payments: Scripted<Event>,
    slid: Collected<Met>,
    visits: Collected<(u64, u64)>,
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
        .sink(slid.transactional());
    let visit = orders
        .key_by(|(_, customer, _)| *customer)
        .full_join(keyed)
        .window(session("400ms"))
        .with(|customer, _, _| customer);
    // The results of a session are at its end, and windows that follow see them in order.
    visit.key_by(|customer| *customer).window(tumbling("10s")).count().sink(visits.transactional());
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
fn windows_that_overlap_or_merge() {
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
        let (slid, visits) = (Collected::new(), Collected::new());
        let job = in_other_windows(scripts(&orders, 2), scripts(&payments, 1), slid.clone(), visits.clone());
        run(job, parallelism);
        assert_eq!(slid.sorted(), sorted(expected.iter().copied()), "{parallelism}");
        assert_eq!(visits.sorted(), sessions(&orders, &payments), "{parallelism}");
    }
}

#[pipeline]
fn by_distance(orders: Scripted<Event>, payments: Scripted<Event>, fuse: Fuse, out: Collected<Met>) {
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
    checked.sink(out.transactional());
}

#[test]
fn records_meet_that_are_close_in_time() {
    let (orders, payments) = (orders(), payments());
    let expected = sorted(inner(&orders, &payments, close).into_iter().map(met));
    for (parallelism, splits) in [(1, 2), (2, 3), (3, 1), (4, 2)] {
        let out = Collected::new();
        let job = by_distance(scripts(&orders, splits), scripts(&payments, 2), Fuse::never(), out.clone());
        let summary = run(job, parallelism);
        assert_eq!(out.sorted(), expected, "{parallelism} and {splits}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
}

#[test]
fn a_join_fails_and_goes_on_without_a_pair_too_many() {
    let (orders, payments) = (orders(), payments());
    let expected = sorted(inner(&orders, &payments, close).into_iter().map(met));
    for parallelism in [1, 3] {
        let (fuse, out) = (Fuse::once(), Collected::new());
        let job = by_distance(scripts(&orders, 2), scripts(&payments, 2), fuse.clone(), out.clone());
        let config = often(&job, parallelism);
        let summary = run_with(job, config).expect("the job ends well");
        assert_eq!((fuse.blown(), summary.restarts), (1, 1));
        assert_eq!(out.sorted(), expected, "{parallelism}");
    }
    let job = by_distance(scripts(&orders, 1), scripts(&payments, 1), Fuse::always(), Collected::new());
    let config = Config { restart: Restart::Never, ..often(&job, 1) };
    let error = run_with(job, config).expect_err("the fuse blows").to_string();
    assert!(error.contains("checked.map") && error.contains("a pair of a join"), "{error}");
}

fn in_dir<D: Definition>(job: &Job<D>, parallelism: usize, dir: &Path) -> Config {
    Config { checkpoint_dir: Some(dir.to_str().expect("a plain path").to_owned()), ..often(job, parallelism) }
}

/// Runs a job with half of its input, and goes on with the other half at another parallelism.
fn interrupted<D: Definition + 'static>(
    from: usize,
    to: usize,
    out: &Collected<Met>,
    enough: usize,
    job: impl Fn(&Gate) -> Job<D>,
) {
    let dir = tempfile::tempdir().unwrap();
    let first = job(&Gate::closed());
    let config = in_dir(&first, from, dir.path());
    let running = start(first, config);
    out.wait_for(|pairs| pairs.len() >= enough);
    assert_eq!(running.stop().ending, Ending::Stopped);

    let gate = Gate::closed();
    gate.open();
    let second = job(&gate);
    let config = in_dir(&second, to, dir.path());
    let summary = run_with(second, config).expect("the job ends");
    assert!(summary.resumed_from.is_some());
    assert_eq!(summary.late.values().sum::<u64>(), 0, "{from} to {to}");
}

#[test]
fn records_that_wait_at_a_checkpoint_meet_at_another_parallelism() {
    let (orders, payments) = (orders(), payments());
    for (from, to) in [(1, 3), (3, 1), (2, 4), (2, 2)] {
        let out = Collected::new();
        interrupted(from, to, &out, 50, |gate| {
            in_windows(gated(&orders, 3, Some(gate)), gated(&payments, 2, Some(gate)), out.clone())
        });
        let expected = sorted(inner(&orders, &payments, in_one_second).into_iter().map(met));
        assert_eq!(out.sorted(), expected, "{from} to {to}");

        let out = Collected::new();
        interrupted(from, to, &out, 50, |gate| {
            let orders = gated(&orders, 3, Some(gate));
            by_distance(orders, gated(&payments, 2, Some(gate)), Fuse::never(), out.clone())
        });
        let expected = sorted(inner(&orders, &payments, close).into_iter().map(met));
        assert_eq!(out.sorted(), expected, "{from} to {to}");
    }
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
fn through_a_helper(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<Met>) {
    let orders = source(orders);
    let payments = source(payments);
    matched(orders, payments).map(|(_, pair)| pair).sink(out.transactional());
}

#[test]
fn who_meets_nobody_within_a_helper_function_comes_out_once() {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, close);
    let (left, right) = alone(&orders, &payments, &pairs);
    let expected = sorted(pairs.into_iter().map(met).chain(left).chain(right));
    for parallelism in [1, 2] {
        // In one split each: within the helper they would come mixed.
        let out = Collected::new();
        let job = through_a_helper(scripts(&orders, 1), scripts(&payments, 1), out.clone());
        run(job, parallelism);
        assert_eq!(out.sorted(), expected, "{parallelism}");
    }
}

/// The time of a pair is the later one of both: windows behind the join tell.
#[pipeline]
fn counted(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<(u64, i64, u64)>) {
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
        .sink(out.transactional());
}

#[test]
fn event_time_goes_on_behind_a_join() {
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
        let out = Collected::new();
        let summary = run(counted(scripts(&orders, 2), scripts(&payments, 3), out.clone()), parallelism);
        assert_eq!(out.sorted(), expected, "{parallelism}");
        assert_eq!(summary.late.values().sum::<u64>(), 0);
    }
}

#[pipeline]
fn unpaid(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<Met>) {
    let orders = source(orders).watermarks(monotonous(), |(time, _, _)| *time);
    let payments =
        source(payments).watermarks(monotonous().with_idleness("50ms"), |(time, _, _)| *time).parallelism(1);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .left_join(payments.key_by(|(_, customer, _)| *customer))
        .between("0s", "1s")
        .with(|customer, order, payment| (customer, Some(order.2), payment.map(|payment| payment.2)));
    pairs.sink(out.transactional());
}

#[test]
fn the_slower_stream_counts_unless_it_is_idle_and_what_is_behind_both_is_late() {
    for parallelism in [1, 2] {
        let (out, gates) = (Collected::new(), [Gate::closed(), Gate::closed()]);
        let orders = Script::new().records([(1_000, 1, 0), (60_000, 1, 1)]).wait(&gates[1]);
        // As long as it is not idle it might still bring a payment of the first order.
        let payments = Script::new()
            .records([(1_200, 2, 0)])
            .wait(&gates[0])
            .records([(1_300, 1, 1), (60_500, 1, 2)])
            .wait(&gates[1]);
        let job = unpaid(Scripted::new([orders]), Scripted::new([payments]), out.clone());
        let config = often(&job, parallelism);
        let running = start(job, config);
        out.wait_for(|pairs| pairs == [(1, Some(0), None)]);
        gates[0].open();
        out.wait_for(|pairs| pairs.len() == 2);
        gates[1].open();
        let summary = running.wait().expect("the job ends");
        assert_eq!(out.sorted(), [(1, Some(0), None), (1, Some(1), Some(2))]);
        assert_eq!(summary.late.values().sum::<u64>(), 1, "{parallelism}");
    }
}

/// A rate: of which currency, from when, how much.
type Rate = (String, u64);

#[pipeline]
fn converted(
    orders: Scripted<(i64, String, u64)>,
    rates: Scripted<Rate>,
    out: Collected<(String, u64, Option<u64>)>,
    seen: Collected<u64>,
    per_minute: Collected<u64>,
) {
    let rates = source(rates);
    let factor = 1u64;
    let in_euros = source(orders)
        .watermarks(bounded("1s"), |(time, _, _)| *time)
        .broadcast_join(rates, |(_, currency, _)| currency.as_str(), |(currency, _)| currency.as_str())
        .with(|(_, currency, amount), rate| (currency, amount, rate.map(|(_, rate)| rate * amount * factor)));
    in_euros.sink(out.transactional());
    in_euros
        .key_by(|_| ())
        .window(tumbling("1m"))
        .count()
        .with(|(), _, count| count)
        .sink(per_minute.transactional());
    rates.map(|(_, rate)| rate).sink(seen.transactional());
}

#[test]
fn a_small_stream_is_everywhere_also_after_a_restore() {
    let order = |number: u64| (number as i64 * 1_000, format!("C{}", number % 6), number);
    let orders: Vec<_> = (0..100).map(order).collect();
    for (from, to) in [(1, 1), (1, 3), (3, 1), (2, 4)] {
        let (out, seen, counts) = (Collected::new(), Collected::new(), Collected::new());
        let dir = tempfile::tempdir().unwrap();
        let job = |gate: &Gate| {
            let orders = (0..3)
                .map(|split| Script::new().wait(gate).records(orders.iter().skip(split).step_by(3).cloned()));
            // The newest one counts, and one currency has none.
            let rates = (0..5).map(|n| (format!("C{n}"), 1)).chain((0..5).map(|n| (format!("C{n}"), n + 10)));
            let rates = Scripted::new([Script::new().records(rates).wait(gate)]);
            converted(Scripted::new(orders), rates, out.clone(), seen.clone(), counts.clone())
        };
        let first = job(&Gate::closed());
        let config = in_dir(&first, from, dir.path());
        let running = start(first, config);
        seen.wait_for(|seen| seen.len() == 10);
        assert_eq!(running.stop().ending, Ending::Stopped);
        let gate = Gate::closed();
        gate.open();
        let second = job(&gate);
        let config = in_dir(&second, to, dir.path());
        run_with(second, config).expect("the job ends");
        let rate = |number: u64| (number % 6 < 5).then(|| number * (number % 6 + 10));
        let expected = sorted((0..100).map(|number| (format!("C{}", number % 6), number, rate(number))));
        assert_eq!(out.sorted(), expected, "{from} to {to}");
        assert_eq!(counts.sorted(), [40, 60], "event time is that of the large stream");
        assert_eq!(seen.len(), 10);
    }
}

/// One result per customer, at the end.
#[pipeline(mode = batch)]
fn at_the_end(orders: Scripted<Event>, payments: Scripted<Event>, out: Collected<(u64, u64)>) {
    let orders = source(orders).watermarks(bounded("2s"), |(time, _, _)| *time);
    let payments = source(payments).watermarks(bounded("2s"), |(time, _, _)| *time);
    let pairs = orders
        .key_by(|(_, customer, _)| *customer)
        .join(payments.key_by(|(_, customer, _)| *customer))
        .between("-500ms", "1999ms")
        .with(|customer, _, _| customer);
    pairs.key_by(|customer| *customer).count().sink(out.transactional());
}

#[test]
fn a_batch_counts_all_pairs_at_the_end() {
    let (orders, payments) = (orders(), payments());
    let pairs = inner(&orders, &payments, close);
    let count = |customer| pairs.iter().filter(|pair| pair.0.1 == customer).count() as u64;
    for parallelism in [1, 3] {
        let out = Collected::new();
        run(at_the_end(scripts(&orders, 2), scripts(&payments, 1), out.clone()), parallelism);
        assert_eq!(out.sorted(), (0..7).map(|customer| (customer, count(customer))).collect::<Vec<_>>());
    }
}
