//! The function's body: which statements are about streams, and their method chains.

use proc_macro2::{Ident, Span};
use syn::{
    Expr, ExprCall, ExprMethodCall, ExprPath, ItemFn, Pat, PatTuple, Path, Stmt,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{
    Local, Shape, Signature,
    locals::{Mentions, bound, mentioned},
};
use crate::{diag::Errors, vocab::takes_streams};

/// A statement of the body.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Not about streams: kept as it is.
    Plain(Box<Stmt>),
    /// A method chain over streams.
    Streams(Box<Streams>),
}

/// A method chain, perhaps bound to names.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) binding: Option<Bound>,
    pub(crate) chain: Chain,
    /// The value of the function: the last expression, without a semicolon.
    pub(crate) tail: bool,
}

/// A method chain that begins with a stream.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) root: Root,
    pub(crate) calls: Vec<Call>,
}

/// What the left side of a statement names.
#[derive(Debug)]
pub(crate) enum Bound {
    /// What comes out.
    One(Ident),
    /// Each of several outputs; `None` for `_`, which drops one.
    Several { pattern: PatTuple, names: Vec<Option<Ident>> },
}

impl Bound {
    /// `None` for a pattern that no streams are bound to.
    fn of(pattern: &Pat) -> Option<Self> {
        match pattern {
            Pat::Type(typed) => Bound::of(&typed.pat),
            Pat::Ident(name) => Some(Bound::One(name.ident.clone())),
            Pat::Tuple(pattern) => {
                let names = pattern.elems.iter().map(|element| match element {
                    Pat::Ident(name) => Some(Some(name.ident.clone())),
                    Pat::Wild(_) => Some(None),
                    _ => None,
                });
                Some(Bound::Several { pattern: pattern.clone(), names: names.collect::<Option<_>>()? })
            }
            _ => None,
        }
    }

    /// The names, without those that are dropped.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Ident> {
        let (one, several) = match self {
            Bound::One(name) => (Some(name), &[][..]),
            Bound::Several { names, .. } => (None, &names[..]),
        };
        one.into_iter().chain(several.iter().flatten())
    }
}

/// Where a method chain begins.
#[derive(Debug)]
pub(crate) enum Root {
    /// `source(..)`
    Source { span: Span, argument: Expr },
    /// The name of a stream.
    Name(Ident),
    /// A helper function that is given streams.
    Part { path: Path, arguments: Vec<Expr> },
}

/// A method call in a chain.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: Ident,
    pub(crate) arguments: Vec<Expr>,
    /// The arguments that are streams, of a method that takes such.
    pub(crate) streams: Vec<Option<Chain>>,
}

pub(super) fn parse(
    function: &ItemFn,
    signature: &Signature,
    errors: &mut Errors,
) -> (Vec<Statement>, Vec<Local>) {
    let mut body = Body::new(signature, errors);
    body.all(function);
    (body.statements, body.locals)
}

/// The names of the function's streams.
pub(super) fn streams(function: &ItemFn, signature: &Signature) -> Vec<Ident> {
    let mut errors = Errors::default();
    let mut body = Body::new(signature, &mut errors);
    body.all(function);
    body.streams
}

struct Body<'e> {
    streams: Vec<Ident>,
    locals: Vec<Local>,
    statements: Vec<Statement>,
    errors: &'e mut Errors,
}

impl<'e> Body<'e> {
    fn new(signature: &Signature, errors: &'e mut Errors) -> Self {
        let streams = match &signature.shape {
            Shape::Job => Vec::new(),
            Shape::Part { inputs } => inputs.clone(),
        };
        Body { streams, locals: Vec::new(), statements: Vec::new(), errors }
    }

    fn all(&mut self, function: &ItemFn) {
        let statements = &function.block.stmts;
        for (i, statement) in statements.iter().enumerate() {
            self.statement(statement, i + 1 == statements.len());
        }
    }

    fn statement(&mut self, statement: &Stmt, last: bool) {
        match statement {
            Stmt::Local(local) => {
                let Some(init) = &local.init else { return self.plain(statement) };
                let Some(chain) = self.chain(&init.expr) else { return self.plain(statement) };
                if let Some((token, _)) = &init.diverge {
                    self.errors
                        .at(token, "a stream is always there, so `else` has no meaning")
                        .help("remove it");
                }
                let Some(binding) = Bound::of(&local.pat) else {
                    self.errors
                        .at(&local.pat, "a stream is bound to a plain name, or several outputs to a tuple of names")
                        .help("let words = ..; or, of an operator with several outputs: let (large, small) = ..;");
                    return;
                };
                for name in binding.names() {
                    if let Some(before) = self.streams.iter().find(|stream| *stream == name) {
                        let before = before.to_string();
                        self.errors
                            .at(name, format!("stream `{before}` is bound twice"))
                            .help("give the second one another name: names are what uids are made of");
                        return;
                    }
                    self.streams.push(name.clone());
                }
                self.statements.push(Statement::Streams(Box::new(Streams {
                    binding: Some(binding),
                    chain,
                    tail: false,
                })));
            }
            Stmt::Expr(expression, semicolon) => match self.chain(expression) {
                Some(chain) => {
                    let tail = last && semicolon.is_none();
                    self.statements.push(Statement::Streams(Box::new(Streams {
                        binding: None,
                        chain,
                        tail,
                    })));
                }
                None => self.plain(statement),
            },
            _ => self.plain(statement),
        }
    }

    /// A statement that is not about streams. It must not touch any.
    fn plain(&mut self, statement: &Stmt) {
        if self.refuse_streams(statement) {
            return;
        }
        if let Stmt::Local(local) = statement {
            for new in bound(&local.pat) {
                let again = self.locals.iter().any(|local| local.name == new.name)
                    || self.streams.contains(&new.name);
                if again && self.used_by_streams(&new.name) {
                    self.errors
                        .at(&new.name, format!("`{}` is bound twice", new.name))
                        .help("give the second one another name")
                        .note(
                            "streams are wired after all other statements, and would see the second one only",
                        );
                }
                self.locals.retain(|local| local.name != new.name);
                self.locals.push(new);
            }
        }
        self.statements.push(Statement::Plain(Box::new(statement.clone())));
    }

    /// Ordinary code sees records and variables, never a stream.
    fn refuse_streams(&mut self, statement: &Stmt) -> bool {
        let (mut mentions, mut sources) = (Mentions::of(self.streams.clone()), Sources(None));
        mentions.visit_stmt(statement);
        sources.visit_stmt(statement);
        let (span, message) = match (mentions.found, sources.0) {
            (Some((span, name)), _) => (span, format!("stream `{name}` is used in ordinary code")),
            (None, Some(span)) => (span, "a source inside ordinary code".to_owned()),
            (None, None) => return false,
        };
        self.errors
            .at_span(span, message)
            .help("write `let name = stream.operator(..);` at the top level of the pipeline")
            .note("the graph is fixed at compile time: choose between records with `.filter(..)`, not between streams with control flow");
        true
    }

    /// An argument sees records and variables, never a stream.
    fn refuse_streams_in(&mut self, argument: &Expr) {
        self.refuse_streams(&Stmt::Expr(argument.clone(), None));
    }

    fn used_by_streams(&self, name: &Ident) -> bool {
        self.statements.iter().any(|statement| match statement {
            Statement::Plain(_) => false,
            Statement::Streams(streams) => {
                let in_root = match &streams.chain.root {
                    Root::Source { argument, .. } => mentioned(name, argument),
                    Root::Name(_) => false,
                    Root::Part { arguments, .. } => {
                        arguments.iter().any(|argument| mentioned(name, argument))
                    }
                };
                in_root
                    || streams
                        .chain
                        .calls
                        .iter()
                        .flat_map(|call| &call.arguments)
                        .any(|arg| mentioned(name, arg))
            }
        })
    }

    /// Takes a method chain apart, if it begins with a stream.
    fn chain(&mut self, expression: &Expr) -> Option<Chain> {
        let mut calls = Vec::new();
        let mut receiver = expression;
        loop {
            match receiver {
                Expr::MethodCall(call) => {
                    calls.push(call);
                    receiver = &call.receiver;
                }
                Expr::Paren(paren) => receiver = &paren.expr,
                _ => break,
            }
        }
        calls.reverse();
        let root = match receiver {
            Expr::Path(path) => Root::Name(self.stream(path)?),
            Expr::Call(call) => self.root(call)?,
            _ => return None,
        };
        let calls = calls.into_iter().map(|call| self.call(call)).collect();
        Some(Chain { root, calls })
    }

    fn call(&mut self, call: &ExprMethodCall) -> Call {
        let name = call.method.clone();
        let takes_streams = takes_streams(&name.to_string());
        let mut streams = Vec::new();
        for argument in &call.args {
            let chain = if takes_streams { self.chain(argument) } else { None };
            if chain.is_none() {
                self.refuse_streams_in(argument);
            }
            streams.push(chain);
        }
        Call { name, arguments: call.args.iter().cloned().collect(), streams }
    }

    fn stream(&self, path: &ExprPath) -> Option<Ident> {
        path.path.get_ident().filter(|name| self.streams.contains(name)).cloned()
    }

    fn is_stream(&self, argument: &Expr) -> bool {
        matches!(argument, Expr::Path(path) if self.stream(path).is_some())
    }

    fn root(&mut self, call: &ExprCall) -> Option<Root> {
        let Expr::Path(path) = &*call.func else { return None };
        if is_source(&path.path) {
            if call.args.len() != 1 {
                self.errors
                    .at(&call.func, format!("`source` takes 1 argument, not {}", call.args.len()))
                    .help("source(file::text(\"words.txt\"))");
            }
            let argument = call.args.first().cloned().unwrap_or_else(|| syn::parse_quote!(()));
            self.refuse_streams_in(&argument);
            return Some(Root::Source { span: path.span(), argument });
        }
        let given = call.args.iter().any(|argument| self.is_stream(argument));
        if !given {
            return None;
        }
        for argument in &call.args {
            if !self.is_stream(argument) {
                self.refuse_streams_in(argument);
            }
        }
        Some(Root::Part { path: path.path.clone(), arguments: call.args.iter().cloned().collect() })
    }
}

/// `source` or `flow::source`.
pub(crate) fn is_source(path: &Path) -> bool {
    let mut names = path.segments.iter().map(|segment| &segment.ident);
    match (names.next(), names.next(), names.next()) {
        (Some(source), None, None) => source == "source",
        (Some(flow), Some(source), None) => flow == "flow" && source == "source",
        _ => false,
    }
}

/// Looks for `source(..)` where it may not be.
struct Sources(Option<Span>);

impl<'ast> Visit<'ast> for Sources {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if matches!(&*call.func, Expr::Path(path) if is_source(&path.path)) {
            self.0.get_or_insert(call.func.span());
        }
        visit::visit_expr_call(self, call);
    }
}
