//! `checkpoint = "10s"` and `checkpoint(interval = "10s", timeout = "10m", ..)`.

use std::time::Duration;

use syn::Expr;

use super::{
    options::{choose, count, duration, no_duration, text, time},
    setting::{Setting, each_value},
};
use crate::diag::Errors;

/// What a pipeline says of its checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint {
    pub(crate) interval: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) min_pause: Option<Duration>,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) tolerable_failures: Option<u32>,
    pub(crate) retain: Option<u32>,
    pub(crate) compression: Option<Compression>,
    pub(crate) on_cancel: Option<Retention>,
    pub(crate) on_success: Option<Retention>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    Retain,
    Delete,
}

const NAMES: &[&str] = &[
    "interval",
    "timeout",
    "min_pause",
    "max_concurrent",
    "tolerable_failures",
    "retain",
    "compression",
    "on_cancel",
    "on_success",
];

const LEAST: Duration = Duration::from_millis(10);

pub(super) fn parse(settings: Vec<Setting>, errors: &mut Errors) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    let mut pause = None;
    let compressions = [("none", Compression::None), ("zstd", Compression::Zstd)];
    let retentions = [("retain", Retention::Retain), ("delete", Retention::Delete)];
    each_value(settings, "checkpoint option", NAMES, errors, |name, value, errors| match name {
        "interval" => checkpoint.interval = interval(value, errors),
        "timeout" => checkpoint.timeout = time(value, name, LEAST, errors),
        "min_pause" => {
            checkpoint.min_pause = time(value, name, Duration::ZERO, errors);
            pause = Some(value.clone());
        }
        "max_concurrent" => checkpoint.max_concurrent = count(value, name, 1..=100, errors),
        "tolerable_failures" => checkpoint.tolerable_failures = count(value, name, 0..=u32::MAX, errors),
        "retain" => checkpoint.retain = count(value, name, 1..=1_000_000, errors),
        "compression" => chosen(value, "compression", &compressions, &mut checkpoint.compression, errors),
        "on_cancel" => chosen(value, "retention", &retentions, &mut checkpoint.on_cancel, errors),
        "on_success" => chosen(value, "retention", &retentions, &mut checkpoint.on_success, errors),
        _ => {}
    });
    if let (Some(pause), Some(max)) = (pause, checkpoint.max_concurrent)
        && max > 1
        && checkpoint.min_pause.is_some_and(|pause| pause > Duration::ZERO)
    {
        errors
            .at(&pause, format!("a minimum pause leaves one checkpoint at a time, and not {max}"))
            .help("remove `min_pause`, or `max_concurrent`");
    }
    checkpoint
}

fn chosen<T: Copy>(
    value: &Expr,
    what: &str,
    known: &[(&str, T)],
    choice: &mut Option<T>,
    errors: &mut Errors,
) {
    let known: Vec<_> = known.iter().map(|(name, value)| (*name, Some(*value))).collect();
    choose(value, what, &known, choice, errors);
}

/// The interval, which may stand for all: `checkpoint = "10s"`.
pub(super) fn interval(value: &Expr, errors: &mut Errors) -> Option<Duration> {
    let Some(text) = text(value) else {
        errors.at(value, "an interval is a string literal").help("checkpoint = \"10s\"");
        return None;
    };
    match duration(&text) {
        Some(interval) if interval >= LEAST => Some(interval),
        Some(_) => {
            errors.at(value, "a checkpoint interval below 10ms").help("checkpoint = \"10ms\"");
            None
        }
        None => {
            no_duration(value, &text, errors);
            None
        }
    }
}
