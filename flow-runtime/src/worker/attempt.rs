//! One attempt to run a job: from a checkpoint until it ends or fails.

use std::sync::Arc;

use timely::worker::Worker;

use super::{committer::Committer, in_user_code, manifest};
use crate::{
    chain::{self, Environment, Wiring},
    checkpoint::OperatorEntry,
    error::Error,
    job::Build,
    plan::Plan,
};

/// Runs all workers to their end. What went wrong is in the environment's [`Control`].
pub(super) fn run(
    environment: &Arc<Environment>,
    plan: &'static Plan,
    build: &Build,
    workers: usize,
    retain: usize,
) -> Result<(), Error> {
    let shared = (Arc::clone(environment), Arc::clone(build));
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let (environment, build) = &shared;
        // A panic must not leave the other workers waiting for this one.
        let outcome = in_user_code(|| work(worker, environment, plan, build, retain));
        if let Err(message) = outcome {
            environment.control.fail(Error::Config(format!("a worker panicked: {message}")));
        }
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
    })
    .map_err(|e| Error::Config(format!("the workers could not be started: {e}")))?;
    for outcome in guards.join() {
        if let Err(message) = outcome {
            environment.control.fail(Error::Config(format!("a worker panicked: {message}")));
        }
    }
    Ok(())
}

fn work(
    worker: &mut Worker,
    environment: &Arc<Environment>,
    plan: &'static Plan,
    build: &Build,
    retain: usize,
) {
    let control = &environment.control;
    control.register_worker();
    let mut wiring = Wiring::new(Arc::clone(environment), plan, worker.index());
    build(&mut wiring);
    if let Some(error) = wiring.error.take() {
        return control.fail(error);
    }
    for warning in &wiring.warnings {
        tracing::warn!("{warning}");
    }
    let worker_index = worker.index();
    worker.dataflow::<u64, _, _>(|scope| {
        let operators = wiring.operators.iter().filter(|operator| operator.remembers);
        let entries: Vec<_> = operators
            .map(|operator| OperatorEntry {
                uid: operator.uid.to_string(),
                kind: operator.kind.to_owned(),
                parallelism: operator.parallelism,
            })
            .collect();
        let committer = Committer::reserve(scope);
        let alarm = committer.alarm(scope);
        let chain::Built { parts, sinks } = chain::build(scope, wiring, &alarm);
        let completions = manifest::build(scope, parts, Arc::clone(environment), entries, retain);
        committer.build(completions, Arc::clone(environment), worker_index, sinks);
    });
    while !control.has_failed() && worker.has_dataflows() {
        worker.step_or_park(None);
    }
}
