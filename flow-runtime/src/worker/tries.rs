//! How often to try to write something of a checkpoint.

use std::{future::Future, time::Duration};

use crate::checkpoint::CheckpointError;

/// How often to try. After a checkpoint that fails there is the next one, but after the last there is none, and a
/// moment's trouble should not send a job back that has done all its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries(u32);

impl Tries {
    /// What belongs to the last checkpoint of an attempt is tried five times within three seconds.
    pub(crate) fn of(last: bool) -> Self {
        Tries(if last { 5 } else { 1 })
    }

    pub(crate) async fn run<T, F: Future<Output = Result<T, CheckpointError>>>(
        self,
        mut work: impl FnMut() -> F,
    ) -> Result<T, CheckpointError> {
        let mut pause = Duration::from_millis(200);
        for _ in 1..self.0 {
            match work().await {
                Err(error) if error.restartable() => {
                    tracing::warn!(
                        "the last checkpoint cannot be written, trying again in {pause:?}: {error}"
                    );
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
        work().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tries(last: bool, failures: u32) -> (u32, bool) {
        let mut count = 0;
        let outcome = Tries::of(last).run(|| {
            count += 1;
            let fails = count <= failures;
            async move { if fails { Err(CheckpointError::io("write", "x", "full")) } else { Ok(()) } }
        });
        let good = outcome.await.is_ok();
        (count, good)
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_is_last_is_tried_again() {
        assert_eq!(tries(false, 1).await, (1, false));
        assert_eq!(tries(true, 4).await, (5, true));
        assert_eq!(tries(true, 9).await, (5, false));
    }
}
