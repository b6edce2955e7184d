//! What options become, and what is said of those that are wrong.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::ItemFn;

use crate::{
    diag::Errors,
    parse::{self, Compression, Options, Restart, Retention},
};

fn options(text: &str) -> Result<Options, Errors> {
    let function: ItemFn = syn::parse_str("fn p() { source(range(0..9)).sink(out); }").expect("a function");
    let tokens: TokenStream = text.parse().expect("tokens");
    parse::pipeline(tokens, &function).map(|pipeline| pipeline.options)
}

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn all_of_a_checkpoint() {
    let checkpoint = options(
        "checkpoint(interval = \"10s\", timeout = \"5m\", min_pause = \"1s\", max_concurrent = 1,
            tolerable_failures = 0, retain = 5, compression = zstd, on_cancel = delete, on_success = retain)",
    )
    .expect("right")
    .checkpoint;
    assert_eq!((checkpoint.interval, checkpoint.timeout), (Some(s(10)), Some(s(300))));
    assert_eq!((checkpoint.min_pause, checkpoint.max_concurrent), (Some(s(1)), Some(1)));
    assert_eq!((checkpoint.tolerable_failures, checkpoint.retain), (Some(0), Some(5)));
    assert_eq!(checkpoint.compression, Some(Compression::Zstd));
    assert_eq!(checkpoint.on_cancel, Some(Retention::Delete));
    assert_eq!(checkpoint.on_success, Some(Retention::Retain));
    let short = options("checkpoint = \"10s\"").expect("right").checkpoint;
    assert_eq!((short.interval, short.timeout), (Some(s(10)), None));
}

#[test]
fn every_strategy() {
    let restart = |text| options(text).expect("right").restart;
    let fixed = |attempts, delay| Some(Restart::FixedDelay { attempts, delay });
    assert_eq!(restart(""), None);
    assert_eq!(restart("restart = none"), Some(Restart::Never));
    assert_eq!(restart("restart(none)"), Some(Restart::Never));
    assert_eq!(restart("restart = fixed_delay"), fixed(None, None));
    assert_eq!(restart("restart(fixed_delay(attempts = 3, delay = \"1s\"))"), fixed(Some(3), Some(s(1))));
    assert_eq!(
        restart("restart(exponential(initial = \"2m\", multiplier = 1.5, reset_after = \"1h\"))"),
        Some(Restart::Exponential {
            attempts: None,
            initial: Some(s(120)),
            max: Some(s(120)),
            multiplier: Some(1.5),
            reset_after: Some(s(3600)),
        })
    );
    assert_eq!(
        restart("restart(failure_rate(max = 3, per = \"5m\", delay = \"10s\"))"),
        Some(Restart::FailureRate { max: 3, per: s(300), delay: Some(s(10)) })
    );
}

#[test]
fn each_mistake_is_one_error_at_its_place() {
    for (text, at, words) in [
        (
            "checkpoint(intervall = \"1s\")",
            "intervall",
            "a checkpoint option with a similar name exists: `interval`",
        ),
        ("checkpoint(colour = 1)", "colour", "the checkpoint options are `interval`, "),
        ("checkpoint(timeout = \"10\")", "\"10\"", "`10` is no duration"),
        ("checkpoint(timeout = \"0s\")", "\"0s\"", "`timeout` below 10ms"),
        ("checkpoint(timeout = 10)", "10", "`timeout` is a string literal"),
        ("checkpoint(interval = \"1ms\")", "\"1ms\"", "a checkpoint interval below 10ms"),
        ("checkpoint(max_concurrent = 0)", "0", "`max_concurrent` is no number from 1 to 100"),
        ("checkpoint(retain = 0)", "0", "`retain` is no number from 1 to "),
        ("checkpoint(compression = gzip)", "gzip", "it is one of `none`, `zstd`"),
        ("checkpoint(on_cancel = remove)", "remove", "it is one of `retain`, `delete`"),
        ("checkpoint(timeout)", "timeout", "checkpoint option `timeout` has no value"),
        ("checkpoint(timeout(s = 1))", "timeout", "takes one value"),
        ("checkpoint(retain = 1, retain = 2)", "retain", "is set twice"),
        (
            "checkpoint(interval = \"1s\"), checkpoint = \"2s\"",
            "checkpoint",
            "option `checkpoint` is set twice",
        ),
        ("checkpoint(min_pause = \"1s\", max_concurrent = 2)", "\"1s\"", "leaves one checkpoint at a time"),
        ("parallelism(n = 4)", "parallelism", "takes one value"),
        ("restart = never", "never", "no restart strategy named `never`"),
        ("restart = failure_rate", "failure_rate", "failure_rate(max = 3, per = \"5m\")"),
        ("restart = 3", "3", "this is no restart strategy"),
        ("restart = fixed_delay(3)", "fixed_delay", "restart(fixed_delay(..))"),
        ("restart()", "restart", "`restart` takes one strategy"),
        ("restart(attempts = 3)", "attempts", "restart(fixed_delay(attempts = ..))"),
        ("restart(fixed_dely(attempts = 3))", "fixed_dely", "with a similar name exists: `fixed_delay`"),
        ("restart(fixed_delay(attempt = 3))", "attempt", "with a similar name exists: `attempts`"),
        (
            "restart(fixed_delay(per = \"1s\"))",
            "per",
            "the settings of `fixed_delay` are `attempts`, `delay`",
        ),
        ("restart(fixed_delay(attempts = 0))", "0", "`attempts` is no number from 1"),
        ("restart(none(delay = \"1s\"))", "delay", "remove it"),
        ("restart(failure_rate(max = 3, per = \"0s\"))", "\"0s\"", "`per` below 1ms"),
        ("restart(exponential(multiplier = 0.5))", "0.5", "`multiplier` is no number from 1"),
        ("restart(exponential(initial = \"2s\", max = \"1s\"))", "\"1s\"", "shorter than the first"),
    ] {
        let errors = options(text).expect_err(text).shown();
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(&format!("{at}: ")), "{text}: {}", errors[0]);
        assert!(errors[0].contains(words) && errors[0].contains("\nhelp: "), "{text}: {}", errors[0]);
    }
}
