//! Spans of time written as text, as in `tumbling("10s")`: checked here, and given to the runtime as a `Duration`.

use std::time::Duration;

use proc_macro2::Literal;
use quote::quote_spanned;
use syn::{
    Expr, ExprCall, ExprMethodCall,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

use super::options::{duration, no_duration, text as literal};
use crate::{
    diag::Errors,
    names::{here, private_at},
};

/// Functions and methods of strategies, windows, triggers and evictors that are given spans of time.
const TAKES_SPANS: &[&str] = &[
    "bounded",
    "with_idleness",
    "with_interval",
    "with_max_ahead",
    "with_alignment",
    "tumbling",
    "sliding",
    "session",
    "offset",
    "back",
    "continuous_event_time",
    "continuous_processing_time",
    "time",
    "delay",
    "fixed_delay",
    "exponential",
    "up_to",
    "cache",
];

/// Of these, each argument is longer than nothing.
const POSITIVE: &[&str] = &[
    "tumbling",
    "sliding",
    "session",
    "continuous_event_time",
    "continuous_processing_time",
    "with_alignment",
    "timeout",
];

/// Replaces all texts that are given to functions that take spans of time.
pub(crate) fn texts(value: &mut Expr, errors: &mut Errors) {
    Texts(errors).visit_expr_mut(value);
}

/// Replaces `value`, if it is a text.
pub(crate) fn text(value: &mut Expr, name: &str, errors: &mut Errors) {
    let Some(text) = literal(value) else { return };
    let span = match duration(&text) {
        Some(Duration::ZERO) if POSITIVE.contains(&name) => {
            errors.at(&*value, format!("`{name}` of no time")).help(format!("{name}(\"10s\")"));
            Duration::ZERO
        }
        Some(span) => span,
        None => {
            no_duration(value, &text, errors);
            Duration::ZERO
        }
    };
    let milliseconds = Literal::u64_unsuffixed(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    *value =
        Expr::Verbatim(quote_spanned!(value.span()=> ::core::time::Duration::from_millis(#milliseconds)));
}

/// Replaces `value` by an offset, if it is a text such as `"-5s"` or `"10s"`, and returns its milliseconds.
pub(crate) fn signed(value: &mut Expr, errors: &mut Errors) -> Option<i64> {
    let text = literal(value)?;
    let (sign, length) = match text.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let Some(length) = duration(length) else {
        no_duration(value, &text, errors);
        return None;
    };
    // Half of what there is, so that bounds can be added to times.
    let millis = sign * i64::try_from(length.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 2);
    let (private, number) = (private_at(here(value.span())), Literal::i64_unsuffixed(millis));
    *value = Expr::Verbatim(quote_spanned!(value.span()=> #private::Offset::from_millis(#number)));
    Some(millis)
}

struct Texts<'e>(&'e mut Errors);

impl VisitMut for Texts<'_> {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        if let Some(name) = name(&call.func)
            && TAKES_SPANS.contains(&name.as_str())
        {
            call.args.iter_mut().for_each(|argument| text(argument, &name, self.0));
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        let name = call.method.to_string();
        if name == "offset" {
            self.offset(call);
        }
        if TAKES_SPANS.contains(&name.as_str()) {
            call.args.iter_mut().for_each(|argument| text(argument, &name, self.0));
        }
        visit_mut::visit_expr_method_call_mut(self, call);
    }
}

impl Texts<'_> {
    /// An offset is shorter than from one window to the next, or it would be another offset.
    fn offset(&mut self, call: &ExprMethodCall) {
        let Expr::Call(windows) = &*call.receiver else { return };
        let back = |argument: &Expr| match argument {
            Expr::Call(back) => back.args.first().and_then(literal),
            argument => literal(argument),
        };
        let Some(argument) = call.args.first() else { return };
        let step = windows.args.last().and_then(literal).and_then(|text| duration(&text));
        let offset = back(argument).and_then(|text| duration(&text));
        if let (Some(step), Some(offset)) = (step, offset)
            && offset >= step
            && !step.is_zero()
        {
            self.0
                .at(argument, format!("an offset of {offset:?} where a window begins every {step:?}"))
                .help("the offset is shorter than from one window to the next");
        }
    }
}

fn name(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => path.path.segments.last().map(|name| name.ident.to_string()),
        _ => None,
    }
}
