//! Windows and watermarks in a chain of methods: what is said of a window before it is a node.

use syn::Expr;

use super::{
    Node, NodeId, Window,
    build::{Builder, node_of, text},
    window::root_name,
};
use crate::{
    diag::similar,
    parse::{Call, Time, span},
    vocab::{Arg, Kind, MODIFIERS, OF_ALL, Operator, WINDOW_FUNCTIONS, WINDOW_MODIFIERS},
};

/// The arguments of an operator, as far as they depend on the first: `.watermarks(ingestion())` reads no records.
pub(super) fn arguments_of(operator: &Operator, call: &Call) -> &'static [Arg] {
    let ingestion = operator.kind == Kind::Watermarks && call.arguments.first().is_some_and(is_ingestion);
    if ingestion && call.arguments.len() == 1 { &[Arg::Value] } else { operator.args }
}

fn is_ingestion(strategy: &Expr) -> bool {
    root_name(strategy).is_some_and(|name| name == "ingestion")
}

impl Builder {
    /// The strategy of a `.watermarks(..)`.
    pub(super) fn strategy(&mut self, node: &mut Node) {
        self.value(
            node,
            "a time alone does not say what watermarks there are",
            "watermarks(bounded",
            ", |record| ..)",
        );
        if self.graph.options.time == Time::Processing {
            self.errors
                .at_span(node.span, "`watermarks` in a pipeline in processing time")
                .help("remove it, or `time = processing`")
                .note("windows go by the clock here, and not by the time of records");
        }
        if let [strategy, closure] = &node.arguments[..]
            && is_ingestion(strategy)
        {
            self.errors
                .at(closure, "a timestamp of the record beside `ingestion`, which is when it enters")
                .help(".watermarks(ingestion())");
        }
    }

    /// The windows of a `.window(..)`.
    pub(super) fn windows(&mut self, node: &mut Node) {
        let meant = format!("{}(tumbling", node.kind.name());
        self.value(node, "a time alone does not say what windows there are", &meant, ")");
        let Some(assigner) = node.arguments.pop() else { return };
        let all = node.kind == Kind::WindowAll;
        let window = Window::of(assigner, all, self.graph.options.time == Time::Processing);
        node.window = Some(Box::new(window));
    }

    /// The windows of a join.
    pub(super) fn windows_of_join(&mut self, mut assigner: Expr) -> Window {
        self.first(&mut assigner, "a time alone does not say what windows there are", "window(tumbling", ")");
        Window::of(assigner, false, false)
    }

    /// Texts in the first argument are spans of time. A text alone says too little.
    fn value(&mut self, node: &mut Node, error: &str, meant: &str, rest: &str) {
        if let Some(value) = node.arguments.first_mut() {
            self.first(value, error, meant, rest);
        }
    }

    fn first(&mut self, value: &mut Expr, error: &str, meant: &str, rest: &str) {
        span::texts(value, &mut self.errors);
        if let Some(text) = text(value) {
            self.errors.at(value, error).help(format!(".{meant}(\"{text}\"){rest}"));
        }
    }

    /// A window of all records: they come together in one subtask.
    pub(super) fn window_all(
        &mut self,
        at: NodeId,
        mut window: Node,
        prefix: Option<&str>,
    ) -> Option<NodeId> {
        let before = self.graph.nodes[at].kind;
        if before == Kind::KeyBy {
            self.errors
                .at_span(window.span, "`window_all` on a keyed stream, whose key it would not look at")
                .help("write `.window(..)` for windows of each key, or remove `.key_by(..)`");
            return None;
        }
        if before.exchange() && before != Kind::Global {
            let before = before.name();
            self.errors
                .at_span(window.span, format!("`window_all` undoes the `{before}` before it"))
                .help(format!("remove `.{before}(..)`, or put an operator in between"));
            return None;
        }
        if before != Kind::Global {
            let mut together = node_of(Kind::Global, window.span, Vec::new());
            together.inputs.push(at);
            window.inputs = vec![self.add(together, prefix)];
        }
        window.parallelism = Some(1);
        Some(self.add(window, prefix))
    }

    /// What is said of a window: how it fires, what is computed of it, and what its results look like.
    pub(super) fn window(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        let name = call.name.to_string();
        if let Some(function) = WINDOW_FUNCTIONS.iter().find(|function| function.name == name) {
            let (args, usage) = self.of_all(at, &name).unwrap_or((function.args, function.usage));
            self.arguments(function.name, args, usage, &call);
            let node = &mut self.graph.nodes[at];
            let window = node.window.as_mut()?;
            window.function = Some((function, call.name.span()));
            match function.args {
                [Arg::Value] => window.aggregate = call.arguments.pop(),
                [Arg::Value, _] if call.arguments.len() == 2 => {
                    window.initial = Some(call.arguments.remove(0));
                    node.arguments = call.arguments;
                }
                _ => node.arguments = call.arguments,
            }
            return Some(at);
        }
        let open = self.unfinished(at);
        if name == "with" {
            return self.with(at, call, open);
        }
        if !WINDOW_MODIFIERS.contains(&name.as_str()) {
            let functions = WINDOW_FUNCTIONS.iter().map(|function| function.name);
            let known = functions.chain(WINDOW_MODIFIERS.iter().copied()).chain(MODIFIERS.iter().copied());
            let error = self.errors.at(&call.name, format!("`{name}` cannot be computed of a window"));
            match similar(&name, known) {
                Some(meant) => error.help(format!("something with a similar name exists: `{meant}`")),
                None => error.help(
                    "compute something of the window first: `.count()`, `.sum(..)`, `.min(..)`, `.max(..)`, `.aggregate(..)`, `.reduce(..)` or `.process(..)`",
                ),
            };
            return None;
        }
        if !open {
            let (stream, kind) = (self.graph.stream_name(at), self.graph.nodes[at].kind);
            let error = self.errors.at(&call.name, format!("`{name}` on `{stream}`, which is no window"));
            let dots = if name == "late_output" { "" } else { ".." };
            match kind.window() {
                true => error.help(format!(
                    "put `.{name}({dots})` before what is computed of the window: `.{}(..).{name}({dots}).count()`",
                    kind.name()
                )),
                false => error.help(format!("add a window: `.window(..).{name}({dots}).count()`")),
            };
            return None;
        }
        if name == "late_output" {
            self.arguments(&name, &[], ".late_output()", &call);
            let window = self.graph.nodes[at].window.as_mut()?;
            if window.late_output.replace(call.name.span()).is_some() {
                self.twice(&call);
            }
            return Some(at);
        }
        self.window_setting(at, call)
    }

    /// A trigger, an evictor or the allowed lateness.
    pub(super) fn window_setting(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        let name = call.name.to_string();
        self.arguments(&name, &[Arg::Value], &format!(".{name}(..)"), &call);
        let mut value = call.arguments.pop()?;
        match name.as_str() {
            "allowed_lateness" => span::text(&mut value, "allowed_lateness", &mut self.errors),
            _ => span::texts(&mut value, &mut self.errors),
        }
        let window = self.graph.nodes[at].window.as_mut()?;
        let setting = match name.as_str() {
            "trigger" => &mut window.trigger,
            "evictor" => &mut window.evictor,
            _ => &mut window.lateness,
        };
        if setting.replace((call.name.span(), value)).is_some() {
            self.twice(&call);
        }
        Some(at)
    }

    /// What results of a window look like.
    fn with(&mut self, at: NodeId, mut call: Call, open: bool) -> Option<NodeId> {
        let finished = self.graph.nodes[at].window.as_ref().filter(|window| !window.with);
        if open || finished.is_none() {
            self.errors
                .at(&call.name, "`with` gives form to the results of a window, and there are none here")
                .help(".window(..).count().with(|key, window, count| ..)");
            return None;
        }
        if finished.is_some_and(|window| window.is("process")) {
            self.errors
                .at(&call.name, "`with` after `process`, whose closure is given key and window already")
                .help("return from the closure of `process` what is to come out");
            return None;
        }
        let usual: (&[Arg], _) = (&[Arg::Function(3)], ".with(|key, window, result| ..)");
        let (args, usage) = self.of_all(at, "with").unwrap_or(usual);
        self.arguments("with", args, usage, &call);
        let node = &mut self.graph.nodes[at];
        node.arguments.append(&mut call.arguments);
        node.window.as_mut()?.with = true;
        Some(at)
    }

    /// The arguments where there is no key, if it makes a difference.
    fn of_all(&self, at: NodeId, name: &str) -> Option<(&'static [Arg], &'static str)> {
        if self.graph.nodes[at].kind != Kind::WindowAll {
            return None;
        }
        OF_ALL.iter().find(|(of, ..)| *of == name).map(|(_, args, usage)| (*args, *usage))
    }
}
