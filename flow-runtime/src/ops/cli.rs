//! `flow::run`: the command line of a job's binary.

use std::{ffi::OsString, marker::PhantomData, process::ExitCode};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use tracing_subscriber::EnvFilter;

use super::{
    arguments::{HEADING, JobArguments},
    checkpoints, plan,
    show::Answer,
    signals, txn,
};
use crate::{
    error::Error,
    job::{Definition, Job},
    plan::Plan,
    worker::{Config, Ending, Stop, Summary, run_until, warnings},
};

/// A function under `#[pipeline]` that [`run`] can call: without arguments, or with a reference to a type that
/// implements [`clap::Args`] (also by `#[derive(clap::Parser)]`).
pub trait Entry<A> {
    /// The type that carries the plan.
    type Definition: Definition;
    #[doc(hidden)]
    fn arguments(command: Command) -> Command;
    #[doc(hidden)]
    fn job(self, matches: &ArgMatches) -> Result<Job<Self::Definition>, clap::Error>;
}

impl<D: Definition, F: FnOnce() -> Job<D>> Entry<()> for F {
    type Definition = D;
    fn arguments(command: Command) -> Command {
        command
    }
    fn job(self, _: &ArgMatches) -> Result<Job<D>, clap::Error> {
        Ok(self())
    }
}

impl<A: Args, D: Definition, F: FnOnce(&A) -> Job<D>> Entry<PhantomData<A>> for F {
    type Definition = D;
    fn arguments(command: Command) -> Command {
        A::augment_args(command)
    }
    fn job(self, matches: &ArgMatches) -> Result<Job<D>, clap::Error> {
        Ok(self(&A::from_arg_matches(matches)?))
    }
}

/// The command line of a job: runs it until it ends (exit code 0), fails for good (1) or is stopped by a signal (0
/// after a last checkpoint). `plan` shows its plan and runs nothing (with the job's arguments after `--` also what the
/// start of the job would warn of), `checkpoints` shows and verifies what is in a
/// checkpoint directory, `txn` lists and settles transactions in doubt. Bad arguments exit with 2.
///
/// Logs go to stderr; `RUST_LOG` chooses which.
///
/// See `examples/word_count.rs`.
pub fn run<A, E: Entry<A>>(entry: E) -> ExitCode {
    run_from(entry, std::env::args_os())
}

/// As [`run`], with these arguments, the first of which is the name of the program.
pub fn run_from<A, E: Entry<A>>(entry: E, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let plan = E::Definition::PLAN;
    let command = match command::<A, E>(plan) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let matches = match command.clone().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    match matches.subcommand() {
        Some((plan::NAME, plan_matches)) => {
            let Some(arguments) = plan::job_arguments(plan_matches) else {
                print(&plan::show(plan, &[], plan_matches));
                return ExitCode::SUCCESS;
            };
            return match again(&command, plan, arguments).and_then(|job| prepare(entry, &command, &job)) {
                Ok((job, config)) => {
                    let warnings = config.and_then(|config| warnings(&job, &config));
                    answer(warnings.map(|warnings| Answer {
                        text: plan::show(plan, &warnings, plan_matches),
                        good: true,
                    }))
                }
                Err(code) => code,
            };
        }
        Some((checkpoints::NAME, matches)) => return answer(checkpoints::run(plan, matches)),
        Some((txn::NAME, txn_matches)) => {
            start_log();
            let arguments = txn::job_arguments(txn_matches);
            return match again(&command, plan, arguments).and_then(|job| prepare(entry, &command, &job)) {
                Ok((job, config)) => answer(config.and_then(|config| txn::run(&job, &config, txn_matches))),
                Err(code) => code,
            };
        }
        _ => {}
    }
    start_log();
    let (job, config) = match prepare(entry, &command, &matches) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let outcome = config.and_then(|config| {
        let stop = Stop::default();
        signals::listen(stop.clone());
        run_until(&job, &config, &stop)
    });
    report(plan, outcome)
}

/// The job's own arguments, which come after those of a command and `--`.
fn again(command: &Command, plan: &Plan, arguments: Vec<OsString>) -> Result<ArgMatches, ExitCode> {
    let arguments = [OsString::from(plan.name)].into_iter().chain(arguments);
    command.clone().try_get_matches_from(arguments).map_err(|error| usage(&error))
}

/// The job and its configuration, or the exit code for arguments that are wrong.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
fn prepare<A, E: Entry<A>>(
    entry: E,
    command: &Command,
    matches: &ArgMatches,
) -> Result<(Job<E::Definition>, Result<Config, Error>), ExitCode> {
    let bad = |error: clap::Error| usage(&error.format(&mut command.clone()));
    let arguments = JobArguments::from_arg_matches(matches).map_err(bad)?;
    let job = entry.job(matches).map_err(bad)?;
    Ok((job, arguments.config(E::Definition::PLAN)))
}

/// Prints what a command has found.
fn answer(answer: Result<Answer, Error>) -> ExitCode {
    match answer {
        Ok(Answer { text, good }) => {
            print(&text);
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) {
    // A closed pipe, as of `head`, is no failure.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}

fn command<A, E: Entry<A>>(plan: &'static Plan) -> Result<Command, String> {
    let user = E::arguments(Command::new(plan.name));
    let own = JobArguments::augment_args(Command::new(plan.name));
    // clap would panic.
    for argument in own.get_arguments() {
        let clash = user.get_arguments().any(|user| {
            user.get_id() == argument.get_id()
                || (user.get_long().is_some() && user.get_long() == argument.get_long())
        });
        if clash {
            return Err(format!(
                "the job's argument `{}` has the name of one that every job has: rename it",
                argument.get_id()
            ));
        }
    }
    Ok(JobArguments::augment_args(user)
        .about(format!("The streaming job `{}`", plan.name))
        .next_help_heading(HEADING)
        .subcommand(plan::command())
        .subcommand(checkpoints::command())
        .subcommand(txn::command())
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true))
}

fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no failure.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn start_log() {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,flow_runtime=info"));
    // A program that has set up its own log keeps it.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}

fn report(plan: &Plan, outcome: Result<Summary, Error>) -> ExitCode {
    match outcome {
        Ok(summary) => {
            for (uid, count) in summary.skipped.iter().filter(|(_, count)| **count > 0) {
                tracing::warn!(operator = uid, count, "skipped records");
            }
            for (uid, count) in summary.late.iter().filter(|(_, count)| **count > 0) {
                tracing::warn!(
                    operator = uid,
                    count,
                    "dropped records that came too late for their window or join"
                );
            }
            let how = match summary.ending {
                Ending::Finished => "finished",
                Ending::Stopped => "stopped",
            };
            tracing::info!(
                job = plan.name,
                restarts = summary.restarts,
                "{how} at checkpoint {} after {:.1?}",
                summary.checkpoint,
                summary.elapsed
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
