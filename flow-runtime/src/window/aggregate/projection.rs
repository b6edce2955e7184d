//! What of a record is aggregated.

/// What of a record is aggregated: a closure from the record, or the record [`Itself`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives no value of a record of type `{In}`",
    note = "give a closure `|record: &{In}| ..`, or `Itself` where the records are the values"
)]
pub trait Project<In> {
    /// The value.
    type Value;

    /// The value of a record.
    fn value(&self, record: &In) -> Self::Value;
}

/// The records are the values.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::{Itself, sum}, tumbling, windows};
///
/// let totals = windows(tumbling(Duration::from_secs(60))).aggregate(sum(Itself));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Itself;

impl<In: Clone> Project<In> for Itself {
    type Value = In;
    #[inline(always)]
    fn value(&self, record: &In) -> In {
        record.clone()
    }
}

impl<In, V, F: Fn(&In) -> V> Project<In> for F {
    type Value = V;
    #[inline(always)]
    fn value(&self, record: &In) -> V {
        self(record)
    }
}
