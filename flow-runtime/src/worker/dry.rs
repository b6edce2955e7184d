//! A job that is wired and does not run: its sinks, and what there is to say about it.

use std::sync::Arc;

use super::{Config, Control, Shared, in_user_code, io_runtime, supervise::random};
use crate::{
    chain::{Environment, Wiring},
    checkpoint::{CheckpointId, Restored, Store},
    error::Error,
    job::{Definition, Job},
    sink::Desk,
    time::Clock,
};

/// The sinks of the job. Nothing is opened.
///
/// # Errors
/// When the pipeline's own code panics or fails while it is wired.
pub(crate) fn desks<D: Definition>(
    job: &Job<D>,
    config: &Config,
    store: &Store,
    restored: Restored,
    tokio: tokio::runtime::Handle,
) -> Result<Vec<Box<dyn Desk>>, Error> {
    let wiring = wire(job, config, store.clone(), Some(restored), tokio)?;
    Ok(wiring.chains.iter().flat_map(|chain| &chain.sinks).map(|sink| sink.desk()).collect())
}

/// What the job would warn of when it starts: what depends on its arguments, and so is not in its plan. Nothing is
/// opened.
///
/// # Errors
/// When the pipeline's own code panics or fails while it is wired.
pub(crate) fn warnings<D: Definition>(job: &Job<D>, config: &Config) -> Result<Vec<String>, Error> {
    let tokio = io_runtime()?;
    Ok(wire(job, config, Store::in_memory(), None, tokio.handle().clone())?.warnings)
}

/// Wires the job, as a worker does before it runs it.
fn wire<D: Definition>(
    job: &Job<D>,
    config: &Config,
    store: Store,
    restored: Option<Restored>,
    tokio: tokio::runtime::Handle,
) -> Result<Wiring, Error> {
    let last = restored.as_ref().map_or(CheckpointId(0), |restored| restored.manifest.id);
    // Nobody hears its events, and nothing happens.
    let (control, _) = Control::new(last);
    let environment = Environment {
        job: D::PLAN.name.to_owned(),
        parallelism: config.parallelism,
        max_parallelism: u32::try_from(config.max_parallelism).unwrap_or(u32::MAX),
        aligned: true,
        goes_back: true,
        attempt: random(),
        control: Arc::new(control),
        tokio,
        clock: Clock::system(),
        store,
        compression: config.compression,
        last,
        restored,
        shared: Shared::default(),
    };
    // The first worker has a subtask of every operator.
    let mut wiring = Wiring::new(Arc::new(environment), D::PLAN, 0);
    in_user_code(|| job.build()(&mut wiring))
        .map_err(|message| Error::Config(format!("the pipeline cannot be built: panicked: {message}")))?;
    match wiring.error.take() {
        Some(error) => Err(error),
        None => Ok(wiring),
    }
}
