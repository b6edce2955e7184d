//! Operators with several outputs: each output is a node of its own, so that whatever reads it reads one stream.

use std::ops::RangeInclusive;

use super::{Graph, Node, NodeId};
use crate::vocab::Kind;

impl Node {
    /// How many outputs it can have. Where it has more than one, a tuple names them.
    ///
    /// An operator with a second output needs a row here, and what follows either output where it emits: in the loop of
    /// its records or, for one that emits at other times, in the loop behind, which drains both. There
    /// [`Loop::output`](crate::expand) is all that follows the output of an index, and `Loop::reads` whether anything
    /// does. Event time and chains need nothing else.
    pub(crate) fn outputs(&self) -> RangeInclusive<usize> {
        match self.kind {
            Kind::Split => 2..=4,
            _ => 1..=1,
        }
    }
}

impl Graph {
    /// The branch of an operator with several outputs that has this index; none if nobody reads that output.
    pub(crate) fn branch(&self, node: NodeId, index: usize) -> Option<NodeId> {
        self.consumers(node).find(|consumer| self.nodes[*consumer].branch == Some(index))
    }

    /// The operator that a node stands for: of a branch, the one whose output it is.
    pub(crate) fn operator_of(&self, node: NodeId) -> NodeId {
        match (self.nodes[node].kind, self.nodes[node].inputs.first()) {
            (Kind::Branch, Some(&operator)) => operator,
            _ => node,
        }
    }
}
