//! The sinks of a job that does not run.

use std::sync::Arc;

use super::{Config, Control, Shared, in_user_code, supervise::random};
use crate::{
    chain::{Environment, Wiring},
    checkpoint::{Restored, Store},
    error::Error,
    job::{Definition, Job},
    sink::Desk,
    time::Clock,
};

/// Wires the job, as a worker does before it runs it, and keeps its sinks. Nothing is opened.
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
    let last = restored.manifest.id;
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
        store: store.clone(),
        compression: config.compression,
        last,
        restored: Some(restored),
        shared: Shared::default(),
    };
    // The first worker has a subtask of every operator.
    let mut wiring = Wiring::new(Arc::new(environment), D::PLAN, 0);
    in_user_code(|| job.build()(&mut wiring))
        .map_err(|message| Error::Config(format!("the pipeline cannot be built: panicked: {message}")))?;
    if let Some(error) = wiring.error.take() {
        return Err(error);
    }
    Ok(wiring.chains.iter().flat_map(|chain| &chain.sinks).map(|sink| sink.desk()).collect())
}
