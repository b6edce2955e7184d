//! `#[pipeline(name = "..", guarantee = exactly_once, ..)]`.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{
    Expr, ExprLit, Lit, Token,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
};

use super::{Shape, Signature};
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
    pub(crate) checkpoint: Option<Duration>,
    pub(crate) parallelism: Option<usize>,
    pub(crate) max_parallelism: Option<usize>,
    /// Where `parallelism` stands, for errors about it.
    pub(crate) parallelism_span: Span,
}

const NAMES: &[&str] =
    &["name", "guarantee", "mode", "on_error", "checkpoint", "parallelism", "max_parallelism"];

/// What decides how the operators of a helper function are generated, and so has to be known where it is written.
const OF_HELPERS: &[&str] = &["guarantee", "mode", "on_error"];

struct Setting {
    name: Ident,
    value: Option<Expr>,
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Setting { name, value })
    }
}

pub(super) fn parse(tokens: TokenStream, signature: &Signature, errors: &mut Errors) -> Options {
    let mut options = Options {
        name: signature.name.to_string().trim_start_matches("r#").to_owned(),
        // What people expect where it can be had; what cannot give it is refused, with the word to write.
        guarantee: Guarantee::ExactlyOnce,
        mode: Mode::Streaming,
        on_error: Policy::Fail,
        checkpoint: None,
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
    let mut seen: Vec<Ident> = Vec::new();
    for Setting { name, value } in settings {
        if helper && NAMES.iter().any(|known| name == known) && !OF_HELPERS.iter().any(|known| name == known)
        {
            errors
                .at(&name, format!("a helper function from stream to stream has no `{name}` of its own"))
                .help("set it on the pipeline that calls it");
            continue;
        }
        if seen.contains(&name) {
            errors.at(&name, format!("option `{name}` is set twice")).help("remove one of the two");
            continue;
        }
        let Some(value) = value else {
            errors.at(&name, format!("option `{name}` has no value")).help(format!("{name} = .."));
            continue;
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
            "checkpoint" => options.checkpoint = interval(&value, errors),
            "parallelism" => {
                options.parallelism_span = span(&value);
                options.parallelism = integer(&value, "parallelism", errors);
            }
            "max_parallelism" => options.max_parallelism = integer(&value, "max_parallelism", errors),
            unknown => {
                let error = errors.at(&name, format!("no option named `{unknown}`"));
                match similar(unknown, NAMES.iter().copied()) {
                    Some(meant) => error.help(format!("an option with a similar name exists: `{meant}`")),
                    None => error.help(format!("the options are {}", listed(NAMES))),
                };
            }
        }
        seen.push(name);
    }
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

fn interval(value: &Expr, errors: &mut Errors) -> Option<Duration> {
    let Some(text) = text(value) else {
        errors.at(value, "an interval is a string literal").help("checkpoint = \"10s\"");
        return None;
    };
    match duration(&text) {
        Some(interval) if interval >= Duration::from_millis(10) => Some(interval),
        Some(_) => {
            errors.at(value, "a checkpoint interval below 10ms").help("checkpoint = \"10ms\"");
            None
        }
        None => {
            errors
                .at(value, format!("`{text}` is no duration"))
                .help("write a number and a unit, as in \"500ms\", \"10s\", \"5m\" or \"1h\"");
            None
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let milliseconds = match text[digits..].trim() {
        "ms" => number,
        "s" => number.checked_mul(1000)?,
        "m" | "min" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
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

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn text(value: &Expr) -> Option<String> {
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
