//! Joins by the distance of times: a right record meets the left ones of its key that are not too far away in time.
//!
//! Records wait in order of time, in one entry of a table per key, until the watermark says that nobody can meet them any
//! more (`state`). A pair comes out when the second of the two arrives. Records that arrive are first only noted, and
//! go on to the table one by one when the loop behind the inputs takes them out by [`IntervalJoinMut::turn`]: so the
//! pairs of one record can be lent out of the table, and no record is copied. Since the next ones are known, the
//! processor can fetch their entries in time.
//!
//! An outer join looks at a key, by the `calendar`, when the first of its records may leave, which comes out then if it has
//! met nobody. Of an inner one nobody sees when records leave: it does so when all that wait of a key may, or when
//! memory for more would be needed.

mod bounds;
mod calendar;
mod met;
mod state;

use std::{
    cell::{RefCell, RefMut},
    fmt,
    hint::black_box,
    marker::PhantomData,
    rc::Rc,
};

pub use bounds::{Interval, between};
use calendar::Calendar;
pub use met::Met;
use met::Who;
use state::Arrived;
pub use state::Waiting;

use super::{
    Matching, SameKey, Side,
    arrivals::{Arrival, Arrivals, FETCHED},
    keys::Owned,
};
use crate::{
    error::BoxError,
    state::{Keyed, StateValue, StoredKey, Table},
    time::{Timestamp, Watermark},
    window::{Turn, WindowPort},
};

/// A join by the distance of times, in one subtask: a handle that the loops of both inputs and the one behind them borrow
/// for each batch.
///
/// Of its state all but the watermark is in the table of the operator, and part of its checkpoints; the engine stores the
/// watermark beside it.
pub struct IntervalJoin<K, L, R, M: Matching> {
    core: Rc<RefCell<Core<K, L, R>>>,
    pub(super) table: Keyed<K, Waiting<L, R, M>>,
    matching: PhantomData<M>,
}

impl<K, L, R, M: Matching> Clone for IntervalJoin<K, L, R, M> {
    fn clone(&self) -> Self {
        IntervalJoin { core: Rc::clone(&self.core), table: self.table.clone(), matching: PhantomData }
    }
}

struct Core<K, L, R> {
    interval: Interval,
    watermark: Watermark,
    late: u64,
    /// What has arrived and has not met anybody yet.
    arrivals: Arrivals<K, L, R>,
    /// When to look at which key.
    due: Calendar,
    /// Of how many keys that are due next the entries have been fetched.
    fetched: usize,
    /// Whether `due` has been made of the state that was restored.
    indexed: bool,
}

impl<K: StoredKey, L: StateValue, R: StateValue, M: Matching> IntervalJoin<K, L, R, M> {
    pub(crate) fn new(interval: Interval, _: M, table: Keyed<K, Waiting<L, R, M>>) -> Self {
        let core = Core {
            interval,
            watermark: Watermark::MIN,
            late: 0,
            arrivals: Arrivals::new(),
            due: Calendar::new(interval.length()),
            fetched: 0,
            indexed: false,
        };
        IntervalJoin { core: Rc::new(RefCell::new(core)), table, matching: PhantomData }
    }
}

impl<K, L, R, M: Matching> IntervalJoin<K, L, R, M> {
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
pub struct IntervalJoinMut<'j, K, L, R, M: Matching> {
    core: RefMut<'j, Core<K, L, R>>,
    table: RefMut<'j, Table<K, Waiting<L, R, M>>>,
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
            self.core.arrivals.push(key, time, record);
        }
    }

    /// The pairs of the next record, if there are any; when all have arrived, the records that have met nobody of the next
    /// key, if they come out, of which nobody will come in time. `None` when nothing is left to do.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub fn turn(&mut self, turn: &mut Turn) -> Result<Option<Met<'_, K, L, R, M>>, BoxError> {
        if let Some(arrival) = self.core.arrivals.next(&self.table, Waiting::touch) {
            return Ok(Some(self.arrives(arrival)));
        }
        Ok(self.advance(turn))
    }

    #[inline(always)]
    fn arrives(&mut self, arrival: Arrival<K, L, R>) -> Met<'_, K, L, R, M> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        let Arrival { hash, key, time, record } = arrival;
        let (interval, watermark) = (&core.interval, core.watermark);
        let (_, waiting) = table.entry(hash, &Owned(&key), Waiting::default);
        match record {
            Side::Left(record) => {
                let Arrived { at, partners } = waiting.left_arrives(interval, watermark, time, record);
                index(&mut core.due, interval, waiting, hash);
                Met { key, who: Who::Left(&waiting.left[at], waiting.right[partners].iter()) }
            }
            Side::Right(record) => {
                let Arrived { at, partners } = waiting.right_arrives(interval, watermark, time, record);
                index(&mut core.due, interval, waiting, hash);
                Met { key, who: Who::Right(waiting.left[partners].iter(), &waiting.right[at]) }
            }
        }
    }

    /// Goes on to the new watermark, as far as the next key of which records come out.
    #[inline(never)]
    fn advance(&mut self, turn: &mut Turn) -> Option<Met<'_, K, L, R, M>> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if !core.indexed {
            core.indexed = true;
            for (hash, waiting) in table.hashed() {
                index(&mut core.due, &core.interval, waiting, hash);
            }
        }
        core.watermark = core.watermark.max(turn.watermark()?);
        while let Some((time, hash)) = core.due.pop_until(core.watermark.timestamp()) {
            match core.fetched {
                0 => core.fetch(table),
                _ => core.fetched -= 1,
            }
            let is_due = |waiting: &Waiting<L, R, M>| waiting.indexed.get() == Some(time);
            let Some(mut found) = table.find_entry(hash, is_due) else { continue };
            let (key, waiting) = found.change();
            waiting.indexed.set(None);
            let records = waiting.leave(&core.interval, core.watermark);
            index(&mut core.due, &core.interval, waiting, hash);
            let key = (!records.is_empty()).then(|| key.clone());
            if waiting.is_empty() {
                found.remove();
            }
            if let Some(key) = key {
                return Some(Met { key, who: Who::Alone { records, current: None } });
            }
        }
        turn.done();
        None
    }
}

impl<K: StoredKey, L, R> Core<K, L, R> {
    /// Lets the processor fetch the entries of the keys that are due next.
    #[inline(never)]
    fn fetch<M: Matching>(&mut self, table: &Table<K, Waiting<L, R, M>>) {
        let next = self.due.coming(FETCHED);
        self.fetched = next.len();
        if table.is_large() {
            let entries = next.iter().filter_map(|(_, hash)| table.find(*hash, |_| true));
            black_box(entries.fold(0, |all, waiting| all ^ waiting.touch()));
        }
    }
}

/// Sees to it that the calendar leads to a key when it is due.
#[inline(always)]
fn index<L, R, M: Matching>(due: &mut Calendar, interval: &Interval, waiting: &Waiting<L, R, M>, hash: u64) {
    // Who is looked at when all may leave is looked at too early when another one comes.
    if !(M::LEFT || M::RIGHT) && waiting.indexed.get().is_some() {
        return;
    }
    if let Some(next) = waiting.due(interval)
        && waiting.indexed.is_after(next)
    {
        waiting.indexed.set(Some(next));
        due.push(next, hash);
    }
}

impl<K, L, R, M: Matching> fmt::Debug for IntervalJoin<K, L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalJoin").finish_non_exhaustive()
    }
}

impl<K, L, R, M: Matching> fmt::Debug for IntervalJoinMut<'_, K, L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalJoinMut").finish_non_exhaustive()
    }
}
