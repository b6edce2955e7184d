//! Closures that may fail.

use syn::{
    Expr, ExprAsync, ExprClosure, ExprTry,
    visit::{self, Visit},
};

use crate::{
    diag::Errors,
    graph::{Graph, Node},
    parse::Policy,
    vocab::Kind,
};

/// Whether the operator's closure returns a `Result`: it uses `?`, or a policy says what to do when it fails.
///
/// In `filter_map` a `?` may be about options: the closure is fallible when its value is an `Ok(..)`.
pub(crate) fn is_fallible(node: &Node) -> bool {
    if !may_fail(node.kind) {
        return false;
    }
    // What is no timestamp is found out by the operator itself.
    if node.on_error.is_some() && node.kind != Kind::Watermarks {
        return true;
    }
    let Some(Expr::Closure(closure)) = node.arguments.last() else { return false };
    uses_question_mark(closure) && (node.kind != Kind::FilterMap || ends_with_ok(&closure.body))
}

fn may_fail(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Map
            | Kind::Filter
            | Kind::FilterMap
            | Kind::FlatMap
            | Kind::Inspect
            | Kind::Split
            | Kind::Sum
            | Kind::Min
            | Kind::Max
            | Kind::Watermarks
    )
}

/// Whether records for which the operator fails are skipped.
pub(crate) fn skips(node: &Node, usual: Policy) -> bool {
    (is_fallible(node) || node.kind == Kind::Watermarks || node.kind.asks())
        && node.on_error.unwrap_or(usual) == Policy::Skip
}

/// A policy where nothing can fail is a misunderstanding.
pub(super) fn policies(graph: &Graph, errors: &mut Errors) {
    for node in &graph.nodes {
        let may = may_fail(node.kind) || node.kind.processes() || node.kind.asks();
        if node.on_error.is_some() && !may {
            errors
                .at_span(node.on_error_span.unwrap_or(node.span), format!("`on_error` after `{}`, which has no closure that may fail", node.kind.name()))
                .help("put it after the `map`, `filter`, `filter_map`, `flat_map` or `inspect` whose closure uses `?`");
        }
    }
}

/// Elsewhere a `?` has nowhere to go: a record without a key belongs to no subtask, and a state must not be left half
/// updated.
pub(super) fn keys(graph: &Graph, errors: &mut Errors) {
    for node in graph.nodes.iter().filter(|node| !may_fail(node.kind)) {
        for argument in &node.arguments {
            if let Expr::Closure(closure) = argument
                && let Some(question) = question_mark(closure)
            {
                errors
                    .at(&question.question_token, format!("`?` in the closure of `{}`", node.kind.name()))
                    .help("do what may fail in a `.map(..)` before it");
            }
        }
    }
}

fn uses_question_mark(closure: &ExprClosure) -> bool {
    question_mark(closure).is_some()
}

/// The first `?` of the closure itself, not of closures and async blocks inside it.
fn question_mark(closure: &ExprClosure) -> Option<&ExprTry> {
    struct Search<'a>(Option<&'a ExprTry>);
    impl<'a> Visit<'a> for Search<'a> {
        fn visit_expr_try(&mut self, expression: &'a ExprTry) {
            self.0.get_or_insert(expression);
            visit::visit_expr_try(self, expression);
        }
        fn visit_expr_closure(&mut self, _: &'a ExprClosure) {}
        fn visit_expr_async(&mut self, _: &'a ExprAsync) {}
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut search = Search(None);
    search.visit_expr(&closure.body);
    search.0
}

fn ends_with_ok(body: &Expr) -> bool {
    match body {
        Expr::Block(block) => match block.block.stmts.last() {
            Some(syn::Stmt::Expr(expression, None)) => ends_with_ok(expression),
            _ => false,
        },
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => {
                path.path.segments.last().is_some_and(|name| name.ident == "Ok" || name.ident == "Err")
            }
            _ => false,
        },
        Expr::If(branch) => match &branch.else_branch {
            Some((_, otherwise)) => ends_with_ok(otherwise),
            None => false,
        },
        Expr::Match(choice) => choice.arms.iter().any(|arm| ends_with_ok(&arm.body)),
        _ => false,
    }
}
