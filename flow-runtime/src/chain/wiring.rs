//! What generated code talks to: it describes the chains of a job on one worker.
//!
//! Nothing here touches the engine. A [`Wiring`] only collects; [`build`](super::build) makes Timely operators of what
//! was collected, in the same order on every worker.

mod joins;

use std::{rc::Rc, sync::Arc};

use super::{
    At, ChainError, Edge, Edges, Environment, Outgoing, Output, Parcel, Partition, Received, Skipped, Stream,
    disjoint::{self, Path},
    edge::{Credit, Credits, Drain},
    state::{OperatorStateParts, StateParts},
    times::{Firing, Generators, Late, WatermarkLoop},
};
use crate::{
    async_io::{self, Asynchronous, Looking},
    error::Error,
    plan::Plan,
    record::{Lend, Plain, Portable},
    sink::{ExactlyOnce, HeldRows, Sink, SinkContext, SinkHandle, SinkPort, States},
    source::{ChainSource, Rewindable, Source, SourceContext, SourceDriver},
    state::{
        Keyed, OperatorPort, OperatorState, Redistribution, StateItems, StatePort, StateValue, StoredKey,
    },
    time::{Clock, Watermark},
    watermark::{Positions, WatermarkStrategy, Watermarks},
    window::{self, Windowing, Windows, lent::WindowPort},
};

/// The loop of a chain with an input edge: one call per parcel.
pub(crate) type ParcelLoop = Box<dyn FnMut(Parcel) -> Result<(), ChainError>>;
/// What follows an aggregate of a batch pipeline, run at the end of the input.
pub(crate) type FinishLoop = Box<dyn FnMut() -> Result<(), ChainError>>;

/// Where a chain's records come from.
pub(crate) enum Head {
    Source {
        operator: usize,
        driver: Box<dyn SourceDriver>,
    },
    /// One input of the first operator, or several of different types.
    Edges(Vec<Entrance>),
}

/// An input of a chain: its edges, and the loop over what arrives on them.
pub(crate) struct Entrance {
    pub(crate) ids: Vec<usize>,
    pub(crate) run: ParcelLoop,
}

/// One chain on one worker, as the engine takes it.
pub(crate) struct ChainParts {
    pub(crate) parallelism: usize,
    pub(crate) name: String,
    pub(crate) head: Head,
    pub(crate) finish: Vec<FinishLoop>,
    pub(crate) outputs: Vec<OutputPort>,
    pub(crate) states: Vec<StateParts>,
    pub(crate) lists: Vec<OperatorStateParts>,
    pub(crate) sinks: Vec<Rc<dyn SinkPort>>,
    pub(crate) generators: Vec<Generators>,
    pub(crate) firings: Vec<Firing>,
}

/// The engine's side of an [`Output`].
pub(crate) struct OutputPort {
    pub(crate) edge: usize,
    pub(crate) drain: Rc<dyn Drain>,
    /// For an output that carries event time: the `.watermarks(..)` in the chain that it goes by, `None` for what
    /// arrives.
    pub(crate) origin: Option<Option<usize>>,
}

/// What an edge connects.
pub(crate) struct EdgeParts {
    pub(crate) partition: Partition,
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
    /// Whether it carries event time.
    pub(crate) timed: bool,
    pub(crate) credits: Credits,
}

/// What the engine knows of an operator.
#[derive(Clone, Debug)]
pub(crate) struct OperatorInfo {
    pub(crate) uid: Rc<str>,
    pub(crate) kind: &'static str,
    /// Whether a checkpoint holds something of it.
    pub(crate) remembers: bool,
    pub(crate) parallelism: usize,
}

/// Collects the chains of a job on one worker.
pub struct Wiring {
    pub(crate) environment: Arc<Environment>,
    pub(crate) operators: Vec<OperatorInfo>,
    /// Where the operators of the part that is being wired begin.
    base: usize,
    plan: &'static Plan,
    /// The calls that lead to that part.
    callers: Path,
    /// What the sinks so far keep locked between checkpoints.
    held: Vec<(Rc<str>, HeldRows)>,
    /// What the user should think about before the job runs.
    pub(crate) warnings: Vec<String>,
    pub(crate) worker: usize,
    pub(crate) chains: Vec<ChainParts>,
    pub(crate) edges: Vec<EdgeParts>,
    pub(crate) error: Option<Error>,
}

impl Wiring {
    pub(crate) fn new(environment: Arc<Environment>, plan: &'static Plan, worker: usize) -> Self {
        let mut wiring = Wiring {
            environment,
            operators: Vec::new(),
            base: 0,
            plan,
            callers: Vec::new(),
            held: Vec::new(),
            warnings: Vec::new(),
            worker,
            chains: Vec::new(),
            edges: Vec::new(),
            error: None,
        };
        wiring.add_operators(plan, "");
        wiring
    }

    fn add_operators(&mut self, plan: &'static Plan, prefix: &str) {
        self.operators.extend(plan.operators.iter().map(|operator| OperatorInfo {
            uid: format!("{prefix}{}", operator.uid).into(),
            kind: operator.kind,
            remembers: operator.remembers(),
            parallelism: self.environment.parallelism,
        }));
    }

    /// Wires a helper function, whose operators get the uid of its call as a prefix. `operator` is the call's.
    pub fn part<R>(
        &mut self,
        operator: usize,
        plan: &'static Plan,
        wire: impl FnOnce(&mut Wiring) -> R,
    ) -> R {
        let prefix = format!("{}/", self.operators[self.base + operator].uid);
        let base = std::mem::replace(&mut self.base, self.operators.len());
        self.add_operators(plan, &prefix);
        let caller = std::mem::replace(&mut self.plan, plan);
        self.callers.push((caller, operator));
        let result = wire(self);
        self.callers.pop();
        self.plan = caller;
        self.base = base;
        result
    }

    /// Whether every operator has one subtask, so that no exchange is needed and chains fuse across `key_by`.
    /// `explicit` are the parallelisms that the pipeline sets on operators.
    #[must_use]
    pub fn single(&self, explicit: &[usize]) -> bool {
        self.environment.parallelism == 1 && explicit.iter().all(|&parallelism| parallelism == 1)
    }

    /// Begins a chain of these operators.
    pub fn chain(&mut self, operators: &[usize], parallelism: Option<usize>) -> Chain<'_> {
        let parallelism = parallelism.unwrap_or(self.environment.parallelism);
        let base = self.base;
        for operator in operators {
            self.operators[base + operator].parallelism = parallelism;
        }
        let name = match operators {
            [] => String::new(),
            [first, ..] => self.operators[base + first].uid.to_string(),
        };
        Chain {
            base,
            parallelism,
            name,
            head: None,
            finish: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            lists: Vec::new(),
            sinks: Vec::new(),
            generators: Vec::new(),
            firings: Vec::new(),
            wiring: self,
        }
    }
}

/// A chain in the making; it is done when dropped.
pub struct Chain<'w> {
    wiring: &'w mut Wiring,
    base: usize,
    parallelism: usize,
    name: String,
    head: Option<Head>,
    finish: Vec<FinishLoop>,
    outputs: Vec<OutputPort>,
    states: Vec<StateParts>,
    lists: Vec<OperatorStateParts>,
    sinks: Vec<Rc<dyn SinkPort>>,
    generators: Vec<Generators>,
    firings: Vec<Firing>,
}

impl Chain<'_> {
    /// Whether this worker runs a subtask of the chain. All workers build all chains, as the engine demands.
    fn active(&self) -> bool {
        self.wiring.worker < self.parallelism
    }

    fn uid(&self, operator: usize) -> Rc<str> {
        Rc::clone(&self.wiring.operators[self.base + operator].uid)
    }

    /// The position before the first record of a batch.
    #[must_use]
    pub fn base(&self) -> usize {
        self.base
    }

    /// The state of a stateful operator, with what the restored checkpoint holds of it.
    pub fn keyed<K: StoredKey, V: StateValue>(&mut self, operator: usize) -> Keyed<K, V> {
        let keyed = Keyed::empty();
        if self.active() {
            let environment = Arc::clone(&self.wiring.environment);
            let (subtask, groups) = (self.wiring.worker, environment.key_groups(self.parallelism));
            let uid = self.uid(operator);
            let mut files = None;
            if let Some(restored) = &environment.restored {
                for segment in restored.states(&uid) {
                    if let Err(error) = keyed.restore(segment, groups, subtask) {
                        self.wiring.error.get_or_insert(Error::Checkpoint(error.of(&uid)));
                    }
                }
                files = restored.files(&uid, subtask, self.parallelism);
            }
            keyed.set_whole(files.is_none());
            let files = files.unwrap_or_default();
            self.states.push(StateParts::new(
                uid,
                subtask,
                groups,
                Rc::new(keyed.clone()),
                files,
                &environment,
            ));
        }
        keyed
    }

    /// State of an operator that belongs to no key, with what the restored checkpoint holds of it; see
    /// [`Redistribution`]. `name` tells the lists of one operator apart, across versions of the program.
    pub fn operator_state<C: StateItems + Default>(
        &mut self,
        operator: usize,
        name: &'static str,
        redistribution: Redistribution,
    ) -> OperatorState<C> {
        let state = OperatorState::of(C::default());
        self.checkpoint_list(operator, name, redistribution, Rc::new(state.clone()));
        state
    }

    /// As [`operator_state`](Self::operator_state), for a state that is there already.
    pub(crate) fn checkpoint_list(
        &mut self,
        operator: usize,
        name: &'static str,
        redistribution: Redistribution,
        port: Rc<dyn OperatorPort>,
    ) {
        if !self.active() {
            return;
        }
        let environment = Arc::clone(&self.wiring.environment);
        let (uid, subtask) = (self.uid(operator), self.wiring.worker);
        let place = (&*uid, subtask, self.parallelism);
        if let Err(error) = environment.restore_list(place, name, redistribution, &*port) {
            self.wiring.error.get_or_insert(Error::Checkpoint(error.of(&uid)));
        }
        if environment.keeps(redistribution, subtask) {
            self.lists.push(OperatorStateParts::new(&uid, name, subtask, port, &environment));
        }
    }

    /// A sink at the end of the chain.
    pub fn sink<S: Sink>(&mut self, operator: usize, sink: S) -> SinkHandle<S> {
        let environment = Arc::clone(&self.wiring.environment);
        let cx = SinkContext {
            job: environment.job.clone(),
            operator: self.uid(operator).to_string(),
            subtask: self.wiring.worker,
            parallelism: self.parallelism,
            attempt: environment.attempt,
            restored: environment.restored.as_ref().map(|restored| restored.manifest.id),
            states: States::kept(&environment),
        };
        if let Some(held) = sink.held_rows() {
            self.hold(operator, held);
        }
        let active = self.active();
        let handle = SinkHandle::open(sink, cx, self.base + operator, &environment, active);
        if active {
            self.sinks.push(handle.port());
        }
        handle
    }

    /// Notes where a sink keeps rows locked that another subtask may want.
    fn hold(&mut self, operator: usize, held: HeldRows) {
        if self.wiring.worker > 0 {
            return;
        }
        let (uid, wiring) = (self.uid(operator), &mut *self.wiring);
        let path = [&wiring.callers[..], &[(wiring.plan, operator)]].concat();
        wiring.warnings.extend(disjoint::warnings(&uid, &held, self.parallelism, &path, &wiring.held));
        wiring.held.push((uid, held));
    }

    /// As [`sink`](Self::sink), for a pipeline that promises exactly once.
    pub fn exactly_once_sink<S: ExactlyOnce>(&mut self, operator: usize, sink: S) -> SinkHandle<S> {
        self.sink(operator, sink)
    }

    /// An output at the end of the chain, and the edge by which the next chain receives it. `parallelism` is the
    /// receiver's; `forward` asks for the same subtask, which needs equal parallelisms on both sides and is dealt out
    /// in turn otherwise.
    pub fn output<T: Portable>(&mut self, forward: bool, parallelism: Option<usize>) -> (Output<T>, Edge<T>) {
        self.any_output(None, forward, parallelism)
    }

    /// As [`output`](Self::output), where event time goes with the records: `T` is a pair of it and the record. `origin` is the `.watermarks(..)` of this
    /// chain by which it goes; `None` if it has arrived with them.
    pub fn timed_output<T: Portable>(
        &mut self,
        origin: Option<usize>,
        forward: bool,
        parallelism: Option<usize>,
    ) -> (Output<T>, Edge<T>) {
        let origin = origin.map(|operator| self.base + operator);
        self.any_output(Some(origin), forward, parallelism)
    }

    fn any_output<T: Portable>(
        &mut self,
        origin: Option<Option<usize>>,
        forward: bool,
        parallelism: Option<usize>,
    ) -> (Output<T>, Edge<T>) {
        let environment = Arc::clone(&self.wiring.environment);
        let senders = self.parallelism;
        let receivers = parallelism.unwrap_or(environment.parallelism);
        let id = self.wiring.edges.len();
        let forward = forward && senders == receivers;
        let credits = environment.shared.get("edge", id, || Credit::of(senders));
        self.wiring.edges.push(EdgeParts {
            partition: if forward { Partition::Forward } else { Partition::Exchange },
            senders,
            timed: origin.is_some(),
            // A credit counts for one sender: forward, that is one receiver's share.
            receivers: if forward { 1 } else { receivers },
            credits: Arc::clone(&credits),
        });
        let outgoing = Outgoing::new(self.wiring.worker, senders, receivers, environment.max_parallelism);
        let output = Output::new(outgoing);
        self.outputs.push(OutputPort { edge: id, drain: Rc::new(output.clone()), origin });
        (output, Edge::new(id))
    }

    /// An output into a helper function or out of it: its item types are written down, so records go as they are.
    pub fn hand_over<T>(&mut self, parallelism: Option<usize>) -> (Output<Plain<T>>, Stream<T>)
    where
        Plain<T>: Portable,
    {
        let (output, edge) = self.output(true, parallelism);
        (output, Stream::new(edge))
    }

    /// What gives the records their timestamps, and makes watermarks of them. `of_source` says whether the chain reads
    /// a source, whose splits then have an event time each.
    pub fn watermarks<S: WatermarkStrategy>(
        &mut self,
        operator: usize,
        of_source: bool,
        strategy: S,
    ) -> Watermarks<S::Generator> {
        let uid = self.uid(operator);
        let reached = self.reached(&uid);
        let clock = &self.wiring.environment.clock;
        let positions = || Positions::of(self.parallelism);
        let aligned = self.wiring.environment.shared.get("alignment", self.base + operator, positions);
        let aligned = Some((self.wiring.worker, aligned)).filter(|_| of_source && self.active());
        match Watermarks::new(strategy, of_source, aligned, reached, clock) {
            Ok(watermarks) => {
                let port = Rc::new(watermarks.clone());
                self.generators.push(Generators { operator: self.base + operator, port });
                watermarks
            }
            Err((why, watermarks)) => {
                self.wiring.error.get_or_insert(Error::Config(format!("`{uid}`: {why}")));
                watermarks
            }
        }
    }

    /// How far event time had come in the restored checkpoint.
    fn reached(&self, uid: &str) -> Option<Watermark> {
        self.wiring.environment.restored.as_ref().and_then(|restored| restored.manifest.watermark(uid))
    }

    /// The windows of an operator, with what the restored checkpoint holds of them.
    pub fn window<K, In, A, T, C, S>(&mut self, operator: usize, spec: S) -> Windows<K, In, S>
    where
        K: StoredKey,
        In: Clone,
        A: Windowing,
        S: window::Definition<K, In, Assigner = A, Trigger = T, Contents = C>,
    {
        if let Err(error) = window::check::<K, In, S>(&spec) {
            let uid = self.uid(operator);
            self.wiring.error.get_or_insert(Error::Config(format!("`{uid}`: {error}")));
        }
        let table = self.keyed(operator);
        Windows::unchecked(spec, table)
    }

    /// The clock of processing time.
    pub(crate) fn clock(&self) -> Clock {
        self.wiring.environment.clock.clone()
    }

    /// What follows a window, or another operator whose results do not come out where its records go in, as is so with
    /// two inputs: after each batch `run` advances the operator to the new watermark, if there is one, and emits what
    /// comes out. `origin` is the `.watermarks(..)` of this chain by which it goes; `None` if event time has arrived with
    /// the records, or if there is none.
    pub fn on_watermark<P: WindowPort + Clone + 'static>(
        &mut self,
        operator: usize,
        origin: Option<usize>,
        handle: &P,
        run: impl FnMut(window::Turn) -> Result<(), ChainError> + 'static,
    ) {
        let uid = self.uid(operator);
        let reached = self.reached(&uid);
        let port = Rc::new(handle.clone());
        if let Some(watermark) = reached {
            port.restore(watermark);
        }
        let late = Late::of(&self.wiring.environment.control, &uid);
        let (operator, origin) = (self.base + operator, origin.map(|operator| self.base + operator));
        let run: WatermarkLoop = Box::new(run);
        let holds = None;
        self.firings.push(Firing { operator, origin, reached, before_end: reached, port, holds, late, run });
    }

    /// The records that an operator asks for by futures, with those that were under way at the restored checkpoint.
    pub fn map_async<T: StateValue, R: Send + 'static>(
        &mut self,
        operator: usize,
        settings: async_io::Settings,
    ) -> Asynchronous<T, R> {
        if let Err(why) = settings.check() {
            let uid = self.uid(operator);
            self.wiring.error.get_or_insert(Error::Config(format!("`{uid}`: {why}")));
        }
        let link = async_io::Link::new(Arc::clone(&self.wiring.environment));
        let asynchronous = Asynchronous::new(settings, link);
        self.checkpoint_list(operator, "under-way", Redistribution::Even, asynchronous.port());
        asynchronous
    }

    /// Where a lookup looks.
    pub fn lookup<L>(&mut self, lookup: L) -> Looking<L> {
        Looking::new(lookup, self.wiring.environment.clock.clone())
    }

    /// What follows such an operator: `run` asks and emits what was answered. `origin` as in
    /// [`on_watermark`](Self::on_watermark).
    pub fn on_answers<T: StateValue, R: Send + 'static>(
        &mut self,
        operator: usize,
        origin: Option<usize>,
        handle: &Asynchronous<T, R>,
        run: impl FnMut(window::Turn) -> Result<(), ChainError> + 'static,
    ) {
        self.on_watermark(operator, origin, handle, run);
        if let Some(firing) = self.firings.last_mut() {
            firing.holds = Some(Rc::new(handle.clone()));
        }
    }

    /// Counts what an operator skips.
    #[must_use]
    pub fn skipped(&self, operator: usize) -> Skipped {
        let uid = self.uid(operator);
        let total = self.wiring.environment.control.skipped(&uid);
        Skipped::new(uid, total)
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
            operator: self.uid(operator).to_string(),
            subtask: self.wiring.worker,
            parallelism: self.parallelism,
        };
        let operator = self.base + operator;
        environment.control.expect_source(operator, self.parallelism);
        let generators = self.generators.iter().map(|generators| Rc::clone(&generators.port)).collect();
        let driver = Box::new(ChainSource::new(source, cx, operator, environment, generators, run));
        self.head = Some(Head::Source { operator, driver });
    }

    /// As [`source`](Self::source), for a pipeline that promises not to lose a record.
    pub fn rewindable_source<S, F>(&mut self, operator: usize, source: S, run: F)
    where
        S: Rewindable,
        F: FnMut(&mut S::Batch) -> Result<(), ChainError> + 'static,
    {
        self.source(operator, source, run);
    }

    /// The chain reads edges; `run` is its loop over a parcel. Of an operator with two inputs, whose records may be of
    /// different types, each is an input of its own: they share the handles, the epochs and the event time of the
    /// chain, which is the minimum over all senders of both.
    pub fn input<E, F>(&mut self, first: usize, edges: &E, mut run: F)
    where
        E: Edges<Item: Lend>,
        F: FnMut(&mut Received<E::Item>) -> Result<(), ChainError> + 'static,
    {
        let (first, open) = (self.base + first, edges.open());
        let run: ParcelLoop = Box::new(move |parcel| {
            let mut records = At::start(first).check(open(parcel))?;
            run(&mut records)?;
            records.give_back();
            Ok(())
        });
        let entrance = Entrance { ids: edges.ids(), run };
        match &mut self.head {
            Some(Head::Edges(entrances)) => entrances.push(entrance),
            head => *head = Some(Head::Edges(vec![entrance])),
        }
    }

    /// What follows an aggregate in batch mode: run once, at the end of the input.
    pub fn finish(&mut self, run: impl FnMut() -> Result<(), ChainError> + 'static) {
        self.finish.push(Box::new(run));
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        // Without a head, a closure of the wiring has panicked, and the attempt is over.
        if let Some(head) = self.head.take() {
            self.wiring.chains.push(ChainParts {
                parallelism: self.parallelism,
                name: std::mem::take(&mut self.name),
                head,
                finish: std::mem::take(&mut self.finish),
                outputs: std::mem::take(&mut self.outputs),
                states: std::mem::take(&mut self.states),
                lists: std::mem::take(&mut self.lists),
                sinks: std::mem::take(&mut self.sinks),
                generators: std::mem::take(&mut self.generators),
                firings: std::mem::take(&mut self.firings),
            });
        }
    }
}
