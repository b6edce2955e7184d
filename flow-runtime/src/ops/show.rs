//! How the commands print what they find.

use std::time::{Duration, SystemTime};

use clap::ValueEnum;

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// What a command has to say, and whether all is well.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) good: bool,
}

/// `1.5 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 || unit == "TiB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    unreachable!("the last unit takes all")
}

/// `2026-01-31T12:00:00Z`, from milliseconds since 1970.
pub(super) fn time(milliseconds: u64) -> String {
    match SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)) {
        // Later than the formatter knows.
        Some(_) if milliseconds > 253_402_300_799_000 => format!("{milliseconds} ms"),
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => format!("{milliseconds} ms"),
    }
}

/// `1 part`, `2 parts`.
pub(super) fn several(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Columns of text, each as wide as its widest cell.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        format!("{}\n", line.trim_end())
    };
    let rows = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    std::iter::once(line(head)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_for_people() {
        assert_eq!([0, 1023, 1536, 5 << 30].map(size), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
        assert_eq!(time(1_000), "1970-01-01T00:00:01Z");
        assert_eq!(time(u64::MAX), format!("{} ms", u64::MAX));
    }

    #[test]
    fn columns_line_up() {
        let rows = [["1".to_owned(), "long".to_owned()], ["23".to_owned(), "x".to_owned()]];
        assert_eq!(table(["ID", "WHAT"], &rows), "ID  WHAT\n1   long\n23  x\n");
    }
}
