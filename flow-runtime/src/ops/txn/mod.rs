//! `txn`: transactions in doubt, and what an operator can do about them.
//!
//! A transaction is in doubt from its pre-commit until its commit is confirmed. All that the job has pre-committed are
//! carried by its newest checkpoint, and committed when it starts; nobody has to do anything. These commands are for
//! when the job will not start for a while, or not again.

mod abort;
mod commit;
mod doubts;
mod list;

use std::ffi::OsString;

use clap::{Args, Command, FromArgMatches, Subcommand};
use doubts::Doubts;

use super::show::{Answer, Format};
use crate::{
    checkpoint::{CheckpointError, Store},
    error::Error,
    job::{Definition, Job},
    worker::{Config, io_runtime},
};

/// The name of the command.
pub(super) const NAME: &str = "txn";

#[derive(Subcommand, Debug)]
enum Txn {
    /// Lists the transactions that the newest checkpoint carries, and what else the sinks' servers hold
    List(List),
    /// Commits transactions now, as the start of the job would; each once, however often it is said
    Commit(Commit),
    /// Gives up a transaction, and with it its records: they will not become visible
    Abort(Abort),
}

/// What every command needs.
#[derive(Args, Debug)]
struct Place {
    /// The directory, unless it is among the job's arguments
    #[arg(long, value_name = "URL")]
    checkpoint_dir: Option<String>,
    /// The job's arguments, as when it runs: its sinks are made from them
    #[arg(last = true, value_name = "ARGUMENTS")]
    job: Vec<OsString>,
}

#[derive(Args, Debug)]
struct List {
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    place: Place,
}

#[derive(Args, Debug)]
struct Commit {
    /// The transactions, as `txn list` names them; those before them, of the same subtask, are committed first
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All that the checkpoint carries
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Args, Debug)]
struct Abort {
    /// The transaction, as `txn list` names it
    id: String,
    /// Without it, only what it would mean is said
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

/// The command, for the command line of a job.
pub(super) fn command() -> Command {
    let command = Command::new(NAME)
        .about("Lists and settles transactions in doubt, while the job does not run")
        .after_help("The job's own arguments come last, after `--`: txn list --checkpoint-dir D -- --input X")
        .subcommand_required(true);
    Txn::augment_subcommands(command).arg_required_else_help(true)
}

/// The job's arguments among those of the command.
pub(super) fn job_arguments(matches: &clap::ArgMatches) -> Vec<OsString> {
    let Some((_, matches)) = matches.subcommand() else { return Vec::new() };
    matches.get_many::<OsString>("job").map(|arguments| arguments.cloned().collect()).unwrap_or_default()
}

/// Runs the command.
pub(super) fn run<D: Definition>(
    job: &Job<D>,
    config: &Config,
    matches: &clap::ArgMatches,
) -> Result<Answer, Error> {
    let command = Txn::from_arg_matches(matches).map_err(|e| Error::Config(e.to_string()))?;
    let (Txn::List(List { place, .. }) | Txn::Commit(Commit { place, .. }) | Txn::Abort(Abort { place, .. })) =
        &command;
    let dir = place.checkpoint_dir.as_ref().or(config.checkpoint_dir.as_ref());
    let dir =
        dir.ok_or_else(|| Error::Config("say where the checkpoints are: `--checkpoint-dir DIR`".into()))?;
    let (store, named) = Store::open_checkpoint(dir)?;
    if let Some(id) = named {
        return Err(Error::Config(format!(
            "the newest checkpoint is the one that counts, and not {id}: name the directory it is in"
        )));
    }
    let tokio = io_runtime()?;
    // A running job settles its transactions itself.
    let _lock = match &command {
        Txn::List(_) => None,
        _ => Some(store.lock()?),
    };
    let doubts = Doubts::find(job, config, &store, &tokio)?;
    tokio.block_on(async {
        match command {
            Txn::List(List { format, .. }) => Ok(list::list(&doubts, format).await),
            Txn::Commit(Commit { ids, all, .. }) => commit::commit(&doubts, &ids, all).await,
            Txn::Abort(Abort { id, yes, .. }) => abort::abort(&doubts, &store, &id, yes).await,
        }
    })
}

/// That there is no such transaction.
fn unknown(id: &str) -> Error {
    Error::Config(format!("there is no transaction `{id}`: `txn list` names those that there are"))
}

/// That the store holds nothing.
fn none(store: &Store) -> Error {
    CheckpointError::NoneFound { location: store.location().to_owned() }.into()
}
