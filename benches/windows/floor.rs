//! The loops that one would write by hand.

use std::collections::{BTreeMap, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, hash_map::Entry};

use super::{LATE, common::check, key, of_right, side_time, time};

type Map<K, V> = HashMap<K, V, FixedState>;

/// Records between two watermarks.
const BATCH: u64 = 1024;

/// What came out.
#[derive(Default)]
struct Total {
    count: u64,
    sum: u64,
}

impl Total {
    #[inline(always)]
    fn add(&mut self, result: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(result);
    }

    fn check(&self) -> u64 {
        check(self.count, self.sum)
    }
}

/// The watermark follows the latest time at a distance.
struct Watermark(i64);

impl Watermark {
    fn new() -> Self {
        Watermark(i64::MIN)
    }

    fn see(&mut self, time: i64) {
        self.0 = self.0.max(time - 2 * LATE as i64 - 1);
    }
}

/// A sum per window and key, and per end of a window its keys.
pub(crate) fn by_window(size: i64, slide: i64, key: fn(u64) -> u64, records: u64) -> u64 {
    // As constants, where that makes a difference.
    match (size, slide) {
        (1, 1) => sums_by_window(1000, 1000, key, records),
        (10, 10) => sums_by_window(10_000, 10_000, key, records),
        (10, 1) => sums_by_window(10_000, 1000, key, records),
        _ => sums_by_window(size * 1000, slide * 1000, key, records),
    }
}

#[inline(always)]
fn sums_by_window(size: i64, slide: i64, key: impl Fn(u64) -> u64, records: u64) -> u64 {
    let mut sums: Map<(u64, i64), u64> = Map::default();
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let (mut total, mut watermark) = (Total::default(), Watermark::new());
    for batch in (0..records).step_by(BATCH as usize) {
        for n in batch..records.min(batch + BATCH) {
            let (key, time) = (key(n), time(n));
            watermark.see(time);
            let mut start = time - time.rem_euclid(slide);
            while start > time - size {
                let sum = sums.entry((key, start)).or_insert_with(|| {
                    ends.entry(start + size).or_default().push(key);
                    0
                });
                *sum = sum.checked_add(n).expect("sums fit");
                start -= slide;
            }
        }
        fire(&mut sums, &mut ends, size, watermark.0, &mut total);
    }
    fire(&mut sums, &mut ends, size, i64::MAX, &mut total);
    total.check()
}

fn fire(
    sums: &mut Map<(u64, i64), u64>,
    ends: &mut BTreeMap<i64, Vec<u64>>,
    size: i64,
    watermark: i64,
    total: &mut Total,
) {
    while let Some(first) = ends.first_entry().filter(|first| first.key() - 1 <= watermark) {
        let (end, keys) = first.remove_entry();
        for key in keys {
            let sum = sums.remove(&(key, end - size)).expect("a window that is open");
            total.add(sum);
        }
    }
}

#[derive(Clone, Copy)]
struct Session {
    start: i64,
    end: i64,
    sum: u64,
}

impl Session {
    #[inline(always)]
    fn touches(&self, other: &Session) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    fn join(&mut self, other: Session) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.sum = self.sum.checked_add(other.sum).expect("sums fit");
    }
}

/// One session per key, and the others of the same key, which are rare, elsewhere. A key is noted for the end that its
/// session had when it began, and then for the one that it has got.
#[inline(always)]
pub(crate) fn sessions(gap: i64, key: impl Fn(u64) -> u64, records: u64) -> u64 {
    let mut newest: Map<u64, Session> = Map::default();
    let mut others: Map<u64, Vec<Session>> = Map::default();
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let (mut total, mut watermark) = (Total::default(), Watermark::new());
    for batch in (0..records).step_by(BATCH as usize) {
        for n in batch..records.min(batch + BATCH) {
            let (key, time) = (key(n), time(n));
            watermark.see(time);
            let new = Session { start: time, end: time + gap, sum: n };
            match newest.entry(key) {
                Entry::Vacant(vacant) => {
                    vacant.insert(new);
                    ends.entry(new.end).or_default().push(key);
                }
                Entry::Occupied(mut session) => {
                    let session = session.get_mut();
                    if session.touches(&new) && others.is_empty() {
                        session.join(new);
                    } else {
                        put_among(session, others.entry(key).or_default(), new);
                        ends.entry(new.end).or_default().push(key);
                    }
                }
            }
        }
        fire_sessions(&mut newest, &mut others, &mut ends, watermark.0, &mut total);
    }
    fire_sessions(&mut newest, &mut others, &mut ends, i64::MAX, &mut total);
    total.check()
}

#[cold]
fn put_among(newest: &mut Session, others: &mut Vec<Session>, mut new: Session) {
    let mut all: Vec<Session> = others.drain(..).chain([*newest]).collect();
    all.retain(|session| {
        let joins = session.touches(&new);
        if joins {
            new.join(*session);
        }
        !joins
    });
    all.push(new);
    all.sort_by_key(|session| session.start);
    *newest = all.pop().expect("the new one at least");
    *others = all;
}

fn fire_sessions(
    newest: &mut Map<u64, Session>,
    others: &mut Map<u64, Vec<Session>>,
    ends: &mut BTreeMap<i64, Vec<u64>>,
    watermark: i64,
    total: &mut Total,
) {
    while let Some(first) = ends.first_entry().filter(|first| first.key() - 1 <= watermark) {
        let (_, keys) = first.remove_entry();
        for key in keys {
            let Entry::Occupied(entry) = newest.entry(key) else { continue };
            if !others.is_empty()
                && let Some(of_key) = others.get_mut(&key)
            {
                of_key.retain(|session| {
                    let over = session.end - 1 <= watermark;
                    if over {
                        total.add(session.sum);
                    }
                    !over
                });
                match of_key.iter().map(|session| session.end).min() {
                    Some(end) => ends.entry(end).or_default().push(key),
                    None => drop(others.remove(&key)),
                }
            }
            let session = *entry.get();
            if session.end - 1 <= watermark {
                total.add(session.sum);
                entry.remove();
            } else {
                ends.entry(session.end).or_default().push(key);
            }
        }
    }
}

/// Two lists per window and key.
pub(crate) fn joined_in_windows(size: i64, records: u64) -> u64 {
    let mut open: Map<(u64, i64), [Vec<u64>; 2]> = Map::default();
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let (mut total, mut watermark) = (Total::default(), Watermark::new());
    let mut fire =
        |open: &mut Map<(u64, i64), [Vec<u64>; 2]>, ends: &mut BTreeMap<i64, Vec<u64>>, watermark: i64| {
            while let Some(first) = ends.first_entry().filter(|first| first.key() - 1 <= watermark) {
                let (end, keys) = first.remove_entry();
                for key in keys {
                    let [left, right] = open.remove(&(key, end - size)).expect("a window that is open");
                    for left in left {
                        right.iter().for_each(|right| total.add(left ^ right));
                    }
                }
            }
        };
    for batch in (0..records / 2).step_by(BATCH as usize) {
        for n in batch..(records / 2).min(batch + BATCH) {
            let time = side_time(n);
            watermark.see(time);
            let start = time - time.rem_euclid(size);
            if start + size - 1 <= watermark.0 {
                continue;
            }
            for (side, record) in [n, of_right(n)].into_iter().enumerate() {
                let key = key(record);
                let lists = open.entry((key, start)).or_insert_with(|| {
                    ends.entry(start + size).or_default().push(key);
                    Default::default()
                });
                lists[side].push(record);
            }
        }
        fire(&mut open, &mut ends, watermark.0);
    }
    fire(&mut open, &mut ends, i64::MAX);
    total.check()
}

type InTime = VecDeque<(i64, u64)>;

/// After so many milliseconds all keys are looked through.
const SWEEP: i64 = 10_000;

/// Two lists per key, in order of time. Records leave when one of the same key comes, and those of keys of which nobody
/// comes once in a while.
pub(crate) fn joined_between(bound: i64, records: u64) -> u64 {
    let mut waiting: Map<u64, [InTime; 2]> = Map::default();
    let (mut total, mut watermark, mut swept) = (Total::default(), Watermark::new(), 0);
    let leave = |list: &mut InTime, watermark: i64| {
        while list.front().is_some_and(|first| first.0 + bound <= watermark) {
            list.pop_front();
        }
    };
    for batch in (0..records / 2).step_by(BATCH as usize) {
        let mut latest = watermark.0;
        for n in batch..(records / 2).min(batch + BATCH) {
            let time = side_time(n);
            latest = latest.max(time);
            if time <= watermark.0 {
                continue;
            }
            for (side, record) in [n, of_right(n)].into_iter().enumerate() {
                let lists = waiting.entry(key(record)).or_default();
                lists.iter_mut().for_each(|list| leave(list, watermark.0));
                let others = &lists[1 - side];
                let from = others.partition_point(|other| other.0 < time - bound);
                let met = others.range(from..).take_while(|other| other.0 <= time + bound);
                met.for_each(|other| total.add(other.1 ^ record));
                let own = &mut lists[side];
                match own.back() {
                    Some(last) if last.0 > time => {
                        let at = own.partition_point(|other| other.0 <= time);
                        own.insert(at, (time, record));
                    }
                    _ => own.push_back((time, record)),
                }
            }
        }
        watermark.see(latest);
        if watermark.0 >= swept + SWEEP {
            swept = watermark.0;
            waiting.retain(|_, lists| {
                lists.iter_mut().for_each(|list| leave(list, swept));
                !lists.iter().all(InTime::is_empty)
            });
        }
    }
    total.check()
}
