//! Waking an operator from another thread.

use std::sync::Arc;

use timely::scheduling::activate::SyncActivator;

/// Schedules one operator and unparks its worker.
#[derive(Clone)]
pub(crate) struct Alarm(Arc<SyncActivator>);

impl Alarm {
    pub(crate) fn new(activator: SyncActivator) -> Self {
        Alarm(Arc::new(activator))
    }

    pub(crate) fn ring(&self) {
        // The worker is gone only when its attempt ended, and then nobody waits for anything.
        let _ = self.0.activate();
    }
}
