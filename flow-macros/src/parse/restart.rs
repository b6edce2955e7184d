//! `restart = none` and `restart(fixed_delay(attempts = 3, delay = "1s"))`.

use std::time::Duration;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit};

use super::{
    options::{count, listed, time, unknown},
    setting::{Setting, Value, each_value},
};
use crate::diag::Errors;

/// What to do when the job fails. What is `None` is as usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Restart {
    Never,
    FixedDelay {
        attempts: Option<u32>,
        delay: Option<Duration>,
    },
    Exponential {
        attempts: Option<u32>,
        initial: Option<Duration>,
        max: Option<Duration>,
        multiplier: Option<f64>,
        reset_after: Option<Duration>,
    },
    FailureRate {
        max: u32,
        per: Duration,
        delay: Option<Duration>,
    },
}

const NAMES: &[&str] = &["none", "fixed_delay", "exponential", "failure_rate"];
const WHAT: &str = "restart strategy";

/// `restart = none`.
pub(super) fn named(value: &Expr, errors: &mut Errors) -> Option<Restart> {
    match value {
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => strategy(name, Vec::new(), errors),
            None => {
                not_one(value, errors);
                None
            }
        },
        Expr::Call(call) => {
            let name = call.func.to_token_stream().to_string();
            errors
                .at(value, "a restart strategy with settings stands in parentheses")
                .help(format!("restart({name}(..))"));
            None
        }
        _ => {
            not_one(value, errors);
            None
        }
    }
}

fn not_one(value: &Expr, errors: &mut Errors) {
    errors.at(value, "this is no restart strategy").help(format!("it is one of {}", strategies()));
}

fn strategies() -> String {
    listed(NAMES)
}

/// `restart(fixed_delay(..))`; `option` is the word `restart`.
pub(super) fn parse(option: &Ident, settings: Vec<Setting>, errors: &mut Errors) -> Option<Restart> {
    let Ok([Setting { name, value }]) = <[Setting; 1]>::try_from(settings) else {
        errors
            .at(option, "`restart` takes one strategy")
            .help(format!("it is one of {}, as in `restart(fixed_delay(attempts = 3))`", strategies()));
        return None;
    };
    match value {
        None => strategy(&name, Vec::new(), errors),
        Some(Value::List(settings)) => strategy(&name, settings, errors),
        Some(Value::Expr(_)) => {
            errors
                .at(&name, "`restart` takes a strategy with its settings in parentheses")
                .help(format!("restart(fixed_delay({name} = ..))"));
            None
        }
    }
}

fn strategy(name: &Ident, settings: Vec<Setting>, errors: &mut Errors) -> Option<Restart> {
    match name.to_string().as_str() {
        "none" => {
            each_value(settings, "setting of `none`", &[], errors, |_, _, _| {});
            Some(Restart::Never)
        }
        "fixed_delay" => {
            let (mut attempts, mut delay) = (None, None);
            let known = ["attempts", "delay"];
            each_value(
                settings,
                "setting of `fixed_delay`",
                &known,
                errors,
                |name, value, errors| match name {
                    "attempts" => attempts = count(value, name, 1..=u32::MAX, errors),
                    _ => delay = time(value, name, Duration::ZERO, errors),
                },
            );
            Some(Restart::FixedDelay { attempts, delay })
        }
        "exponential" => Some(exponential(settings, errors)),
        "failure_rate" => {
            let (mut max, mut per, mut delay, mut bad) = (None, None, None, false);
            let known = ["max", "per", "delay"];
            each_value(
                settings,
                "setting of `failure_rate`",
                &known,
                errors,
                |name, value, errors| match name {
                    "max" => max = count(value, name, 1..=u32::MAX, errors).or_else(|| bad_is(&mut bad)),
                    "per" => {
                        per =
                            time(value, name, Duration::from_millis(1), errors).or_else(|| bad_is(&mut bad));
                    }
                    _ => delay = time(value, name, Duration::ZERO, errors),
                },
            );
            match (max, per) {
                (Some(max), Some(per)) => Some(Restart::FailureRate { max, per, delay }),
                _ => {
                    if !bad {
                        errors
                            .at(name, "a failure rate is so many failures in so much time")
                            .help("failure_rate(max = 3, per = \"5m\")");
                    }
                    None
                }
            }
        }
        _ => {
            unknown(name, WHAT, NAMES, errors);
            None
        }
    }
}

/// Notes that something was said, though wrongly.
fn bad_is<T>(bad: &mut bool) -> Option<T> {
    *bad = true;
    None
}

fn exponential(settings: Vec<Setting>, errors: &mut Errors) -> Restart {
    let (mut attempts, mut initial, mut max, mut multiplier, mut reset_after) =
        (None, None, None, None, None);
    let mut longest = None;
    let known = ["attempts", "initial", "max", "multiplier", "reset_after"];
    each_value(settings, "setting of `exponential`", &known, errors, |name, value, errors| match name {
        "attempts" => attempts = count(value, name, 1..=u32::MAX, errors),
        "initial" => initial = time(value, name, Duration::from_millis(1), errors),
        "max" => {
            max = time(value, name, Duration::from_millis(1), errors);
            longest = Some(value.clone());
        }
        "multiplier" => multiplier = factor(value, errors),
        _ => reset_after = time(value, name, Duration::ZERO, errors),
    });
    match (initial, max, longest) {
        (Some(first), Some(max), Some(value)) if max < first => {
            errors
                .at(&value, "the longest pause is shorter than the first")
                .help("raise `max`, or lower `initial`");
        }
        // A first pause above the usual limit is meant.
        (Some(first), None, _) if first > Duration::from_secs(60) => max = initial,
        _ => {}
    }
    Restart::Exponential { attempts, initial, max, multiplier, reset_after }
}

fn factor(value: &Expr, errors: &mut Errors) -> Option<f64> {
    let number = match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<f64>().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse::<f64>().ok(),
        _ => None,
    };
    let number = number.filter(|number| (1.0..=1e6).contains(number));
    if number.is_none() {
        errors.at(value, "`multiplier` is no number from 1 to 1000000").help("multiplier = 1.5");
    }
    number
}
