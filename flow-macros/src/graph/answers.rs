//! What is said of an operator that asks outside for each record.

use proc_macro2::Span;
use syn::{Expr, ExprAsync, ExprClosure, ExprTry, Ident, Stmt, visit::Visit};

use super::{Graph, Node, NodeId, build::Builder};
use crate::{
    parse::{Call, span},
    vocab::{Arg, Kind},
};

/// How an operator asks, and what becomes of the answers.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// What was said: the word, and its argument.
    pub(crate) settings: Vec<(Ident, Option<Expr>)>,
    /// The word that gives a value to records that are not answered in time; its closure is the last argument of the node.
    pub(crate) on_timeout: Option<Span>,
    /// Where a lookup looks.
    pub(crate) lookup: Option<Expr>,
    /// Whether a record of which nothing is found goes on.
    pub(crate) left: bool,
    /// Whether the last of the node's arguments says what comes out of a lookup.
    pub(crate) with: bool,
}

impl Answers {
    /// The values of which it is made when the job is wired.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        self.settings.iter().filter_map(|(_, value)| value.as_ref()).chain(&self.lookup)
    }

    fn said(&self, name: &str) -> bool {
        self.settings.iter().any(|(word, _)| word == name)
    }
}

impl Builder {
    /// Something is said of the operator `at`: how it asks.
    pub(super) fn answers(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        let name = call.name.to_string();
        let node = &self.graph.nodes[at];
        let Some(answers) = &node.answers else {
            let stream = self.graph.stream_name(at);
            self.errors.at(&call.name, format!("`{name}` on `{stream}`, which asks nobody")).help(format!(
                "put it behind the operator that does: `.map_async(|record| async move {{ .. }}).{name}(..)`"
            ));
            return None;
        };
        let (twice, word) = (answers.said(&name), node.kind);
        let order = ["ordered", "unordered"];
        if twice || (order.contains(&name.as_str()) && order.iter().any(|order| answers.said(order))) {
            self.twice(&call);
            return None;
        }
        let (args, usage): (&[Arg], &str) = match name.as_str() {
            "capacity" => (&[Arg::Value], ".capacity(100)"),
            "timeout" => (&[Arg::Value], ".timeout(\"2s\")"),
            "retry" => (&[Arg::Value], ".retry(fixed_delay(3, \"100ms\"))"),
            "on_timeout" => (&[Arg::Function(1)], ".on_timeout(|record| ..)"),
            _ => (&[], ".unordered()"),
        };
        if !self.arguments(&name, args, usage, &call) {
            return None;
        }
        let mut value = call.arguments.pop();
        match (name.as_str(), &mut value) {
            ("timeout", Some(value)) => span::text(value, "timeout", &mut self.errors),
            ("retry", Some(value)) => span::texts(value, &mut self.errors),
            ("on_timeout", Some(_)) if word != Kind::MapAsync => {
                self.errors
                    .at(&call.name, "`on_timeout` of a lookup")
                    .help("say `.on_error(skip)` to leave out records that are not answered in time");
                return None;
            }
            _ => {}
        }
        let node = &mut self.graph.nodes[at];
        let answers = node.answers.as_mut()?;
        if name == "on_timeout" {
            if answers.on_timeout.replace(call.name.span()).is_some() {
                self.twice(&call);
                return None;
            }
            node.arguments.extend(value);
        } else {
            answers.settings.push((call.name, value));
        }
        Some(at)
    }

    /// A closure that obviously gives no future.
    pub(super) fn future(&mut self, node: &Node) {
        let Some(Expr::Closure(closure)) = node.arguments.first() else { return };
        let body = &*closure.body;
        let value = matches!(
            body,
            Expr::Array(_)
                | Expr::Binary(_)
                | Expr::Cast(_)
                | Expr::Lit(_)
                | Expr::Range(_)
                | Expr::Tuple(_)
                | Expr::Struct(_)
                | Expr::Unary(_)
        );
        if value && closure.asyncness.is_none() {
            self.errors
                .at(body, "the closure of `map_async` gives a future, and this is none")
                .help(".map_async(|record| async move { .. })")
                .note("for what needs no waiting there is `map`");
        }
    }

    /// What a lookup makes of a record and what was found.
    pub(super) fn looked_up(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        if self.graph.nodes[at].answers.as_ref().is_some_and(|answers| answers.with) {
            self.twice(&call);
            return None;
        }
        if !self.arguments("with", &[Arg::Function(2)], ".with(|record, found| ..)", &call) {
            return None;
        }
        let node = &mut self.graph.nodes[at];
        node.arguments.append(&mut call.arguments);
        node.answers.as_mut()?.with = true;
        Some(at)
    }
}

impl Graph {
    /// Whether the future of an operator that asks is one that ends with `?` or `Ok(..)`.
    pub(crate) fn asks_with_question_mark(&self, node: NodeId) -> bool {
        match self.nodes[node].arguments.first() {
            Some(Expr::Closure(closure)) => future(closure).is_some_and(|future| {
                let mut search = Search(false);
                search.visit_block(&future.block);
                search.0
            }),
            _ => false,
        }
    }
}

/// The block `async { .. }` that a closure returns.
fn future(closure: &ExprClosure) -> Option<&ExprAsync> {
    let mut body = &*closure.body;
    loop {
        match body {
            Expr::Async(future) => return Some(future),
            Expr::Block(block) => match block.block.stmts.last()? {
                Stmt::Expr(last, None) => body = last,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// A `?` of the block itself, not of closures and async blocks inside it.
struct Search(bool);

impl<'a> Visit<'a> for Search {
    fn visit_expr_try(&mut self, _: &'a ExprTry) {
        self.0 = true;
    }
    fn visit_expr_closure(&mut self, _: &'a ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'a ExprAsync) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}
