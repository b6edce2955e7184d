//! Time to live: what has not been used for so long vanishes.

use std::cell::Cell;

use crate::time::Timestamp;

/// How long what a field of keyed state holds lives, by the clock: what `#[state(ttl = "..")]` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// In milliseconds.
    pub millis: i64,
    /// What counts as a use.
    pub update: TtlUpdate,
    /// What becomes of what is over but not removed yet.
    pub visibility: TtlVisibility,
}

/// What makes an entry live on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlUpdate {
    /// When it is written.
    OnWrite,
    /// When it is read, too.
    OnReadAndWrite,
}

/// Whether something is seen between its end and its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlVisibility {
    /// It is not.
    NeverReturnExpired,
    /// It may be.
    ReturnExpiredIfNotCleanedUp,
}

thread_local! {
    /// The clock, as the function that runs on this worker sees it.
    static NOW: Cell<Timestamp> = const { Cell::new(Timestamp::MIN) };
}

/// Tells the states that a function is about to use what time it is.
#[inline(always)]
pub(crate) fn set_now(now: Timestamp) {
    NOW.set(now);
}

/// When something was last used.
#[derive(Clone, Debug)]
pub(super) struct Stamp(Cell<Timestamp>);

impl Stamp {
    /// Not known: it was written when nothing vanished yet, and lives from when that is found out.
    const UNKNOWN: Timestamp = Timestamp::MIN;

    /// Of what is written now.
    #[inline(always)]
    pub(super) fn new(ttl: Option<&'static Ttl>) -> Self {
        Stamp(Cell::new(if ttl.is_some() { NOW.get() } else { Self::UNKNOWN }))
    }

    pub(super) fn restored(time: Option<Timestamp>) -> Self {
        Stamp(Cell::new(time.unwrap_or(Self::UNKNOWN)))
    }

    /// As it is stored.
    pub(super) fn stored(&self, ttl: Option<&'static Ttl>) -> Option<Timestamp> {
        ttl.map(|_| self.0.get())
    }

    /// When what it is of is over.
    #[inline(always)]
    pub(super) fn end(&self, ttl: &Ttl) -> Timestamp {
        match self.0.get() {
            Self::UNKNOWN => Timestamp::MIN,
            used => used.plus_millis(ttl.millis),
        }
    }

    /// Notes a write.
    #[inline(always)]
    pub(super) fn write(&self, ttl: Option<&'static Ttl>) {
        if ttl.is_some() {
            self.0.set(NOW.get());
        }
    }

    /// Whether it is seen; if so, a read may make it live on.
    #[inline(always)]
    pub(super) fn read(&self, ttl: Option<&'static Ttl>) -> bool {
        match ttl {
            Some(ttl) => self.read_before_end(ttl),
            None => true,
        }
    }

    fn read_before_end(&self, ttl: &Ttl) -> bool {
        if self.is_over(ttl, NOW.get()) {
            return ttl.visibility == TtlVisibility::ReturnExpiredIfNotCleanedUp;
        }
        if ttl.update == TtlUpdate::OnReadAndWrite {
            self.0.set(NOW.get());
        }
        true
    }

    fn is_over(&self, ttl: &Ttl, now: Timestamp) -> bool {
        self.0.get() != Self::UNKNOWN && self.end(ttl) <= now
    }

    /// Whether it is to be removed. What is not known to be over begins to live now.
    pub(super) fn clean(&self, ttl: &Ttl, now: Timestamp) -> bool {
        if self.0.get() == Self::UNKNOWN {
            self.0.set(now);
        }
        self.is_over(ttl, now)
    }
}
