//! The options that every job has.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::{
    checkpoint::RestoreRequest,
    error::Error,
    plan::Plan,
    worker::{Config, Restart},
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
    /// How often to take a checkpoint, as in 500ms or 10s [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    checkpoint_interval: Option<Duration>,
    /// Complete checkpoints to keep
    #[arg(long, value_name = "N", default_value_t = 3)]
    retain: usize,
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
    /// What to do when the job fails
    #[arg(long, value_enum, default_value_t = Strategy::Exponential)]
    restart: Strategy,
    /// Restarts before giving up; in a row without progress, for `exponential`
    #[arg(long, value_name = "N", default_value_t = 10)]
    restart_attempts: u32,
    /// The pause before a restart; the first one, for `exponential`
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = humantime::parse_duration)]
    restart_delay: Duration,
}

/// The names of [`Restart`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Give up at once
    Never,
    /// Try again after the same pause each time
    FixedDelay,
    /// Double the pause each time, up to a minute
    Exponential,
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
        config.retain = self.retain;
        config.restore = match (self.from, self.fresh) {
            (Some(path), _) => RestoreRequest::From(path),
            (None, true) => RestoreRequest::Fresh,
            (None, false) => RestoreRequest::Newest,
        };
        config.allow_older_checkpoint = self.allow_older_checkpoint;
        config.allow_dropped_state = self.allow_dropped_state;
        let attempts = self.restart_attempts;
        config.restart = match self.restart {
            Strategy::Never => Restart::Never,
            Strategy::FixedDelay => Restart::FixedDelay { attempts, delay: self.restart_delay },
            Strategy::Exponential => {
                Restart::Exponential { attempts, initial: self.restart_delay, max: Duration::from_secs(60) }
            }
        };
        Ok(config)
    }
}
