//! What an operator of several streams reads.

use crate::{diag::Errors, graph::Graph};

/// A record has one way into an operator: of two from the same stream, neither could be told from the other.
pub(super) fn once(graph: &Graph, errors: &mut Errors) {
    for (id, node) in graph.nodes.iter().enumerate() {
        let again = node.inputs.iter().enumerate().find(|(i, input)| node.inputs[..*i].contains(input));
        if let Some((_, &twice)) = again {
            let (stream, reader) = (graph.stream_name(twice), graph.operator_name(id));
            errors
                .at_span(node.span, format!("stream `{stream}` goes into `{reader}` twice"))
                .help(format!("let copy = {stream}.map(|record| record); and use it the second time"));
        }
    }
}
