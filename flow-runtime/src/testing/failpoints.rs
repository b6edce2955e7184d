//! Switches for the places where a process may die. Needs feature `failpoints`, which no release build has.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failpoint::Point;

/// The names of all places, in the order in which a checkpoint passes them.
#[must_use]
pub fn names() -> &'static [&'static str] {
    Point::NAMES
}

/// The process dies, without a word and without any clean-up, when it reaches `name` for the `nth` time, counted from
/// 1.
///
/// # Errors
/// When there is no place of that name.
pub fn die_at(name: &str, nth: u64) -> Result<(), String> {
    known(name)?;
    let reached = AtomicU64::new(0);
    fail::cfg_callback(name, move || {
        if reached.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            std::process::abort();
        }
    })
}

/// The operation at `name` fails from the `nth` time on, `times` times.
///
/// # Errors
/// When there is no place of that name.
pub fn fail_at(name: &str, nth: u64, times: u64) -> Result<(), String> {
    known(name)?;
    fail::cfg(name, &format!("{}*off->{times}*return->off", nth.saturating_sub(1)))
}

/// As `FLOW_FAILPOINTS` says: `sink.committed=die@2;store.part=fail@3x5`.
///
/// # Errors
/// When the variable cannot be understood.
pub fn from_environment() -> Result<(), String> {
    let Ok(text) = std::env::var("FLOW_FAILPOINTS") else { return Ok(()) };
    for setting in text.split(';').filter(|setting| !setting.is_empty()) {
        let wrong =
            || format!("FLOW_FAILPOINTS: `{setting}` is neither `NAME=die@N` nor `NAME=fail@NxTIMES`");
        let (name, action) = setting.split_once('=').ok_or_else(wrong)?;
        let (action, counts) = action.split_once('@').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        match action {
            "die" => die_at(name, number(counts)?)?,
            "fail" => {
                let (nth, times) = counts.split_once('x').ok_or_else(wrong)?;
                fail_at(name, number(nth)?, number(times)?)?;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(())
}

fn known(name: &str) -> Result<(), String> {
    match names().contains(&name) {
        true => Ok(()),
        false => Err(format!("no failpoint named `{name}`; there are {}", names().join(", "))),
    }
}
