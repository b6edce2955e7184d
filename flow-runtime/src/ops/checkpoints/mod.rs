//! `checkpoints`: what lies in a checkpoint directory.

mod inspect;
mod list;
mod verify;

use clap::{Args, Command, FromArgMatches, Subcommand};

use super::show::{Answer, Format};
use crate::{
    checkpoint::{CheckpointId, Store},
    error::Error,
    plan::Plan,
    worker::io_runtime,
};

/// The name of the command.
pub(super) const NAME: &str = "checkpoints";

#[derive(Subcommand, Debug)]
enum Checkpoints {
    /// Lists the checkpoints
    List(Place),
    /// Shows what a checkpoint holds
    Inspect(One),
    /// Reads every file and compares every checksum; ends with 1 if any is damaged or missing
    Verify(All),
}

/// Where to look, and how to print it.
#[derive(Args, Debug)]
struct Place {
    /// The directory, or s3:// with the feature `s3`
    #[arg(long, value_name = "URL")]
    checkpoint_dir: String,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
struct One {
    /// The number of the checkpoint, or `newest`
    #[arg(default_value = "newest", value_parser = which)]
    id: Which,
    #[command(flatten)]
    place: Place,
}

#[derive(Args, Debug)]
struct All {
    /// The number of the checkpoint, or `newest` [default: all of them]
    #[arg(value_parser = which)]
    id: Option<Which>,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Newest,
    Number(CheckpointId),
}

fn which(text: &str) -> Result<Which, String> {
    match text.strip_prefix("chk-").unwrap_or(text).parse() {
        _ if text == "newest" => Ok(Which::Newest),
        Ok(number) => Ok(Which::Number(CheckpointId(number))),
        Err(_) => Err("a checkpoint is a number, `chk-` and a number, or `newest`".to_owned()),
    }
}

/// The command, for the command line of a job.
pub(super) fn command() -> Command {
    let command = Command::new(NAME).about("Lists, shows and verifies checkpoints").subcommand_required(true);
    Checkpoints::augment_subcommands(command).arg_required_else_help(true)
}

/// Runs the command.
pub(super) fn run(plan: &Plan, matches: &clap::ArgMatches) -> Result<Answer, Error> {
    let command = Checkpoints::from_arg_matches(matches).map_err(|e| Error::Config(e.to_string()))?;
    let (Checkpoints::List(place)
    | Checkpoints::Inspect(One { place, .. })
    | Checkpoints::Verify(All { place, .. })) = &command;
    let (format, (store, named)) = (place.format, Store::open_checkpoint(&place.checkpoint_dir)?);
    // A path may name a checkpoint too.
    let named = named.map(Which::Number);
    io_runtime()?.block_on(async {
        match command {
            Checkpoints::List(_) => list::list(&store, format).await,
            Checkpoints::Inspect(One { id, .. }) => {
                let id = if id == Which::Newest { named.unwrap_or(id) } else { id };
                inspect::inspect(&store, id, format, plan).await
            }
            Checkpoints::Verify(All { id, .. }) => verify::verify(&store, id.or(named), format).await,
        }
    })
}
