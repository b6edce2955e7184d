//! The state of a key: its open windows.

mod few;

use std::fmt;

pub(super) use few::Few;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeSeq};

use super::{
    Bounds, Window,
    timing::{OfKey, Timing},
};
use crate::time::Timestamp;

/// The open windows of a key, which are the value that a checkpoint holds for it.
pub struct KeyWindows<W, H, T: Timing> {
    /// In ascending order. Where windows share slices, those.
    pub(super) open: Few<Open<W, H, T>>,
    /// What is remembered of the key for when its windows fire.
    pub(super) timing: T::OfKey,
}

/// An open window.
pub(super) struct Open<W, H, T: Timing> {
    pub(super) window: W,
    /// Nothing, when it has been purged.
    pub(super) held: Option<H>,
    pub(super) timing: T::OfWindow,
}

impl<W, H, T: Timing> Default for KeyWindows<W, H, T> {
    #[inline]
    fn default() -> Self {
        KeyWindows { open: Few::None, timing: T::OfKey::default() }
    }
}

impl<W: Clone, H: Clone, T: Timing> Clone for KeyWindows<W, H, T> {
    fn clone(&self) -> Self {
        KeyWindows { open: self.open.clone(), timing: self.timing.clone() }
    }
}

impl<W: Clone, H: Clone, T: Timing> Clone for Open<W, H, T> {
    fn clone(&self) -> Self {
        Open { window: self.window.clone(), held: self.held.clone(), timing: self.timing.clone() }
    }
}

impl<W: fmt::Debug, H, T: Timing> fmt::Debug for KeyWindows<W, H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.iter().map(|open| &open.window)).finish()
    }
}

impl<W: Bounds, H, T: Timing> KeyWindows<W, H, T> {
    /// The place of a window, which is opened if it is not.
    #[inline(always)]
    pub(super) fn open(&mut self, window: W) -> usize {
        // Most records belong to the newest window.
        match self.open.last() {
            Some(last) if last.window == window => self.open.len() - 1,
            _ => self.open_elsewhere(window),
        }
    }

    /// What the newest window holds, if it is this one.
    #[inline(always)]
    pub(super) fn newest(&mut self, window: W) -> Option<&mut H> {
        let newest = self.open.last_mut().filter(|last| last.window == window)?;
        newest.held.as_mut()
    }

    fn open_elsewhere(&mut self, window: W) -> usize {
        match self.find(&window) {
            Ok(at) => at,
            Err(at) => {
                self.open.insert(at, Open { window, held: None, timing: T::OfWindow::default() });
                at
            }
        }
    }

    /// Where a window is, or would be.
    pub(super) fn find(&self, window: &W) -> Result<usize, usize> {
        let at = self.open.partition_point(|open| open.window < *window);
        if self.open.get(at).is_some_and(|open| open.window == *window) { Ok(at) } else { Err(at) }
    }
}

/// The encoding is a sequence without names, since there is one per window and key: the window's start and end, what
/// it holds in a sequence of one or nothing, the trigger's state, and the times of both kinds.
type Encoded<H, S, T> = (Timestamp, Timestamp, H, S, T, T);

impl<W: Bounds, H: Serialize, T: Timing> Serialize for Open<W, H, T> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let (span, end) = (self.window.span(), self.window.max_timestamp());
        // What is held may itself be encoded as nothing: hence the sequence around it.
        let held = self.held.as_ref().map(|held| (held,));
        let (trigger, event, processing) = T::parts(&self.timing, &end);
        let encoded: Encoded<_, _, _> = (span.start, span.end, held, trigger, event, processing);
        encoded.serialize(serializer)
    }
}

impl<'de, W: Bounds, H: Deserialize<'de>, T: Timing> Deserialize<'de> for Open<W, H, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded: Encoded<Option<(H,)>, T::TriggerState, Vec<Timestamp>> =
            Deserialize::deserialize(deserializer)?;
        let (start, end, held, trigger, event, processing) = encoded;
        Ok(Open {
            window: W::spanning(Window { start, end }),
            held: held.map(|(held,)| held),
            timing: T::restored(trigger, event, processing),
        })
    }
}

impl<W: Bounds, H: Serialize, T: Timing> Serialize for KeyWindows<W, H, T> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        (self.timing.next(), All(&self.open)).serialize(serializer)
    }
}

impl<'de, W: Bounds, H: Deserialize<'de>, T: Timing> Deserialize<'de> for KeyWindows<W, H, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (next, open): (_, Vec<_>) = Deserialize::deserialize(deserializer)?;
        let mut timing = T::OfKey::default();
        timing.set_next(next);
        Ok(KeyWindows { open: open.into(), timing })
    }
}

/// All of a list, as a sequence.
struct All<'a, T>(&'a Few<T>);

impl<T: Serialize> Serialize for All<'_, T> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|element| sequence.serialize_element(element))?;
        sequence.end()
    }
}
