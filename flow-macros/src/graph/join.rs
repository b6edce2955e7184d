//! A join, as it is put together by a chain of methods.

use proc_macro2::Span;
use syn::{Expr, spanned::Spanned};

use super::{
    Node, NodeId,
    build::{Builder, node_of, plain},
};
use crate::{
    diag::{Errors, similar},
    parse::{Call, span},
    vocab::{Arg, JOIN_MODIFIERS, Kind, MODIFIERS},
};

/// Of which records without a partner something is made, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    Inner,
    Left,
    Right,
    Full,
}

/// What a pipeline says of a join.
#[derive(Debug)]
pub(crate) struct Join {
    /// The method that began it.
    pub(crate) word: &'static str,
    pub(crate) matching: Matching,
    /// By which distance in time records belong together, if not by their windows.
    pub(crate) between: Option<Between>,
    /// Whether it is said what becomes of the pairs, which is all that the node's arguments say.
    pub(crate) with: bool,
}

/// From when to when a right record belongs to a left one, relative to the time of the left one.
#[derive(Debug)]
pub(crate) struct Between {
    pub(crate) span: Span,
    pub(crate) lower: Bound,
    pub(crate) upper: Bound,
}

/// One end of [`Between`].
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) value: Expr,
    span: Span,
    /// In milliseconds, if it is a literal.
    millis: Option<i64>,
    pub(crate) exclusive: Option<Span>,
}

/// What may follow when the pairs are known.
const WITH: &str = ".with(|key, left, right| ..)";

impl Join {
    pub(super) fn of(word: &'static str) -> Self {
        let matching = match word {
            "left_join" => Matching::Left,
            "right_join" => Matching::Right,
            "full_join" => Matching::Full,
            _ => Matching::Inner,
        };
        Join { word, matching, between: None, with: false }
    }

    /// The values of which it is made when the job is wired.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        self.between.iter().flat_map(|between| [&between.lower.value, &between.upper.value])
    }

    /// Whether windows are another way to say which records meet than this word has promised.
    fn by_interval(&self) -> bool {
        self.word == "interval_join"
    }

    /// The method chain has ended too early.
    pub(super) fn unfinished(&self, node: &Node, errors: &mut Errors) {
        if node.window.is_none() && self.between.is_none() {
            self.says_nothing_of_time(node.span, errors);
        } else {
            errors
                .at_span(node.span, "a join of whose pairs nothing is made")
                .help(format!("go on with `{WITH}`"));
        }
    }

    /// Without a bound in time every record would be kept for ever.
    fn says_nothing_of_time(&self, at: Span, errors: &mut Errors) {
        let error = errors.at_span(at, format!("`{}` does not say which records of a key meet", self.word));
        if self.by_interval() {
            error.help(format!(".{}(..).between(\"-5s\", \"10s\"){WITH}", self.word));
        } else {
            error.help(
                "add `.window(tumbling(\"10s\"))` for those in one window, or `.between(\"-5s\", \"10s\")` for those close in time",
            );
        }
    }
}

impl Between {
    /// Whether any time is in between, as far as literals tell.
    fn check(&self, errors: &mut Errors) {
        let (Some(lower), Some(upper)) = (self.lower.millis, self.upper.millis) else { return };
        if lower > upper {
            errors
                .at_span(self.lower.span, "the lower bound is above the upper one")
                .help("the bounds are relative to the time of the left record: `.between(\"-5s\", \"10s\")`");
        } else if lower + i64::from(self.lower.exclusive.is_some())
            > upper - i64::from(self.upper.exclusive.is_some())
        {
            let span = self.upper.exclusive.or(self.lower.exclusive).unwrap_or(self.span);
            errors
                .at_span(span, "between these bounds there is no time")
                .help("remove it, or widen `.between(..)`");
        }
    }
}

impl Builder {
    /// What is said of a join: which records meet, and what becomes of the pairs.
    pub(super) fn join(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        let name = call.name.to_string();
        let node = &self.graph.nodes[at];
        let join = node.join.as_ref()?;
        let (windowed, bounded, by_interval) =
            (node.window.is_some(), join.between.is_some(), join.by_interval());
        match name.as_str() {
            "window" if bounded || by_interval => {
                self.errors
                    .at(&call.name, "a join between bounds in time has no windows")
                    .help("for the pairs of each window write `.join(..).window(..)`");
                return None;
            }
            "between" if windowed => {
                self.errors
                    .at(&call.name, "a join in windows has no bounds")
                    .help("write either `.window(..)` or `.between(..)`");
                return None;
            }
            "window" if windowed => {
                self.twice(&call);
                return None;
            }
            "between" if bounded => {
                self.twice(&call);
                return None;
            }
            "window" => {
                self.arguments("window", &[Arg::Value], ".window(tumbling(\"10s\"))", &call);
                let assigner = call.arguments.pop()?;
                let windows = self.windows_of_join(assigner);
                if windows.timeless() {
                    self.errors
                        .at(&windows.assigner, "a join in windows that do not go by time")
                        .help(".window(tumbling(\"10s\")), `sliding` or `session`");
                    return None;
                }
                self.graph.nodes[at].window = Some(Box::new(windows));
            }
            "between" => {
                self.arguments("between", &[Arg::Value, Arg::Value], ".between(\"-5s\", \"10s\")", &call);
                let (upper, lower) = (call.arguments.pop()?, call.arguments.pop()?);
                let between =
                    Between { span: call.name.span(), lower: self.bound(lower), upper: self.bound(upper) };
                self.graph.nodes[at].join.as_mut()?.between = Some(between);
            }
            "exclusive_lower" | "exclusive_upper" => {
                self.arguments(&name, &[], &format!(".{name}()"), &call);
                let join = self.graph.nodes[at].join.as_mut()?;
                let Some(between) = &mut join.between else {
                    self.errors
                        .at(&call.name, format!("`{name}` of no bounds"))
                        .help(format!(".between(\"-5s\", \"10s\").{name}()"));
                    return None;
                };
                let bound = if name == "exclusive_lower" { &mut between.lower } else { &mut between.upper };
                bound.exclusive = Some(call.name.span());
            }
            "trigger" | "allowed_lateness" => {
                if !windowed {
                    let error = self.errors.at(&call.name, format!("`{name}` of a join that has no windows"));
                    if bounded {
                        error.help("remove it").note(
                            "a join between bounds in time drops the records that are behind the watermark",
                        );
                    } else {
                        error.help(format!(".window(..).{name}(..)"));
                    }
                    return None;
                }
                return self.window_setting(at, call);
            }
            "with" => {
                self.arguments("with", &[Arg::Function(3)], WITH, &call);
                let node = &mut self.graph.nodes[at];
                node.arguments.append(&mut call.arguments);
                let (span, join) = (node.span, node.join.as_mut()?);
                join.with = true;
                if let Some(between) = &join.between {
                    between.check(&mut self.errors);
                } else if !windowed {
                    join.says_nothing_of_time(span, &mut self.errors);
                }
            }
            _ => {
                let word = join.word;
                let error = self
                    .errors
                    .at(&call.name, format!("`{name}` of a join of whose pairs nothing is made yet"));
                match similar(&name, JOIN_MODIFIERS.iter().chain(MODIFIERS).copied()) {
                    Some(meant) => error.help(format!("something with a similar name exists: `{meant}`")),
                    None if windowed || bounded => error.help(format!("go on with `{WITH}` first")),
                    None if by_interval => {
                        error.help(format!("first `.{word}(..).between(\"-5s\", \"10s\"){WITH}`"))
                    }
                    None => error.help(format!("first `.{word}(..).window(tumbling(\"10s\")){WITH}`")),
                };
                return None;
            }
        }
        Some(at)
    }

    /// The stream that a join with a small stream keeps in every subtask.
    pub(super) fn everywhere(&mut self, small: NodeId, span: Span) -> NodeId {
        if self.graph.nodes[small].kind == Kind::Broadcast {
            return small;
        }
        let name = self.graph.bindings.iter().find(|binding| binding.node == small);
        let prefix = name.map(|binding| plain(&binding.name));
        let mut broadcast = node_of(Kind::Broadcast, span, Vec::new());
        broadcast.inputs.push(small);
        self.add(broadcast, prefix.as_deref())
    }

    /// What becomes of each record and what is kept for its key.
    pub(super) fn broadcast_join(&mut self, at: NodeId, mut call: Call) -> Option<NodeId> {
        let (name, usage) = (call.name.to_string(), ".with(|record, other| ..)");
        if name != "with" {
            self.errors
                .at(&call.name, format!("`{name}` of a join of which nothing is made yet"))
                .help(format!("go on with `{usage}` first"));
            return None;
        }
        self.arguments("with", &[Arg::Function(2)], usage, &call);
        self.graph.nodes[at].arguments.append(&mut call.arguments);
        (!self.unfinished(at)).then_some(at)
    }

    pub(super) fn twice(&mut self, call: &Call) {
        self.errors.at(&call.name, format!("`{}` is set twice", call.name)).help("remove one of the two");
    }

    /// One end of `.between(..)`.
    fn bound(&mut self, mut value: Expr) -> Bound {
        let span = value.span();
        let millis = span::signed(&mut value, &mut self.errors);
        Bound { value, span, millis, exclusive: None }
    }
}
