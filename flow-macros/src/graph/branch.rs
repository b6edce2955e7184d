//! Operators with several outputs: each output is a node of its own, so that whatever reads it reads one stream.

use std::ops::RangeInclusive;

use proc_macro2::Ident;
use syn::PatTuple;

use super::{
    Binding, Graph, Node, NodeId,
    build::{Builder, node_of, plain},
};
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
            // Late records leave in the loop, where they come, and results in the one behind.
            kind if kind.window()
                && self.window.as_ref().is_some_and(|window| window.late_output.is_some()) =>
            {
                2..=2
            }
            kind if kind.processes() => 1..=2,
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

impl Builder {
    /// Whether only a tuple can name what comes out of a node.
    pub(super) fn several(&self, node: NodeId) -> bool {
        *self.graph.nodes[node].outputs().start() > 1
    }

    /// How a tuple of its outputs may look.
    pub(super) fn usual_names(&self, node: NodeId) -> &'static str {
        match self.graph.nodes[node].kind {
            Kind::Split => "(large, small)",
            kind if kind.window() => "(counts, late)",
            _ => "(results, side)",
        }
    }

    /// Each output that a tuple names becomes a node.
    pub(super) fn branches(&mut self, at: NodeId, pattern: &PatTuple, names: Vec<Option<Ident>>) {
        let (node, operator) = (&self.graph.nodes[at], self.graph.operator_name(at));
        let (outputs, named) = (node.outputs(), names.len());
        if node.kind == Kind::Sink {
            self.errors
                .at(pattern, "these would name what comes out of a sink, and nothing does")
                .help("end the statement with `.sink(..);`, without `let`");
            return;
        }
        if !outputs.contains(&named) {
            let (least, most, usual) = (*outputs.start(), *outputs.end(), self.usual_names(at));
            let error = self.errors.at(
                pattern,
                match (least, most) {
                    (1, 1) => format!("{named} names for the one output of `{operator}`"),
                    (least, most) if least < most => {
                        format!("{named} names, and `{operator}` has {least} to {most} outputs")
                    }
                    _ => format!("{named} names, and `{operator}` has {most} outputs"),
                },
            );
            match most {
                1 => error.help("let name = ..; and use the name twice to fork the stream"),
                _ => error.help(format!("let {usual} = ..;")),
            };
            return;
        }
        self.graph.nodes[at].named = Some(named);
        for (index, name) in names.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let mut branch = node_of(Kind::Branch, name.span(), Vec::new());
            let operator = &self.graph.nodes[at];
            branch.uid = format!("{}.{}", operator.uid, plain(&name));
            branch.inputs = vec![at];
            branch.branch = Some(index);
            branch.parallelism = operator.parallelism;
            branch.disable_chaining = operator.disable_chaining;
            self.graph.nodes.push(branch);
            self.graph.bindings.push(Binding { name, node: self.graph.nodes.len() - 1 });
        }
    }

    /// One name for several outputs.
    pub(super) fn one_name(&mut self, at: NodeId, name: &Ident) {
        let (operator, names) = (self.graph.operator_name(at), self.usual_names(at));
        self.errors
            .at(name, format!("`{name}` is one name, and `{operator}` has several outputs"))
            .help(format!("name each: `let {names} = ..;`, with `_` for one that nobody reads"));
    }

    /// No name for any of several outputs.
    pub(super) fn several_unnamed(&mut self, at: NodeId) {
        let (operator, names) = (self.graph.operator_name(at), self.usual_names(at));
        self.errors
            .at_span(self.graph.nodes[at].span, format!("nobody reads the outputs of this `{operator}`"))
            .help(format!("name each: `let {names} = ..;`, with `_` for one that nobody reads"));
    }
}
