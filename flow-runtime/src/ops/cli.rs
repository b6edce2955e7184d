//! `flow::run`: the command line of a job's binary.

use std::{marker::PhantomData, process::ExitCode};

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::{
    PlanFormat,
    arguments::{HEADING, JobArguments},
    render, signals,
};
use crate::{
    error::Error,
    job::{Definition, Job},
    plan::Plan,
    worker::{Ending, Stop, Summary, run_until},
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
/// after a last checkpoint). `plan` shows its plan and runs nothing. Bad arguments exit with 2.
///
/// Logs go to stderr; `RUST_LOG` chooses which.
///
/// See `examples/word_count.rs`.
pub fn run<A, E: Entry<A>>(entry: E) -> ExitCode {
    let plan = E::Definition::PLAN;
    let command = match command::<A, E>(plan) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let matches = match command.clone().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    if let Some(matches) = matches.subcommand_matches("plan") {
        let format = matches.get_one::<PlanFormat>("format").copied().unwrap_or(PlanFormat::Text);
        // A closed pipe, as of `head`, is no failure.
        let _ = std::io::Write::write_all(&mut std::io::stdout(), render(plan, format).as_bytes());
        return ExitCode::SUCCESS;
    }
    start_log();
    let job_arguments = match JobArguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error.format(&mut command.clone())),
    };
    let job = match entry.job(&matches) {
        Ok(job) => job,
        Err(error) => return usage(&error.format(&mut command.clone())),
    };
    let outcome = job_arguments.config(plan).and_then(|config| {
        let stop = Stop::default();
        signals::listen(stop.clone());
        run_until(&job, &config, &stop)
    });
    report(plan, outcome)
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
    let format = clap::Arg::new("format")
        .long("format")
        .value_parser(clap::builder::EnumValueParser::<PlanFormat>::new())
        .default_value("text")
        .help("How to print it");
    let plan_command =
        Command::new("plan").about("Shows the job's operators and chains, and runs nothing").arg(format);
    Ok(JobArguments::augment_args(user)
        .about(format!("The streaming job `{}`", plan.name))
        .next_help_heading(HEADING)
        .subcommand(plan_command)
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

impl ValueEnum for PlanFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[PlanFormat::Text, PlanFormat::Mermaid, PlanFormat::Json]
    }
    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(match self {
            PlanFormat::Text => "text",
            PlanFormat::Mermaid => "mermaid",
            PlanFormat::Json => "json",
        }))
    }
}
