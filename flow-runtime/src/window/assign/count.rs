//! Windows of a number of records.

use std::iter;

use super::{Assigner, Windowing};
use crate::{
    error::BoxError,
    time::Timestamp,
    window::{
        GlobalWindow,
        evict::{self, CountEvictor, Evicting, NoEvictor},
        trigger::{self, CountTrigger, Purging, Set},
    },
};

/// Windows of `n` records of a key, one after the other. At the end of the input, a window that is not full gives
/// nothing.
///
/// ```
/// use flow_runtime::window::{count, windows};
///
/// let pairs = windows(count(2));
/// ```
#[must_use]
pub const fn count(n: u64) -> Count {
    Count { n }
}

/// See [`count`].
#[derive(Clone, Copy, Debug)]
pub struct Count {
    n: u64,
}

impl Windowing for Count {
    type Window = GlobalWindow;
    type Trigger = Set<Purging<CountTrigger>>;
    type Evictor = NoEvictor;

    const EVENT_TIME: bool = false;

    fn trigger(&self) -> Self::Trigger {
        Set(trigger::purging(trigger::count(self.n)))
    }

    fn evictor(&self) -> NoEvictor {
        NoEvictor
    }

    fn check(&self) -> Result<(), BoxError> {
        check(self.n)
    }
}

fn check(records: u64) -> Result<(), BoxError> {
    if records == 0 { Err("a count window must have at least one record".into()) } else { Ok(()) }
}

impl<In> Assigner<In> for Count {
    type Windows = iter::Once<GlobalWindow>;

    #[inline(always)]
    fn assign(&self, _: &In, _: Timestamp) -> Self::Windows {
        iter::once(GlobalWindow)
    }
}

/// The last `size` records of a key, every `slide` records; fewer as long as there are not so many.
///
/// ```
/// use flow_runtime::window::{sliding_count, windows};
///
/// let last_ten_at_every_second = windows(sliding_count(10, 2));
/// ```
#[must_use]
pub const fn sliding_count(size: u64, slide: u64) -> SlidingCount {
    SlidingCount { size, slide }
}

/// See [`sliding_count`].
#[derive(Clone, Copy, Debug)]
pub struct SlidingCount {
    size: u64,
    slide: u64,
}

impl Windowing for SlidingCount {
    type Window = GlobalWindow;
    type Trigger = Set<CountTrigger>;
    type Evictor = Evicting<CountEvictor>;

    const EVENT_TIME: bool = false;

    fn trigger(&self) -> Self::Trigger {
        Set(trigger::count(self.slide))
    }

    fn evictor(&self) -> Self::Evictor {
        Evicting(evict::count(self.size))
    }

    fn check(&self) -> Result<(), BoxError> {
        check(self.size)?;
        check(self.slide)
    }
}

impl<In> Assigner<In> for SlidingCount {
    type Windows = iter::Once<GlobalWindow>;

    #[inline(always)]
    fn assign(&self, _: &In, _: Timestamp) -> Self::Windows {
        iter::once(GlobalWindow)
    }
}
