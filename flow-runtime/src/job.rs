//! A pipeline as a value.

use std::{fmt, marker::PhantomData, sync::Arc};

use crate::{chain::Wiring, plan::Plan};

/// Wires the job on one worker; called once per worker and attempt.
pub(crate) type Build = Arc<dyn Fn(&mut Wiring) + Send + Sync>;

/// What `#[pipeline]` makes of a function, by the type of the same name: what is known at compile time.
pub trait Definition {
    /// The plan.
    const PLAN: &'static Plan;
}

/// A pipeline with its arguments, ready to run. This is what a function under `#[pipeline]` returns.
pub struct Job<D> {
    build: Build,
    definition: PhantomData<fn() -> D>,
}

impl<D> Clone for Job<D> {
    fn clone(&self) -> Self {
        Job { build: Arc::clone(&self.build), definition: PhantomData }
    }
}

impl<D: Definition> fmt::Debug for Job<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &D::PLAN.name).finish_non_exhaustive()
    }
}

impl<D: Definition> Job<D> {
    /// Called by generated code.
    #[doc(hidden)]
    pub fn new(build: impl Fn(&mut Wiring) + Send + Sync + 'static) -> Self {
        Job { build: Arc::new(build), definition: PhantomData }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &'static Plan {
        D::PLAN
    }

    pub(crate) fn build(&self) -> &Build {
        &self.build
    }
}
