//! Two streams that a function of the user's own is given.

use super::{NodeId, build::Builder};
use crate::{
    parse::Call,
    vocab::{Arg, Kind},
};

impl Builder {
    /// What is made of connected streams. How they are partitioned decides what kind of function it takes.
    pub(super) fn connected(&mut self, at: NodeId, call: Call) -> Option<NodeId> {
        if call.name != "process" {
            self.errors
                .at(&call.name, format!("`{}` of connected streams", call.name))
                .help("go on with `.process(function)` first")
                .note("the streams may be of different types: a function makes one of them");
            return None;
        }
        self.arguments("process", &[Arg::Value], ".connect(other).process(function)", &call);
        let node = &self.graph.nodes[at];
        let kinds: Vec<Kind> = node.inputs.iter().map(|input| self.graph.nodes[*input].kind).collect();
        let kind = match kinds[..] {
            [Kind::KeyBy, Kind::KeyBy] => Kind::KeyedCoProcess,
            [Kind::KeyBy, Kind::Broadcast] => Kind::BroadcastProcess,
            [Kind::KeyBy, _] | [_, Kind::KeyBy] => {
                let keyed = usize::from(kinds[0] != Kind::KeyBy);
                let (keyed, other) = (node.inputs[keyed], node.inputs[1 - keyed]);
                // As the user calls it: before the `key_by`.
                let keyed = self.graph.nodes[keyed].inputs.first().copied().unwrap_or(keyed);
                let (keyed, other) = (self.graph.stream_name(keyed), self.graph.stream_name(other));
                self.errors
                    .at_span(node.span, format!("`{keyed}` is keyed, and `{other}` is not"))
                    .help("key both for records of the same key: `a.key_by(..).connect(b.key_by(..))`; or give one to all subtasks: `a.key_by(..).connect(b.broadcast())`");
                return None;
            }
            _ => Kind::CoProcess,
        };
        let node = &mut self.graph.nodes[at];
        node.kind = kind;
        node.arguments = call.arguments;
        Some(at)
    }
}
