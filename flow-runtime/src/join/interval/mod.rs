//! Joins by the distance of times: a right record meets the left ones of its key that are not too far away in time.
//!
//! Records wait in order of time, in one entry of a table per key, until the watermark says that nobody can meet them any
//! more (`state`). A pair comes out when the second of the two arrives. Records that arrive are first only noted, and
//! go on to the table one by one when the loop behind the inputs takes them out by [`IntervalJoinMut::turn`]: so the
//! pairs of one record can be lent out of the table, and no record is copied.

mod bounds;
mod met;
mod state;

use std::{
    cell::{RefCell, RefMut},
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    rc::Rc,
};

pub use bounds::{Interval, between};
pub use met::Met;
use met::Range;
use state::Arrived;
pub use state::Waiting;

use super::{Matching, SameKey, Side, keys::Owned};
use crate::{
    error::BoxError,
    state::{Keyed, StateValue, StoredKey, Table, hash},
    time::{Timestamp, Watermark},
    timers::Index,
    window::{Turn, WindowPort},
};

/// A join by the distance of times, in one subtask: a handle that the loops of both inputs and the one behind them borrow
/// for each batch.
///
/// Of its state all but the watermark is in the table of the operator, and part of its checkpoints; the engine stores the
/// watermark beside it.
pub struct IntervalJoin<K, L, R, M> {
    core: Rc<RefCell<Core<K, L, R>>>,
    pub(super) table: Keyed<K, Waiting<L, R>>,
    matching: PhantomData<M>,
}

impl<K, L, R, M> Clone for IntervalJoin<K, L, R, M> {
    fn clone(&self) -> Self {
        IntervalJoin { core: Rc::clone(&self.core), table: self.table.clone(), matching: PhantomData }
    }
}

struct Core<K, L, R> {
    interval: Interval,
    watermark: Watermark,
    late: u64,
    /// What has arrived and has not met anybody yet.
    arrivals: VecDeque<Arrival<K, L, R>>,
    /// When to look at which key.
    due: Index,
    /// Whether `due` has been made of the state that was restored.
    indexed: bool,
}

struct Arrival<K, L, R> {
    key: K,
    time: Timestamp,
    record: Side<L, R>,
}

impl<K: StoredKey, L: StateValue, R: StateValue, M: Matching> IntervalJoin<K, L, R, M> {
    pub(crate) fn new(interval: Interval, _: M, table: Keyed<K, Waiting<L, R>>) -> Self {
        let core = Core {
            interval,
            watermark: Watermark::MIN,
            late: 0,
            arrivals: VecDeque::new(),
            due: Index::default(),
            indexed: false,
        };
        IntervalJoin { core: Rc::new(RefCell::new(core)), table, matching: PhantomData }
    }
}

impl<K, L, R, M> IntervalJoin<K, L, R, M> {
    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> IntervalJoinMut<'_, K, L, R, M> {
        IntervalJoinMut {
            core: self.core.borrow_mut(),
            table: self.table.borrow_mut(),
            matching: PhantomData,
        }
    }
}

impl<K: StoredKey, L, R, M: Matching> WindowPort for IntervalJoin<K, L, R, M> {
    fn restore(&self, watermark: Watermark) {
        self.core.borrow_mut().watermark = watermark;
    }

    fn next_timer(&self) -> Option<Timestamp> {
        None
    }

    fn late(&self) -> u64 {
        self.core.borrow().late
    }

    fn result(&self) -> &'static str {
        "a pair of a join"
    }
}

/// [`IntervalJoin`], borrowed for the time of one batch.
pub struct IntervalJoinMut<'j, K, L, R, M> {
    core: RefMut<'j, Core<K, L, R>>,
    table: RefMut<'j, Table<K, Waiting<L, R>>>,
    matching: PhantomData<M>,
}

impl<K: StoredKey, L, R, M: Matching> IntervalJoinMut<'_, K, L, R, M> {
    /// A record of the left stream. One that is behind the watermark is dropped and counted.
    ///
    /// # Errors
    /// None.
    #[inline]
    pub fn put_left(&mut self, key: K, time: Timestamp, record: L) -> Result<(), BoxError> {
        self.put(key, time, Side::Left(record));
        Ok(())
    }

    /// As [`put_left`](Self::put_left), for the right stream.
    ///
    /// # Errors
    /// None.
    #[inline]
    pub fn put_right<Q: SameKey<K>>(&mut self, key: Q, time: Timestamp, record: R) -> Result<(), BoxError> {
        self.put(key.same(), time, Side::Right(record));
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: K, time: Timestamp, record: Side<L, R>) {
        if self.core.watermark.has_passed(time) {
            self.core.late += 1;
        } else {
            self.core.arrivals.push_back(Arrival { key, time, record });
        }
    }

    /// The pairs of the next record that meets somebody; when all have arrived, the records that have met nobody of the
    /// next key, if they come out, of which nobody will come in time. `None` when nothing is left to do.
    ///
    /// # Errors
    /// None.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<Option<Met<'_, K, L, R, M>>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if !core.indexed {
            core.indexed = true;
            for (hash, waiting) in table.hashed() {
                index(&mut core.due, &core.interval, waiting, hash);
            }
        }
        while let Some(Arrival { key, time, record }) = core.arrivals.pop_front() {
            let hash = hash(&key);
            let (_, waiting) = table.entry(hash, &Owned(&key), Waiting::default);
            let arrived = waiting.arrive(&core.interval, time, record, M::LEFT || M::RIGHT);
            index(&mut core.due, &core.interval, waiting, hash);
            if !arrived.partners.is_empty() {
                let waiting = table.get(hash, &Owned(&key));
                return Ok(waiting.map(|waiting| Met::range(Range { key, waiting, arrived })));
            }
        }
        if let Some(watermark) = turn.watermark() {
            core.watermark = core.watermark.max(watermark);
            while let Some((time, hash)) = core.due.pop_until(core.watermark.timestamp()) {
                let is_due = |waiting: &Waiting<L, R>| waiting.indexed.get() == Some(time);
                let Some((key, waiting)) = table.find_mut(hash, is_due) else { continue };
                waiting.indexed.set(None);
                let alone = waiting.leave::<M>(&core.interval, core.watermark);
                let key = (!alone.is_empty()).then(|| key.clone());
                if waiting.is_empty() {
                    table.remove_found(hash, |waiting| waiting.is_empty());
                } else {
                    index(&mut core.due, &core.interval, waiting, hash);
                }
                if let Some(key) = key {
                    return Ok(Some(Met::alone(key, alone)));
                }
            }
            turn.done();
        }
        Ok(None)
    }
}

/// Sees to it that the index leads to a key when the first of its records may leave.
#[inline]
fn index<L, R>(due: &mut Index, interval: &Interval, waiting: &Waiting<L, R>, hash: u64) {
    if let Some(next) = waiting.next_to_leave(interval)
        && waiting.indexed.is_after(next)
    {
        waiting.indexed.set(Some(next));
        due.push(next, hash);
    }
}

impl<K, L, R, M> fmt::Debug for IntervalJoin<K, L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalJoin").finish_non_exhaustive()
    }
}

impl<K, L, R, M> fmt::Debug for IntervalJoinMut<'_, K, L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalJoinMut").finish_non_exhaustive()
    }
}
