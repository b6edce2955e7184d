//! How long a pipeline of 10, 50 and 100 operators takes to build, beside the same dataflow written by hand on Timely:
//! clean (the dependencies are built before) and after one closure has changed, in debug and release; and how many
//! lines of LLVM's intermediate representation the debug build gives the compiler to do.

mod common;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use common::{Section, Table, size};

/// A tenth of the operators: the same steps in both, as a user would write them.
const PART: usize = 10;

fn main() {
    let rounds = size("FLOW_BENCH_ROUNDS", 3) as usize;
    let mut section = Section::new(
        "build_time",
        "Of each ten operators six are maps, two filters, and two a sum per key. Seconds by the clock / of processor \
         time, medians; `clean` is all of the job's package and its link, with the dependencies built before; `changed` \
         is after one closure was.",
    );
    for operators in [10, 50, 100] {
        let note = format!("Medians of {rounds} rounds.");
        let head = [
            "",
            "debug, clean",
            "debug, changed",
            "release, clean",
            "release, changed",
            "lines of LLVM IR, debug",
        ];
        let mut table = Table::new(format!("{operators} operators"), note, head);
        for (name, source) in [("flow", flow as fn(usize, u64) -> String), ("by hand on Timely", timely)] {
            let package = Package::new(&format!("{}-{operators}", &name[..2]), operators, source);
            let mut cells = vec![name.to_owned()];
            for profile in ["dev", "release"] {
                let [clean, changed] = package.times(profile, rounds);
                cells.extend(
                    [clean, changed].map(|Took { clock, processor }| format!("{clock:.1} / {processor:.1}")),
                );
            }
            cells.push(package.lines_of_ir().to_string());
            table.row(cells);
        }
        table.print();
        section.table(table);
    }
    section.write();
}

/// A pipeline of so many operators; one of its closures adds `changing`.
fn flow(operators: usize, changing: u64) -> String {
    let mut text = String::from(
        "use flow::{collection, file, pipeline};\n\n#[pipeline(guarantee = at_least_once)]\nfn job() {\n    \
         let s0 = source(collection::range(0..1_000_000));\n",
    );
    for part in 0..operators / PART {
        let base = part as u64 * 10 + 1;
        let added = if part == 0 { changing } else { base };
        let _ = write!(
            text,
            "    let s{} = s{part}\n        .map(|x| x + {added})\n        .filter(|x| x % {} != 0)\n        .map(|x| x * 3)\n        \
             .map(|x| x ^ (x >> 3))\n        .map(|x| x + {})\n        .filter(|x| x % {} != 1)\n        \
             .map(|x| (x % 100, x))\n        .key_by(|(key, _)| *key)\n        .sum(|(_, x)| *x % 1000)\n        \
             .map(|(key, sum)| key + sum);\n",
            part + 1,
            base + 10,
            base + 1,
            base + 12
        );
    }
    let last = operators / PART;
    text + &format!("    s{last}.sink(file::to_lines(\"out\"));\n}}\n\n")
        + "fn main() -> std::process::ExitCode {\n    flow::run(job)\n}\n"
}

/// The same on Timely: a stream of numbers, exchanged by key before each sum.
fn timely(operators: usize, changing: u64) -> String {
    let mut text = String::from(
        "use std::collections::HashMap;\nuse timely::container::CapacityContainerBuilder;\nuse timely::dataflow::{\
         channels::pact::Exchange, operators::{Inspect, ToStream, generic::operator::Operator, core::{Filter, Map}}};\n\n\
         type Numbers = CapacityContainerBuilder<Vec<u64>>;\n\nfn main() {\n    \
         timely::execute_from_args(std::env::args(), |worker| {\n        worker.dataflow::<u64, _, _>(|scope| {\n            \
         let s = (0..1_000_000u64).to_stream(scope).container::<Vec<u64>>();\n",
    );
    for part in 0..operators / PART {
        let base = part as u64 * 10 + 1;
        let added = if part == 0 { changing } else { base };
        let _ = write!(
            text,
            "            let s = s\n                .map(|x: u64| x + {added})\n                .container::<Vec<u64>>()\n                \
             .filter(|x: &u64| x % {} != 0)\n                .map(|x: u64| x * 3)\n                \
             .container::<Vec<u64>>()\n                .map(|x: u64| x ^ (x >> 3))\n                \
             .container::<Vec<u64>>()\n                .map(|x: u64| x + {})\n                .container::<Vec<u64>>()\n                \
             .filter(|x: &u64| x % {} != 1)\n                .map(|x: u64| (x % 100, x))\n                \
             .container::<Vec<(u64, u64)>>();\n            \
             let s = s.unary::<Numbers, _, _, _>(Exchange::new(|(key, _): &(u64, u64)| *key), \"sum\", |_, _| {{\n                \
             let mut sums = HashMap::<u64, u64>::new();\n                move |input, output| {{\n                    \
             input.for_each(|time, data| {{\n                        let mut session = output.session(&time);\n                        \
             for (key, x) in data.drain(..) {{\n                            let sum = sums.entry(key).or_default();\n                            \
             *sum += x % 1000;\n                            session.give(key + *sum);\n                        }}\n                    \
             }});\n                }}\n            }});\n",
            base + 10,
            base + 1,
            base + 12
        );
    }
    text + "            s.inspect(|x| println!(\"{x}\"));\n        });\n    })\n    .unwrap();\n}\n"
}

/// Seconds that a build took. Where other work shares the machine, the processor's are the ones to compare.
#[derive(Clone, Copy)]
struct Took {
    clock: f64,
    processor: f64,
}

/// Processor time, in seconds, of all processes that this one has started and waited for, and of theirs: proc_pid_stat(5).
fn children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, after_name) = stat.rsplit_once(')').expect("the name of the program in brackets");
    let ticks = |field: usize| -> u64 {
        after_name
            .split_ascii_whitespace()
            .nth(field - 3)
            .and_then(|ticks| ticks.parse().ok())
            .expect("ticks")
    };
    (ticks(16) + ticks(17)) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// A package that depends on `flow` or Timely as a user's does.
struct Package {
    folder: PathBuf,
    operators: usize,
    source: fn(usize, u64) -> String,
}

impl Package {
    fn new(name: &str, operators: usize, source: fn(usize, u64) -> String) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build-time").join(name);
        fs::create_dir_all(folder.join("src")).expect("room in the target directory");
        let root = env!("CARGO_MANIFEST_DIR");
        let manifest = format!(
            "[package]\nname = \"job-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             flow.path = {root:?}\ntimely = \"*\"\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest).expect("room in the target directory");
        // The same versions as here.
        fs::copy(Path::new(root).join("Cargo.lock"), folder.join("Cargo.lock")).expect("the versions");
        let package = Package { folder, operators, source };
        package.write(0);
        package
    }

    fn write(&self, changing: u64) {
        let text = (self.source)(self.operators, changing);
        fs::write(self.folder.join("src/main.rs"), text).expect("room in the target directory");
    }

    fn cargo(&self, arguments: &[&str]) -> Took {
        let (began, before) = (Instant::now(), children());
        // One directory for all packages: their dependencies are the same.
        let output = Command::new("cargo")
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.with_file_name("target"))
            .env("CARGO_INCREMENTAL", if arguments.contains(&"release") { "0" } else { "1" })
            .output()
            .expect("cargo starts");
        assert!(
            output.status.success(),
            "{}: cargo {arguments:?}:\n{}",
            self.folder.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Took { clock: began.elapsed().as_secs_f64(), processor: children() - before }
    }

    fn name(&self) -> String {
        format!("job-{}", self.folder.file_name().and_then(|name| name.to_str()).expect("a name"))
    }

    /// Of a clean build, and of one after a closure has changed.
    fn times(&self, profile: &str, rounds: usize) -> [Took; 2] {
        let (build, name) = (["build", "--offline", "--profile", profile], self.name());
        self.cargo(&build);
        let mut times = [Vec::new(), Vec::new()];
        for round in 1..=rounds as u64 {
            self.cargo(&["clean", "--offline", "--profile", profile, "--package", &name]);
            times[0].push(self.cargo(&build));
            self.write(round);
            times[1].push(self.cargo(&build));
        }
        times.map(|times| {
            let median = |seconds: fn(&Took) -> f64| {
                let mut seconds: Vec<f64> = times.iter().map(seconds).collect();
                seconds.sort_by(f64::total_cmp);
                seconds[seconds.len() / 2]
            };
            Took { clock: median(|took| took.clock), processor: median(|took| took.processor) }
        })
    }

    fn lines_of_ir(&self) -> usize {
        let name = self.name();
        self.cargo(&["clean", "--offline", "--package", &name]);
        self.cargo(&["rustc", "--offline", "--", "--emit=llvm-ir", "-Ccodegen-units=1"]);
        let deps = self.folder.with_file_name("target").join("debug/deps");
        let prefix = format!("{}-", name.replace('-', "_"));
        let files =
            fs::read_dir(deps).expect("what was built").filter_map(Result::ok).map(|entry| entry.path());
        let is_own = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "ll")
                && path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .is_some_and(|name| name.starts_with(&prefix))
        };
        files.filter(is_own).map(|file| fs::read_to_string(file).expect("text").lines().count()).sum()
    }
}
