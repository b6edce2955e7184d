//! Evictors: which records of a window are left out when it fires.
//!
//! With an evictor a window keeps all of its records; aggregates are made of them whenever the window fires.

mod count;
mod delta;
mod time;

pub use count::{CountEvictor, count};
pub use delta::{DeltaEvictor, delta};
pub use time::{TimeEvictor, time};

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A record in a window, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Element<In> {
    /// The event time of the record.
    pub timestamp: Timestamp,
    /// The record.
    pub record: In,
}

/// Removes records from a window that fires. What is removed does not come back.
///
/// ```
/// use flow_runtime::window::evict::{Element, Evictor};
///
/// /// Refunds are no purchases.
/// struct Refunds;
///
/// impl<W> Evictor<i64, W> for Refunds {
///     fn evict_before(&self, elements: &mut Vec<Element<i64>>, _: &W) {
///         elements.retain(|element| element.record > 0);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an evictor of records of type `{In}`",
    note = "evictors are in `flow::window::evict`; one of your own implements `flow::window::evict::Evictor`"
)]
pub trait Evictor<In, W> {
    /// Before the window's function sees the records, which are in the order in which they came.
    fn evict_before(&self, elements: &mut Vec<Element<In>>, window: &W) {
        let _ = (elements, window);
    }

    /// After the window's function has seen the records: counts for the next firing.
    fn evict_after(&self, elements: &mut Vec<Element<In>>, window: &W) {
        let _ = (elements, window);
    }
}

/// Windows keep no records but what their function needs.
#[derive(Clone, Copy, Debug)]
pub struct NoEvictor;

/// Windows keep their records for an evictor.
#[derive(Clone, Copy, Debug)]
pub struct Evicting<E>(pub E);

/// When an evictor of this module evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
}
