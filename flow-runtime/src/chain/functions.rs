//! How a chain gets the handles of process functions.
//!
//! Each kind in two forms: whether a function emits to a second output is known from its type alone, and the form that
//! generated code takes where nobody reads one demands that there is none.

use super::{Chain, Skipped};
use crate::{
    process::{
        BroadcastProcess, CoProcess, CoProcessFunction, KeyedBroadcastProcessFunction, KeyedCoProcess,
        KeyedCoProcessFunction, KeyedProcess, KeyedProcessFunction, Once, Process, ProcessFunction,
        WithoutSide,
    },
    state::Redistribution,
};

impl Chain<'_> {
    /// A process function over a keyed stream, with what the restored checkpoint holds of its state and timers. `timed`
    /// says whether the stream carries event time, `skipped` counts what fails where that is to be skipped.
    pub fn keyed_process<F: KeyedProcessFunction>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, KeyedProcess<F>> {
        let table = self.keyed(operator);
        KeyedProcess::new(function, table, self.clock(), timed, skipped)
    }

    /// As [`keyed_process`](Self::keyed_process), where nobody reads a second output.
    pub fn keyed_process_alone<F: KeyedProcessFunction<Side: WithoutSide>>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, KeyedProcess<F>> {
        self.keyed_process(operator, function, timed, skipped)
    }

    /// A process function over a stream without keys.
    pub fn process<F: ProcessFunction>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, Process<F>> {
        let state = self.operator_state(operator, "state", F::REDISTRIBUTION);
        Process::new(function, state, self.clock(), timed, skipped)
    }

    /// As [`process`](Self::process), where nobody reads a second output.
    pub fn process_alone<F: ProcessFunction<Side: WithoutSide>>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, Process<F>> {
        self.process(operator, function, timed, skipped)
    }

    /// A process function over two keyed streams.
    pub fn keyed_co_process<F: KeyedCoProcessFunction>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, KeyedCoProcess<F>> {
        let table = self.keyed(operator);
        KeyedCoProcess::new(function, table, self.clock(), timed, skipped)
    }

    /// As [`keyed_co_process`](Self::keyed_co_process), where nobody reads a second output.
    pub fn keyed_co_process_alone<F: KeyedCoProcessFunction<Side: WithoutSide>>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, KeyedCoProcess<F>> {
        self.keyed_co_process(operator, function, timed, skipped)
    }

    /// A process function over two streams without keys.
    pub fn co_process<F: CoProcessFunction>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, CoProcess<F>> {
        let state = self.operator_state(operator, "state", F::REDISTRIBUTION);
        CoProcess::new(function, state, self.clock(), timed, skipped)
    }

    /// As [`co_process`](Self::co_process), where nobody reads a second output.
    pub fn co_process_alone<F: CoProcessFunction<Side: WithoutSide>>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, CoProcess<F>> {
        self.co_process(operator, function, timed, skipped)
    }

    /// A process function over a keyed stream and one that is everywhere.
    pub fn broadcast_process<F: KeyedBroadcastProcessFunction>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, BroadcastProcess<F>> {
        let table = self.keyed(operator);
        let everywhere = self.operator_state(operator, "broadcast", Redistribution::Broadcast);
        BroadcastProcess::new(function, table, everywhere, self.clock(), timed, skipped)
    }

    /// As [`broadcast_process`](Self::broadcast_process), where nobody reads a second output.
    pub fn broadcast_process_alone<F: KeyedBroadcastProcessFunction<Side: WithoutSide>>(
        &mut self,
        operator: usize,
        function: F,
        timed: bool,
        skipped: Option<Skipped>,
    ) -> Once<F::Out, BroadcastProcess<F>> {
        self.broadcast_process(operator, function, timed, skipped)
    }
}
