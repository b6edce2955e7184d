//! Shows how many records have gone by, once a second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A counter that the job's closures share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    /// So many more.
    pub(crate) fn add(&self, records: u64) {
        self.0.fetch_add(records, Ordering::Relaxed);
    }

    /// Prints the count to stderr while it changes.
    pub(crate) fn show(&self) {
        let count = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let (began, mut before) = (Instant::now(), 0);
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let now = count.load(Ordering::Relaxed);
                if now != before {
                    eprintln!("{:5.0?}  {now} records, {} more", began.elapsed(), now - before);
                    before = now;
                }
            }
        });
    }
}
