//! Windows that follow one another and fire once, at their end: the way in which most joins are.
//!
//! They need nothing but the order of their records, so a key holds these in two vectors ([`Rows`]) and nothing for a
//! window. Records that arrive are noted and go to the table when the loop behind the inputs calls
//! [`turn`](TilesMut::turn), as those of an [interval join](crate::join::interval) do.

use std::{
    cell::{RefCell, RefMut},
    rc::Rc,
};

use super::{Joined, Met, Rows};
use crate::{
    join::{
        Matching, Side,
        arrivals::{Arrival, Arrivals, FETCHED},
        keys::Owned,
    },
    state::{Keyed, StateValue, StoredKey, Table},
    time::{Timestamp, Watermark},
    timers::Index,
    window::{
        Assigner, Bounds, Spec, Turn, Window, Windowing,
        timing::{Timing, Triggering},
    },
};

/// Such windows in one subtask.
pub(in crate::join) struct Tiles<K, L, R, A> {
    core: Rc<RefCell<Core<K, L, R, A>>>,
    pub(in crate::join) table: Keyed<K, Rows<L, R>>,
}

impl<K, L, R, A> Clone for Tiles<K, L, R, A> {
    fn clone(&self) -> Self {
        Tiles { core: Rc::clone(&self.core), table: self.table.clone() }
    }
}

struct Core<K, L, R, A> {
    assigner: A,
    /// The window of the last record, which is nearly always that of the next one, unless the watermark has passed its
    /// end.
    recent: Window,
    watermark: Watermark,
    late: u64,
    arrivals: Arrivals<K, L, R>,
    /// When to look at which key: at the end of the first of its windows.
    ends: Index,
    /// How many of the keys that come next have been fetched.
    fetched: usize,
    /// Whether `ends` has been made of the state that was restored.
    indexed: bool,
    /// The records of the window that fires.
    left: Vec<L>,
    right: Vec<R>,
}

/// A window that contains no time.
const NO_WINDOW: Window = Window::of_millis(0, 0);

/// Whether windows are such ones.
pub(super) fn are_tiles<L, R, A, T, M>(spec: &Spec<A, T, Joined<M>>) -> bool
where
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
{
    let slices = spec.assigner.slices();
    spec.contents.once
        && <T::Timing as Timing>::AT_THE_END
        && A::EVENT_TIME
        && !A::BY_CLOCK
        && slices.map_or(A::TILES, |slices| slices.are_windows())
}

impl<K: StoredKey, L: StateValue, R: StateValue, A: Windowing> Tiles<K, L, R, A> {
    pub(super) fn new(assigner: A, table: Keyed<K, Rows<L, R>>) -> Self {
        let core = Core {
            assigner,
            recent: NO_WINDOW,
            watermark: Watermark::MIN,
            late: 0,
            arrivals: Arrivals::new(),
            ends: Index::default(),
            fetched: 0,
            indexed: false,
            left: Vec::new(),
            right: Vec::new(),
        };
        Tiles { core: Rc::new(RefCell::new(core)), table }
    }
}

impl<K, L, R, A> Tiles<K, L, R, A> {
    #[inline]
    pub(super) fn borrow_mut(&self) -> TilesMut<'_, K, L, R, A> {
        TilesMut { core: self.core.borrow_mut(), table: self.table.borrow_mut() }
    }

    pub(super) fn restore(&self, watermark: Watermark) {
        self.core.borrow_mut().watermark = watermark;
    }

    pub(super) fn late(&self) -> u64 {
        self.core.borrow().late
    }
}

/// [`Tiles`], borrowed for the time of one batch.
pub(super) struct TilesMut<'j, K, L, R, A> {
    core: RefMut<'j, Core<K, L, R, A>>,
    table: RefMut<'j, Table<K, Rows<L, R>>>,
}

impl<K: StoredKey, L, R, A: Assigner<Side<L, R>>> TilesMut<'_, K, L, R, A> {
    #[inline(always)]
    pub(super) fn put(&mut self, key: K, time: Timestamp, record: Side<L, R>) {
        let core = &mut *self.core;
        if !core.recent.contains(time) {
            let Some(window) = core.assigner.assign(&record, time).next() else { return };
            if core.watermark.has_passed(window.max_timestamp()) {
                core.late += 1;
                return;
            }
            core.recent = window.span();
        }
        core.arrivals.push(key, core.recent.max_timestamp(), record);
    }

    /// Puts what has arrived to the table; then the next window fires of which pairs come out, up to the new watermark.
    pub(super) fn turn<M: Matching>(&mut self, turn: &mut Turn) -> Option<Met<'_, K, L, R, M>> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        let size = core.recent.end.as_millis().saturating_sub(core.recent.start.as_millis());
        while let Some(Arrival { hash, key, time, record }) = core.arrivals.next(table, Rows::touch) {
            let (_, rows) = table.entry(hash, &Owned(&key), || Rows::of_size(size));
            match record {
                Side::Left(record) => rows.add_left(time, record),
                Side::Right(record) => rows.add_right(time, record),
            }
            lead(&mut core.ends, rows, time, hash);
        }
        if !core.indexed {
            core.indexed = true;
            for (hash, rows) in table.hashed() {
                // To a key that has come meanwhile the index leads already, and from there to all of its windows.
                if let Some(first) = rows.first() {
                    lead(&mut core.ends, rows, first, hash);
                }
            }
        }
        core.set_watermark(core.watermark.max(turn.watermark()?));
        while let Some((last, hash)) = core.ends.pop_until(core.watermark.timestamp()) {
            if core.fetched == 0 {
                core.fetch(table);
            } else {
                core.fetched -= 1;
            }
            let is_due = |rows: &Rows<L, R>| rows.indexed.get() == Some(last);
            let Some(mut found) = table.find_entry(hash, is_due) else { continue };
            let (key, rows) = found.change();
            rows.indexed.set(None);
            core.left.clear();
            core.right.clear();
            rows.take(last, &mut core.left, &mut core.right);
            let key = M::pair(core.left.first(), core.right.first()).is_some().then(|| key.clone());
            match rows.first() {
                Some(next) => lead(&mut core.ends, rows, next, hash),
                None => found.remove(),
            }
            if let Some(key) = key {
                return Some(Met::new(key, last, &core.left, &core.right));
            }
        }
        turn.done();
        None
    }
}

/// Sees to it that the index leads to a key at this time, or earlier.
#[inline(always)]
fn lead<L, R>(ends: &mut Index, rows: &Rows<L, R>, time: Timestamp, hash: u64) {
    if rows.indexed.is_after(time) {
        rows.indexed.set(Some(time));
        ends.push(time, hash);
    }
}

impl<K: StoredKey, L, R, A> Core<K, L, R, A> {
    fn set_watermark(&mut self, watermark: Watermark) {
        self.watermark = watermark;
        if watermark.has_passed(self.recent.max_timestamp()) {
            self.recent = NO_WINDOW;
        }
    }

    /// Lets the processor fetch the entries of the keys that come next.
    #[inline(never)]
    fn fetch(&mut self, table: &Table<K, Rows<L, R>>) {
        let next = self.ends.coming(FETCHED);
        self.fetched = next.len();
        if table.is_large() {
            let entries = next.iter().filter_map(|hash| table.find(*hash, |_| true));
            std::hint::black_box(entries.fold(0, |all, rows| all ^ rows.touch()));
        }
    }
}
