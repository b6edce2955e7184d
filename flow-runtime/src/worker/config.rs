//! How to run a job: what the command line, the environment and the pipeline say, put together.

use std::{num::NonZeroUsize, time::Duration};

use crate::{
    checkpoint::RestoreRequest,
    error::Error,
    plan::{Guarantee, Plan},
};

/// What to do when an attempt fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Restart {
    /// Give up.
    Never,
    /// Try again after `delay`, `attempts` times.
    FixedDelay {
        /// How many times.
        attempts: u32,
        /// How long to wait before each.
        delay: Duration,
    },
    /// Wait twice as long before each new attempt, and start over once a job has run long enough.
    Exponential {
        /// How many times without a complete checkpoint in between.
        attempts: u32,
        /// The first pause.
        initial: Duration,
        /// The longest pause.
        max: Duration,
    },
}

impl Default for Restart {
    fn default() -> Self {
        Restart::Exponential {
            attempts: 10,
            initial: Duration::from_millis(100),
            max: Duration::from_secs(60),
        }
    }
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
    /// How many complete checkpoints to keep.
    pub retain: usize,
    /// Where to begin.
    pub restore: RestoreRequest,
    /// Whether an older checkpoint will do when the newest is damaged.
    pub allow_older_checkpoint: bool,
    /// Whether the checkpoint may hold state of operators that the pipeline no longer has.
    pub allow_dropped_state: bool,
    /// What to do when an attempt fails.
    pub restart: Restart,
}

impl Config {
    /// The default number of key groups.
    pub const MAX_PARALLELISM: usize = 128;
    /// The default interval of checkpoints.
    pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);

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
        Config {
            parallelism,
            max_parallelism: plan.max_parallelism.unwrap_or(Self::MAX_PARALLELISM),
            checkpoint_dir: None,
            checkpoint_interval: plan.checkpoint,
            retain: 3,
            restore: RestoreRequest::Newest,
            allow_older_checkpoint: false,
            allow_dropped_state: false,
            restart: Restart::default(),
        }
    }

    /// How often to take a checkpoint. Without an interval of its own a job takes one every 10 seconds: sinks commit
    /// at checkpoints, also those of an at-most-once job, and an in-process restart goes back to one.
    pub(crate) fn interval(&self) -> Duration {
        self.checkpoint_interval.unwrap_or(Self::CHECKPOINT_INTERVAL)
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
