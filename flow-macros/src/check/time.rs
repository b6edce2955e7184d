//! What event time needs.

use proc_macro2::Span;
use syn::{
    Expr, ExprCall, ExprClosure, Ident,
    visit::{self, Visit},
};

use crate::{
    diag::Errors,
    graph::{Graph, NodeId},
    parse::Mode,
    vocab::Kind,
};

/// A window over time ends when the watermark passes it, and so does the wait of a join for records that meet: without
/// watermarks it would never end.
pub(super) fn windows(graph: &Graph, errors: &mut Errors) {
    for node in &graph.nodes {
        if node.join.is_none() && node.window.as_ref().is_none_or(|window| window.timeless()) {
            continue;
        }
        let what = if node.join.is_some() { "join" } else { "window" };
        // What is wrong with one side of a join is often wrong with the other one.
        let input = node.inputs.iter().copied().find(|input| graph.timeless(*input).is_some());
        let Some(input) = input else { continue };
        // What is wrong with the keys is said elsewhere.
        let stream = match graph.nodes[input].kind {
            Kind::KeyBy | Kind::Global => graph.nodes[input].inputs.first().copied().unwrap_or(input),
            _ => input,
        };
        let Some(without) = graph.timeless(input) else { continue };
        let (name, culprit) = (graph.stream_name(stream), graph.operator_name(without));
        let error =
            errors.at_span(node.span, format!("event-time {what} on `{name}`, which carries no event time"));
        let record = record_name(graph, input);
        match graph.nodes[without].kind {
            Kind::Part => error
                .help(format!("add `.watermarks(.., |{record}| ..)` between `{culprit}` and this {what}"))
                .note("event time does not go through helper functions"),
            Kind::Input => error
                .help(format!("add `.watermarks(.., |{record}| ..)` between the parameter and this {what}"))
                .note("event time does not go through helper functions"),
            kind if kind.window() => {
                let error = error.help(match what {
                    "join" => {
                        format!("add `.watermarks(.., |{record}| ..)` between the window and this join")
                    }
                    _ => format!("add `.watermarks(.., |{record}| ..)` between the two windows"),
                });
                match (graph.nodes[without].window.as_ref().is_some_and(|window| window.by_clock), what) {
                    (false, _) => error.note("the results of a window over a number of records belong to no time"),
                    (true, "join") => error.note("what a window in processing time gives belongs to no event time"),
                    (true, _) => error.note("what a window in processing time gives belongs to no event time; with `.processing_time()` behind its assigner, this window goes by the clock, too"),
                }
            }
            Kind::Source => error
                .help(format!("add `.watermarks(.., |{record}| ..)` between the source and this {what}"))
                .note(match what {
                    "join" => "without a watermark records would be kept for ever",
                    _ => "without a watermark the window would never close",
                }),
            _ => error
                .help(format!("put the {what} before `{culprit}`, or remove `mode = batch`"))
                .note("with `mode = batch` an aggregate gives its results at the end, at no event time"),
        };
    }
}

/// As in the closure of the key, which is about the same records.
fn record_name(graph: &Graph, key_by: NodeId) -> String {
    match graph.nodes[key_by].arguments.last() {
        Some(Expr::Closure(closure)) => match closure.inputs.first() {
            Some(syn::Pat::Ident(name)) => name.ident.to_string(),
            _ => "record".to_owned(),
        },
        _ => "record".to_owned(),
    }
}

/// A sum holds what it sums and no records, so nothing about its windows can go by the records.
pub(super) fn by_records(graph: &Graph, errors: &mut Errors) {
    for window in graph.nodes.iter().filter_map(|node| node.window.as_ref()) {
        let Some((function, span)) = window.function else { continue };
        if !matches!(function.name, "count" | "sum" | "min" | "max" | "min_by" | "max_by") {
            continue;
        }
        let trigger = window.trigger.iter().map(|(_, trigger)| trigger);
        let closure = [&window.assigner].into_iter().chain(trigger).find_map(|value| {
            let mut closures = Closures(None);
            closures.visit_expr(value);
            closures.0
        });
        if closure.is_some() {
            let name = function.name;
            let of = if name == "count" { "" } else { "|record: &_| .." };
            errors
                .at_span(span, format!("`{name}` of windows that go by their records, of which it sees none"))
                .help(format!("give the windows the records: `.aggregate(aggregate::{name}({of}))`"));
        }
    }
}

/// The first closure.
struct Closures<'a>(Option<&'a ExprClosure>);

impl<'a> Visit<'a> for Closures<'a> {
    fn visit_expr_closure(&mut self, closure: &'a ExprClosure) {
        self.0.get_or_insert(closure);
        visit::visit_expr_closure(self, closure);
    }
}

/// By the clock, a record is in the window of the moment, and no watermark says anything.
pub(super) fn by_the_clock(graph: &Graph, errors: &mut Errors) {
    for node in &graph.nodes {
        let Some(window) = node.window.as_ref().filter(|window| window.by_clock) else { continue };
        let (name, batch) = (node.kind.name(), graph.options.mode == Mode::Batch);
        if batch {
            errors
                .at_span(node.span, "a window in processing time in a batch pipeline")
                .help("go by event time, with `.watermarks(..)`, or remove `mode = batch`")
                .note("what is read at once is in one window, and the last one would not be over at the end");
        }
        if let Some((span, _)) = &window.lateness {
            errors
                .at_span(*span, format!("`allowed_lateness` of a `{name}` in processing time"))
                .help("remove it")
                .note("a record is in the window of the moment in which it comes, so none is late");
        }
        if let Some(span) = window.late_output {
            errors
                .at_span(span, format!("`late_output` of a `{name}` in processing time"))
                .help("remove it")
                .note("a record is in the window of the moment in which it comes, so none is late");
        }
        let Some((_, trigger)) = &window.trigger else { continue };
        let mut calls = Calls { names: &["event_time", "continuous_event_time"], found: None };
        calls.visit_expr(trigger);
        if let Some(name) = calls.found {
            let instead = name.to_string().replace("event_time", "processing_time");
            errors
                .at(&name, format!("the trigger `{name}` of a window in processing time"))
                .help(format!("use `trigger::{instead}(..)`, or a window in event time"));
        }
    }
}

/// No record is late for a window that does not end.
pub(super) fn late_output(graph: &Graph, errors: &mut Errors) {
    for window in graph.nodes.iter().filter_map(|node| node.window.as_ref()) {
        if let (Some(span), true) = (window.late_output, window.of_number()) {
            errors
                .at_span(span, "`late_output` of windows that go by the number of records")
                .help("remove it")
                .note("only a window over time can be over when a record comes");
        }
    }
}

/// The first call of one of these functions.
struct Calls<'a> {
    names: &'a [&'a str],
    found: Option<Ident>,
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let Some(last) = path.path.segments.last()
            && self.names.iter().any(|name| last.ident == name)
        {
            self.found.get_or_insert_with(|| last.ident.clone());
        }
        visit::visit_expr_call(self, call);
    }
}

/// The default trigger of the global window never fires.
pub(super) fn triggers(graph: &Graph, errors: &mut Errors) {
    for window in graph.nodes.iter().filter_map(|node| node.window.as_ref()) {
        let global = window.assigner_name().is_some_and(|name| name == "global");
        if global && window.trigger.is_none() {
            errors
                .at(&window.assigner, "a global window without a trigger, which never fires")
                .help("say when it fires: `.trigger(trigger::count(100))`, for example");
        }
    }
}

/// Sessions that become one need what their records come to merged, and a fold can only add records.
pub(super) fn folds(graph: &Graph, errors: &mut Errors) {
    for window in graph.nodes.iter().filter_map(|node| node.window.as_ref()) {
        let Some((_, span)) = window.function.filter(|(function, _)| function.name == "fold") else {
            continue;
        };
        let session = window.assigner_name().is_some_and(|name| name == "session" || name == "session_with");
        if session {
            errors
                .at_span(span, "`fold` of session windows, which become one when a record comes between them")
                .help("use `.reduce(..)`, an aggregate with `merge`, or `.process(..)`");
        }
    }
}

/// Two watermarks for the same records contradict each other.
pub(super) fn once(graph: &Graph, errors: &mut Errors) {
    for node in graph.nodes.iter().filter(|node| node.kind == Kind::Watermarks) {
        let Some(&input) = node.inputs.first().filter(|input| graph.has_time(**input)) else { continue };
        errors
            .at_span(
                node.span,
                format!("`watermarks` on `{}`, which carries event time already", graph.stream_name(input)),
            )
            .help("remove one of the two");
    }
}

/// An evictor chooses among the records of a window, and an incremental aggregate keeps none.
pub(super) fn evictors(graph: &Graph, errors: &mut Errors) {
    for window in graph.nodes.iter().filter_map(|node| node.window.as_ref()) {
        let (Some((span, _)), Some((function, _))) = (&window.evictor, window.function) else { continue };
        if function.incremental {
            let span: Span = *span;
            errors
                .at_span(span, format!("an evictor before `{}`, which keeps no records", function.name))
                .help(match window.all {
                    false => "compute it of all records: `.evictor(..).process(|key, window, records| ..)`",
                    true => "compute it of all records: `.evictor(..).process(|window, records| ..)`",
                })
                .note("an evictor removes records from a window before something is computed of it");
        }
    }
}
