//! What is keyed, and what has to be.

use crate::{
    diag::Errors,
    graph::{Graph, NodeId},
    vocab::Kind,
};

/// State belongs to a key: without one there is nothing to sum per.
pub(super) fn keyed_streams(graph: &Graph, errors: &mut Errors) {
    // What was broadcast is of no key.
    let keyed = |kind: Kind| kind.keyed() && kind != Kind::BroadcastProcess;
    for node in graph.nodes.iter().filter(|node| keyed(node.kind)) {
        let unkeyed = node.inputs.iter().position(|input| graph.nodes[*input].kind != Kind::KeyBy);
        let Some(side) = unkeyed else { continue };
        let (operator, stream) = (node.word(), graph.stream_name(node.inputs[side]));
        let on = if side == 0 { "on" } else { "with" };
        let error = errors.at_span(node.span, format!("`{operator}` {on} `{stream}`, which is not keyed"));
        let error = match side {
            0 => error.help(format!("add `.key_by(|record| ..)` right before `.{operator}(..)`")),
            _ => error.help(format!(
                "add `.key_by(|record| ..)` to it: `.{operator}({stream}.key_by(|record| ..))`"
            )),
        };
        error.note(match node.kind {
            Kind::Window => "windows are kept per key; those of all records are `.window_all(..)`",
            kind if kind.two_inputs() => "the records of both streams meet by their keys",
            _ => "state is kept per key, on the subtask to which the key belongs",
        });
    }
}

/// An exchange says how records get to the next operator; another exchange or a union right behind it would undo it.
pub(super) fn exchange_last(graph: &Graph, errors: &mut Errors) {
    for node in &graph.nodes {
        let Some(undone) = node.inputs.iter().find(|input| undoes(graph, node.kind, **input)) else {
            continue;
        };
        let (before, after) = (graph.nodes[*undone].kind.name(), node.kind.name());
        errors
            .at_span(node.span, format!("`{after}` undoes the `{before}` before it"))
            .help(format!("remove `.{before}(..)`, or put an operator in between"));
    }
}

fn undoes(graph: &Graph, kind: Kind, input: NodeId) -> bool {
    graph.nodes[input].kind.exchange() && (kind.exchange() || matches!(kind, Kind::Union | Kind::Part))
}
