//! The only door for generated code. No stability is promised behind it.

pub use crate::{
    chain::{At, Chain, ChainError, Edge, Received, Wiring},
    error::BoxError,
    job::{Definition, Job},
    plan::{EdgePlan, Guarantee, Mode, OperatorPlan, Plan, Ship},
    record::{Lend, OwnPlain, OwnRecord, Owning, Portable, Slot},
    source::{Batch, Bounded, Rewindable, Source},
    sink::{ExactlyOnce, Sink},
    state::{Key, StateValue, StoredKey},
};
