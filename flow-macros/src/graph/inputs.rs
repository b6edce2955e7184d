//! Operators with two inputs, and who shares the subtasks of an exchange.

use super::Graph;
use crate::vocab::Kind;

impl Graph {
    /// An operator with two inputs runs where the other readers of the exchanges before it do: if it sets no
    /// parallelism of its own, that of theirs is its, too.
    pub(super) fn settle_parallelism(&mut self) {
        loop {
            let settled = self.nodes.iter().enumerate().find_map(|(id, node)| {
                if !node.kind.two_inputs() || node.parallelism.is_some() {
                    return None;
                }
                let exchanges = node.inputs.iter().filter(|input| self.nodes[**input].kind.exchange());
                Some((id, exchanges.into_iter().find_map(|input| self.receivers(*input))?))
            });
            match settled {
                Some((id, parallelism)) => self.nodes[id].parallelism = Some(parallelism),
                None => break,
            }
        }
        // Each output of an operator runs where that does.
        for id in 0..self.nodes.len() {
            if self.nodes[id].kind == Kind::Branch {
                self.nodes[id].parallelism = self.nodes[self.operator_of(id)].parallelism;
            }
        }
    }
}
