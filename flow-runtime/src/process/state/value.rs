//! One value per key.

use super::{State, Ttl, from_bytes, to_bytes, ttl::Stamp};
use crate::{error::BoxError, state::StateValue, time::Timestamp};

/// One value, or none.
#[derive(Clone, Debug)]
pub struct ValueState<T> {
    held: Option<T>,
    stamp: Stamp,
    ttl: Option<&'static Ttl>,
}

impl<T> ValueState<T> {
    /// The value.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.held.as_ref().filter(|_| self.stamp.read(self.ttl))
    }

    /// The value, to be changed in place.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.stamp.read(self.ttl) {
            return None;
        }
        self.stamp.write(self.ttl);
        self.held.as_mut()
    }

    /// The value, to be changed in place; `initial()` if there is none.
    pub fn get_or_insert_with(&mut self, initial: impl FnOnce() -> T) -> &mut T {
        if !self.stamp.read(self.ttl) {
            self.held = None;
        }
        self.stamp.write(self.ttl);
        self.held.get_or_insert_with(initial)
    }

    /// Replaces the value.
    pub fn set(&mut self, value: T) {
        self.stamp.write(self.ttl);
        self.held = Some(value);
    }

    /// Takes the value out.
    pub fn take(&mut self) -> Option<T> {
        let seen = self.stamp.read(self.ttl);
        self.held.take().filter(|_| seen)
    }

    /// Removes the value.
    pub fn clear(&mut self) {
        self.held = None;
    }
}

impl<T: Default> ValueState<T> {
    /// The value, to be changed in place; the default if there is none.
    pub fn get_or_default(&mut self) -> &mut T {
        self.get_or_insert_with(T::default)
    }
}

impl<T: StateValue> State for ValueState<T> {
    const EXPIRES: bool = false;

    fn empty(ttl: Option<&'static Ttl>) -> Self {
        ValueState { held: None, stamp: Stamp::restored(None), ttl }
    }

    fn copy(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn holds_nothing(&self) -> bool {
        self.held.is_none()
    }

    #[inline]
    fn ends(&self) -> Option<Timestamp> {
        self.held.as_ref().and(self.ttl).map(|ttl| self.stamp.end(ttl))
    }

    fn clean(&mut self, now: Timestamp) {
        if self.held.is_some() && self.ttl.is_some_and(|ttl| self.stamp.clean(ttl, now)) {
            self.held = None;
        }
    }

    fn encode(&self) -> Result<Vec<u8>, BoxError> {
        // What is held may itself be encoded as nothing: hence the sequence around it.
        to_bytes(&(self.held.as_ref().map(|held| (held,)), self.stamp.stored(self.ttl)))
    }

    fn decode(bytes: &[u8], ttl: Option<&'static Ttl>) -> Result<Self, BoxError> {
        let (held, stamp): (Option<(T,)>, Option<Timestamp>) = from_bytes(bytes)?;
        Ok(ValueState { held: held.map(|(held,)| held), stamp: Stamp::restored(stamp), ttl })
    }
}
