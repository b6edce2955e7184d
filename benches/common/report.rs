//! `target/bench/report.md`: a section per benchmark, with its tables and a chart. Each benchmark leaves its section in
//! a file beside the report, and writes the report anew from all that are there.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::chart::{Group, draw};

/// What a benchmark has to say.
#[derive(Serialize, Deserialize)]
pub(crate) struct Section {
    name: String,
    about: String,
    tables: Vec<Table>,
    #[serde(skip)]
    groups: Vec<Group>,
}

/// A table: its title, a sentence below it, the head and the rows.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Table {
    title: String,
    note: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(
        title: impl Into<String>,
        note: impl Into<String>,
        head: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Table { title: title.into(), note: note.into(), head, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        assert_eq!(self.rows.last().map(Vec::len), Some(self.head.len()), "a cell for each column");
        self
    }

    /// For who watches.
    pub(crate) fn print(&self) {
        println!("{}\n", self.markdown());
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("### {}\n\n{}\n\n{}", self.title, self.note, line(&self.head));
        text += &format!("|---|{}\n", "---:|".repeat(self.head.len() - 1));
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

impl Section {
    /// The section of the benchmark of this name, and what the report says about it.
    pub(crate) fn new(name: &str, about: &str) -> Self {
        Section { name: name.to_owned(), about: about.to_owned(), tables: Vec::new(), groups: Vec::new() }
    }

    pub(crate) fn table(&mut self, table: Table) -> &mut Self {
        self.tables.push(table);
        self
    }

    /// Bars that the section's chart shows together.
    pub(crate) fn chart(&mut self, group: Group) -> &mut Self {
        self.groups.push(group);
        self
    }

    fn markdown(&self) -> String {
        let chart = format!("{}.svg", self.name);
        let chart = if folder().join(&chart).exists() {
            format!("![{}]({chart})\n\n", self.name)
        } else {
            String::new()
        };
        let tables: Vec<String> = self.tables.iter().map(Table::markdown).collect();
        format!("## {}\n\n{}\n\n{chart}{}", self.name, self.about, tables.join("\n"))
    }

    /// Writes the section, its chart, and the report of all sections that there are.
    pub(crate) fn write(self) {
        let folder = folder();
        fs::create_dir_all(&folder).expect("room for the report");
        let write =
            |name: &str, text: String| fs::write(folder.join(name), text).expect("room for the report");
        write(&format!("{}.json", self.name), serde_json::to_string_pretty(&self).expect("text"));
        if !self.groups.is_empty() {
            write(&format!("{}.svg", self.name), draw(&self.name, &self.groups));
        }
        let entries = fs::read_dir(&folder).expect("the folder was made").filter_map(Result::ok);
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        let sections = files.iter().map(|file| {
            let text = fs::read_to_string(file).expect("a section");
            let section: Section = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{} is not a section of a report: {error}", file.display()));
            section.markdown()
        });
        let report = format!("# Benchmarks\n\n{}\n\n{}", machine(), sections.collect::<Vec<_>>().join("\n"));
        write("report.md", report);
        println!("{}", folder.join("report.md").display());
    }
}

/// `bench` in the target directory.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench")
}

/// What it ran on.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{cores} cores of {model}. Ratios are the medians of those of the rounds; above 1 is faster than the floor."
    )
}
