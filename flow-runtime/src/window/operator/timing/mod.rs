//! When windows fire: what has to be remembered for it, and what happens then.
//!
//! With the default trigger all of it follows from the windows themselves: see [`AtTheEnd`]. Any other trigger has a
//! state and timers for each window: see [`ByTrigger`].

mod at_the_end;
mod by_trigger;

pub(in crate::window) use at_the_end::{AtTheEnd, Each, Sliced};
pub(in crate::window) use by_trigger::{ByTrigger, Timed};
use serde::{Serialize, de::DeserializeOwned};

use super::{Core, StateOf};
use crate::{
    error::BoxError,
    state::{StateValue, StoredKey, Table},
    time::{Timestamp, Watermark},
    timers::Indexed,
    window::{Bounds, Definition, state::List, trigger::TriggerResult},
};

/// The watermark and the clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub(in crate::window) watermark: Watermark,
    pub(in crate::window) now: Timestamp,
}

/// What fires windows: the default trigger, or one that is [`Set`](crate::window::trigger::Set). The methods are those
/// of a [`Trigger`](crate::window::Trigger).
pub trait Triggering<In, W: Bounds> {
    /// What is remembered for it.
    type Timing: Timing;

    /// A record was put into the window.
    fn on_element(
        &self,
        record: &In,
        timestamp: Timestamp,
        window: &W,
        of: &mut <Self::Timing as Timing>::OfWindow,
        moment: Moment,
    ) -> TriggerResult;

    /// The watermark has passed a timer.
    fn on_event_time(
        &self,
        time: Timestamp,
        window: &W,
        of: &mut <Self::Timing as Timing>::OfWindow,
        moment: Moment,
    ) -> TriggerResult;

    /// The clock has passed a timer.
    fn on_processing_time(
        &self,
        time: Timestamp,
        window: &W,
        of: &mut <Self::Timing as Timing>::OfWindow,
        moment: Moment,
    ) -> TriggerResult;

    /// Sessions have become one, or one has grown.
    fn on_merge(
        &self,
        window: &W,
        others: Vec<<Self::Timing as Timing>::TriggerState>,
        of: &mut <Self::Timing as Timing>::OfWindow,
        moment: Moment,
    );

    /// The window is over.
    fn clear(&self, window: &W, of: &mut <Self::Timing as Timing>::OfWindow, moment: Moment);

    /// Whether what is remembered says nothing.
    fn says_nothing(of: &<Self::Timing as Timing>::OfWindow) -> bool;
}

/// What is remembered of a key for when its windows fire.
pub trait OfKey: Clone + Send + Default + 'static {
    /// Where windows share slices: the maximum timestamp of the next one that fires.
    fn next(&self) -> Option<Timestamp> {
        None
    }
    /// Sets it.
    fn set_next(&mut self, next: Option<Timestamp>) {
        let _ = next;
    }
}

impl OfKey for () {}

/// What is remembered of windows and keys for when windows fire, and what happens then.
pub trait Timing: Sized + 'static {
    /// Whether windows fire at their end and when they are late, at no other time, and keep what they hold.
    const AT_THE_END: bool;

    /// The state of the trigger.
    type TriggerState: Serialize + DeserializeOwned;
    /// Of a window.
    type OfWindow: Clone + Send + Default + 'static;
    /// Of a key.
    type OfKey: OfKey;
    /// The open windows of a key.
    type Open<W: Bounds, H: StateValue>: List<W, H, Self::OfWindow>;
    /// How an index leads to what is to be looked at.
    type Lead<W: Bounds>: Copy;

    /// The hash of the key to which an index leads.
    fn hash<W: Bounds>(lead: &Self::Lead<W>) -> u64;

    /// What a checkpoint holds of a window with this last millisecond: the state of the trigger, and the times of its
    /// timers by the watermark and by the clock.
    fn parts<'a>(
        of: &'a Self::OfWindow,
        end: &'a Timestamp,
    ) -> (&'a Self::TriggerState, &'a [Timestamp], &'a [Timestamp]);

    /// The same, from a checkpoint.
    fn restored(
        trigger: Self::TriggerState,
        event: Vec<Timestamp>,
        processing: Vec<Timestamp>,
    ) -> Self::OfWindow;

    /// Adds the timers of another session, and gives the state of its trigger.
    fn append(of: &mut Self::OfWindow, other: Self::OfWindow) -> Self::TriggerState;

    /// Sees to it that the indices lead to a window, which may be a new one, not later than it has to be looked at.
    fn index<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, at: usize, hash: u64, new: bool)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>;

    /// The same for all windows of a key that has been restored.
    fn index_all<K, In, S>(core: &mut Core<K, In, S>, state: &StateOf<K, In, S>, hash: u64)
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>;

    /// The index of event time leads here at a time that the watermark has passed.
    ///
    /// # Errors
    /// Those of the user's functions.
    fn due<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        lead: Self::Lead<S::Window>,
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>;

    /// The index of windows that have fired, and still take late records, leads here at a time that the watermark has
    /// passed.
    fn over<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        lead: Self::Lead<S::Window>,
    ) where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>;

    /// The index of processing time leads here at a time that the clock has passed.
    ///
    /// # Errors
    /// Those of the user's functions.
    fn due_by_clock<K, In, S>(
        core: &mut Core<K, In, S>,
        table: &mut Table<K, StateOf<K, In, S>>,
        time: Timestamp,
        lead: Self::Lead<S::Window>,
    ) -> Result<(), BoxError>
    where
        K: StoredKey,
        S: Definition<K, In, Timing = Self>;
}

/// Notes a time in an index, unless it leads there at that time or before. Returns whether it has to be put there.
#[inline(always)]
fn is_news(indexed: &Indexed, time: Timestamp) -> bool {
    let news = indexed.is_after(time);
    if news {
        indexed.set(Some(time));
    }
    news
}
