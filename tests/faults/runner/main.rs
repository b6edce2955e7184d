//! Lets jobs die in every place, on every sink, and counts what comes out.
//!
//! ```text
//! tests/chaos --walk          every failpoint on every sink, once: part of tests/run
//! tests/chaos --rounds 1000   faults by chance, also of servers, disks, clocks and files; prints a table
//! ```

mod case;
mod damage;
mod disk;
mod fault;
mod job;
mod random;
mod report;
#[path = "../results.rs"]
mod results;
mod target;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;

use case::Case;
use fault::Fault;
use random::Random;
use report::Report;
use target::Kind;

/// Lets jobs die in every place, on every sink, and counts what comes out.
#[derive(Parser)]
struct Arguments {
    /// Every failpoint on every sink once, with the faults that need no privileges
    #[arg(long, conflicts_with = "rounds")]
    walk: bool,
    /// So many faults, by chance
    #[arg(long)]
    rounds: Option<u64>,
    /// Walk at each of these parallelisms; otherwise sinks take turns
    #[arg(long, value_delimiter = ',', conflicts_with = "rounds")]
    parallelism: Vec<usize>,
    /// These sinks only
    #[arg(long, value_delimiter = ',')]
    sinks: Vec<Kind>,
    /// The faults of another run come again
    #[arg(long)]
    seed: Option<u64>,
    /// Write the table there
    #[arg(long)]
    table: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kinds = if arguments.sinks.is_empty() { Kind::ALL.to_vec() } else { arguments.sinks };
    let seed = arguments.seed.unwrap_or_else(random::seed);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let (began, mut report) = (Instant::now(), Report::default());
    let ran = match arguments.rounds {
        Some(rounds) => by_chance(rounds, &kinds, &mut random, &mut report),
        None => walk_all(&kinds, &arguments.parallelism, &mut random, &mut report),
    };
    let table = report.table(began.elapsed());
    println!("\n{table}");
    if let Some(path) = arguments.table
        && let Err(error) = std::fs::write(&path, &table)
    {
        eprintln!("error: cannot write {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    if let Err(error) = ran {
        eprintln!("error: {error}\nrun it again with --seed {seed}");
        return ExitCode::FAILURE;
    }
    if report.is_exact() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// As [`walk`], two sinks at a time: most of it is waiting.
fn walk_all(
    kinds: &[Kind],
    parallelisms: &[usize],
    random: &mut Random,
    report: &mut Report,
) -> Result<(), String> {
    let (first, second): (Vec<_>, Vec<_>) = kinds.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let walks = [first, second].map(|share| {
        let kinds: Vec<Kind> = share.into_iter().map(|(_, kind)| *kind).collect();
        (kinds, Random::new(random.next()))
    });
    std::thread::scope(|scope| {
        let walks = walks.map(|(kinds, mut random)| {
            scope.spawn(move || {
                let mut report = Report::default();
                let walked = walk(&kinds, parallelisms, &mut random, &mut report);
                (walked, report)
            })
        });
        for walk in walks {
            let (walked, found) = walk.join().map_err(|_| "a walk panicked".to_owned())?;
            report.merge(found);
            walked?;
        }
        Ok(())
    })
}

/// Every failpoint on every sink, at each of these parallelisms, and restored at others.
fn walk(
    kinds: &[Kind],
    parallelisms: &[usize],
    random: &mut Random,
    report: &mut Report,
) -> Result<(), String> {
    for (i, &kind) in kinds.iter().enumerate() {
        // Without any, they take turns.
        let turns = [1 + i % 2];
        for &parallelism in if parallelisms.is_empty() { &turns } else { parallelisms } {
            let mut faults: Vec<Fault> = flow::testing::failpoints::names()
                .iter()
                .filter(|name| kind.passes(name))
                .flat_map(|name| {
                    let nth = if fault::is_recovery(name) { 1 } else { 1 + random.below(4) };
                    let die = Fault::Die { point: name, nth };
                    let fail =
                        name.starts_with("store.").then_some(Fault::Fail { point: name, nth: 2, times: 2 });
                    [Some(die), fail].into_iter().flatten()
                })
                .collect();
            faults.extend([Fault::Kill, Fault::Kill, Fault::Truncate, Fault::FlipBit, Fault::SecondCopy]);
            // Several per job, one after the other: as many restarts.
            let mut jobs = 0;
            while !faults.is_empty() {
                let case = Case { kind, parallelism, faults: faults[..faults.len().min(6)].to_vec() };
                let struck = case.run(random, report)?;
                // What the job was too quick for comes again.
                faults.drain(..struck);
                jobs += 1;
                if jobs > 40 {
                    return Err(format!("{} is never reached with sink {}", faults[0].title(), kind.title()));
                }
            }
        }
    }
    Ok(())
}

/// Faults by chance, until there were so many.
fn by_chance(rounds: u64, kinds: &[Kind], random: &mut Random, report: &mut Report) -> Result<(), String> {
    let mut said = Instant::now();
    while report.faults() < rounds {
        let kind = random.of(kinds);
        let count = (1 + random.below(8)).min(rounds - report.faults());
        let faults = (0..count).map(|_| Fault::by_chance(kind, random)).collect();
        Case { kind, parallelism: 1 + random.below(2) as usize, faults }.run(random, report)?;
        if said.elapsed() > Duration::from_secs(20) {
            println!("{} faults", report.faults());
            said = Instant::now();
        }
    }
    Ok(())
}
