//! The queries. What each of them is, and where it differs from Nexmark's SQL, stands at its pipeline.

mod by_clock;
mod joins;
mod rankings;
mod stateless;
mod statistics;
mod texts;
mod windows;
mod winning;

use flow::{
    Config, Definition, Error, Job, Summary,
    worker::{self, Stop},
};

use super::{
    checksum::{Checksum, Totals},
    model::Event,
    source::Nexmark,
};

/// A query, and how to find its result without an engine.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Nexmark, Checksum, &Run) -> Result<Summary, Error>,
    pub(crate) oracle: Oracle,
}

/// How to find out what a query should give.
pub(crate) enum Oracle {
    /// It follows from the events.
    Of(fn(&[Event]) -> Totals),
    /// It depends on the time of the run, so this runs it with a clock of its own, in so many subtasks. What came out, and
    /// what should have.
    ByClock(fn(&[Event], usize) -> Result<[Totals; 2], Error>),
}

/// How to run a query.
#[derive(Clone, Default)]
pub(crate) struct Run {
    pub(crate) parallelism: usize,
    /// Where checkpoints are kept, if the job is to go on from them.
    pub(crate) checkpoint_dir: Option<String>,
    pub(crate) stop: Stop,
}

impl Run {
    fn job<D: Definition>(&self, job: &Job<D>) -> Result<Summary, Error> {
        let config = Config {
            checkpoint_dir: self.checkpoint_dir.clone(),
            ..Config::with_parallelism(job.plan(), self.parallelism)
        };
        worker::run_until(job, &config, &self.stop)
    }
}

macro_rules! query {
    ($file:ident::$name:ident, $oracle:expr) => {
        Query {
            name: stringify!($name),
            run: |events, out, run| run.job(&$file::$name(events, out)),
            oracle: $oracle,
        }
    };
}

/// All of them.
pub(crate) const QUERIES: &[Query] = &[
    query!(stateless::q0, Oracle::Of(stateless::q0_oracle)),
    query!(stateless::q1, Oracle::Of(stateless::q1_oracle)),
    query!(stateless::q2, Oracle::Of(stateless::q2_oracle)),
    query!(joins::q3, Oracle::Of(joins::q3_oracle)),
    query!(winning::q4, Oracle::Of(winning::q4_oracle)),
    query!(windows::q5, Oracle::Of(windows::q5_oracle)),
    query!(winning::q6, Oracle::Of(winning::q6_oracle)),
    query!(windows::q7, Oracle::Of(windows::q7_oracle)),
    query!(windows::q8, Oracle::Of(windows::q8_oracle)),
    query!(winning::q9, Oracle::Of(winning::q9_oracle)),
    query!(windows::q11, Oracle::Of(windows::q11_oracle)),
    query!(by_clock::q12, Oracle::ByClock(by_clock::q12_by_hand)),
    query!(texts::q14, Oracle::Of(texts::q14_oracle)),
    query!(statistics::q15, Oracle::Of(statistics::q15_oracle)),
    query!(statistics::q16, Oracle::Of(statistics::q16_oracle)),
    query!(statistics::q17, Oracle::Of(statistics::q17_oracle)),
    query!(rankings::q18, Oracle::Of(rankings::q18_oracle)),
    query!(rankings::q19, Oracle::Of(rankings::q19_oracle)),
    query!(joins::q20, Oracle::Of(joins::q20_oracle)),
    query!(texts::q21, Oracle::Of(texts::q21_oracle)),
    query!(texts::q22, Oracle::Of(texts::q22_oracle)),
];
