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
