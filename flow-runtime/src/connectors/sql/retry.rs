//! Waiting before the next try.

use std::time::Duration;

/// Waits that grow, and that differ between those who wait.
#[derive(Debug)]
pub(super) struct Backoff {
    tries: u32,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { tries: 0 }
    }

    /// How often it waited.
    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    pub(super) async fn wait(&mut self) {
        let longest = Duration::from_millis(10 << self.tries.min(8));
        self.tries += 1;
        // The last digits of the clock are random enough to part two that met in a deadlock.
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos());
        tokio::time::sleep(longest.mul_f64(0.5 + f64::from(nanos % 1000) / 2000.0)).await;
    }
}
