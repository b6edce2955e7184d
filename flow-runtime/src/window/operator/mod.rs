//! The operator: windows over keyed state.
//!
//! [`add`](WindowsMut::add) puts a record into its windows, in one of three ways: [`plain`], [`merge`] for sessions, or
//! [`sliced`]; where there are many keys, some [wait](waiting) for each other before. [`advance`] fires what the watermark or the clock makes due. [`firing`] is what they have in common.

mod advance;
mod firing;
mod merge;
mod plain;
mod sliced;
pub(crate) mod timing;
mod waiting;

use std::{
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
};

use firing::Firing;
pub use firing::{Counters, Fired};
use timing::Timing;
use waiting::Waiting;

use super::{
    Definition, KeyWindows, Window, Windowing, assign::Slices, contents::Contents, spec::check, timers::Index,
};
use crate::{
    error::BoxError,
    state::{Key, Keyed, StoredKey, Table, hash},
    time::{Timestamp, Watermark},
};

/// The state of windows `S` over records `In`.
type StateOf<K, In, S> = KeyWindows<
    <S as Definition<K, In>>::Window,
    <S as Definition<K, In>>::Held,
    <S as Definition<K, In>>::Timing,
>;

/// How the indices of windows `S` lead to what is to be looked at.
type LeadOf<K, In, S> = <<S as Definition<K, In>>::Timing as Timing>::Lead<<S as Definition<K, In>>::Window>;

/// Windows over records `In` of keys `K`, in one subtask: a handle that the chain's loop borrows for each batch.
///
/// The state is in the table of an operator and part of its checkpoints. What else has to outlive the process is the
/// watermark: whoever owns the operator stores [`watermark`](Self::watermark) with each checkpoint of the subtask and
/// gives it back by [`restore_watermark`](Self::restore_watermark), so that no record that was in time becomes late, and
/// none that was late comes back. When subtasks are restored into another parallelism, the least of their watermarks
/// is the right one for all.
///
/// A loop does this, where `windows` is the handle and `fired` goes on to the operators that follow:
///
/// ```text
/// let w = &mut windows.borrow_mut();
/// for record in batch {
///     if let Some(late) = w.add(&key, timestamp, record)? { .. }      // the late side output, if any
///     for fired in w.fired() { .. }                                   // nearly always none
/// }
/// while w.advance_some(watermark, 1024)? {                            // or `w.advance(watermark)?`
///     for fired in w.fired() { .. }
/// }
/// for fired in w.fired() { .. }
/// // The watermark goes on here.
/// ```
pub struct Windows<K: StoredKey, In, S: Definition<K, In>> {
    core: Rc<RefCell<Core<K, In, S>>>,
    pub(crate) table: Keyed<K, StateOf<K, In, S>>,
}

impl<K: StoredKey, In, S: Definition<K, In>> Clone for Windows<K, In, S> {
    fn clone(&self) -> Self {
        Windows { core: Rc::clone(&self.core), table: self.table.clone() }
    }
}

/// What is not in the table.
pub struct Core<K: StoredKey, In, S: Definition<K, In>> {
    definition: S,
    slices: Option<Slices>,
    /// Whether each time is in one window, of which no trigger sees the records.
    tiles: bool,
    /// The windows or slices of the last records, which are nearly always those of the next ones, as long as the
    /// watermark has not passed their end. There are two, since records that are out of order go back and forth.
    recent: [Recent; 2],
    firing: Firing<K, S::Window, S::Output>,
    /// By event time and by the clock.
    event: Index<LeadOf<K, In, S>>,
    processing: Index<LeadOf<K, In, S>>,
    /// By event time: when windows are over that have fired and take late records.
    over: Index<LeadOf<K, In, S>>,
    /// Whether the indices know all of the state: not at first, since it may have been restored.
    indexed: bool,
    /// Records that wait until the entries of their keys have been fetched.
    waiting: Vec<Waiting<K, In>>,
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> Windows<K, In, S> {
    /// Windows over the state in `table`.
    ///
    /// # Errors
    /// Arguments of the window assigner that make no sense; the error says which would.
    pub fn new(definition: S, table: Keyed<K, StateOf<K, In, S>>) -> Result<Self, BoxError> {
        check(&definition)?;
        Ok(Self::unchecked(definition, table))
    }

    /// As [`new`](Self::new), where the arguments are known to make sense or will not be used.
    pub(crate) fn unchecked(definition: S, table: Keyed<K, StateOf<K, In, S>>) -> Self {
        let spec = definition.spec();
        let shared = S::Timing::AT_THE_END && <S::Contents as Contents<K, S::Window, In>>::MERGEABLE;
        let slices = spec.assigner.slices();
        let tiles = S::Timing::AT_THE_END
            && slices.map_or(<S::Assigner as Windowing>::TILES, |slices| slices.are_windows());
        let slices = slices.filter(|_| shared && !tiles);
        let firing = Firing::new(spec.lateness);
        let (event, processing, over) = (Index::default(), Index::default(), Index::default());
        let core = Core {
            definition,
            slices,
            tiles,
            recent: [Recent::NONE; 2],
            firing,
            event,
            processing,
            over,
            indexed: false,
            waiting: Vec::new(),
        };
        Windows { core: Rc::new(RefCell::new(core)), table }
    }

    /// Windows over a state of their own, which is in no checkpoint: to try out a trigger or an aggregate.
    ///
    /// ```
    /// use std::time::Duration;
    /// use flow_runtime::{
    ///     time::{Timestamp, Watermark},
    ///     window::{Window, Windows, aggregate::{Itself, sum}, tumbling, windows},
    /// };
    ///
    /// let spec = windows(tumbling(Duration::from_secs(5))).aggregate(sum(Itself));
    /// let windows = Windows::detached(spec)?;
    /// let w = &mut windows.borrow_mut();
    /// w.add(&"key", Timestamp::from_millis(1000), 1u64)?;
    /// w.add(&"key", Timestamp::from_millis(4999), 2u64)?;
    /// w.advance(Watermark::new(Timestamp::from_millis(4999)))?;
    /// let mut fired = w.fired().next().unwrap();
    /// assert_eq!((fired.key.lend(), fired.window, fired.result), ("key", Window::of_millis(0, 5000), 3));
    /// # Ok::<(), flow_runtime::error::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn detached(definition: S) -> Result<Self, BoxError> {
        Windows::new(definition, Keyed::empty())
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> WindowsMut<'_, K, In, S> {
        let (core, table) = (self.core.borrow_mut(), self.table.borrow_mut());
        // What owns memory elsewhere would have to be copied.
        let waits = !std::mem::needs_drop::<K>() && table.is_large();
        WindowsMut { core, table, waits }
    }

    /// The watermark up to which windows have fired: part of a checkpoint.
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.core.borrow().firing.watermark
    }

    /// Goes on from a checkpoint. Nothing fires before the next [`advance`](WindowsMut::advance).
    pub fn restore_watermark(&self, watermark: Watermark) {
        self.core.borrow_mut().set_watermark(watermark);
    }

    /// What the clock says, for the records of the batch that follows. It never goes back.
    pub fn set_processing_time(&self, now: Timestamp) {
        let now_before = &mut self.core.borrow_mut().firing.now;
        *now_before = now.max(*now_before);
    }

    /// When the clock has to be told to [`advance_processing_time`](WindowsMut::advance_processing_time) next; perhaps
    /// a little too early.
    #[must_use]
    pub fn next_processing_timer(&self) -> Option<Timestamp> {
        self.borrow_mut().next_processing_timer()
    }

    /// What has been counted since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.borrow().firing.counters
    }
}

/// A window, so that one comparison tells whether a time is in it.
#[derive(Clone, Copy, Debug)]
struct Recent {
    start: i64,
    length: u64,
}

impl Recent {
    /// Contains no time.
    const NONE: Recent = Recent { start: 0, length: 0 };

    fn new(Window { start, end }: Window) -> Self {
        let (start, end) = (start.as_millis(), end.as_millis());
        Recent { start, length: end.wrapping_sub(start).cast_unsigned() }
    }

    #[inline(always)]
    fn contains(self, time: Timestamp) -> bool {
        time.as_millis().wrapping_sub(self.start).cast_unsigned() < self.length
    }

    #[inline(always)]
    fn window(self) -> Window {
        Window::of_millis(self.start, self.start.wrapping_add(self.length.cast_signed()))
    }
}

impl<K: StoredKey, In, S: Definition<K, In>> Core<K, In, S> {
    fn set_watermark(&mut self, watermark: Watermark) {
        self.firing.watermark = watermark;
        for recent in &mut self.recent {
            if watermark.has_passed(recent.window().max_timestamp()) {
                *recent = Recent::NONE;
            }
        }
    }

    /// Notes a window for the records that follow, unless the watermark has passed its end.
    #[inline(always)]
    fn set_recent(&mut self, window: Window) {
        if !self.firing.watermark.has_passed(window.max_timestamp()) {
            self.recent = [Recent::new(window), self.recent[0]];
        }
    }

    /// The window or slice of a time, if it is one of the recent ones.
    #[inline(always)]
    fn recent(&self, time: Timestamp) -> Option<Window> {
        // Which of the two it is cannot be foretold, so nothing branches on it.
        let recent = self.recent[usize::from(self.recent[1].contains(time))];
        recent.contains(time).then(|| recent.window())
    }

    /// Makes the indices of what has been restored.
    #[inline]
    fn index_all(&mut self, table: &Table<K, StateOf<K, In, S>>) {
        if !self.indexed {
            self.indexed = true;
            for (hash, state) in table.hashed() {
                S::Timing::index_all(self, state, hash);
            }
        }
    }
}

/// [`Windows`], borrowed for the time of one batch.
pub struct WindowsMut<'w, K: StoredKey, In, S: Definition<K, In>> {
    core: RefMut<'w, Core<K, In, S>>,
    pub(super) table: RefMut<'w, Table<K, StateOf<K, In, S>>>,
    /// Whether records wait before they go to the table.
    pub(super) waits: bool,
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    /// Puts a record into its windows, which may fire at once; see [`fired`](Self::fired). Gives the record back when
    /// it was late for all of them and is in none.
    ///
    /// # Errors
    /// Those of the user's functions.
    #[inline(always)]
    pub fn add<Q: Key<Stored = K>>(
        &mut self,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        self.add_at(hash(key), key, timestamp, record)
    }

    /// As [`add`](Self::add), with the hash of the key.
    #[inline(always)]
    pub(in crate::window) fn add_at<Q: Key<Stored = K>>(
        &mut self,
        hash: u64,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let timestamp = self.time(timestamp);
        if <S::Assigner as Windowing>::MERGING {
            self.add_to_session(hash, key, timestamp, record)
        } else if S::Timing::AT_THE_END
            && !<S::Assigner as Windowing>::TILES
            && let Some(slices) = self.core.slices
        {
            self.add_to_slice(slices, hash, key, timestamp, record)
        } else {
            self.add_to_windows(hash, key, timestamp, record)
        }
    }

    /// The record that was late just now is not dropped.
    #[cold]
    pub(in crate::window) fn goes_to_late_output(&mut self) {
        let counters = &mut self.core.firing.counters;
        counters.late_dropped -= 1;
        counters.late_output += 1;
    }

    /// The time of a record: in processing time, that of this batch.
    #[inline(always)]
    fn time(&self, timestamp: Timestamp) -> Timestamp {
        if <S::Assigner as Windowing>::BY_CLOCK { self.core.firing.now } else { timestamp }
    }

    /// Takes out the results of what has fired.
    #[inline(always)]
    pub fn fired(&mut self) -> std::vec::Drain<'_, Fired<K, S::Window, S::Output>> {
        self.core.firing.fired.drain(..)
    }

    /// The watermark up to which windows have fired.
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.core.firing.watermark
    }

    /// What has been counted since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.firing.counters
    }
}

impl<K: StoredKey, In, S: Definition<K, In>> fmt::Debug for Windows<K, In, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Windows").finish_non_exhaustive()
    }
}

impl<K: StoredKey, In, S: Definition<K, In>> fmt::Debug for WindowsMut<'_, K, In, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowsMut").field("watermark", &self.core.firing.watermark).finish_non_exhaustive()
    }
}
