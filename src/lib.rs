#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use flow_macros::{Key, State, TransactionHandle, pipeline};
#[cfg(feature = "kafka")]
pub use flow_runtime::connectors::kafka;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub use flow_runtime::connectors::sql;
pub use flow_runtime::{
    async_io,
    chain::Stream,
    checkpoint,
    connectors::{collection, file, print, socket},
    error::{BoxError, Error, Place},
    job::{Definition, Job},
    join,
    ops::{run, run_from},
    plan,
    process::{
        self, AggregatingState, CoProcessFunction, KeyedBroadcastProcessFunction, KeyedCoProcessFunction,
        KeyedProcessFunction, ListState, MapState, ProcessFunction, ReducingState, State, Timer, ValueState,
    },
    record::{Octets, Text},
    sink::{self, TransactionHandle, TwoPhaseCommit},
    source,
    split::{Split2, Split3, Split4},
    state::{Key, Redistribution, StateItems, StateValue, Sum},
    testing, time, watermark, window,
    worker::{self, Config, Ending, Restart, Summary},
};

#[doc(hidden)]
pub use flow_runtime::private as __private;

/// The guide's examples run.
#[cfg(doctest)]
#[doc = include_str!("../docs/testing.md")]
mod testing_guide {}
