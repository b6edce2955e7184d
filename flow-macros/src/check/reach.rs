//! Every stream comes from somewhere and goes somewhere.

use crate::{diag::Errors, graph::Graph, parse::Shape, vocab::Kind};

/// A pipeline without a source would do nothing, forever.
pub(super) fn sources(graph: &Graph, errors: &mut Errors) {
    if matches!(graph.signature.shape, Shape::Job) && graph.nodes.is_empty() {
        errors
            .at(&graph.signature.name, format!("pipeline `{}` has no source", graph.signature.name))
            .help("begin with `let lines = source(..);`");
    }
}

/// Records that nobody takes would be computed for nothing, which is never what was meant.
pub(super) fn sinks(graph: &Graph, errors: &mut Errors) {
    if !graph.is_job() && graph.output.is_none() {
        return;
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        // Of an operator with several outputs each may be dropped, but not all.
        let used =
            node.kind == Kind::Sink || graph.output == Some(id) || graph.consumers(id).next().is_some();
        if used {
            continue;
        }
        match graph.bindings.iter().rfind(|binding| binding.node == id) {
            Some(binding) => {
                errors.at(&binding.name, format!("stream `{}` never reaches a sink", binding.name))
            }
            None => errors.at_span(
                node.span,
                format!("what comes out of this `{}` never reaches a sink", node.kind.name()),
            ),
        }
        .help(match (&graph.signature.shape, node.kind) {
            (_, Kind::Branch) => "end it with `.sink(..)`, or write `_` instead of the name",
            (Shape::Job, _) => "end it with `.sink(..)`, or remove it",
            (Shape::Part { .. }, _) => "return it, end it with `.sink(..)`, or remove it",
        });
    }
}

/// A helper function's value is a stream.
pub(super) fn helper_output(graph: &Graph, errors: &mut Errors) {
    if graph.is_job() || graph.output.is_some() {
        return;
    }
    let name = &graph.signature.name;
    let last =
        graph.nodes.iter().rfind(|node| node.kind != Kind::Input).map_or(name.span(), |node| node.span);
    errors
        .at_span(last, format!("helper function `{name}` ends without a stream"))
        .help("end its body with the stream to return, without a semicolon");
}
