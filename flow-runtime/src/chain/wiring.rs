//! What generated code talks to: it describes the chains of a job on one worker.
//!
//! Nothing here touches the engine. A [`Wiring`] only collects; [`build`](super::build) makes Timely operators of what
//! was collected, in the same order on every worker.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use super::{
    At, ChainError, Edge, Edges, Output, Outgoing, Parcel, Partition, Received, Skipped,
    edge::{Credit, Credits, Drain},
};
use crate::{
    checkpoint::Restored,
    error::{BoxError, Error},
    plan::Plan,
    record::{Lend, Portable},
    sink::{Sink, SinkContext, SinkHandle, SinkPort},
    source::{ChainSource, Source, SourceContext, SourceDriver},
    state::{Keyed, KeyGroups, StatePort, StateValue, StoredKey, Table},
    worker::Control,
};

/// What one attempt of a job shares among its workers.
pub(crate) struct Environment {
    pub(crate) job: String,
    pub(crate) parallelism: usize,
    pub(crate) max_parallelism: u32,
    pub(crate) aligned: bool,
    pub(crate) attempt: u64,
    pub(crate) control: Arc<Control>,
    pub(crate) tokio: tokio::runtime::Handle,
    pub(crate) store: crate::checkpoint::Store,
    pub(crate) restored: Option<Restored>,
    pub(crate) shared: crate::worker::Shared,
}

impl Environment {
    pub(crate) fn key_groups(&self, parallelism: usize) -> KeyGroups {
        KeyGroups { max_parallelism: self.max_parallelism, parallelism: parallelism as u32 }
    }
}

/// The loop of a chain with an input edge: one call per parcel.
pub(crate) type ParcelLoop = Box<dyn FnMut(Parcel) -> Result<(), ChainError>>;
/// What follows an aggregate of a batch pipeline, run at the end of the input.
pub(crate) type FinishLoop = Box<dyn FnMut() -> Result<(), ChainError>>;

/// Where a chain's records come from.
pub(crate) enum Head {
    Source(Box<dyn SourceDriver>),
    Edges { ids: Vec<usize>, run: ParcelLoop },
}

/// One chain on one worker, as the engine takes it.
pub(crate) struct ChainParts {
    pub(crate) parallelism: usize,
    /// Index into the plan of the first operator, for naming the chain.
    pub(crate) operators: &'static [usize],
    pub(crate) head: Option<Head>,
    pub(crate) finish: Vec<FinishLoop>,
    pub(crate) outputs: Vec<OutputPort>,
    pub(crate) states: Vec<(usize, Rc<dyn StatePort>)>,
    pub(crate) sinks: Vec<Rc<dyn SinkPort>>,
}

/// The engine's side of an [`Output`].
pub(crate) struct OutputPort {
    pub(crate) edge: usize,
    pub(crate) drain: Rc<dyn Drain>,
}

/// What an edge connects.
pub(crate) struct EdgeParts {
    pub(crate) partition: Partition,
    pub(crate) receivers: usize,
    pub(crate) credits: Credits,
}

/// Collects the chains of a job on one worker.
pub struct Wiring {
    pub(crate) environment: Arc<Environment>,
    pub(crate) plan: &'static Plan,
    pub(crate) uids: Rc<Vec<Rc<str>>>,
    pub(crate) worker: usize,
    pub(crate) chains: Vec<ChainParts>,
    pub(crate) edges: Vec<EdgeParts>,
    pub(crate) parallelisms: HashMap<usize, usize>,
    pub(crate) error: Option<Error>,
}

impl Wiring {
    pub(crate) fn new(environment: Arc<Environment>, plan: &'static Plan, worker: usize) -> Self {
        let uids = plan.operators.iter().map(|operator| Rc::from(operator.uid)).collect();
        Wiring {
            environment,
            plan,
            uids: Rc::new(uids),
            worker,
            chains: Vec::new(),
            edges: Vec::new(),
            parallelisms: HashMap::new(),
            error: None,
        }
    }

    /// Whether every operator has one subtask, so that no exchange is needed and chains fuse across `key_by`.
    /// `explicit` are the parallelisms that the pipeline sets on operators.
    #[must_use]
    pub fn single(&self, explicit: &[usize]) -> bool {
        self.environment.parallelism == 1 && explicit.iter().all(|&parallelism| parallelism == 1)
    }

    /// Begins a chain of these operators (indices into the plan).
    pub fn chain(&mut self, operators: &'static [usize], parallelism: Option<usize>) -> Chain<'_> {
        let parallelism = parallelism.unwrap_or(self.environment.parallelism);
        Chain {
            parts: Some(ChainParts {
                parallelism,
                operators,
                head: None,
                finish: Vec::new(),
                outputs: Vec::new(),
                states: Vec::new(),
                sinks: Vec::new(),
            }),
            wiring: self,
        }
    }

    fn shared<T: Send + Sync + 'static>(&self, kind: &'static str, index: usize, make: impl FnOnce() -> T) -> Arc<T> {
        self.environment.shared.get(kind, index, make)
    }
}

/// A chain in the making; it is done when dropped.
pub struct Chain<'w> {
    wiring: &'w mut Wiring,
    parts: Option<ChainParts>,
}

impl Chain<'_> {
    fn parts(&mut self) -> &mut ChainParts {
        self.parts.as_mut().expect("present until dropped")
    }

    /// Whether this worker runs a subtask of the chain. All workers build all chains, as the engine demands.
    fn active(&mut self) -> bool {
        self.wiring.worker < self.parts().parallelism
    }

    /// The state of a stateful operator, with what the restored checkpoint holds of it.
    pub fn keyed<K: StoredKey, V: StateValue>(&mut self, operator: usize) -> Keyed<K, V> {
        let keyed = Keyed(Rc::new(RefCell::new(Table::new())));
        if self.active() {
            let groups = self.wiring.environment.key_groups(self.parts().parallelism);
            let uid = self.wiring.plan.operators[operator].uid;
            if let Some(restored) = &self.wiring.environment.restored {
                for part in restored.states(uid) {
                    if let Err(error) = keyed.restore(part, groups, self.wiring.worker) {
                        self.wiring.error.get_or_insert(Error::Checkpoint(error));
                    }
                }
            }
            let port = Rc::new(keyed.clone());
            self.parts().states.push((operator, port));
        }
        keyed
    }

    /// A sink at the end of the chain.
    pub fn sink<S: Sink>(&mut self, operator: usize, sink: S) -> SinkHandle<S> {
        let environment = Arc::clone(&self.wiring.environment);
        let cx = SinkContext {
            job: environment.job.clone(),
            operator: self.wiring.plan.operators[operator].uid.to_owned(),
            subtask: self.wiring.worker,
            parallelism: self.parts().parallelism,
            attempt: environment.attempt,
            restored: environment.restored.as_ref().map(Restored::id),
        };
        let active = self.active();
        let handle = SinkHandle::open(sink, cx, operator, &environment, active);
        if active {
            let port = handle.port();
            self.parts().sinks.push(port);
        }
        handle
    }

    /// An output at the end of the chain, and the edge by which the next chain receives it. `parallelism` is the
    /// receiver's; `forward` asks for the same subtask, which needs equal parallelisms on both sides and is dealt out
    /// in turn otherwise.
    pub fn output<T: Portable>(&mut self, forward: bool, parallelism: Option<usize>) -> (Output<T>, Edge<T>) {
        let senders = self.parts().parallelism;
        let receivers = parallelism.unwrap_or(self.wiring.environment.parallelism);
        let id = self.wiring.edges.len();
        let credits = self.wiring.shared("edge", id, || {
            Credits::from((0..senders).map(|_| Credit::default()).collect::<Vec<_>>())
        });
        self.wiring.edges.push(EdgeParts {
            partition: if forward && senders == receivers { Partition::Forward } else { Partition::Exchange },
            receivers,
            credits: Credits::clone(&credits),
        });
        let outgoing =
            Outgoing::new(self.wiring.worker, senders, receivers, self.wiring.environment.max_parallelism);
        let output = Output(Rc::new(RefCell::new(outgoing)));
        if self.active() {
            let drain = Rc::new(output.clone());
            self.parts().outputs.push(OutputPort { edge: id, drain });
        }
        (output, Edge::new(id))
    }

    /// Counts what an operator skips.
    pub fn skipped(&mut self, operator: usize) -> Skipped {
        Skipped {
            uid: Rc::clone(&self.wiring.uids[operator]),
            count: Rc::new(Cell::new(0)),
            total: self.wiring.environment.control.skipped(operator, self.wiring.plan),
        }
    }

    /// The chain reads a source; `run` is its loop over a batch.
    pub fn source<S, F>(&mut self, operator: usize, source: S, run: F)
    where
        S: Source,
        F: FnMut(&mut S::Batch) -> Result<(), ChainError> + 'static,
    {
        let environment = Arc::clone(&self.wiring.environment);
        let cx = SourceContext {
            job: environment.job.clone(),
            operator: self.wiring.plan.operators[operator].uid.to_owned(),
            subtask: self.wiring.worker,
            parallelism: self.parts().parallelism,
        };
        environment.control.expect_source(operator, self.parts().parallelism);
        let driver = ChainSource::new(source, cx, operator, environment, run);
        self.parts().head = Some(Head::Source(Box::new(driver)));
    }

    /// The chain reads edges; `run` is its loop over a parcel.
    pub fn input<E, F>(&mut self, edges: &E, first: usize, mut run: F)
    where
        E: Edges<Item: Lend + Portable>,
        F: FnMut(&mut Received<E::Item>) -> Result<(), ChainError> + 'static,
    {
        let run: ParcelLoop = Box::new(move |parcel| {
            let mut records = At::start(first).check(Received::open(parcel))?;
            run(&mut records)
        });
        self.parts().head = Some(Head::Edges { ids: edges.ids(), run });
    }

    /// What follows an aggregate in batch mode: run once, at the end of the input.
    pub fn finish(&mut self, run: impl FnMut() -> Result<(), ChainError> + 'static) {
        self.parts().finish.push(Box::new(run));
    }

    /// Refuses the job at start, when an argument of an operator is only known now and wrong.
    pub fn refuse(&mut self, operator: usize, cause: &BoxError) {
        let uid = self.wiring.plan.operators[operator].uid;
        self.wiring.error.get_or_insert(Error::Config(format!("operator `{uid}`: {cause}")));
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.wiring.chains.push(parts);
        }
    }
}
