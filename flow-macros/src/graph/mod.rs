//! The graph of a pipeline: operators, and who reads from whom. Every node keeps the tokens and spans it came from.

mod answers;
mod branch;
mod build;
mod connect;
mod inputs;
mod join;
mod time;
mod window;
mod windows;

pub(crate) use answers::Answers;
pub(crate) use build::build;
pub(crate) use join::{Join, Matching};
pub(crate) use window::Window;

use proc_macro2::{Ident, Span};
use syn::{Expr, Path};

use crate::{
    parse::{Local, Options, Policy, Signature},
    vocab::Kind,
};

/// Index of a node. A node comes after those it reads from.
pub(crate) type NodeId = usize;

/// An operator.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The word in the source that made it.
    pub(crate) span: Span,
    /// Those of a [`Kind::Part`] include its streams.
    pub(crate) arguments: Vec<Expr>,
    pub(crate) inputs: Vec<NodeId>,
    pub(crate) uid: String,
    pub(crate) name: Option<String>,
    pub(crate) uid_span: Option<Span>,
    pub(crate) parallelism: Option<usize>,
    pub(crate) parallelism_span: Option<Span>,
    pub(crate) disable_chaining: bool,
    pub(crate) start_new_chain: bool,
    pub(crate) on_error: Option<Policy>,
    pub(crate) on_error_span: Option<Span>,
    /// The helper function, of a [`Kind::Part`].
    pub(crate) part: Option<Path>,
    /// The parameter, of a [`Kind::Input`].
    pub(crate) input: Option<Ident>,
    /// Which output of the operator it reads from, of a [`Kind::Branch`].
    pub(crate) branch: Option<usize>,
    /// How many outputs a tuple names; none where there is no tuple.
    pub(crate) named: Option<usize>,
    /// Of a [`Kind::Window`]; the node's arguments are the closures of what is computed.
    pub(crate) window: Option<Box<Window>>,
    /// Of a [`Kind::Join`]. If it is in windows, they are the node's window, of which nothing else is computed.
    pub(crate) join: Option<Box<Join>>,
    /// Of an operator that asks outside.
    pub(crate) answers: Option<Box<Answers>>,
}

impl Node {
    /// All that it says in expressions of the user's.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let windows = self.window.iter().flat_map(|window| window.values());
        let answers = self.answers.iter().flat_map(|answers| answers.values());
        let joins = self.join.iter().flat_map(|join| join.values());
        self.arguments.iter().chain(windows).chain(joins).chain(answers)
    }

    /// The method that made it.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.join, &self.answers) {
            (Some(join), _) => join.word,
            (None, Some(answers)) if answers.left => "left_lookup_join",
            _ => self.kind.name(),
        }
    }
}

/// A name for the output of a node.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    pub(crate) node: NodeId,
}

/// A pipeline as a graph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) options: Options,
    pub(crate) signature: Signature,
    /// The statements that are not about streams.
    pub(crate) plain: Vec<syn::Stmt>,
    pub(crate) locals: Vec<Local>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) bindings: Vec<Binding>,
    /// What a helper function returns.
    pub(crate) output: Option<NodeId>,
}

impl Graph {
    /// The nodes that read from `node`.
    pub(crate) fn consumers(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(_, reader)| reader.inputs.contains(&node))
            .map(|(id, _)| id)
    }

    /// The node that a name of a stream stands for.
    pub(crate) fn named(&self, argument: &Expr) -> Option<NodeId> {
        let Expr::Path(path) = argument else { return None };
        let name = path.path.get_ident()?;
        self.bindings.iter().find(|binding| binding.name == *name).map(|binding| binding.node)
    }

    /// What the user calls an operator.
    pub(crate) fn operator_name(&self, node: NodeId) -> String {
        let node = self.operator_of(node);
        let function = self.nodes[node].part.as_ref().and_then(|path| path.segments.last());
        match function {
            Some(function) => function.ident.to_string(),
            None => self.nodes[node].word().to_owned(),
        }
    }

    /// What the user calls the stream that leaves a node: its name, or its operator's.
    pub(crate) fn stream_name(&self, node: NodeId) -> String {
        match self.bindings.iter().find(|binding| binding.node == node) {
            Some(binding) => binding.name.to_string(),
            None => self.nodes[node].uid.clone(),
        }
    }
}
