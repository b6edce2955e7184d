//! Where records carry event time: from `.watermarks(..)` to the last window, and nowhere else.

use super::{Graph, NodeId};
use crate::{parse::Mode, vocab::Kind};

impl Graph {
    /// Whether what comes out of `node` has an event time.
    pub(crate) fn has_time(&self, node: NodeId) -> bool {
        self.timeless(node).is_none()
    }

    /// The operator because of which what comes out of `node` has no event time.
    pub(crate) fn timeless(&self, node: NodeId) -> Option<NodeId> {
        let Some(&input) = self.nodes[node].inputs.first() else { return Some(node) };
        match self.nodes[node].kind {
            Kind::Watermarks => None,
            // Helper functions are given records, and nothing beside.
            Kind::Part => Some(node),
            // The result belongs to no time but the end.
            kind if kind.aggregate() && self.options.mode == Mode::Batch => Some(node),
            kind if kind.window() && self.is_timeless(node) => Some(node),
            kind if kind == Kind::Union || kind.two_inputs() => {
                self.timed_inputs(node).iter().find_map(|input| self.timeless(*input))
            }
            _ => self.timeless(input),
        }
    }

    fn is_timeless(&self, node: NodeId) -> bool {
        self.nodes[node].window.as_ref().is_some_and(|window| window.timeless())
    }

    /// The inputs whose event time is that of what comes out. What is kept everywhere for a join belongs to no time.
    fn timed_inputs(&self, node: NodeId) -> &[NodeId] {
        match self.nodes[node].kind {
            Kind::BroadcastJoin | Kind::BroadcastProcess => &self.nodes[node].inputs[..1],
            _ => &self.nodes[node].inputs,
        }
    }

    /// Whether event time goes into `node` with the records, because a window there or behind it needs it.
    pub(crate) fn takes_time(&self, node: NodeId) -> bool {
        self.timed_inputs(node).iter().all(|input| self.has_time(*input)) && self.wants_time(node)
    }

    /// Whether event time goes into `node` with the records that come from its input `from`.
    pub(crate) fn takes_time_from(&self, node: NodeId, from: NodeId) -> bool {
        self.takes_time(node) && self.timed_inputs(node).contains(&from)
    }

    /// Whether anybody behind `node` needs event time.
    pub(crate) fn gives_time(&self, node: NodeId) -> bool {
        let wants = |reader| self.wants_time(reader) && self.timed_inputs(reader).contains(&node);
        self.has_time(node) && self.consumers(node).any(wants)
    }

    fn wants_time(&self, node: NodeId) -> bool {
        match self.nodes[node].kind {
            kind if kind.window() => !self.nodes[node].window.as_ref().is_some_and(|window| window.by_clock),
            // With time on one side only there is none at the other: neither edge carries it then.
            kind if kind == Kind::Join || kind.processes() => {
                self.timed_inputs(node).iter().all(|input| self.has_time(*input))
            }
            Kind::Watermarks | Kind::Part | Kind::Sink => false,
            _ => self.gives_time(node),
        }
    }
}
