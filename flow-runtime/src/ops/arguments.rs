//! The options that every job has.

use std::time::Duration;

use clap::{Args, ValueEnum, builder::PossibleValue};

use super::restart;
use crate::{
    checkpoint::{Compression, RestoreRequest},
    error::Error,
    plan::Plan,
    worker::{Config, Restart, Retention},
};

/// The heading under which `--help` lists them.
pub(super) const HEADING: &str = "Running the job";

#[derive(Args, Debug)]
#[command(next_help_heading = HEADING)]
pub(super) struct JobArguments {
    /// Subtasks of each operator that sets no number of its own [default: the pipeline's, then $FLOW_PARALLELISM,
    /// then the number of cores]
    #[arg(long, value_name = "N")]
    parallelism: Option<usize>,
    /// Key groups: the upper limit of the parallelism, fixed with the first checkpoint [default: 128]
    #[arg(long, value_name = "N")]
    max_parallelism: Option<usize>,
    /// Where checkpoints are kept: a directory, file://, or s3:// with the feature `s3`. A job that finds one resumes
    /// from it. Without, checkpoints live in memory
    #[arg(long, value_name = "URL")]
    checkpoint_dir: Option<String>,
    /// How often to take a checkpoint, as in 500ms or 10s [default: the pipeline's, then 10s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    checkpoint_interval: Option<Duration>,
    /// When a checkpoint that is not complete has failed [default: the pipeline's, then 10m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    checkpoint_timeout: Option<Duration>,
    /// The least time from the end of one checkpoint to the next [default: the pipeline's, then none]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    checkpoint_min_pause: Option<Duration>,
    /// How many checkpoints may be in flight [default: the pipeline's, then 1]
    #[arg(long, value_name = "N")]
    checkpoint_max_concurrent: Option<usize>,
    /// How many checkpoints may fail in a row; one more restarts the job [default: the pipeline's, then 0]
    #[arg(long, value_name = "N")]
    checkpoint_tolerable_failures: Option<u32>,
    /// How to write state [default: the pipeline's, then none]
    #[arg(long, value_enum, value_name = "HOW")]
    checkpoint_compression: Option<Compression>,
    /// What becomes of the checkpoints when the job is stopped [default: the pipeline's, then retain]
    #[arg(long, value_enum, value_name = "WHAT")]
    checkpoint_on_cancel: Option<Retention>,
    /// What becomes of the checkpoints when the job has read all its input [default: the pipeline's, then retain]
    #[arg(long, value_enum, value_name = "WHAT")]
    checkpoint_on_success: Option<Retention>,
    /// Complete checkpoints to keep [default: the pipeline's, then 3]
    #[arg(long, value_name = "N")]
    retain: Option<usize>,
    /// Restore this checkpoint, not the newest: DIR or DIR/chk-N
    #[arg(long, value_name = "PATH", conflicts_with = "fresh")]
    from: Option<String>,
    /// Begin anew, whatever checkpoints there are
    #[arg(long)]
    fresh: bool,
    /// Resume from an older checkpoint when the newest is damaged
    #[arg(long)]
    allow_older_checkpoint: bool,
    /// Resume although the pipeline no longer has operators whose state the checkpoint holds
    #[arg(long)]
    allow_dropped_state: bool,
    /// What to do when the job fails: none, fixed-delay:attempts=3,delay=1s,
    /// exponential:initial=100ms,max=1m,multiplier=2,attempts=10,reset-after=1h or failure-rate:max=3,per=5m,delay=10s
    /// [default: the pipeline's, then exponential]
    #[arg(long, value_name = "STRATEGY", value_parser = restart::parse)]
    restart: Option<Restart>,
}

impl JobArguments {
    /// Operators override the command line, which overrides the pipeline, which overrides the environment.
    pub(super) fn config(self, plan: &Plan) -> Result<Config, Error> {
        let mut config = match self.parallelism {
            Some(parallelism) => Config::with_parallelism(plan, parallelism),
            None => Config::of(plan)?,
        };
        config.max_parallelism = self.max_parallelism.unwrap_or(config.max_parallelism);
        config.checkpoint_dir = self.checkpoint_dir;
        config.checkpoint_interval = self.checkpoint_interval.or(config.checkpoint_interval);
        config.checkpoint_timeout = self.checkpoint_timeout.unwrap_or(config.checkpoint_timeout);
        config.checkpoint_min_pause = self.checkpoint_min_pause.unwrap_or(config.checkpoint_min_pause);
        config.checkpoint_max_concurrent =
            self.checkpoint_max_concurrent.unwrap_or(config.checkpoint_max_concurrent);
        config.tolerable_failures = self.checkpoint_tolerable_failures.unwrap_or(config.tolerable_failures);
        config.compression = self.checkpoint_compression.unwrap_or(config.compression);
        config.on_cancel = self.checkpoint_on_cancel.unwrap_or(config.on_cancel);
        config.on_success = self.checkpoint_on_success.unwrap_or(config.on_success);
        config.retain = self.retain.unwrap_or(config.retain);
        config.restore = match (self.from, self.fresh) {
            (Some(path), _) => RestoreRequest::From(path),
            (None, true) => RestoreRequest::Fresh,
            (None, false) => RestoreRequest::Newest,
        };
        config.allow_older_checkpoint = self.allow_older_checkpoint;
        config.allow_dropped_state = self.allow_dropped_state;
        config.restart = self.restart.unwrap_or(config.restart);
        Ok(config)
    }
}

impl ValueEnum for Compression {
    fn value_variants<'a>() -> &'a [Self] {
        &[Compression::None, Compression::Zstd]
    }
    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Compression::None => PossibleValue::new("none"),
            Compression::Zstd => PossibleValue::new("zstd"),
        })
    }
}

impl ValueEnum for Retention {
    fn value_variants<'a>() -> &'a [Self] {
        &[Retention::Retain, Retention::Delete]
    }
    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Retention::Retain => PossibleValue::new("retain").help("They stay"),
            Retention::Delete => {
                PossibleValue::new("delete").help("They are deleted, and the next run begins anew")
            }
        })
    }
}
