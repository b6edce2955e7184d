//! Names and numbers of operators.

use crate::{diag::Errors, graph::Graph, vocab::Kind};

/// Two operators of one uid would read each other's state.
pub(super) fn unique(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate() {
        if graph.nodes[..id].iter().any(|before| before.uid == node.uid) {
            errors
                .at_span(node.span, format!("uid `{}` is used twice", node.uid))
                .help(format!("give one of them another: `.uid(\"{}-2\")`", node.uid))
                .note("a checkpoint finds the state of an operator by its uid");
        }
    }
}

/// Forward means from each subtask to the one of the same number.
pub(super) fn forward_parallelism(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate() {
        if node.kind != Kind::Forward {
            continue;
        }
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

/// An exchange runs where its sender does, and a helper function is made of operators: neither has subtasks of its own.
pub(super) fn misplaced_parallelism(graph: &Graph, errors: &mut Errors) {
    for node in graph.nodes.iter().filter(|node| node.parallelism.is_some()) {
        let (what, help) = match node.kind {
            Kind::Part => ("a helper function".to_owned(), "set it on the operators in the helper function"),
            kind if kind.exchange() => (format!("`{}`", kind.name()), "set it on the operator before or after"),
            _ => continue,
        };
        errors.at_span(node.span, format!("`parallelism` after {what}")).help(help);
    }
}

/// An exchange deals records out among the subtasks of one chain, in which all of its readers run.
pub(super) fn exchange_parallelism(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind.exchange()) {
        let mut readers = graph.consumers(id);
        let Some(first) = readers.next() else { continue };
        if let Some(other) =
            readers.find(|reader| graph.nodes[*reader].parallelism != graph.nodes[first].parallelism)
        {
            errors
                .at_span(
                    graph.nodes[other].span,
                    format!(
                        "`{}` and `{}` read from the same `{}` with different parallelism",
                        graph.nodes[first].kind.name(),
                        graph.nodes[other].kind.name(),
                        node.kind.name()
                    ),
                )
                .help(format!("make them equal, or give each a `{}` of its own", node.kind.name()));
        }
    }
}
