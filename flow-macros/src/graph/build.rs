//! From method chains to a graph: names become edges, modifiers go to their operator, every operator gets a uid.

use std::collections::HashMap;

use proc_macro2::{Ident, Span};
use syn::{Expr, ExprLit, Lit, spanned::Spanned};

use super::{Answers, Binding, Graph, Join, Node, NodeId, windows::arguments_of};
use crate::{
    diag::{Errors, similar},
    parse::{Bound, Call, Chain, Pipeline, Policy, Root, Shape, Statement, Streams, choose, integer, span},
    vocab::{self, ANSWER_MODIFIERS, Arg, BOUNDS, Kind, MODIFIERS, OPERATORS, WINDOW_MODIFIERS},
};

pub(crate) fn build(pipeline: Pipeline) -> Result<Graph, Errors> {
    let mut builder = Builder {
        graph: Graph {
            options: pipeline.options,
            signature: pipeline.signature,
            plain: Vec::new(),
            locals: pipeline.locals,
            nodes: Vec::new(),
            bindings: Vec::new(),
            output: None,
        },
        errors: Errors::default(),
        uids: HashMap::new(),
    };
    builder.inputs();
    for statement in pipeline.statements {
        match statement {
            Statement::Plain(statement) => builder.graph.plain.push(*statement),
            Statement::Streams(streams) => builder.streams(*streams),
        }
    }
    builder.graph.settle_parallelism();
    builder.errors.finish(builder.graph)
}

pub(super) struct Builder {
    pub(super) graph: Graph,
    pub(super) errors: Errors,
    /// How often a generated uid was wanted.
    uids: HashMap<String, usize>,
}

impl Builder {
    /// The streams that a helper function is given.
    fn inputs(&mut self) {
        let Shape::Part { inputs } = &self.graph.signature.shape else { return };
        for name in inputs.clone() {
            let mut node = node_of(Kind::Input, name.span(), Vec::new());
            node.uid = plain(&name);
            node.input = Some(name.clone());
            self.graph.nodes.push(node);
            self.graph.bindings.push(Binding { name, node: self.graph.nodes.len() - 1 });
        }
    }

    fn streams(&mut self, streams: Streams) {
        let Streams { binding, chain, tail } = streams;
        let prefix = match (&binding, &chain.root) {
            (Some(Bound::One(name)), _) | (_, Root::Name(name)) => Some(plain(name)),
            // No output gives its name to the operators before the one that has several.
            (Some(several), _) => several.names().next().map(plain),
            _ => None,
        };
        let Some(at) = self.chain(chain, prefix.as_deref()) else { return };
        match binding {
            Some(Bound::Several { pattern, names }) => self.branches(at, &pattern, names),
            Some(Bound::One(name)) if self.graph.nodes[at].kind == Kind::Sink => {
                self.errors
                    .at(&name, format!("`{name}` would name what comes out of a sink, and nothing does"))
                    .help("end the statement with `.sink(..);`, without `let`");
            }
            Some(Bound::One(name)) if self.several(at) => self.one_name(at, &name),
            Some(Bound::One(name)) => self.graph.bindings.push(Binding { name, node: at }),
            None if self.several(at) => self.several_unnamed(at),
            None if tail && !self.graph.is_job() && self.graph.nodes[at].kind != Kind::Sink => {
                self.graph.output = Some(at);
            }
            None => {}
        }
    }

    /// A whole method chain. `None` when something is wrong with it.
    fn chain(&mut self, chain: Chain, prefix: Option<&str>) -> Option<NodeId> {
        let mut at = self.root(chain.root, prefix)?;
        for call in chain.calls {
            at = self.call(at, call, prefix)?;
        }
        if self.unfinished(at) {
            self.nothing_computed(at);
            return None;
        }
        Some(at)
    }

    fn nothing_computed(&mut self, at: NodeId) {
        let node = &self.graph.nodes[at];
        match &node.join {
            Some(join) => join.unfinished(node, &mut self.errors),
            None if node.kind == Kind::Connect => {
                self.errors
                    .at_span(node.span, "connected streams of which nothing is made")
                    .help("go on with `.process(function)`");
            }
            None if node.kind == Kind::BroadcastJoin => {
                self.errors
                    .at_span(node.span, "a join of which nothing is made")
                    .help("go on with `.with(|record, other| ..)`");
            }
            None => {
                self.errors.at_span(node.span, "a window of which nothing is computed").help(
                    "go on with `.count()`, `.sum(..)`, `.aggregate(..)`, `.reduce(..)` or `.process(..)`",
                );
            }
        }
    }

    /// The stream that an argument of a method is: a name, or a method chain.
    fn stream(
        &mut self,
        chain: Option<Chain>,
        argument: &Expr,
        usage: &str,
        prefix: Option<&str>,
    ) -> Option<NodeId> {
        let Some(chain) = chain else {
            self.errors.at(argument, "this is not the name of a stream").help(usage);
            return None;
        };
        let prefix = match &chain.root {
            Root::Name(name) => Some(plain(name)),
            _ => prefix.map(str::to_owned),
        };
        let at = self.chain(chain, prefix.as_deref())?;
        if self.several(at) {
            let names = self.usual_names(at);
            self.errors
                .at(argument, "this has several outputs, and one stream is wanted here")
                .help(format!("name each first: `let {names} = ..;`"));
            return None;
        }
        if self.graph.nodes[at].kind == Kind::Sink {
            self.errors
                .at_span(self.graph.nodes[at].span, "nothing comes out of a sink")
                .help("give the stream as it is before the sink");
            return None;
        }
        if self.several(at) {
            self.several_unnamed(at);
            return None;
        }
        Some(at)
    }

    fn root(&mut self, root: Root, prefix: Option<&str>) -> Option<NodeId> {
        match root {
            Root::Name(name) => {
                self.graph.bindings.iter().find(|binding| binding.name == name).map(|binding| binding.node)
            }
            Root::Source { span, argument } => {
                Some(self.add(node_of(Kind::Source, span, vec![argument]), prefix))
            }
            Root::Part { path, arguments } => {
                let name = path.segments.last().map(|segment| segment.ident.clone())?;
                let mut part = node_of(Kind::Part, name.span(), Vec::new());
                part.inputs = arguments.iter().filter_map(|argument| self.graph.named(argument)).collect();
                part.arguments = arguments;
                part.part = Some(path);
                part.uid = self.unique(prefix, &plain(&name));
                self.graph.nodes.push(part);
                Some(self.graph.nodes.len() - 1)
            }
        }
    }

    pub(super) fn add(&mut self, mut node: Node, prefix: Option<&str>) -> NodeId {
        node.uid = self.unique(prefix, node.word());
        self.graph.nodes.push(node);
        self.graph.nodes.len() - 1
    }

    fn unique(&mut self, prefix: Option<&str>, operator: &str) -> String {
        let wanted = match prefix {
            Some(prefix) => format!("{prefix}.{operator}"),
            None => operator.to_owned(),
        };
        let times = self.uids.entry(wanted.clone()).or_insert(0);
        *times += 1;
        match *times {
            1 => wanted,
            n => format!("{wanted}-{n}"),
        }
    }

    fn call(&mut self, at: NodeId, call: Call, prefix: Option<&str>) -> Option<NodeId> {
        let name = call.name.to_string();
        if MODIFIERS.contains(&name.as_str()) {
            self.modify(at, &call);
            return Some(at);
        }
        if self.unfinished(at) && self.graph.nodes[at].join.is_some() {
            return self.join(at, call);
        }
        if self.unfinished(at) && self.graph.nodes[at].kind == Kind::BroadcastJoin {
            return self.broadcast_join(at, call);
        }
        if self.graph.nodes[at].kind == Kind::Connect {
            return self.connected(at, call);
        }
        if BOUNDS.contains(&name.as_str()) {
            self.errors
                .at(&call.name, format!("`{name}` on `{}`, which is no join", self.graph.stream_name(at)))
                .help("stream.key_by(..).interval_join(other.key_by(..)).between(\"-5s\", \"10s\").with(|key, left, right| ..)");
            return None;
        }
        if ANSWER_MODIFIERS.contains(&name.as_str()) {
            return self.answers(at, call);
        }
        if name == "with" && self.graph.nodes[at].kind == Kind::LookupJoin {
            return self.looked_up(at, call);
        }
        if self.unfinished(at) || name == "with" || WINDOW_MODIFIERS.contains(&name.as_str()) {
            return self.window(at, call);
        }
        let Some(operator) = vocab::operator(&name) else {
            let error = self.errors.at(&call.name, format!("no operator named `{name}`"));
            let known = OPERATORS
                .iter()
                .map(|operator| operator.name)
                .chain(MODIFIERS.iter().copied())
                .chain(WINDOW_MODIFIERS.iter().copied())
                .chain(ANSWER_MODIFIERS.iter().copied());
            match similar(&name, known) {
                Some(meant) => error.help(format!("an operator with a similar name exists: `{meant}`")),
                None => error.help("the operators are listed in the documentation of `flow::pipeline`"),
            };
            return None;
        };
        if self.graph.nodes[at].kind == Kind::Sink {
            self.errors
                .at(&call.name, "nothing comes out of a sink")
                .help("to write a stream to two sinks, name it: `let s = ..; s.sink(..); s.sink(..);`");
            return None;
        }
        if self.several(at) {
            let (before, names) = (self.graph.operator_name(at), self.usual_names(at));
            self.errors
                .at(&call.name, format!("`{name}` after `{before}`, which has several outputs"))
                .help(format!("name each first: `let {names} = ..;`, and go on with the names"));
            return None;
        }
        let kind = match (operator.kind, self.graph.nodes[at].kind) {
            (Kind::Process, Kind::KeyBy) => Kind::KeyedProcess,
            (kind, _) => kind,
        };
        let mut node = node_of(kind, call.name.span(), Vec::new());
        node.inputs.push(at);
        if operator.args == [Arg::Streams] {
            if call.arguments.is_empty() {
                self.errors.at(&call.name, "`union` takes the streams to add").help(operator.usage);
            }
            for (argument, chain) in call.arguments.iter().zip(call.streams) {
                let usage = "let other = ..; stream.union(other)";
                node.inputs.extend(self.stream(chain, argument, usage, prefix));
            }
        } else if operator.args.first() == Some(&Arg::Stream) {
            self.arguments(operator.name, operator.args, operator.usage, &call);
            let mut arguments = call.arguments.into_iter();
            let other = call.streams.into_iter().next().flatten();
            let mut other = self.stream(other, &arguments.next()?, operator.usage, prefix)?;
            if operator.kind == Kind::BroadcastJoin {
                other = self.everywhere(other, call.name.span());
            }
            node.inputs.push(other);
            node.arguments = arguments.collect();
            node.join = (operator.kind == Kind::Join).then(|| Box::new(Join::of(operator.name)));
        } else {
            self.arguments(operator.name, arguments_of(operator, &call), operator.usage, &call);
            node.arguments = call.arguments;
            match operator.kind {
                Kind::Watermarks => self.strategy(&mut node),
                kind if kind.window() => self.windows(&mut node),
                _ => {}
            }
            if operator.kind == Kind::MapAsync {
                self.future(&node);
            }
            if operator.kind.asks() {
                let mut answers = Answers { left: operator.name == "left_lookup_join", ..Answers::default() };
                if operator.kind == Kind::LookupJoin && !node.arguments.is_empty() {
                    let mut lookup = node.arguments.remove(0);
                    span::texts(&mut lookup, &mut self.errors);
                    answers.lookup = Some(lookup);
                }
                node.answers = Some(Box::new(answers));
            }
            if operator.kind == Kind::WindowAll {
                return self.window_all(at, node, prefix);
            }
        }
        Some(self.add(node, prefix))
    }

    /// Whether the arguments are of the right number and shape.
    pub(super) fn arguments(&mut self, name: &str, args: &[Arg], usage: &str, call: &Call) -> bool {
        let (given, wanted) = (call.arguments.len(), args.len());
        if given != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            self.errors
                .at(&call.name, format!("`{name}` takes {wanted} argument{plural}, not {given}"))
                .help(usage);
            return false;
        }
        let mut right = true;
        for (argument, kind) in call.arguments.iter().zip(args) {
            let (Expr::Closure(closure), Arg::Function(parameters)) = (argument, kind) else { continue };
            if let Some(token) = &closure.asyncness {
                let error = self.errors.at(token, "a closure of an operator cannot be `async`");
                match name {
                    "map_async" => error
                        .help("return a future: `|record| async move { .. }`")
                        .note("the closure runs on a worker, which never waits; its futures run beside"),
                    _ => error
                        .help("remove `async`")
                        .note("operators run on workers, which never wait; sources and sinks do the I/O"),
                };
                right = false;
            } else if closure.inputs.len() != *parameters {
                let plural = if *parameters == 1 { "" } else { "s" };
                self.errors
                    .at(
                        &closure.inputs,
                        format!(
                            "the closure of `{name}` takes {parameters} parameter{plural}, not {}",
                            closure.inputs.len()
                        ),
                    )
                    .help(usage);
                right = false;
            }
        }
        right
    }

    /// Whether the node is a window of which nothing is computed yet.
    pub(super) fn unfinished(&self, node: NodeId) -> bool {
        let node = &self.graph.nodes[node];
        match &node.join {
            Some(join) => !join.with,
            None if node.kind == Kind::BroadcastJoin => node.arguments.len() < 3,
            None if node.kind == Kind::Connect => true,
            None => node.window.as_ref().is_some_and(|window| window.function.is_none()),
        }
    }

    fn modify(&mut self, at: NodeId, call: &Call) {
        let name = call.name.to_string();
        if self.graph.nodes[at].kind == Kind::Branch {
            let (operator, stream) = (self.graph.operator_name(at), self.graph.stream_name(at));
            self.errors
                .at(&call.name, format!("`{name}` of `{stream}`, which is one output of `{operator}`"))
                .help(format!("say it of the operator: `.{operator}(..).{name}(..)`"));
            return;
        }
        let wanted = usize::from(!matches!(name.as_str(), "disable_chaining" | "start_new_chain"));
        if call.arguments.len() != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            let usage = if wanted == 0 { format!(".{name}()") } else { format!(".{name}(..)") };
            self.errors
                .at(
                    &call.name,
                    format!("`{name}` takes {wanted} argument{plural}, not {}", call.arguments.len()),
                )
                .help(usage);
            return;
        }
        let argument = call.arguments.first();
        match (name.as_str(), argument) {
            ("disable_chaining", _) => self.graph.nodes[at].disable_chaining = true,
            ("start_new_chain", _) => self.graph.nodes[at].start_new_chain = true,
            ("parallelism", Some(value)) => {
                self.graph.nodes[at].parallelism = integer(value, "parallelism", &mut self.errors);
                self.graph.nodes[at].parallelism_span = Some(value.span());
            }
            ("uid" | "name", Some(value)) => match text(value) {
                Some(text) if text.is_empty() => {
                    self.errors.at(value, format!("an empty {name}")).help(format!(".{name}(\"orders\")"));
                }
                Some(text) if name == "uid" && text.contains(|c: char| c == '/' || c.is_whitespace()) => {
                    let better = text.replace(|c: char| c == '/' || c.is_whitespace(), "-");
                    self.errors
                        .at(value, "a uid with a blank or `/` in it")
                        .help(format!(".uid(\"{better}\")"))
                        .note("uids are written in plans, logs and checkpoints, where `/` separates helper functions");
                }
                Some(text) if name == "uid" => {
                    self.graph.nodes[at].uid = text;
                    self.graph.nodes[at].uid_span = Some(value.span());
                }
                Some(text) => self.graph.nodes[at].name = Some(text),
                None => {
                    self.errors
                        .at(value, format!("a {name} is a string literal"))
                        .help(format!(".{name}(\"orders\")"));
                }
            },
            ("on_error", Some(value)) => {
                let mut policy = Policy::Fail;
                choose(value, "error policy", &Policy::NAMES, &mut policy, &mut self.errors);
                self.graph.nodes[at].on_error = Some(policy);
                self.graph.nodes[at].on_error_span = Some(call.name.span());
            }
            _ => {}
        }
    }
}

pub(super) fn node_of(kind: Kind, span: Span, arguments: Vec<Expr>) -> Node {
    Node {
        kind,
        span,
        arguments,
        inputs: Vec::new(),
        uid: String::new(),
        name: None,
        uid_span: None,
        parallelism: None,
        parallelism_span: None,
        disable_chaining: false,
        start_new_chain: false,
        on_error: None,
        on_error_span: None,
        part: None,
        input: None,
        branch: None,
        named: None,
        window: None,
        join: None,
        answers: None,
    }
}

/// The name without the mark of a raw identifier.
pub(super) fn plain(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

pub(super) fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}
