//! Where chains end.

use super::Layout;
use crate::{
    graph::{Graph, NodeId},
    vocab::Kind,
};

impl Layout {
    /// Whether what comes out of `node` always begins a chain: records arrive there by an edge.
    pub(crate) fn ends(&self, graph: &Graph, node: NodeId) -> bool {
        let kind = graph.nodes[node].kind;
        matches!(kind, Kind::Part | Kind::Input) || (!self.single && kind.exchange())
    }

    /// Whether what is sent behind `from` goes straight into the chain of `to`, an operator with two inputs. If others
    /// read it too, they and the way to `to` begin in a chain of theirs.
    pub(crate) fn straight(&self, graph: &Graph, from: NodeId, to: NodeId) -> bool {
        self.ends(graph, from)
            && graph.output != Some(from)
            && graph.consumers(from).all(|reader| reader == to)
    }

    /// Whether the records from `from` to `to` leave the loop although no exchange asks for it.
    pub(crate) fn cuts(&self, graph: &Graph, from: NodeId, to: NodeId) -> bool {
        let (sender, receiver) = (&graph.nodes[from], &graph.nodes[to]);
        // A loop has one beginning, and a helper function is a chain of its own.
        if matches!(receiver.kind, Kind::Union | Kind::Part) {
            return true;
        }
        // Which output a record takes is decided in the loop.
        if receiver.kind == Kind::Branch {
            return false;
        }
        if receiver.kind.two_inputs() {
            return !self.straight(graph, from, to);
        }
        // The exchange itself is the cut.
        if !self.single && sender.kind.exchange() {
            return false;
        }
        if receiver.start_new_chain || receiver.disable_chaining || sender.disable_chaining {
            return true;
        }
        // A loop runs in as many subtasks as all of its operators; an exchange runs where its sender does.
        !self.single && !receiver.kind.exchange() && sender.parallelism != receiver.parallelism
    }
}
