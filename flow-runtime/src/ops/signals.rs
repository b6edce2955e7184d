//! SIGINT and SIGTERM: the first stops the job at a last checkpoint, the second at once.

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::worker::Stop;

pub(super) fn listen(stop: Stop) {
    let mut signals = match Signals::new([SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => {
            return tracing::warn!("cannot listen to signals, so they end the job at once: {error}");
        }
    };
    std::thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count > 0 {
                // As the shell reports a process that a signal ended.
                std::process::exit(128 + signal);
            }
            tracing::info!("stopping at a last checkpoint; another signal stops at once");
            stop.request();
        }
    });
}
