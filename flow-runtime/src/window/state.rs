//! The state of a key: its open windows.

mod few;

use few::Few;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Bounds, Window};
use crate::{
    time::Timestamp,
    timers::{Indexed, Timers, Times},
};

/// The open windows of a key, which are the value that a checkpoint holds for it.
#[derive(Clone, Debug)]
pub struct KeyWindows<W, H, S> {
    /// In ascending order. Where windows share slices, those.
    pub(super) open: Few<Open<W, H, S>>,
    /// Where windows share slices: the maximum timestamp of the next one that fires.
    pub(super) next: Option<Timestamp>,
    /// When the indices of timers lead here. Not part of the state.
    pub(super) event: Indexed,
    pub(super) processing: Indexed,
}

/// An open window.
#[derive(Clone, Debug)]
pub(super) struct Open<W, H, S> {
    pub(super) window: W,
    /// Nothing, when it has been purged.
    pub(super) held: Option<H>,
    pub(super) trigger: S,
    pub(super) timers: Timers,
}

impl<W, H, S> Default for KeyWindows<W, H, S> {
    #[inline]
    fn default() -> Self {
        KeyWindows { open: Few::None, next: None, event: Indexed::default(), processing: Indexed::default() }
    }
}

impl<W: Bounds, H, S: Default> KeyWindows<W, H, S> {
    /// The place of a window, which is opened if it is not.
    #[inline(always)]
    pub(super) fn open(&mut self, window: W) -> usize {
        // Most records belong to the newest window.
        match self.open.last() {
            Some(last) if last.window == window => self.open.len() - 1,
            _ => self.open_elsewhere(window),
        }
    }

    fn open_elsewhere(&mut self, window: W) -> usize {
        match self.open.binary_search_by(|open| open.window.cmp(&window)) {
            Ok(at) => at,
            Err(at) => {
                self.open.insert(at, Open::new(window));
                at
            }
        }
    }
}

impl<W, H, S: Default> Open<W, H, S> {
    fn new(window: W) -> Self {
        Open { window, held: None, trigger: S::default(), timers: Timers::default() }
    }
}

/// The encoding is a sequence without names, since there is one per window and key: the window's start and end, what
/// it holds in a sequence of one or nothing, the trigger's state, and the times of both kinds.
type Encoded<H, S, T> = (Timestamp, Timestamp, H, S, T, T);

impl<W: Bounds, H: Serialize, S: Serialize> Serialize for Open<W, H, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let span = self.window.span();
        // What is held may itself be encoded as nothing: hence the sequence around it.
        let held = self.held.as_ref().map(|held| (held,));
        let times = (self.timers.event.as_slice(), self.timers.processing.as_slice());
        let encoded: Encoded<_, _, _> = (span.start, span.end, held, &self.trigger, times.0, times.1);
        encoded.serialize(serializer)
    }
}

impl<'de, W: Bounds, H: Deserialize<'de>, S: Deserialize<'de>> Deserialize<'de> for Open<W, H, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded: Encoded<Option<(H,)>, S, Vec<Timestamp>> = Deserialize::deserialize(deserializer)?;
        let (start, end, held, trigger, event, processing) = encoded;
        Ok(Open {
            window: W::spanning(Window { start, end }),
            held: held.map(|(held,)| held),
            trigger,
            timers: Timers { event: Times::from(event), processing: Times::from(processing) },
        })
    }
}

impl<W: Bounds, H: Serialize, S: Serialize> Serialize for KeyWindows<W, H, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        (self.next, &self.open[..]).serialize(serializer)
    }
}

impl<'de, W: Bounds, H: Deserialize<'de>, S: Deserialize<'de>> Deserialize<'de> for KeyWindows<W, H, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (next, open): (_, Vec<_>) = Deserialize::deserialize(deserializer)?;
        Ok(KeyWindows { open: open.into(), next, ..KeyWindows::default() })
    }
}
