//! What came of all faults.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use crate::target::{Count, Kind};

#[derive(Default)]
pub(crate) struct Report {
    /// By kind of fault and sink.
    faults: BTreeMap<(&'static str, Kind), u64>,
    cases: BTreeMap<Kind, Cases>,
}

#[derive(Default)]
struct Cases {
    jobs: u64,
    starts: u64,
    count: Count,
}

impl Report {
    pub(crate) fn fault(&mut self, fault: &'static str, kind: Kind) {
        *self.faults.entry((fault, kind)).or_default() += 1;
    }

    pub(crate) fn case(&mut self, kind: Kind, starts: u64, count: Count) {
        let cases = self.cases.entry(kind).or_default();
        cases.jobs += 1;
        cases.starts += starts;
        cases.count.add(count);
    }

    /// Adds what another one found.
    pub(crate) fn merge(&mut self, other: Report) {
        for (fault, times) in other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        for (kind, found) in other.cases {
            let cases = self.cases.entry(kind).or_default();
            cases.jobs += found.jobs;
            cases.starts += found.starts;
            cases.count.add(found.count);
        }
    }

    pub(crate) fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Whether nothing was lost or repeated, and something was tried.
    pub(crate) fn is_exact(&self) -> bool {
        !self.cases.is_empty() && self.cases.values().all(|c| c.count.lost == 0 && c.count.duplicated == 0)
    }

    pub(crate) fn table(&self, elapsed: Duration) -> String {
        let mut text = String::new();
        let line = |text: &mut String, cells: &[String]| {
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        };
        let kinds: Vec<Kind> = self.cases.keys().copied().collect();
        let mut head = vec!["faults".to_owned()];
        head.extend(kinds.iter().map(|kind| kind.title().to_owned()));
        head.push("all".to_owned());
        line(&mut text, &head);
        line(&mut text, &vec!["---".to_owned(); head.len()]);
        let names: std::collections::BTreeSet<&str> = self.faults.keys().map(|(name, _)| *name).collect();
        let row = |text: &mut String, name: &str, of: &dyn Fn(Kind) -> u64| {
            let mut cells = vec![name.to_owned()];
            cells.extend(kinds.iter().map(|kind| of(*kind).to_string()));
            cells.push(kinds.iter().map(|kind| of(*kind)).sum::<u64>().to_string());
            line(text, &cells);
        };
        for name in names {
            row(&mut text, name, &|kind| self.faults.get(&(name, kind)).copied().unwrap_or(0));
        }
        let all = |kind| self.faults.iter().filter(|((_, k), _)| *k == kind).map(|(_, n)| n).sum();
        row(&mut text, "**all faults**", &all);
        row(&mut text, "jobs", &|kind| self.cases[&kind].jobs);
        row(&mut text, "starts", &|kind| self.cases[&kind].starts);
        row(&mut text, "records", &|kind| self.cases[&kind].count.records);
        row(&mut text, "**lost**", &|kind| self.cases[&kind].count.lost);
        row(&mut text, "**duplicated**", &|kind| self.cases[&kind].count.duplicated);
        let _ = writeln!(text, "\n{} faults in {} s.", self.faults(), elapsed.as_secs());
        text
    }
}
