//! One window for all records of a key.

use std::iter;

use super::{Assigner, Windowing};
use crate::{
    time::Timestamp,
    window::{
        GlobalWindow,
        evict::NoEvictor,
        trigger::{Never, Set},
    },
};

/// One window for all records of a key. It never fires unless a trigger says so, and no record is late for it.
///
/// ```
/// use flow_runtime::window::{global, trigger, windows};
///
/// let every_hundred = windows(global()).trigger(trigger::count(100));
/// ```
#[must_use]
pub const fn global() -> Global {
    Global
}

/// See [`global`].
#[derive(Clone, Copy, Debug)]
pub struct Global;

impl Windowing for Global {
    type Window = GlobalWindow;
    type Trigger = Set<Never>;
    type Evictor = NoEvictor;

    const EVENT_TIME: bool = false;

    fn trigger(&self) -> Self::Trigger {
        Set(Never)
    }

    fn evictor(&self) -> NoEvictor {
        NoEvictor
    }
}

impl<In> Assigner<In> for Global {
    type Windows = iter::Once<GlobalWindow>;

    #[inline(always)]
    fn assign(&self, _: &In, _: Timestamp) -> Self::Windows {
        iter::once(GlobalWindow)
    }
}
