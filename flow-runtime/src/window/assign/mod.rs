//! Window assigners: to which windows a record belongs.

/// What windows over time have in common.
macro_rules! over_time {
    () => {
        over_time!(EventTime);
    };
    ($trigger:ident) => {
        type Window = $crate::window::Window;
        type Trigger = $crate::window::trigger::$trigger;
        type Evictor = $crate::window::evict::NoEvictor;

        fn trigger(&self) -> Self::Trigger {
            $crate::window::trigger::$trigger
        }

        fn evictor(&self) -> Self::Evictor {
            $crate::window::evict::NoEvictor
        }
    };
}

pub mod calendar;
mod clock;
mod count;
mod global;
mod session;
mod sliding;
mod tumbling;

use calendar::Calendar;
pub use clock::{ByClock, by_clock};
pub use count::{Count, SlidingCount, count, sliding_count};
pub use global::{Global, global};
pub use session::{Gap, Session, SessionGap, session, session_with};
pub(crate) use sliding::Slices;
pub use sliding::{Sliding, SlidingWindows, sliding};
pub use tumbling::{Tumbling, tumbling};

use super::Bounds;
use crate::{error::BoxError, time::Timestamp};

/// What of a window assigner does not depend on the records.
pub trait Windowing {
    /// The windows.
    type Window: Bounds;
    /// What fires them, unless the pipeline sets another trigger: [`EventTime`](super::trigger::EventTime), or a
    /// trigger that is [`Set`](super::trigger::Set).
    type Trigger;
    /// What evicts records from them, unless the pipeline sets another evictor.
    type Evictor;

    /// Whether windows that overlap or touch become one.
    const MERGING: bool = false;

    /// Whether a window is over when the watermark has passed its end and the allowed lateness. The global window
    /// never is.
    const EVENT_TIME: bool = true;

    /// Whether windows go by the clock: see [`ByClock`]. What goes by the watermark otherwise goes by the clock then.
    #[doc(hidden)]
    const BY_CLOCK: bool = false;

    /// Whether each time is in exactly one window, whatever the record: the last one can be remembered then.
    #[doc(hidden)]
    const TILES: bool = false;

    /// The trigger, unless the pipeline sets another.
    fn trigger(&self) -> Self::Trigger;

    /// The evictor, unless the pipeline sets another.
    fn evictor(&self) -> Self::Evictor;

    /// Whether the arguments make sense. Asked before the first record.
    ///
    /// # Errors
    /// Says what does not, and what would.
    fn check(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// How windows that overlap can share what they hold.
    #[doc(hidden)]
    fn slices(&self) -> Option<Slices> {
        None
    }
}

/// Assigns windows to records.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not assign windows to records of type `{In}`",
    note = "window assigners are `tumbling`, `sliding`, `session`, `session_with`, `global`, `count`, `sliding_count` and those in `calendar`"
)]
pub trait Assigner<In>: Windowing {
    /// The windows of a record.
    type Windows: Iterator<Item = Self::Window>;

    /// The windows of a record, each once. A merging assigner gives exactly one.
    fn assign(&self, record: &In, timestamp: Timestamp) -> Self::Windows;
}
