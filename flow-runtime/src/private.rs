//! The only door for generated code. No stability is promised behind it.

use crate::source::Bounded;

/// An argument of a pipeline, as the job keeps it for its workers.
pub fn keep<T: Argument + ?Sized>(argument: &T) -> T::Kept {
    argument.keep()
}

/// What can be an argument of a pipeline.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a pipeline",
    label = "every worker gets a copy of it",
    note = "derive `Clone` for it, and make what it holds `Send + Sync` (`Arc` instead of `Rc`)"
)]
pub trait Argument {
    /// What owns it.
    type Kept;
    /// Owns it.
    fn keep(&self) -> Self::Kept;
}

#[diagnostic::do_not_recommend]
impl<T: ToOwned<Owned: Send + Sync + 'static> + ?Sized> Argument for T {
    type Kept = T::Owned;
    fn keep(&self) -> T::Owned {
        self.to_owned()
    }
}

/// The definition of a pipeline that the macro has refused.
#[derive(Debug)]
pub enum Refused {}

impl Definition for Refused {
    const PLAN: &'static Plan = &Plan {
        name: "",
        guarantee: Guarantee::ExactlyOnce,
        mode: Mode::Streaming,
        checkpoint: CheckpointPlan::new(),
        restart: None,
        parallelism: None,
        max_parallelism: None,
        operators: &[],
        edges: &[],
    };
}
pub use crate::{
    async_io::{AnswerFallible, AnswerPlain, Answering, Fallible, Settings, look_up},
    chain::{At, Stream, Wiring},
    checkpoint::Compression,
    error::BoxError,
    job::{Definition, Job},
    join::{FullOuter, Inner, LeftOuter, RightOuter, interval::between},
    plan::{CheckpointPlan, EdgePlan, Guarantee, Mode, OperatorPlan, Plan, Ship},
    process::state::{State, StateField, Stored, Ttl, TtlUpdate, TtlVisibility, state_field},
    record::{
        BarePlain, BareRecord, Lend, LendPlain, LendRecord, Lending, OwnPlain, OwnRecord, Owning, Plain,
        Record, Slot, Witness, WitnessPlain, WitnessRecord,
    },
    sink::handle::{Codec, Durable, Envelope, Enveloped, TransactionHandle, codec},
    source::Batch,
    split::{Split2, Split3, Split4, choice_of_2, choice_of_3, choice_of_4},
    state::{Ahead, Key, StateValue, StoredKeyPart},
    time::Offset,
    time::Timestamp,
    watermark::WatermarkStrategy,
    window::{
        by_clock,
        lent::{
            LendPlains, LendRecords, all_records, later, later_fold, window_count, window_max, window_max_by,
            window_min, window_min_by, window_sum,
        },
        windows,
    },
    worker::{Restart, Retention},
};

/// The time of records in a window that knows none.
pub const NO_TIME: crate::time::Timestamp = crate::time::Timestamp::MIN;

/// A key as an operator with two inputs takes it.
#[inline(always)]
pub fn stored<Q: Key>(key: Q) -> Q::Stored {
    key.into_owned()
}

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

/// A copy of what a key's state holds, for what follows in the chain.
#[inline(always)]
pub fn copy<T: Lend>(held: &Option<T>) -> Slot<T>
where
    Option<T>: StateValue,
{
    Slot::new(held.clone().expect("it was put there just now"))
}

/// As [`copy`], for a record with what it is compared by.
#[inline(always)]
pub fn copy_best<B, T>(held: &Option<(B, T)>) -> Slot<T>
where
    Option<(B, T)>: StateValue,
    T: Lend + Clone,
{
    Slot::new(held.as_ref().expect("it was put there just now").1.clone())
}

/// Whether `a` comes before `b`.
#[inline(always)]
pub fn less<T: PartialOrd>(a: &T, b: &T) -> bool {
    a < b
}

/// A variable that closures of several chains capture.
pub fn share<T: Share>(variable: &T) -> T {
    variable.clone()
}

/// What closures of several chains can capture.
#[diagnostic::on_unimplemented(
    message = "a variable of type `{Self}` is captured by several operators, but cannot be cloned",
    label = "each chain of operators gets a copy of what its closures capture",
    note = "derive `Clone` for it, or wrap it in an `Arc`"
)]
pub trait Share: Clone {}

#[diagnostic::do_not_recommend]
impl<T: Clone> Share for T {}

/// A source of a batch pipeline.
pub fn bounded<S: Bounded>(source: S) -> S {
    source
}

/// Why a helper function's operators do not do what the pipeline that calls it promises, if so.
#[must_use]
pub const fn helper_refusal(guarantee: Guarantee, mode: Mode, helper: &Plan) -> Option<&'static str> {
    let (mut aggregates, mut ends) = (false, false);
    let mut i = 0;
    while i < helper.operators.len() {
        aggregates |= helper.operators[i].stateful;
        ends |= matches!(helper.operators[i].kind.as_bytes(), b"source" | b"sink");
        i += 1;
    }
    match (mode, helper.mode) {
        (Mode::Batch, Mode::Streaming) if aggregates => {
            return Some(
                "this helper function gives an update for each record, but the pipeline one result per key: write `#[pipeline(mode = batch)]` above the helper function too",
            );
        }
        (Mode::Streaming, Mode::Batch) if aggregates => {
            return Some(
                "this helper function gives one result per key at the end, but the pipeline an update for each record: remove `mode = batch` above the helper function, or write it above the pipeline too",
            );
        }
        _ => {}
    }
    match (guarantee, helper.guarantee) {
        (Guarantee::ExactlyOnce, Guarantee::AtLeastOnce | Guarantee::AtMostOnce)
        | (Guarantee::AtLeastOnce, Guarantee::AtMostOnce)
            if ends =>
        {
            Some(
                "this helper function has a source or a sink with a weaker guarantee than the pipeline: raise the `guarantee` above the helper function, or lower that of the pipeline",
            )
        }
        _ => None,
    }
}
