//! Windows that go on from a checkpoint.

use bytes::Bytes;

use super::{super::*, *};
use crate::{
    state::{KeyGroups, StatePort, StateValue},
    window::{aggregate::count, trigger},
};

/// All of the state, as a checkpoint has it.
pub(crate) fn snapshot<K: StoredKey, V: StateValue>(table: &Keyed<K, V>) -> Bytes {
    table.set_whole(true);
    let snapshot = table.close(groups(1)).unwrap();
    while !table.collect(std::time::Instant::now()).is_nothing() {}
    (snapshot.encode)().unwrap()
}

fn groups(parallelism: u32) -> KeyGroups {
    KeyGroups { max_parallelism: 128, parallelism }
}

/// The tables of the subtasks that go on from a snapshot.
pub(crate) fn restored<K: StoredKey, V: StateValue>(snapshot: &Bytes, parallelism: u32) -> Vec<Keyed<K, V>> {
    (0..parallelism as usize).map(|subtask| share([snapshot], parallelism, subtask)).collect()
}

/// The table of a subtask that goes on from the snapshots of others.
pub(crate) fn share<'s, K: StoredKey, V: StateValue>(
    snapshots: impl IntoIterator<Item = &'s Bytes>,
    parallelism: u32,
    subtask: usize,
) -> Keyed<K, V> {
    let table = Keyed::empty();
    for snapshot in snapshots {
        table.restore(snapshot, groups(parallelism), subtask).unwrap();
    }
    table
}

/// The subtask of a key.
pub(crate) fn owner(key: u32, parallelism: u32) -> usize {
    let groups = groups(parallelism);
    groups.owner(groups.group(crate::state::hash(&key)))
}

/// The operator, after a restart.
fn again<S: Definition<u32, i64>>(windows: &Windows<u32, i64, S>, spec: S) -> Windows<u32, i64, S> {
    let table = restored(&snapshot(&windows.table), 1).pop().unwrap();
    let again = Windows::new(spec, table).unwrap();
    again.restore_watermark(windows.watermark());
    again
}

#[test]
fn case_27_after_a_restore_nothing_that_was_in_time_becomes_late_and_the_other_way_round() {
    let spec = || windows(tumbling(ms(10))).allowed_lateness(ms(5)).aggregate(SUM);
    let w = operator(spec());
    w.put(11, 1);
    w.watermark_at(13);
    let w = again(&w, spec());
    assert_eq!(w.watermark(), Watermark::new(at(13)));
    assert_eq!(w.put(9, 1), [(0, 10, 1)], "as late as allowed");
    w.watermark_at(14);
    let w = again(&w, spec());
    w.put_late(9, 1);
    // A source that reads again may begin with an earlier watermark.
    assert_eq!(w.watermark_at(3), []);
    w.put_late(9, 1);
    assert_eq!(w.watermark_at(19), [(10, 20, 1)]);
}

/// A window fires once, whether the index led there before or after the first record, and although another one of the key
/// is over at the very time at which it ends.
#[test]
fn with_an_allowed_lateness_each_window_fires_once_and_then_vanishes() {
    let spec = || windows(tumbling(ms(10))).allowed_lateness(ms(10)).aggregate(SUM);
    let w = operator(spec());
    w.put(5, 1);
    w.put(15, 2);
    assert_eq!(w.watermark_at(9), [(0, 10, 1)]);
    let w = again(&w, spec());
    w.put(16, 4);
    assert_eq!(w.put(6, 8), [(0, 10, 9)], "late");
    assert_eq!(w.watermark_at(19), [(10, 20, 6)]);
    w.put_late(7, 1);
    assert_eq!(w.put(17, 1), [(10, 20, 7)]);
    // Two at a time, of which the watermark passes one and its end.
    w.put(35, 1);
    w.put(45, 1);
    let w = again(&w, spec());
    assert_eq!(w.watermark_at(44), [(30, 40, 1)]);
    assert_eq!(w.watermark_at(END), [(40, 50, 1)]);
    assert!(is_empty(&w));
}

#[test]
fn timers_of_keys_that_get_no_more_records_fire_after_a_restore() {
    let spec = || windows(session(ms(10))).trigger(trigger::processing_time()).aggregate(count());
    let w = operator(spec());
    w.put(5, 1);
    let w = again(&w, spec());
    assert_eq!(w.next_processing_timer(), Some(at(14)));
    assert_eq!(w.clock(14), [(5, 15, 1)]);
    let spec = || windows(sliding(ms(10), ms(5))).aggregate(count());
    let w = operator(spec());
    w.put(5, 1);
    assert_eq!(w.watermark_at(9), [(0, 10, 1)]);
    let w = again(&w, spec());
    assert_eq!(w.watermark_at(END), [(5, 15, 1)]);
}

#[test]
fn what_was_due_and_not_yet_taken_fires_after_a_restore() {
    let spec = || windows(tumbling(ms(10))).aggregate(count());
    let w = operator(spec());
    for time in [1, 11, 21] {
        w.put(time, 1);
    }
    assert!(w.borrow_mut().advance_some(Watermark::new(at(25)), 1).unwrap());
    let w = again(&w, spec());
    assert_eq!(w.watermark_at(25), [(10, 20, 1)]);
}

/// An accumulator that is encoded as nothing is not nothing.
#[test]
fn an_empty_accumulator_survives() {
    #[derive(Clone, Copy)]
    struct Seen;
    impl Aggregate<i64> for Seen {
        type Accumulator = Option<()>;
        type Output = bool;
        fn create(&self, _: &i64, _: Timestamp) -> Result<Option<()>, crate::error::BoxError> {
            Ok(None)
        }
        fn add(&self, _: &mut Option<()>, _: &i64, _: Timestamp) -> Result<(), crate::error::BoxError> {
            Ok(())
        }
        fn merge(&self, _: &mut Option<()>, _: Option<()>) -> Result<(), crate::error::BoxError> {
            Ok(())
        }
        fn result(&self, _: &Option<()>) -> bool {
            true
        }
    }
    let spec = || windows(tumbling(ms(10))).aggregate(Seen);
    let w = operator(spec());
    w.put(1, 1);
    assert_eq!(again(&w, spec()).watermark_at(END), [(0, 10, true)]);
}

#[test]
fn all_that_windows_hold_survives() {
    use crate::window::aggregate::{Itself, distinct, last, mean, top_n};
    let spec = || {
        windows(global()).trigger(trigger::delta(100.0, |a: &i64, b: &i64| (b - a) as f64)).aggregate((
            mean(Itself),
            distinct(Itself),
            top_n(2, Itself),
            last(Itself),
        ))
    };
    let w = operator(spec());
    [5, 7, 5].into_iter().for_each(|n| assert_eq!(w.put(n, n), []));
    let w = again(&w, spec());
    assert_eq!(w.put(9, 200), [(i64::MIN, END, (54.25, 3, vec![200, 7], 200))]);
}

/// What fires while a snapshot is collected is in it as it was at the barrier; the next one takes back what is over.
#[test]
fn a_snapshot_is_that_of_its_barrier_and_the_next_one_adds_to_it() {
    let spec = || windows(tumbling(ms(10))).allowed_lateness(ms(20)).aggregate(SUM);
    let w = operator(spec());
    let keys = 2000u32;
    for key in 0..keys {
        w.borrow_mut().add(&key, at(i64::from(key % 2) * 10), i64::from(key)).unwrap();
    }
    let results = |w: &Windows<u32, i64, _>| {
        let mut w = w.borrow_mut();
        w.advance(Watermark::MAX).unwrap();
        rows(&mut w).len() as u32
    };
    let first = w.table.close(groups(1)).unwrap();
    // Half of the windows fire, and are kept.
    assert_eq!(w.watermark_at(9).len() as u32, keys / 2);
    while !w.table.collect(std::time::Instant::now()).is_nothing() {}
    let first = (first.encode)().unwrap();
    let at_barrier = Windows::new(spec(), restored(&first, 1).pop().unwrap()).unwrap();
    assert_eq!(results(&at_barrier), keys);
    // The same half is over.
    w.watermark_at(29);
    let second = w.table.close(groups(1)).unwrap();
    while !w.table.collect(std::time::Instant::now()).is_nothing() {}
    let table = restored(&first, 1).pop().unwrap();
    if second.whole {
        table.borrow_mut().results().for_each(drop);
    }
    table.restore(&(second.encode)().unwrap(), groups(1), 0).unwrap();
    let after = Windows::new(spec(), table).unwrap();
    after.restore_watermark(w.watermark());
    assert_eq!(after.table.borrow_mut().hashed().count() as u32, keys / 2);
    // At 29 the other half has fired already.
    assert_eq!(results(&after), 0);
}

#[test]
fn a_window_is_stored_in_few_bytes() {
    let w = operator(windows(tumbling(ms(3_600_000))).aggregate(count()));
    for key in 0..1000u32 {
        w.borrow_mut().add(&key, at(1_800_000_000_000), 1).unwrap();
    }
    let bytes = snapshot(&w.table).len() / 1000;
    assert!(bytes < 60, "{bytes} bytes");
}
