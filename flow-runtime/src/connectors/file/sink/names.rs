//! The names of files: readable ones for what is finished, hidden and unguessable ones until then.

use crate::{checkpoint::CheckpointId, sink::SinkContext};

/// The longest name of a job or an operator that a hidden name contains in full; file names end at 255 bytes.
const LONGEST: usize = 80;

/// What all hidden files of a sink begin with, and those of no other: `.flow~job~operator~`.
pub(super) fn owner(cx: &SinkContext) -> String {
    format!(".flow~{}~{}~", encoded(&cx.job), encoded(&cx.operator))
}

/// An in-progress file. The attempt is a random number, so that nobody else makes a file of this name.
pub(super) fn hidden(cx: &SinkContext, number: u64) -> String {
    format!("{}{}~{:016x}~{number}", owner(cx), cx.subtask, cx.attempt)
}

/// A finished file: `part-<subtask>-<checkpoint>-<number>.<extension>`.
pub(super) fn finished(
    prefix: &str,
    extension: &str,
    subtask: usize,
    checkpoint: CheckpointId,
    number: usize,
) -> String {
    format!("{prefix}-{subtask}-{checkpoint}-{number}.{extension}")
}

/// The checkpoint in the name of a finished file.
pub(super) fn checkpoint(name: &str, prefix: &str, extension: &str) -> Option<CheckpointId> {
    let numbers = name.strip_prefix(prefix)?.strip_prefix('-')?.strip_suffix(extension)?.strip_suffix('.')?;
    let mut numbers = numbers.split('-').map(|number| number.parse::<u64>().ok());
    let (_subtask, checkpoint, _number) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(CheckpointId(checkpoint))
}

/// A name without `~` and `/`, different for different names.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => text.push(byte.into()),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    if text.len() > LONGEST {
        text.truncate(LONGEST - 18);
        text += &format!("%%{:016x}", fnv1a(name.as_bytes()));
    }
    text
}

/// A hash that is the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_tell_sinks_apart() {
        let cx = |job: &str, operator: &str| SinkContext {
            subtask: 3,
            parallelism: 4,
            attempt: 0xabc,
            ..SinkContext::new(job, operator)
        };
        assert_eq!(
            hidden(&cx("word/count", "counts.sink"), 5),
            ".flow~word%2Fcount~counts.sink~3~0000000000000abc~5"
        );
        assert!(!hidden(&cx("a", "b2"), 0).starts_with(&owner(&cx("a", "b"))));
        assert!(!hidden(&cx("a~b", "c"), 0).starts_with(&owner(&cx("a", "b"))));
        let (long, longer) = ("x".repeat(300), "x".repeat(301));
        assert_ne!(owner(&cx(&long, "a")), owner(&cx(&longer, "a")));
        assert!(hidden(&cx(&long, &long), u64::MAX).len() <= 255);
    }

    #[test]
    fn finished_names_are_read_back() {
        let name = finished("part", "tsv", 1, CheckpointId(17), 2);
        assert_eq!(name, "part-1-17-2.tsv");
        assert_eq!(checkpoint(&name, "part", "tsv"), Some(CheckpointId(17)));
        for other in
            ["part-1-17.tsv", "part-1-17-2.csv", "part-1-x-2.tsv", "parts-1-17-2.tsv", "part-1-17-2-3.tsv"]
        {
            assert_eq!(checkpoint(other, "part", "tsv"), None, "{other}");
        }
    }
}
