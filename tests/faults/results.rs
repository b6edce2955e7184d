//! What the job in `event_time.rs` has to come to, told from how many numbers there are.

use std::collections::BTreeMap;

pub(crate) const KEYS: u64 = 101;
/// How many numbers, of all keys, are in a window, and in what a timer ends.
pub(crate) const WINDOW: u64 = 500;
pub(crate) const TIMER: u64 = 700;
/// Of one in so many numbers the join looks for the neighbours, which are the key's next ones before and after.
pub(crate) const JOINED: u64 = 7;

/// One kind of result: what it belongs to, and how many numbers are in it.
pub(crate) fn counted(kind: i64, key: u64, number: u64, count: u64) -> i64 {
    kind * 1_000_000_000_000 + key as i64 * 1_000_000_000 + number as i64 * 10_000 + count as i64
}

pub(crate) fn pair(n: u64, neighbour: u64) -> i64 {
    3_000_000_000_000 + n as i64 * 10 + (neighbour + KEYS - n) as i64 / KEYS as i64
}

/// All that has to come out, each once.
pub(crate) fn expected(records: u64) -> Vec<i64> {
    let (mut windows, mut timers) = (BTreeMap::new(), BTreeMap::new());
    for n in 0..records {
        *windows.entry((n % KEYS, n / WINDOW)).or_insert(0) += 1;
        *timers.entry((n % KEYS, n / TIMER)).or_insert(0) += 1;
    }
    let mut expected: Vec<i64> = Vec::new();
    expected.extend(windows.into_iter().map(|((key, number), count)| counted(1, key, number, count)));
    expected.extend(timers.into_iter().map(|((key, number), count)| counted(2, key, number, count)));
    for n in (0..records).step_by(JOINED as usize) {
        let neighbours = [n.checked_sub(KEYS), Some(n), Some(n + KEYS)];
        expected.extend(neighbours.into_iter().flatten().filter(|m| *m < records).map(|m| pair(n, m)));
    }
    expected
}
