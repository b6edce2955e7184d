//! The one table of operators.

/// What an operator does, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Source,
    Map,
    Filter,
    FilterMap,
    FlatMap,
    Inspect,
    /// Asks outside for each record, by a future.
    MapAsync,
    /// As that, by a key and of what can be looked up.
    LookupJoin,
    /// Gives each record to one of several outputs.
    Split,
    KeyBy,
    Reduce,
    Fold,
    Sum,
    Min,
    Max,
    MinBy,
    MaxBy,
    Count,
    /// Gives records their event time.
    Watermarks,
    /// A function of the user's own, with up to two outputs.
    Process,
    /// The same on a keyed stream, with state and timers.
    KeyedProcess,
    /// Two streams, of which a function of the user's own makes something; which one decides on the kind that follows.
    Connect,
    /// Of two streams without keys.
    CoProcess,
    /// Of two keyed streams.
    KeyedCoProcess,
    /// Of a keyed and a broadcast stream.
    BroadcastProcess,
    /// A window of each key, with what is computed of it.
    Window,
    /// A window of all records.
    WindowAll,
    Union,
    /// Pairs of the records of two keyed streams, in windows or by the distance of their times.
    Join,
    /// Each record with the one of its key in a stream that is kept everywhere.
    BroadcastJoin,
    Rebalance,
    Rescale,
    Broadcast,
    Forward,
    Global,
    PartitionCustom,
    Sink,
    /// One of several outputs of an operator.
    Branch,
    /// A helper function from stream to stream.
    Part,
    /// A stream that a helper function is given.
    Input,
}

/// An argument of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    /// A closure or function of this many parameters.
    Function(usize),
    /// Any expression.
    Value,
    /// Streams, one or more.
    Streams,
    /// The other stream of an operator with two inputs.
    Stream,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) args: &'static [Arg],
    /// How it is called, for messages.
    pub(crate) usage: &'static str,
}

const fn row(name: &'static str, kind: Kind, args: &'static [Arg], usage: &'static str) -> Operator {
    Operator { name, kind, args, usage }
}

/// The operators that are methods of streams.
pub(crate) const OPERATORS: &[Operator] = &[
    row("map", Kind::Map, &[Arg::Function(1)], ".map(|record| ..)"),
    row("filter", Kind::Filter, &[Arg::Function(1)], ".filter(|record| ..)"),
    row("filter_map", Kind::FilterMap, &[Arg::Function(1)], ".filter_map(|record| Some(..))"),
    row("flat_map", Kind::FlatMap, &[Arg::Function(1)], ".flat_map(|record| ..)"),
    row("inspect", Kind::Inspect, &[Arg::Function(1)], ".inspect(|record| ..)"),
    row("map_async", Kind::MapAsync, &[Arg::Function(1)], ".map_async(|record| async move { .. })"),
    row(
        "lookup_join",
        Kind::LookupJoin,
        &[Arg::Value, Arg::Function(1)],
        ".lookup_join(sql::lookup(..), |record| ..)",
    ),
    row(
        "left_lookup_join",
        Kind::LookupJoin,
        &[Arg::Value, Arg::Function(1)],
        ".left_lookup_join(sql::lookup(..), |record| ..)",
    ),
    row("split", Kind::Split, &[Arg::Function(1)], ".split(|record| Split2::First(record))"),
    row("key_by", Kind::KeyBy, &[Arg::Function(1)], ".key_by(|record| ..)"),
    row("reduce", Kind::Reduce, &[Arg::Function(2)], ".reduce(|a, b| ..)"),
    row("fold", Kind::Fold, &[Arg::Value, Arg::Function(2)], ".fold(initial, |accumulator, record| ..)"),
    row("sum", Kind::Sum, &[Arg::Function(1)], ".sum(|record| ..)"),
    row("min", Kind::Min, &[Arg::Function(1)], ".min(|record| ..)"),
    row("max", Kind::Max, &[Arg::Function(1)], ".max(|record| ..)"),
    row("min_by", Kind::MinBy, &[Arg::Function(1)], ".min_by(|record| ..)"),
    row("max_by", Kind::MaxBy, &[Arg::Function(1)], ".max_by(|record| ..)"),
    row("count", Kind::Count, &[], ".count()"),
    row(
        "watermarks",
        Kind::Watermarks,
        &[Arg::Value, Arg::Function(1)],
        ".watermarks(bounded(\"5s\"), |record| ..)",
    ),
    row("window", Kind::Window, &[Arg::Value], ".window(tumbling(\"10s\"))"),
    row("window_all", Kind::WindowAll, &[Arg::Value], ".window_all(tumbling(\"10s\"))"),
    row("process", Kind::Process, &[Arg::Value], ".process(function)"),
    row("connect", Kind::Connect, &[Arg::Stream], ".connect(other).process(function)"),
    row("union", Kind::Union, &[Arg::Streams], ".union(other)"),
    row("join", Kind::Join, &[Arg::Stream], ".join(other.key_by(|record| ..))"),
    row("left_join", Kind::Join, &[Arg::Stream], ".left_join(other.key_by(|record| ..))"),
    row("right_join", Kind::Join, &[Arg::Stream], ".right_join(other.key_by(|record| ..))"),
    row("full_join", Kind::Join, &[Arg::Stream], ".full_join(other.key_by(|record| ..))"),
    row("interval_join", Kind::Join, &[Arg::Stream], ".interval_join(other.key_by(|record| ..))"),
    row(
        "broadcast_join",
        Kind::BroadcastJoin,
        &[Arg::Stream, Arg::Function(1), Arg::Function(1)],
        ".broadcast_join(other, |record| .., |other| ..).with(|record, other| ..)",
    ),
    row("rebalance", Kind::Rebalance, &[], ".rebalance()"),
    row("rescale", Kind::Rescale, &[], ".rescale()"),
    row("broadcast", Kind::Broadcast, &[], ".broadcast()"),
    row("forward", Kind::Forward, &[], ".forward()"),
    row("global", Kind::Global, &[], ".global()"),
    row(
        "partition_custom",
        Kind::PartitionCustom,
        &[Arg::Function(2), Arg::Function(1)],
        ".partition_custom(|key, subtasks| .., |record| ..)",
    ),
    row("sink", Kind::Sink, &[Arg::Value], ".sink(..)"),
];

/// What can be said of the operator before it.
pub(crate) const MODIFIERS: &[&str] =
    &["uid", "name", "parallelism", "disable_chaining", "start_new_chain", "on_error"];

/// What can be said of an operator that asks outside.
pub(crate) const ANSWER_MODIFIERS: &[&str] =
    &["ordered", "unordered", "capacity", "timeout", "on_timeout", "retry"];

/// What can be said of a join, besides what can be said of its windows.
pub(crate) const JOIN_MODIFIERS: &[&str] =
    &["window", "between", "exclusive_lower", "exclusive_upper", "trigger", "allowed_lateness", "with"];

/// What can be said of a join only.
pub(crate) const BOUNDS: &[&str] = &["between", "exclusive_lower", "exclusive_upper"];

/// What can be said of a window before what is computed of it.
pub(crate) const WINDOW_MODIFIERS: &[&str] = &["trigger", "evictor", "allowed_lateness", "late_output"];

/// What can be computed of a window.
pub(crate) const WINDOW_FUNCTIONS: &[WindowFunction] = &[
    window_function("aggregate", true, &[Arg::Value], ".aggregate(..)"),
    window_function("reduce", true, &[Arg::Function(2)], ".reduce(|a, b| ..)"),
    window_function(
        "fold",
        true,
        &[Arg::Value, Arg::Function(2)],
        ".fold(initial, |accumulator, record| ..)",
    ),
    window_function("process", false, &[Arg::Function(3)], ".process(|key, window, records| ..)"),
    window_function("count", true, &[], ".count()"),
    window_function("sum", true, &[Arg::Function(1)], ".sum(|record| ..)"),
    window_function("min", true, &[Arg::Function(1)], ".min(|record| ..)"),
    window_function("max", true, &[Arg::Function(1)], ".max(|record| ..)"),
    window_function("min_by", true, &[Arg::Function(1)], ".min_by(|record| ..)"),
    window_function("max_by", true, &[Arg::Function(1)], ".max_by(|record| ..)"),
];

/// What is given key, window and result has one parameter less where there is no key.
pub(crate) const OF_ALL: &[(&str, &[Arg], &str)] = &[
    ("process", &[Arg::Function(2)], ".process(|window, records| ..)"),
    ("with", &[Arg::Function(2)], ".with(|window, result| ..)"),
];

/// A row of [`WINDOW_FUNCTIONS`].
#[derive(Debug)]
pub(crate) struct WindowFunction {
    pub(crate) name: &'static str,
    /// Whether it works on each record as it comes, so that no records are kept.
    pub(crate) incremental: bool,
    pub(crate) args: &'static [Arg],
    pub(crate) usage: &'static str,
}

const fn window_function(
    name: &'static str,
    incremental: bool,
    args: &'static [Arg],
    usage: &'static str,
) -> WindowFunction {
    WindowFunction { name, incremental, args, usage }
}

/// Windows that go by the number of records and not by event time.
pub(crate) const TIMELESS_WINDOWS: &[&str] = &["count", "sliding_count", "global"];

/// Whether arguments of the operator of this name are streams.
pub(crate) fn takes_streams(name: &str) -> bool {
    operator(name).is_some_and(|operator| {
        operator.args.iter().any(|argument| matches!(argument, Arg::Streams | Arg::Stream))
    })
}

/// The operator of this name.
pub(crate) fn operator(name: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|operator| operator.name == name)
}

impl Kind {
    /// As it is called in plans.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Source => "source",
            Kind::Part => "part",
            Kind::Branch => "branch",
            Kind::KeyedProcess => "process",
            Kind::CoProcess | Kind::KeyedCoProcess | Kind::BroadcastProcess => "connect",
            Kind::Input => "input",
            kind => {
                OPERATORS.iter().find(|operator| operator.kind == kind).map_or("", |operator| operator.name)
            }
        }
    }

    /// Whether it keeps state of each key, and so needs a keyed stream.
    pub(crate) fn keyed(self) -> bool {
        matches!(
            self,
            Kind::Window | Kind::Join | Kind::KeyedProcess | Kind::KeyedCoProcess | Kind::BroadcastProcess
        ) || self.aggregate()
    }

    /// Whether it asks outside, so that its results come later.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Kind::MapAsync | Kind::LookupJoin)
    }

    /// Whether it has two inputs, whose records may be of different types.
    ///
    /// Such an operator begins a chain with one loop per input, in both layouts: its node's inputs are the left and the
    /// right one, and an exchange that leads to it alone leads straight into that chain. In the loops the record is put
    /// into the operator's handle (`put_left`, `put_right`; see [`Loop::put`](crate::expand)), and what comes out runs in
    /// a closure of its own behind both. What another operator of the kind needs: a row in [`OPERATORS`] with an
    /// [`Arg::Stream`], its handle in `expand::chain::handles`, and a body for that closure in `expand::chain::chain`.
    pub(crate) fn two_inputs(self) -> bool {
        matches!(self, Kind::Join | Kind::BroadcastJoin | Kind::Connect) || self.connects()
    }

    /// Whether it is a function of the user's own.
    pub(crate) fn processes(self) -> bool {
        matches!(self, Kind::Process | Kind::KeyedProcess) || self.connects()
    }

    /// Whether it is such a function of two streams.
    pub(crate) fn connects(self) -> bool {
        matches!(self, Kind::CoProcess | Kind::KeyedCoProcess | Kind::BroadcastProcess)
    }

    /// Whether it is a window, of a key or of all records.
    pub(crate) fn window(self) -> bool {
        matches!(self, Kind::Window | Kind::WindowAll)
    }

    /// Whether a checkpoint holds state of it.
    pub(crate) fn stateful(self) -> bool {
        self.keyed() || self.window()
    }

    /// Whether it is an aggregate of all records of a key.
    pub(crate) fn aggregate(self) -> bool {
        use Kind::{Count, Fold, Max, MaxBy, Min, MinBy, Reduce, Sum};
        matches!(self, Reduce | Fold | Sum | Min | Max | MinBy | MaxBy | Count)
    }

    /// Whether it only says how records get to the next operator.
    pub(crate) fn exchange(self) -> bool {
        use Kind::{Broadcast, Forward, Global, KeyBy, PartitionCustom, Rebalance, Rescale};
        matches!(self, KeyBy | Rebalance | Rescale | Broadcast | Forward | Global | PartitionCustom)
    }

    /// The variant of `flow`'s `Ship` by which its records leave.
    pub(crate) fn ship(self) -> &'static str {
        match self {
            Kind::KeyBy => "KeyGroup",
            Kind::Rebalance => "Rebalance",
            Kind::Rescale => "Rescale",
            Kind::Broadcast => "Broadcast",
            Kind::Global => "Global",
            Kind::PartitionCustom => "Custom",
            _ => "Forward",
        }
    }
}
