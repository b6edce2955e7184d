//! Tasks that do not outlive their owner.

use tokio::task::JoinHandle;

/// Aborts its task when dropped.
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
