//! Windows that go by the clock.

use super::{Assigner, Calendar, Session, Slices, Sliding, Tumbling, Windowing};
use crate::{error::BoxError, time::Timestamp};

/// Windows in processing time: a record is in those of the moment in which it comes, whatever its event time, and they
/// fire when the clock passes their end. The clock is read once per batch. No record is late, and what is open at the
/// end of the input does not fire.
///
/// `tumbling("10s").processing_time()`, and so for `sliding`, `session` and the calendar; or, for all windows of a
/// pipeline, `#[pipeline(time = processing)]`.
#[derive(Clone, Debug)]
pub struct ByClock<A>(A);

/// Windows of any kind, by the clock.
pub fn by_clock<A: Windowing>(assigner: A) -> ByClock<A> {
    ByClock(assigner)
}

macro_rules! processing_time {
    ($([$($t:ident)?] $assigner:ty),*) => { $(
        impl $(<$t>)? $assigner {
            /// The same windows in processing time: see [`ByClock`].
            ///
            /// ```
            /// use std::time::Duration;
            /// use flow_runtime::window::{aggregate::count, tumbling, windows};
            ///
            /// let spec = windows(tumbling(Duration::from_secs(10)).processing_time()).aggregate(count());
            /// ```
            #[must_use]
            pub fn processing_time(self) -> ByClock<Self> {
                ByClock(self)
            }
        }
    )* };
}
processing_time!([] Tumbling, [] Sliding, [G] Session<G>, [] Calendar);

impl<A: Windowing> Windowing for ByClock<A> {
    type Window = A::Window;
    type Trigger = A::Trigger;
    type Evictor = A::Evictor;

    const MERGING: bool = A::MERGING;
    const EVENT_TIME: bool = A::EVENT_TIME;
    const BY_CLOCK: bool = true;
    const TILES: bool = A::TILES;

    fn trigger(&self) -> A::Trigger {
        self.0.trigger()
    }

    fn evictor(&self) -> A::Evictor {
        self.0.evictor()
    }

    fn check(&self) -> Result<(), BoxError> {
        self.0.check()
    }

    fn slices(&self) -> Option<Slices> {
        self.0.slices()
    }
}

impl<In, A: Assigner<In>> Assigner<In> for ByClock<A> {
    type Windows = A::Windows;

    #[inline(always)]
    fn assign(&self, record: &In, timestamp: Timestamp) -> A::Windows {
        self.0.assign(record, timestamp)
    }
}
