//! What event time needs.

use proc_macro2::Span;
use syn::{
    Expr, ExprClosure,
    visit::{self, Visit},
};

use crate::{
    diag::Errors,
    graph::{Graph, NodeId},
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
            Kind::KeyBy => graph.nodes[input].inputs.first().copied().unwrap_or(input),
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
            Kind::Window => error
                .help(match what {
                    "join" => {
                        format!("add `.watermarks(.., |{record}| ..)` between the window and this join")
                    }
                    _ => format!("add `.watermarks(.., |{record}| ..)` between the two windows"),
                })
                .note("the results of a window over a number of records belong to no time"),
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
        if !matches!(function.name, "count" | "sum" | "min" | "max") {
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
                .help("compute it of all records: `.evictor(..).process(|key, window, records| ..)`")
                .note("an evictor removes records from a window before something is computed of it");
        }
    }
}
