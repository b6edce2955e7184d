//! Windows: finite pieces of a keyed stream, by event time or by number.
//!
//! [`windows`] begins the description of what a pipeline wants: an assigner ([`tumbling`], [`sliding`], [`session`],
//! [`global`], [`count`], [`calendar`]) says to which windows a record belongs, a [`trigger`] when they fire, an
//! evictor ([`evict`]) which records are left out then, and an aggregate ([`aggregate`]), `reduce` or `process` what
//! they hold and give. [`Windows`] is the operator that does it, over keyed state.
//!
//! A window is over when the watermark has passed its end and the allowed lateness; its state goes then. A record is
//! late for a window that is over, and it is dropped when it is late for all of its windows.

pub mod aggregate;
mod assign;
mod bounds;
pub mod contents;
pub mod evict;
pub(crate) mod lent;
mod operator;
mod spec;
mod state;
pub mod trigger;

use crate::timers;
pub use aggregate::Aggregate;
pub use assign::{
    Assigner, ByClock, Count, Gap, Global, Session, SessionGap, Sliding, SlidingCount, SlidingWindows,
    Tumbling, Windowing, by_clock, calendar, count, global, session, session_with, sliding, sliding_count,
    tumbling,
};
pub use bounds::{Bounds, GlobalWindow, Window};
pub use evict::Evictor;
pub(crate) use lent::WindowPort;
pub use lent::{Records, Turn};
pub(crate) use operator::timing;
pub use operator::{Counters, Fired, Windows, WindowsMut};
pub(crate) use spec::check;
pub use spec::{Definition, Spec, WindowsOf, windows};
pub use state::KeyWindows;
pub use trigger::{Trigger, TriggerContext, TriggerResult};

#[cfg(test)]
pub(crate) mod tests;
