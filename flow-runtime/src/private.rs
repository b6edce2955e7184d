//! The only door for generated code. No stability is promised behind it.

use crate::source::Bounded;
pub use crate::{
    chain::{At, Edge, Wiring},
    job::{Definition, Job},
    plan::{EdgePlan, Guarantee, Mode, OperatorPlan, Plan, Ship},
    record::{Lend, OwnPlain, OwnRecord, Owning, Plain, Record, Slot, Witness, WitnessPlain, WitnessRecord},
    source::Batch,
    state::{Key, StoredKeyPart},
};

/// A record for one more reader of a stream.
#[inline(always)]
pub fn fork<T: Fork>(record: &T) -> T {
    record.clone()
}

/// What can go to several readers.
#[diagnostic::on_unimplemented(
    message = "a stream of `{Self}` is used twice, but its records cannot be cloned",
    label = "each reader of a stream gets a copy of every record",
    note = "derive `Clone` for the record, or wrap what is heavy in an `Arc`"
)]
pub trait Fork: Clone {}

#[diagnostic::do_not_recommend]
impl<T: Clone> Fork for T {}

/// A source of a batch pipeline.
pub fn bounded<S: Bounded>(source: S) -> S {
    source
}
