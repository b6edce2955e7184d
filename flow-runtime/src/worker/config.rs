//! How to run a job: what the command line, the environment and the pipeline say, put together.

use std::{num::NonZeroUsize, time::Duration};

use super::Restart;
use crate::{
    checkpoint::{Compression, RestoreRequest, Timing},
    error::Error,
    plan::{Guarantee, Plan},
    time::Clock,
};

/// What becomes of the checkpoints of a job that has ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// They stay: a job that was stopped goes on from the last, and one that has finished knows that it has.
    #[default]
    Retain,
    /// They are deleted, all of them. A job that is run again begins anew, and its checkpoints with number 1.
    Delete,
}

/// How to run a job.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number of subtasks of operators that set none.
    pub parallelism: usize,
    /// The number of key groups, the upper limit of `parallelism` for the life of the state.
    pub max_parallelism: usize,
    /// Where checkpoints are kept; in memory when `None`, which helps against failures inside the process only.
    pub checkpoint_dir: Option<String>,
    /// How often; [`Config::CHECKPOINT_INTERVAL`] when `None`.
    pub checkpoint_interval: Option<Duration>,
    /// A checkpoint that is not complete after so long has failed. Its records go with the next one.
    pub checkpoint_timeout: Duration,
    /// At least this long from the end of one checkpoint to the beginning of the next, even if the interval is over.
    pub checkpoint_min_pause: Duration,
    /// How many checkpoints may be in flight. More than one helps where they take longer than the interval and results
    /// have to come out at the interval all the same.
    pub checkpoint_max_concurrent: usize,
    /// How many checkpoints may fail one after the other, by the timeout or because they could not be written. One more
    /// makes the attempt fail, and [`restart`](Self::restart) says what follows. A complete one ends the row. The last
    /// checkpoint of a job must not fail at all.
    pub tolerable_failures: u32,
    /// How the state in checkpoints is written.
    pub compression: Compression,
    /// How many complete checkpoints to keep.
    pub retain: usize,
    /// What becomes of the checkpoints when the job was asked to stop.
    pub on_cancel: Retention,
    /// What becomes of the checkpoints when the job has read all of its input.
    pub on_success: Retention,
    /// Where to begin.
    pub restore: RestoreRequest,
    /// Whether an older checkpoint will do when the newest is damaged.
    pub allow_older_checkpoint: bool,
    /// Whether the checkpoint may hold state of operators that the pipeline no longer has.
    pub allow_dropped_state: bool,
    /// What to do when an attempt fails.
    pub restart: Restart,
    /// What processing time is read from: the machine's clock, unless in a test.
    pub clock: Clock,
}

impl Config {
    /// The default number of key groups.
    pub const MAX_PARALLELISM: usize = 128;
    /// The default interval of checkpoints.
    pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
    /// The default timeout of a checkpoint.
    pub const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(600);
    /// The default number of checkpoints to keep.
    pub const RETAIN: usize = 3;

    /// What the pipeline, the environment and the machine say.
    ///
    /// # Errors
    /// When `FLOW_PARALLELISM` is no positive number.
    pub fn of(plan: &Plan) -> Result<Self, Error> {
        let parallelism = match plan.parallelism {
            Some(parallelism) => parallelism,
            None => from_environment()?
                .or_else(|| std::thread::available_parallelism().ok().map(NonZeroUsize::get))
                .unwrap_or(1),
        };
        Ok(Self::with_parallelism(plan, parallelism))
    }

    /// What the pipeline says, with another parallelism.
    #[must_use]
    pub fn with_parallelism(plan: &Plan, parallelism: usize) -> Self {
        let said = &plan.checkpoint;
        Config {
            parallelism,
            max_parallelism: plan.max_parallelism.unwrap_or(Self::MAX_PARALLELISM),
            checkpoint_dir: None,
            checkpoint_interval: said.interval,
            checkpoint_timeout: said.timeout.unwrap_or(Self::CHECKPOINT_TIMEOUT),
            checkpoint_min_pause: said.min_pause.unwrap_or_default(),
            checkpoint_max_concurrent: said.max_concurrent.unwrap_or(1),
            tolerable_failures: said.tolerable_failures.unwrap_or_default(),
            compression: said.compression.unwrap_or_default(),
            retain: said.retain.unwrap_or(Self::RETAIN),
            on_cancel: said.on_cancel.unwrap_or_default(),
            on_success: said.on_success.unwrap_or_default(),
            restore: RestoreRequest::Newest,
            allow_older_checkpoint: false,
            allow_dropped_state: false,
            restart: plan.restart.unwrap_or_default(),
            clock: Clock::system(),
        }
    }

    /// How often to take a checkpoint. Without an interval of its own a job takes one every 10 seconds: sinks commit
    /// at checkpoints, also those of an at-most-once job, and an in-process restart goes back to one.
    pub(crate) fn interval(&self) -> Duration {
        self.checkpoint_interval.unwrap_or(Self::CHECKPOINT_INTERVAL)
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing {
            interval: Some(self.interval()),
            min_pause: self.checkpoint_min_pause,
            timeout: Some(self.checkpoint_timeout),
            max_concurrent: self.checkpoint_max_concurrent,
            tolerable_failures: self.tolerable_failures,
        }
    }

    /// Whether the options make sense together, and with the plan.
    ///
    /// # Errors
    /// Says which do not, and what to do.
    pub fn check(&self, plan: &Plan) -> Result<(), Error> {
        let largest = plan.workers(self.parallelism);
        let refuse = |message: String| Err(Error::Config(message));
        if self.parallelism == 0 {
            return refuse("the parallelism must be at least 1".into());
        }
        if largest > self.max_parallelism {
            return refuse(format!(
                "the parallelism {largest} is above the max parallelism {}: lower it, or raise `max_parallelism` before the first checkpoint",
                self.max_parallelism
            ));
        }
        if self.max_parallelism > 1 << 15 {
            return refuse(format!("the max parallelism {} is above {}", self.max_parallelism, 1 << 15));
        }
        if self.checkpoint_interval.is_some_and(|interval| interval < Duration::from_millis(10)) {
            return refuse("the checkpoint interval must be at least 10ms".into());
        }
        if self.checkpoint_timeout < Duration::from_millis(10) {
            return refuse("the checkpoint timeout must be at least 10ms".into());
        }
        if self.checkpoint_max_concurrent == 0 {
            return refuse("at least one checkpoint must be allowed at a time: set `--checkpoint-max-concurrent 1` or more".into());
        }
        if self.checkpoint_max_concurrent > 1 && self.checkpoint_min_pause > Duration::ZERO {
            return refuse(
                "a minimum pause between checkpoints leaves one at a time: drop `--checkpoint-min-pause`, or set `--checkpoint-max-concurrent 1`"
                    .into(),
            );
        }
        self.restart.check().map_err(Error::Config)?;
        if self.retain == 0 {
            return refuse("at least one checkpoint must be retained: set `--retain 1` or more".into());
        }
        if self.checkpoint_dir.is_none() && matches!(self.restore, RestoreRequest::From(_)) {
            return refuse("`--from` needs `--checkpoint-dir` for the checkpoints to come".into());
        }
        if plan.guarantee == Guarantee::AtMostOnce && self.checkpoint_dir.is_some() {
            return refuse(
                "an at-most-once job takes no checkpoints: going back to one would process records twice; drop `--checkpoint-dir`"
                    .into(),
            );
        }
        Ok(())
    }
}

fn from_environment() -> Result<Option<usize>, Error> {
    match std::env::var("FLOW_PARALLELISM") {
        Err(_) => Ok(None),
        Ok(text) => match text.trim().parse() {
            Ok(parallelism) if parallelism > 0 => Ok(Some(parallelism)),
            _ => Err(Error::Config(format!(
                "FLOW_PARALLELISM is `{text}`, but must be a number of at least 1"
            ))),
        },
    }
}
