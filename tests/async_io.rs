//! Asynchronous I/O: every record gets its answer once, in the order that was asked for, whatever happens to the job.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use flow::{
    BoxError, Error, Job,
    async_io::{Lookup, TimedOut, exponential, fixed_delay},
    pipeline,
    testing::{Harness, Input, Output},
    watermark::monotonous,
    window::tumbling,
};
use proptest::prelude::*;
use tokio::sync::watch;

/// A server outside: answers with twice the number, when it is told to.
#[derive(Clone, Debug)]
struct Server(Arc<State>);

#[derive(Debug)]
struct State {
    /// Answers as many questions as this, the oldest of a run first.
    open: watch::Sender<bool>,
    under_way: AtomicI64,
    most: AtomicI64,
    asked: Mutex<HashMap<u64, u64>>,
    /// How many questions fail at first.
    failures: AtomicU64,
}

impl Server {
    fn new() -> Self {
        Server(Arc::new(State {
            open: watch::Sender::new(true),
            under_way: AtomicI64::new(0),
            most: AtomicI64::new(0),
            asked: Mutex::default(),
            failures: AtomicU64::new(0),
        }))
    }

    /// Gives no answers until it opens.
    fn closed() -> Self {
        let server = Server::new();
        server.0.open.send_replace(false);
        server
    }

    fn open(&self) {
        self.0.open.send_replace(true);
    }

    fn failing(self, times: u64) -> Self {
        self.0.failures.store(times, Ordering::SeqCst);
        self
    }

    fn under_way(&self) -> i64 {
        self.0.under_way.load(Ordering::SeqCst)
    }

    fn asked(&self, number: u64) -> u64 {
        self.0.asked.lock().unwrap().get(&number).copied().unwrap_or(0)
    }

    async fn twice(&self, number: u64) -> Result<u64, BoxError> {
        *self.0.asked.lock().unwrap().entry(number).or_default() += 1;
        let _asking = Asking::begin(&self.0);
        // Answers of neighbours come in another order than the questions.
        for _ in 0..number.wrapping_mul(7) % 13 {
            tokio::task::yield_now().await;
        }
        let _ = self.0.open.subscribe().wait_for(|open| *open).await;
        let fails = |left: u64| left.checked_sub(1);
        if self.0.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Err("the server is busy".into());
        }
        Ok(number * 2)
    }
}

/// Counts a question as long as somebody waits for its answer.
struct Asking<'s>(&'s State);

impl<'s> Asking<'s> {
    fn begin(state: &'s State) -> Self {
        let now = state.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        state.most.fetch_max(now, Ordering::SeqCst);
        Asking(state)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[pipeline]
fn doubled(numbers: Input<u64>, server: Server, out: Output<u64>) {
    source(numbers).map_async(|n| async move { server.twice(n).await }).capacity(10).map(|n| n + 1).sink(out);
}

#[pipeline]
fn doubled_as_they_come(numbers: Input<u64>, server: Server, out: Output<u64>) {
    source(numbers)
        .map_async(|n| async move { server.twice(n).await })
        .unordered()
        .capacity(10)
        .map(|n| n + 1)
        .sink(out);
}

/// The window of ten in which each number is, with how many there are.
#[pipeline]
fn in_windows(numbers: Input<u64>, server: Server, out: Output<(u64, i64, u64)>) {
    source(numbers)
        .watermarks(monotonous(), |n| *n)
        .map_async(|n| async move {
            let double = server.twice(n).await?;
            Ok(double / 2)
        })
        .unordered()
        .capacity(7)
        .key_by(|n| n % 2)
        .window(tumbling("10ms"))
        .count()
        .with(|rest, window, count| (rest, window.start.as_millis(), count))
        .sink(out);
}

fn plus_one(numbers: &[u64]) -> Vec<u64> {
    numbers.iter().map(|n| n * 2 + 1).collect()
}

fn sorted<T: Ord>(mut records: Vec<T>) -> Vec<T> {
    records.sort();
    records
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ordered_is_a_map_and_unordered_one_in_any_order(
        pushes in prop::collection::vec(prop::collection::vec(0u64..1000, 0..40), 1..8),
        parallelism in 1usize..4,
    ) {
        let all: Vec<u64> = pushes.concat();
        let mut test = Harness::new();
        let (numbers, out) = (test.input(), test.output());
        test.parallelism(parallelism).start(doubled(numbers.clone(), Server::new(), out.clone())).unwrap();
        pushes.iter().for_each(|push| numbers.push_all(push.clone()));
        test.settle().unwrap();
        prop_assert_eq!(out.take(), plus_one(&all));
        test.finish().unwrap();
        prop_assert!(out.take().is_empty());

        let mut test = Harness::new();
        let (numbers, out) = (test.input(), test.output());
        let job = doubled_as_they_come(numbers.clone(), Server::new(), out.clone());
        test.parallelism(parallelism).start(job).unwrap();
        pushes.iter().for_each(|push| numbers.push_all(push.clone()));
        test.finish().unwrap();
        prop_assert_eq!(out.take_sorted(), sorted(plus_one(&all)));
    }

    /// A watermark overtakes no record, or its window would have been over; and no record a watermark, or it would be in
    /// time where it was late.
    #[test]
    fn watermarks_keep_their_place(
        pushes in prop::collection::vec(prop::collection::vec(0u64..60, 1..10), 1..12),
        parallelism in 1usize..3,
    ) {
        let mut test = Harness::new();
        let (numbers, out) = (test.input(), test.output());
        let job = in_windows(numbers.clone(), Server::new(), out.clone());
        test.parallelism(parallelism).start(job).unwrap();
        // The subtasks that have nothing to read have said so.
        test.settle().unwrap();
        let (mut counts, mut newest, mut late) = (BTreeMap::new(), 0, 0);
        for push in &pushes {
            numbers.push_all(push.clone());
            for n in push {
                // Late when the watermark, which is said behind each push, has passed the end of its window.
                if n / 10 * 10 + 10 <= newest {
                    late += 1;
                } else {
                    *counts.entry((n % 2, (n / 10 * 10) as i64)).or_insert(0) += 1;
                }
            }
            newest = newest.max(push.iter().copied().max().unwrap_or(0));
        }
        let summary = test.finish().unwrap();
        let counts: Vec<_> = counts.into_iter().map(|((rest, start), count)| (rest, start, count)).collect();
        prop_assert_eq!(out.take_sorted(), counts);
        prop_assert_eq!(summary.late.values().sum::<u64>(), late);
    }
}

fn in_order(numbers: &Input<u64>, server: &Server, out: &Output<u64>) -> Job<doubled> {
    doubled(numbers.clone(), server.clone(), out.clone())
}

#[test]
fn what_is_under_way_is_asked_again_after_a_restore_and_counts_once() -> Result<(), Error> {
    for (before, after) in [(1, 1), (1, 3), (3, 2), (2, 1)] {
        let server = Server::closed();
        let mut test = Harness::new();
        let (numbers, out) = (test.input_of(3), test.output());
        test.parallelism(before).start(in_order(&numbers, &server, &out))?;
        (0..60).for_each(|n| numbers.push_to(n as usize % 3, [n]));
        test.until(|| server.under_way() >= 10)?;
        // More than there is room for, and some that are not read yet.
        test.crash();
        test.parallelism(after).start(in_order(&numbers, &server, &out))?;
        test.until(|| server.under_way() >= 10)?;
        numbers.push(100);
        test.stop()?;
        assert_eq!(server.under_way(), 0, "nobody waits for the answers of a job that has ended");
        assert!(out.take().is_empty());

        server.open();
        test.parallelism(before).start(in_order(&numbers, &server, &out))?;
        test.finish()?;
        let expected = sorted(plus_one(&(0..60).chain([100]).collect::<Vec<_>>()));
        assert_eq!(out.take_sorted(), expected, "from {before} to {after} subtasks and back");
        assert!((0..10).any(|n| server.asked(n) > 1));
    }
    Ok(())
}

#[test]
fn a_checkpoint_holds_what_is_under_way() -> Result<(), Error> {
    let server = Server::closed();
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    test.start(in_order(&numbers, &server, &out))?;
    numbers.push_all([1, 2, 3]);
    let snapshot = test.snapshot()?;
    let lists: Vec<_> = snapshot.manifest().operator_states("map_async").collect();
    assert_eq!(lists.iter().map(|list| list.items).sum::<usize>(), 3);
    server.open();
    test.settle()?;
    assert_eq!(out.take(), [3, 5, 7]);
    for parallelism in [1, 2, 5] {
        test.parallelism(parallelism).restore(&snapshot, in_order(&numbers, &server, &out))?;
        test.settle()?;
        assert_eq!(out.take_sorted(), [3, 5, 7], "asked again by {parallelism}");
        let later = test.snapshot()?;
        assert_eq!(later.manifest().operator_states("map_async").count(), 0);
    }
    Ok(())
}

#[test]
fn no_more_are_under_way_than_was_said_and_the_source_waits() -> Result<(), Error> {
    let server = Server::closed();
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    test.start(in_order(&numbers, &server, &out))?;
    (0..100).for_each(|n| numbers.push(n));
    test.until(|| server.under_way() == 10)?;
    assert!((50..100).all(|n| server.asked(n) == 0), "the chain is held up");
    server.open();
    test.settle()?;
    assert_eq!(out.take(), plus_one(&(0..100).collect::<Vec<_>>()));
    assert_eq!(server.0.most.load(Ordering::SeqCst), 10);
    Ok(())
}

#[pipeline(restart = none)]
fn patient(numbers: Input<u64>, server: Server, out: Output<u64>) {
    let answers = source(numbers).map_async(|n| async move { server.twice(n).await }).timeout("2s").retry(
        fixed_delay(2, "1s").when(|error| error.is::<TimedOut>() || error.to_string().contains("busy")),
    );
    answers.sink(out);
}

#[test]
fn what_fails_is_asked_again_after_a_delay_and_then_is_an_error() -> Result<(), Error> {
    let second = Duration::from_secs(1);
    for failures in [2, 3] {
        let server = Server::new().failing(failures);
        let mut test = Harness::new();
        let (numbers, out) = (test.input(), test.output());
        test.start(patient(numbers.clone(), server.clone(), out.clone()))?;
        numbers.push(7);
        test.until(|| server.asked(7) == 1)?;
        // The delay is one of the test's clock.
        while server.asked(7) < 2 {
            test.advance(second)?;
        }
        let done = (|| {
            while server.asked(7) < 3 {
                test.advance(second)?;
            }
            test.settle()
        })();
        if failures == 2 {
            done?;
            assert_eq!(out.take(), [14]);
        } else {
            let error = done.expect_err("three failures are one too many").to_string();
            assert!(error.contains("answers.map_async"), "{error}");
            assert!(error.contains("the answer to record 0") && error.contains("busy"), "{error}");
        }
        assert_eq!(server.asked(7), 3);
    }
    Ok(())
}

#[pipeline(restart = none)]
fn impatient(numbers: Input<u64>, server: Server, out: Output<u64>) {
    source(numbers).map_async(|n| async move { server.twice(n).await }).timeout("2s").sink(out);
}

#[pipeline]
fn lenient(numbers: Input<u64>, server: Server, out: Output<u64>) {
    source(numbers)
        .map_async(|n| async move { server.twice(n).await })
        .timeout("2s")
        .on_timeout(|n| n + 1_000)
        .sink(out);
}

#[pipeline]
fn careless(numbers: Input<u64>, server: Server, out: Output<u64>) {
    source(numbers)
        .map_async(|n| async move {
            match n {
                3 => Err(BoxError::from("not that one")),
                _ => server.twice(n).await,
            }
        })
        .timeout("2s")
        .on_error(skip)
        .sink(out);
}

#[test]
fn a_future_that_never_ends_has_a_timeout() -> Result<(), Error> {
    let (server, mut test) = (Server::closed(), Harness::new());
    let (numbers, out) = (test.input(), test.output());
    test.start(impatient(numbers.clone(), server.clone(), out.clone()))?;
    numbers.push(7);
    test.until(|| server.under_way() == 1)?;
    test.advance(Duration::from_millis(1_999))?;
    assert_eq!(server.under_way(), 1);
    let error = test.advance(Duration::from_millis(1)).expect_err("it is too late").to_string();
    assert!(error.contains("no answer within 2s") && error.contains("map_async"), "{error}");

    let (server, mut test) = (Server::closed(), Harness::new());
    let (numbers, out) = (test.input(), test.output());
    test.start(lenient(numbers.clone(), server.clone(), out.clone()))?;
    numbers.push_all([7, 8]);
    test.until(|| server.under_way() == 2)?;
    test.advance(Duration::from_secs(2))?;
    assert_eq!(out.take(), [1_007, 1_008]);
    assert_eq!(server.under_way(), 0);

    let (server, mut test) = (Server::closed(), Harness::new());
    let (numbers, out) = (test.input(), test.output());
    test.start(careless(numbers.clone(), server.clone(), out.clone()))?;
    numbers.push_all([3, 7]);
    test.until(|| server.under_way() == 1)?;
    test.advance(Duration::from_secs(2))?;
    server.open();
    numbers.push(9);
    let summary = test.finish()?;
    assert_eq!(out.take(), [18]);
    assert_eq!(summary.skipped.values().sum::<u64>(), 2);
    Ok(())
}

#[pipeline(restart = none)]
fn panicky(numbers: Input<u64>, out: Output<u64>) {
    source(numbers)
        .map_async(|n| async move {
            tokio::task::yield_now().await;
            assert!(n != 13, "unlucky");
            n
        })
        .retry(exponential(3, "1ms").up_to("5ms"))
        .sink(out);
}

#[test]
fn a_panic_of_a_future_is_an_error_of_its_record() -> Result<(), Error> {
    let mut test = Harness::new();
    let (numbers, out) = (test.input(), test.output());
    test.start(panicky(numbers.clone(), out.clone()))?;
    numbers.push(12);
    test.settle()?;
    assert_eq!(out.take(), [12]);
    numbers.push(13);
    let error = test.settle().expect_err("it panics").to_string();
    assert!(error.contains("`map_async`") && error.contains("record 1 panicked: unlucky"), "{error}");
    Ok(())
}

/// A table outside that changes.
#[derive(Clone, Debug, Default)]
struct Users {
    rows: Arc<Mutex<HashMap<u64, &'static str>>>,
    asked: Arc<AtomicU64>,
}

impl Lookup<u64> for Users {
    type Value = String;

    async fn get(&self, key: u64) -> Result<Option<String>, BoxError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(self.rows.lock().unwrap().get(&key).map(|name| (*name).to_owned()))
    }
}

/// By whom, and how much.
type Order = (u64, u64);

#[pipeline]
fn enriched(
    orders: Input<Order>,
    users: Users,
    both: Output<(u64, String)>,
    all: Output<(Order, Option<String>)>,
) {
    let orders = source(orders);
    orders
        .lookup_join(users.clone().cache(100, "1m"), |(user, _)| *user)
        .with(|(_, amount), name| (amount, name))
        .sink(both);
    orders.left_lookup_join(users.clone(), |(user, _)| *user).unordered().capacity(3).sink(all);
}

#[test]
fn orders_are_joined_with_what_is_looked_up() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let users = Users::default();
        users.rows.lock().unwrap().extend([(1, "Ada"), (2, "Grace")]);
        let mut test = Harness::new();
        let (orders, both, all) = (test.input(), test.output(), test.output());
        test.parallelism(parallelism);
        test.start(enriched(orders.clone(), users.clone(), both.clone(), all.clone()))?;
        orders.push_all([(1, 10), (3, 20), (2, 30)]);
        test.settle()?;
        assert_eq!(both.take(), [(10, "Ada".to_owned()), (30, "Grace".to_owned())]);
        let found = |user, amount, name: Option<&str>| ((user, amount), name.map(str::to_owned));
        let expected = [found(1, 10, Some("Ada")), found(2, 30, Some("Grace")), found(3, 20, None)];
        assert_eq!(all.take_sorted(), expected);

        // What was found is kept for a minute; that nothing was found is not.
        users.rows.lock().unwrap().extend([(1, "Augusta"), (3, "Edsger")]);
        orders.push_all([(1, 40), (3, 50)]);
        test.settle()?;
        assert_eq!(both.take(), [(40, "Ada".to_owned()), (50, "Edsger".to_owned())]);
        test.advance(Duration::from_secs(60))?;
        orders.push((1, 60));
        test.settle()?;
        assert_eq!(both.take(), [(60, "Augusta".to_owned())]);
    }
    Ok(())
}
