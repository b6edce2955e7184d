//! Joins in windows: the records of two streams are held apart, and give their pairs when a window fires.
//!
//! Windows that follow one another and fire once have an operator of their own ([`tiles`]). All others, those that
//! overlap, become one, or fire more often, are [windows](crate::window) like any other that hold [`Sides`].

mod rows;
mod sides;
mod tiles;

use std::{fmt, marker::PhantomData, vec};

pub use rows::Rows;
use sides::Together;
pub use sides::{Joined, Side, Sides};
use tiles::{Tiles, TilesMut, are_tiles};

use super::{Matching, Pair, SameKey, keys::Owned};
use crate::{
    error::BoxError,
    record::Slot,
    state::{Keyed, StateValue, StoredKey},
    time::{Timestamp, Watermark},
    window::{
        Assigner, Fired, KeyWindows, Spec, Turn, WindowPort, Windowing, Windows, WindowsMut,
        timing::Triggering,
    },
};

/// Windows that are like any other.
type Usual<K, L, R, A, T, M> = Windows<K, Side<L, R>, Spec<A, T, Joined<M>>>;

/// These, borrowed for the time of one batch.
type UsualMut<'j, K, L, R, A, T, M> = WindowsMut<'j, K, Side<L, R>, Spec<A, T, Joined<M>>>;

/// Their state.
pub(crate) type StateOf<L, R, A, T> = KeyWindows<
    <A as Windowing>::Window,
    Sides<L, R>,
    <T as Triggering<Side<L, R>, <A as Windowing>::Window>>::Timing,
>;

/// A join in windows, in one subtask: a handle that the loops of both inputs and the one behind them borrow for each
/// batch.
pub struct WindowJoin<K, L, R, A, T, M>(pub(super) Kind<K, L, R, A, T, M>)
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching;

pub(super) enum Kind<K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    Tiles(Tiles<K, L, R, A>),
    Windows(Usual<K, L, R, A, T, M>),
}

impl<K, L, R, A, T, M> WindowJoin<K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    /// The join of `spec`, whose arguments are known to make sense or will not be used. `tables` makes the table that it
    /// needs.
    pub(crate) fn new(spec: Spec<A, T, Joined<M>>, tables: &mut impl Tables<K>) -> Self {
        WindowJoin(match are_tiles(&spec) {
            true => Kind::Tiles(Tiles::new(spec.assigner, tables.table())),
            false => Kind::Windows(Windows::unchecked(spec, tables.table::<StateOf<L, R, A, T>>())),
        })
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> WindowJoinMut<'_, K, L, R, A, T, M> {
        WindowJoinMut(match &self.0 {
            Kind::Tiles(tiles) => KindMut::Tiles(tiles.borrow_mut()),
            Kind::Windows(windows) => KindMut::Windows {
                windows: windows.borrow_mut(),
                fired: Vec::new().into_iter(),
                current: None,
            },
        })
    }
}

/// What makes the table of an operator.
pub(crate) trait Tables<K: StoredKey> {
    /// A table of such values.
    fn table<V: StateValue>(&mut self) -> Keyed<K, V>;
}

impl<K, L, R, A, T, M> Clone for WindowJoin<K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    fn clone(&self) -> Self {
        WindowJoin(match &self.0 {
            Kind::Tiles(tiles) => Kind::Tiles(tiles.clone()),
            Kind::Windows(windows) => Kind::Windows(windows.clone()),
        })
    }
}

impl<K, L, R, A, T, M> WindowPort for WindowJoin<K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    fn restore(&self, watermark: Watermark) {
        match &self.0 {
            Kind::Tiles(tiles) => tiles.restore(watermark),
            Kind::Windows(windows) => WindowPort::restore(windows, watermark),
        }
    }

    fn by_clock(&self) -> bool {
        match &self.0 {
            Kind::Tiles(_) => false,
            Kind::Windows(windows) => windows.by_clock(),
        }
    }

    fn tell_time(&self, now: Timestamp) {
        if let Kind::Windows(windows) = &self.0 {
            windows.tell_time(now);
        }
    }

    fn next_timer(&self) -> Option<Timestamp> {
        match &self.0 {
            Kind::Tiles(_) => None,
            Kind::Windows(windows) => windows.next_timer(),
        }
    }

    fn late(&self) -> u64 {
        match &self.0 {
            Kind::Tiles(tiles) => tiles.late(),
            Kind::Windows(windows) => windows.late(),
        }
    }

    fn result(&self) -> &'static str {
        "a result of a window"
    }
}

/// [`WindowJoin`], borrowed for the time of one batch.
pub struct WindowJoinMut<'j, K, L, R, A, T, M>(KindMut<'j, K, L, R, A, T, M>)
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching;

/// Results that have been taken out.
type Results<K, L, R, A, M> = Fired<K, <A as Windowing>::Window, Together<K, L, R, M>>;

enum KindMut<'j, K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    Tiles(TilesMut<'j, K, L, R, A>),
    Windows {
        windows: UsualMut<'j, K, L, R, A, T, M>,
        fired: vec::IntoIter<Results<K, L, R, A, M>>,
        /// What is lent.
        current: Option<Results<K, L, R, A, M>>,
    },
}

impl<K, L, R, A, T, M> WindowJoinMut<'_, K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    /// A record of the left stream. One that is late for all of its windows is dropped and counted.
    ///
    /// # Errors
    /// Never, as long as the trigger is one of this crate's.
    #[inline(always)]
    pub fn put_left(&mut self, key: K, time: Timestamp, record: L) -> Result<(), BoxError> {
        self.put(key, time, Side::Left(record))
    }

    /// As [`put_left`](Self::put_left), for the right stream.
    ///
    /// # Errors
    /// As above.
    #[inline(always)]
    pub fn put_right<Q: SameKey<K>>(&mut self, key: Q, time: Timestamp, record: R) -> Result<(), BoxError> {
        self.put(key.same(), time, Side::Right(record))
    }

    #[inline(always)]
    fn put(&mut self, key: K, time: Timestamp, record: Side<L, R>) -> Result<(), BoxError> {
        match &mut self.0 {
            KindMut::Tiles(tiles) => {
                tiles.put(key, time, record);
                Ok(())
            }
            KindMut::Windows { windows, .. } => add(windows, &key, time, record),
        }
    }

    /// The pairs of the next window that fires. `None` when nothing is left to do.
    ///
    /// # Errors
    /// As above.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<Option<Met<'_, K, L, R, M>>, BoxError> {
        match &mut self.0 {
            KindMut::Tiles(tiles) => Ok(tiles.turn(turn)),
            KindMut::Windows { windows, fired, current } => loop {
                if let Some(next) = fired.next() {
                    let next = &*current.insert(next);
                    let Together { key, sides, .. } = &next.result;
                    return Ok(Some(Met::new(key.clone(), next.timestamp(), &sides.left, &sides.right)));
                }
                if !windows.turn(turn)? {
                    return Ok(None);
                }
                *fired = windows.fired().collect::<Vec<_>>().into_iter();
            },
        }
    }
}

/// Apart from the loop, which has the usual windows in it.
#[inline(never)]
fn add<K, L, R, A, T, M>(
    windows: &mut UsualMut<'_, K, L, R, A, T, M>,
    key: &K,
    time: Timestamp,
    record: Side<L, R>,
) -> Result<(), BoxError>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    windows.add(&Owned(key), time, record).map(drop)
}

/// The records of a window that has fired: each left one meets each right one.
pub struct Met<'w, K, L, R, M> {
    key: K,
    timestamp: Timestamp,
    left: &'w [L],
    right: &'w [R],
    /// Which are next.
    at: (usize, usize),
    matching: PhantomData<M>,
}

impl<'w, K: StoredKey, L, R, M: Matching> Met<'w, K, L, R, M> {
    #[inline(always)]
    fn new(key: K, timestamp: Timestamp, left: &'w [L], right: &'w [R]) -> Self {
        Met { key, timestamp, left, right, at: (0, 0), matching: PhantomData }
    }

    /// The next pair.
    #[inline(always)]
    pub fn next_pair(&mut self) -> Option<Pair<'w, K, L, R, M>> {
        // A side on which there is nobody counts as one on which somebody is missing.
        if self.at.1 >= self.right.len().max(1) {
            self.at = (self.at.0 + 1, 0);
        }
        if self.at.0 >= self.left.len().max(1) {
            return None;
        }
        let (left, right) = M::pair(self.left.get(self.at.0), self.right.get(self.at.1))?;
        self.at.1 += 1;
        Some(Pair { key: Slot::new(self.key.clone()), timestamp: self.timestamp, left, right })
    }
}

impl<K, L, R, M> fmt::Debug for Met<'_, K, L, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Met").field("timestamp", &self.timestamp).finish_non_exhaustive()
    }
}

impl<K, L, R, A, T, M> fmt::Debug for WindowJoin<K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowJoin").finish_non_exhaustive()
    }
}

impl<K, L, R, A, T, M> fmt::Debug for WindowJoinMut<'_, K, L, R, A, T, M>
where
    K: StoredKey,
    L: StateValue,
    R: StateValue,
    A: Assigner<Side<L, R>>,
    T: Triggering<Side<L, R>, A::Window>,
    M: Matching,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowJoinMut").finish_non_exhaustive()
    }
}
