//! Several ways to do the same work, in turns, each in a process of its own: then the peak of the memory is that of this
//! way alone, and no way finds the allocator as another has left it.

use std::{
    env, fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::{
    chart::{Bar, Group},
    report::{Section, Table},
    size,
};

/// Tells a process which way it is to measure: the index of the case and of the way.
const CHILD: &str = "FLOW_BENCH_CHILD";

/// A benchmark: cases, each of which is done in several ways.
pub(crate) struct Bench {
    name: &'static str,
    about: &'static str,
    rounds: usize,
    cases: Vec<Case>,
}

/// Some work, and the ways to do it.
pub(crate) struct Case {
    title: String,
    records: u64,
    /// Records that come before those that are measured.
    before: u64,
    ways: Vec<Way>,
}

struct Way {
    name: String,
    /// Over so many records, for who asks.
    run: Box<dyn Fn(u64) -> Measured>,
}

/// What a process reports.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Measured {
    seconds: f64,
    cpu_seconds: f64,
    /// Of the whole process, in bytes.
    peak_memory: u64,
    /// Stands for the result.
    check: u64,
}

impl Bench {
    /// A benchmark under the name of its file, and what the report says about it.
    pub(crate) fn new(name: &'static str, about: &'static str) -> Self {
        Bench { name, about, rounds: size("FLOW_BENCH_ROUNDS", 5) as usize, cases: Vec::new() }
    }

    /// A case: the first way that it gets is the floor.
    pub(crate) fn case(&mut self, title: impl Into<String>, records: u64) -> &mut Case {
        self.case_beyond(title, 0, records)
    }

    /// A case of which only what lies beyond the first `before` records is measured: the difference between a run over
    /// these alone and one over `records` more. Its ways are [`Case::way_over`].
    pub(crate) fn case_beyond(&mut self, title: impl Into<String>, before: u64, records: u64) -> &mut Case {
        self.cases.push(Case { title: title.into(), records, before, ways: Vec::new() });
        self.cases.last_mut().expect("one was pushed")
    }

    /// Measures everything, or what the command's argument names: a part of the titles of cases.
    pub(crate) fn run(self) {
        if let Ok(child) = env::var(CHILD) {
            let mut numbers = child.split(':').map(|number| number.parse::<u64>().expect("a number"));
            let [case, way, records] = [(); 3].map(|()| numbers.next().expect("case, way and records"));
            let measured = (self.cases[case as usize].ways[way as usize].run)(records);
            println!("{}", serde_json::to_string(&measured).expect("numbers"));
            return;
        }
        let only = env::args().skip(1).find(|argument| !argument.starts_with('-'));
        let mut section = Section::new(self.name, self.about);
        for (index, case) in self.cases.iter().enumerate() {
            if only.as_ref().is_none_or(|only| case.title.contains(only.as_str())) {
                let (table, group) = case.measure(index, self.rounds);
                section.table(table).chart(group);
            }
        }
        section.write();
    }
}

impl Measured {
    fn of<R>(run: impl FnOnce() -> R, check: &impl Fn(R) -> u64) -> Self {
        let (began, cpu) = (Instant::now(), processor_time());
        let result = run();
        let (seconds, cpu, peak_memory) = (began.elapsed(), processor_time() - cpu, peak_memory());
        Measured {
            seconds: seconds.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            peak_memory,
            check: check(result),
        }
    }

    /// What it took more than another.
    fn beyond(self, other: Measured) -> Self {
        let (seconds, cpu_seconds) = (self.seconds - other.seconds, self.cpu_seconds - other.cpu_seconds);
        Measured { seconds, cpu_seconds, ..self }
    }
}

impl Case {
    /// A way to do it, which returns what stands for its result: all ways must return the same.
    pub(crate) fn way(&mut self, name: impl Into<String>, run: impl Fn() -> u64 + 'static) -> &mut Self {
        self.prepared(name, || (), move |()| run())
    }

    /// A way to do it after something is prepared, which is not measured.
    pub(crate) fn prepared<P>(
        &mut self,
        name: impl Into<String>,
        prepare: impl Fn() -> P + 'static,
        run: impl Fn(P) -> u64 + 'static,
    ) -> &mut Self {
        self.checked(name, prepare, run, |check| check)
    }

    /// A way to do it after something is prepared, and before something is looked up that stands for its result: neither
    /// is measured.
    pub(crate) fn checked<P, R>(
        &mut self,
        name: impl Into<String>,
        prepare: impl Fn() -> P + 'static,
        run: impl Fn(P) -> R + 'static,
        check: impl Fn(R) -> u64 + 'static,
    ) -> &mut Self {
        let run = move |_| {
            let prepared = prepare();
            Measured::of(|| run(prepared), &check)
        };
        self.ways.push(Way { name: name.into(), run: Box::new(run) });
        self
    }

    /// A way to do it over as many records as it is asked for.
    pub(crate) fn way_over(
        &mut self,
        name: impl Into<String>,
        run: impl Fn(u64) -> u64 + 'static,
    ) -> &mut Self {
        let run = move |records| Measured::of(|| run(records), &|check| check);
        self.ways.push(Way { name: name.into(), run: Box::new(run) });
        self
    }

    fn measure(&self, index: usize, rounds: usize) -> (Table, Group) {
        let mut measured = vec![Vec::new(); self.ways.len()];
        for _ in 0..rounds {
            for (way, measured) in measured.iter_mut().enumerate() {
                let all = measure(index, way, self.before + self.records);
                measured.push(match self.before {
                    0 => all,
                    before => all.beyond(measure(index, way, before)),
                });
            }
        }
        let floor = &measured[0];
        for (way, measured) in self.ways.iter().zip(&measured) {
            for (measured, floor) in measured.iter().zip(floor) {
                assert_eq!(
                    measured.check, floor.check,
                    "{}: `{}` computes something else",
                    self.title, way.name
                );
            }
        }
        let beyond = match self.before {
            0 => String::new(),
            before => format!(" beyond the first {before}"),
        };
        let note = format!("{} records{beyond}, medians of {rounds} interleaved rounds.", self.records);
        let head =
            ["", "M records/s", "of the floor", "CPU ns per record", "of the floor", "peak memory, MB"];
        let mut table = Table::new(&self.title, note, head);
        let mut group = Group::new(&self.title, "M records/s");
        let records = self.records as f64;
        for (way, own) in self.ways.iter().zip(&measured) {
            let rate = records / median(own.iter().map(|measured| measured.seconds)) / 1e6;
            let cpu = median(own.iter().map(|measured| measured.cpu_seconds)) * 1e9 / records;
            let memory = median(own.iter().map(|measured| measured.peak_memory as f64)) / 1e6;
            // A round's ways ran one after the other, in the same mood of the machine.
            let of_floor = |value: fn(&Measured) -> f64| {
                median(own.iter().zip(floor).map(|(own, floor)| value(floor) / value(own)))
            };
            let ratio = of_floor(|measured| measured.seconds);
            table.row([
                way.name.clone(),
                format!("{rate:.2}"),
                format!("{ratio:.2}"),
                format!("{cpu:.1}"),
                format!("{:.2}", of_floor(|measured| measured.cpu_seconds)),
                format!("{memory:.1}"),
            ]);
            group.bar(Bar {
                name: way.name.clone(),
                value: rate,
                label: format!("{rate:.2}, {ratio:.2} of the floor"),
            });
        }
        table.print();
        (table, group)
    }
}

/// Lets a process of its own do it.
fn measure(case: usize, way: usize, records: u64) -> Measured {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(env::args().skip(1))
        .env(CHILD, format!("{case}:{way}:{records}"))
        .stderr(Stdio::inherit())
        .output()
        .expect("this program starts once more");
    assert!(output.status.success(), "way {way} of case {case} failed: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(text.lines().last().expect("a result")).expect("a result")
}

/// What all threads of this process have used of the processors.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The most memory that this process has had, in bytes; zero where the system does not tell.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
