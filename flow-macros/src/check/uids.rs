//! Names of operators.

use crate::{diag::Errors, graph::Graph};

/// Two operators of one uid would read each other's state.
pub(super) fn unique(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate() {
        if let Some(before) = graph.nodes[..id].iter().find(|before| before.uid == node.uid) {
            // Of an explicit and a generated one, the explicit one is to be changed.
            let span = node.uid_span.or(before.uid_span).unwrap_or(node.span);
            errors
                .at_span(span, format!("uid `{}` is used twice", node.uid))
                .help(format!("give one of them another: `.uid(\"{}-2\")`", node.uid))
                .note("a checkpoint finds the state of an operator by its uid");
        }
    }
}
