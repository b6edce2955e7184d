//! How many subtasks operators have.

use crate::{diag::Errors, graph::Graph, vocab::Kind};

/// Forward means from each subtask to the one of the same number.
pub(super) fn forward(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Forward) {
        let Some(&input) = node.inputs.first() else { continue };
        let from = graph.nodes[input].parallelism.or(graph.options.parallelism);
        for consumer in graph.consumers(id) {
            let to = graph.nodes[consumer].parallelism.or(graph.options.parallelism);
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                errors
                    .at_span(node.span, format!("`forward` from parallelism {from} to parallelism {to}"))
                    .help("use `.rescale()` or `.rebalance()`, or make them equal");
            }
        }
    }
}

/// An exchange sends each record once, to one set of subtasks, whoever reads there.
pub(super) fn readers(graph: &Graph, errors: &mut Errors) {
    for (id, exchange) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind.exchange()) {
        let mut first = None;
        for (reader, n) in graph.consumers(id).filter_map(|id| graph.nodes[id].parallelism.map(|n| (id, n))) {
            let (before, agreed) = *first.get_or_insert((reader, n));
            if n != agreed {
                let (stream, kind) = (graph.stream_name(id), exchange.kind.name());
                let (before, name) = (graph.operator_name(before), graph.operator_name(reader));
                let node = &graph.nodes[reader];
                errors
                    .at_span(
                        node.parallelism_span.unwrap_or(node.span),
                        format!(
                            "`{name}` reads `{stream}` with parallelism {n}, but `{before}` with {agreed}"
                        ),
                    )
                    .help(format!("make them equal, or give each its own `.{kind}(..)`"))
                    .note("the readers of an exchange share its subtasks");
            }
        }
    }
}

/// An exchange happens between subtasks, and a helper function is made of operators that have their own.
pub(super) fn of_subtasks(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate() {
        let Some(span) = node.parallelism_span else { continue };
        if node.kind.exchange() || matches!(node.kind, Kind::Part | Kind::Input) {
            let name = graph.operator_name(id);
            errors
                .at_span(span, format!("`parallelism` of `{name}`, which has no subtasks of its own"))
                .help(match node.kind {
                    Kind::Part => format!("set it on the operators in `{name}`"),
                    _ => "set it on the operator that reads this stream".to_owned(),
                });
        }
    }
}

/// A window of all records has them in one place.
pub(super) fn of_all(graph: &Graph, errors: &mut Errors) {
    for node in graph.nodes.iter().filter(|node| node.kind == Kind::WindowAll) {
        if let (Some(parallelism), Some(span)) = (node.parallelism.filter(|n| *n != 1), node.parallelism_span)
        {
            errors
                .at_span(span, format!("`window_all` with parallelism {parallelism}"))
                .help("remove it; windows of each key, `.key_by(..).window(..)`, have any parallelism")
                .note("a window of all records is in one subtask");
        }
    }
}

/// State belongs to key groups, of which there are `max_parallelism`: further subtasks would get none.
pub(super) fn below_max(graph: &Graph, errors: &mut Errors) {
    let Some(max) = graph.options.max_parallelism else { return };
    for node in &graph.nodes {
        if let (Some(parallelism), Some(span)) = (node.parallelism, node.parallelism_span)
            && parallelism > max
        {
            errors
                .at_span(span, format!("the parallelism {parallelism} is above the max parallelism {max}"))
                .help("lower it, or raise `max_parallelism`");
        }
    }
}
