//! `#[pipeline(name = "..", guarantee = exactly_once, ..)]`.

use std::{ops::RangeInclusive, time::Duration};

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit, Token, parse::Parser, punctuated::Punctuated};

use super::{
    Checkpoint, Restart, Shape, Signature, checkpoint, restart,
    setting::{Setting, Value, each},
};
use crate::diag::{Errors, similar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "these are the field's names")]
pub(crate) enum Guarantee {
    ExactlyOnce,
    AtLeastOnce,
    AtMostOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Streaming,
    Batch,
}

/// By which time windows go, where they do not say it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// That of the records.
    Event,
    /// That of the clock.
    Processing,
}

/// What becomes of a record whose closure fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Fail,
    Skip,
}

impl Policy {
    pub(crate) const NAMES: [(&str, Policy); 2] = [("fail", Policy::Fail), ("skip", Policy::Skip)];
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) guarantee: Guarantee,
    pub(crate) mode: Mode,
    pub(crate) on_error: Policy,
    pub(crate) time: Time,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) restart: Option<Restart>,
    pub(crate) parallelism: Option<usize>,
    pub(crate) max_parallelism: Option<usize>,
    /// Where `parallelism` stands, for errors about it.
    pub(crate) parallelism_span: Span,
}

const NAMES: &[&str] = &[
    "name",
    "guarantee",
    "mode",
    "on_error",
    "time",
    "checkpoint",
    "restart",
    "parallelism",
    "max_parallelism",
];

/// What decides how the operators of a helper function are generated, and so has to be known where it is written.
const OF_HELPERS: &[&str] = &["guarantee", "mode", "on_error", "time"];

pub(super) fn parse(tokens: TokenStream, signature: &Signature, errors: &mut Errors) -> Options {
    let mut options = Options {
        name: signature.name.to_string().trim_start_matches("r#").to_owned(),
        // What people expect where it can be had; what cannot give it is refused, with the word to write.
        guarantee: Guarantee::ExactlyOnce,
        mode: Mode::Streaming,
        on_error: Policy::Fail,
        time: Time::Event,
        checkpoint: Checkpoint::default(),
        restart: None,
        parallelism: None,
        max_parallelism: None,
        parallelism_span: Span::call_site(),
    };
    let settings = match Punctuated::<Setting, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(settings) => settings,
        Err(error) => {
            errors.syn(&error);
            return options;
        }
    };
    let helper = matches!(signature.shape, Shape::Part { .. });
    each(settings, "option", errors, |name, value, errors| {
        let known = NAMES.contains(&name.to_string().as_str());
        if helper && known && !OF_HELPERS.contains(&name.to_string().as_str()) {
            errors
                .at(name, format!("a helper function from stream to stream has no `{name}` of its own"))
                .help("set it on the pipeline that calls it");
            return;
        }
        let value = match value {
            Value::Expr(value) => *value,
            Value::List(settings) if name == "checkpoint" => {
                options.checkpoint = checkpoint::parse(settings, errors);
                return;
            }
            Value::List(settings) if name == "restart" => {
                options.restart = restart::parse(name, settings, errors);
                return;
            }
            Value::List(_) if known => {
                errors
                    .at(name, format!("option `{name}` takes one value, and no list"))
                    .help(format!("{name} = .."));
                return;
            }
            Value::List(_) => {
                unknown(name, "option", NAMES, errors);
                return;
            }
        };
        match name.to_string().as_str() {
            "name" => {
                if let Some(text) = text(&value) {
                    if text.is_empty() {
                        errors.at(&value, "a job's name cannot be empty").help("name = \"orders\"");
                    }
                    options.name = text;
                } else {
                    errors.at(&value, "a job's name is a string literal").help("name = \"orders\"");
                }
            }
            "guarantee" => {
                let known = [
                    ("exactly_once", Guarantee::ExactlyOnce),
                    ("at_least_once", Guarantee::AtLeastOnce),
                    ("at_most_once", Guarantee::AtMostOnce),
                ];
                choose(&value, "guarantee", &known, &mut options.guarantee, errors);
            }
            "mode" => {
                let known = [("streaming", Mode::Streaming), ("batch", Mode::Batch)];
                choose(&value, "mode", &known, &mut options.mode, errors);
            }
            "on_error" => {
                choose(&value, "error policy", &Policy::NAMES, &mut options.on_error, errors);
            }
            "time" => {
                let known = [("event", Time::Event), ("processing", Time::Processing)];
                choose(&value, "time", &known, &mut options.time, errors);
            }
            "checkpoint" => options.checkpoint.interval = checkpoint::interval(&value, errors),
            "restart" => options.restart = restart::named(&value, errors),
            "parallelism" => {
                options.parallelism_span = span(&value);
                options.parallelism = integer(&value, "parallelism", errors);
            }
            "max_parallelism" => options.max_parallelism = integer(&value, "max_parallelism", errors),
            _ => unknown(name, "option", NAMES, errors),
        }
    });
    if let (Some(parallelism), Some(max)) = (options.parallelism, options.max_parallelism)
        && parallelism > max
    {
        errors
            .at_span(
                options.parallelism_span,
                format!("the parallelism {parallelism} is above the max parallelism {max}"),
            )
            .help("lower it, or raise `max_parallelism`");
    }
    options
}

/// A number of subtasks.
pub(crate) fn integer(value: &Expr, what: &str, errors: &mut Errors) -> Option<usize> {
    if let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = value
        && let Ok(number) = number.base10_parse::<usize>()
    {
        if (1..=1 << 15).contains(&number) {
            return Some(number);
        }
        errors.at(value, format!("`{what}` of {number}")).help("write a number from 1 to 32768");
        return None;
    }
    errors
        .at(value, format!("`{what}` is an integer literal"))
        .help("what is only known when the job starts is said on the command line: `--parallelism 4`");
    None
}

/// A number within limits; `what` is what it sets.
pub(super) fn count(
    value: &Expr,
    what: &str,
    limits: RangeInclusive<u32>,
    errors: &mut Errors,
) -> Option<u32> {
    if let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = value
        && let Ok(number) = number.base10_parse::<u32>()
        && limits.contains(&number)
    {
        return Some(number);
    }
    let (from, to) = (limits.start(), limits.end());
    errors
        .at(value, format!("`{what}` is no number from {from} to {to}"))
        .help(format!("{what} = {}", 3.max(*from).min(*to)));
    None
}

/// A time of at least `least`; `what` is what it sets.
pub(super) fn time(value: &Expr, what: &str, least: Duration, errors: &mut Errors) -> Option<Duration> {
    let Some(text) = text(value) else {
        errors.at(value, format!("`{what}` is a string literal")).help(format!("{what} = \"10s\""));
        return None;
    };
    match duration(&text) {
        Some(time) if time >= least => Some(time),
        Some(_) => {
            let least = if least.as_millis() == 1 { "1ms" } else { "10ms" };
            errors.at(value, format!("`{what}` below {least}")).help(format!("{what} = \"{least}\""));
            None
        }
        None => {
            no_duration(value, &text, errors);
            None
        }
    }
}

pub(super) fn no_duration(value: &Expr, text: &str, errors: &mut Errors) {
    errors
        .at(value, format!("`{text}` is no duration"))
        .help("write a number and a unit, as in \"500ms\", \"10s\", \"5m\" or \"1h\"");
}

/// Names what there is instead.
pub(super) fn unknown(name: &impl ToTokens, what: &str, known: &[&str], errors: &mut Errors) {
    let written = name.to_token_stream().to_string();
    let error = errors.at(name, format!("no {what} named `{written}`"));
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    match similar(&written, known.iter().copied()) {
        Some(meant) => error.help(format!("{article} {what} with a similar name exists: `{meant}`")),
        None if known.is_empty() => error.help("remove it"),
        None => {
            let (one, rest) = what
                .split_once(" of ")
                .map_or((what, String::new()), |(one, rest)| (one, format!(" of {rest}")));
            error.help(format!("the {one}s{rest} are {}", listed(known)))
        }
    };
}

pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let milliseconds = match text[digits..].trim() {
        "ms" => number,
        "s" => number.checked_mul(1000)?,
        "m" | "min" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        "d" => number.checked_mul(86_400_000)?,
        _ => return None,
    };
    Some(Duration::from_millis(milliseconds))
}

pub(crate) fn choose<T: Copy>(
    value: &Expr,
    what: &str,
    known: &[(&str, T)],
    choice: &mut T,
    errors: &mut Errors,
) {
    let name = match value {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    };
    match name.as_deref().and_then(|name| known.iter().find(|(known, _)| *known == name)) {
        Some((_, chosen)) => *choice = *chosen,
        None => {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            let written = name.unwrap_or_else(|| value.to_token_stream().to_string());
            let error = errors.at(value, format!("no {what} named `{written}`"));
            match similar(&written, names.iter().copied()) {
                Some(meant) => error.help(format!("a {what} with a similar name exists: `{meant}`")),
                None => error.help(format!("it is one of {}", listed(&names))),
            };
        }
    }
}

pub(super) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

fn span(value: &Expr) -> Span {
    value.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(duration("2 m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("10"), None);
        assert_eq!(duration("s"), None);
        assert_eq!(duration("10 parsecs"), None);
    }
}
