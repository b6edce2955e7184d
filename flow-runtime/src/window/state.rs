//! The state of a key: its open windows.

mod few;
mod in_place;
mod list;

use std::fmt;

pub(super) use few::Few;
pub(super) use in_place::InPlace;
pub(super) use list::List;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeSeq};

use super::{
    Bounds, Window,
    timing::{OfKey, Timing},
};
use crate::{state::StateValue, time::Timestamp};

/// The open windows of a key, which are the value that a checkpoint holds for it.
pub struct KeyWindows<W: Bounds, H: StateValue, T: Timing> {
    /// In ascending order. Where windows share slices, those.
    pub(super) open: T::Open<W, H>,
    /// What is remembered of the key for when its windows fire.
    pub(super) timing: T::OfKey,
}

/// An open window.
#[derive(Clone)]
pub struct Open<W, H, O> {
    pub(super) window: W,
    /// Nothing, when it has been purged.
    pub(super) held: Option<H>,
    /// What is remembered of it for when it fires.
    pub(super) timing: O,
}

impl<W: Bounds, H: StateValue, T: Timing> Default for KeyWindows<W, H, T> {
    #[inline]
    fn default() -> Self {
        KeyWindows { open: T::Open::default(), timing: T::OfKey::default() }
    }
}

impl<W: Bounds, H: StateValue, T: Timing> Clone for KeyWindows<W, H, T> {
    fn clone(&self) -> Self {
        KeyWindows { open: self.open.clone(), timing: self.timing.clone() }
    }
}

impl<W: Bounds, H: StateValue, T: Timing> fmt::Debug for KeyWindows<W, H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.windows()).finish()
    }
}

impl<W: Bounds, H: StateValue, T: Timing> KeyWindows<W, H, T> {
    /// Where a window is, or would be.
    pub(super) fn find(&self, window: &W) -> Result<usize, usize> {
        let at = self.open.partition_point(|open| open < window);
        if self.open.window(at).is_some_and(|open| open == *window) { Ok(at) } else { Err(at) }
    }
}

/// The encoding is a sequence without names, since there is one per window and key: the window's start and end, what
/// it holds in a sequence of one or nothing, the trigger's state, and the times of both kinds.
type Encoded<H, S, T> = (Timestamp, Timestamp, H, S, T, T);
type Decoded<H, T> = Encoded<Option<(H,)>, <T as Timing>::TriggerState, Vec<Timestamp>>;

impl<W: Bounds, H: StateValue, T: Timing> Serialize for KeyWindows<W, H, T> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        (self.timing.next(), All(self)).serialize(serializer)
    }
}

impl<'de, W: Bounds, H: StateValue, T: Timing> Deserialize<'de> for KeyWindows<W, H, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (next, open): (_, Vec<Decoded<H, T>>) = Deserialize::deserialize(deserializer)?;
        let mut state = KeyWindows::<W, H, T>::default();
        state.timing.set_next(next);
        for (start, end, held, trigger, event, processing) in open {
            let window = W::spanning(Window { start, end });
            let (held, timing) = (held.map(|(held,)| held), T::restored(trigger, event, processing));
            state.open.insert(state.open.len(), Open { window, held, timing });
        }
        Ok(state)
    }
}

/// All open windows, as a sequence.
struct All<'a, W: Bounds, H: StateValue, T: Timing>(&'a KeyWindows<W, H, T>);

impl<W: Bounds, H: StateValue, T: Timing> Serialize for All<'_, W, H, T> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let open = &self.0.open;
        let mut sequence = serializer.serialize_seq(Some(open.len()))?;
        for at in 0..open.len() {
            let (Some(window), Some(of)) = (open.window(at), open.of(at)) else { break };
            let (span, end) = (window.span(), window.max_timestamp());
            // What is held may itself be encoded as nothing: hence the sequence around it.
            let held = open.held(at).map(|held| (held,));
            let (trigger, event, processing) = T::parts(of, &end);
            let encoded: Encoded<_, _, _> = (span.start, span.end, held, trigger, event, processing);
            sequence.serialize_element(&encoded)?;
        }
        sequence.end()
    }
}
