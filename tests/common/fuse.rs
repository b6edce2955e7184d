//! Failures that happen a given number of times.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use flow::BoxError;

/// Blows as often as it was told to, all clones together.
#[derive(Clone, Debug)]
pub(crate) struct Fuse {
    times: i64,
    left: Arc<AtomicI64>,
}

impl Fuse {
    pub(crate) fn times(n: i64) -> Self {
        Fuse { times: n, left: Arc::new(AtomicI64::new(n)) }
    }

    pub(crate) fn once() -> Self {
        Fuse::times(1)
    }

    pub(crate) fn never() -> Self {
        Fuse::times(0)
    }

    pub(crate) fn always() -> Self {
        Fuse::times(i64::MAX)
    }

    /// It does not blow any more.
    pub(crate) fn mend(&self) {
        self.left.store(0, Ordering::SeqCst);
    }

    /// Whether it blows now.
    pub(crate) fn blows(&self) -> bool {
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1))
            .is_ok()
    }

    /// How often it has blown.
    pub(crate) fn blown(&self) -> i64 {
        self.times - self.left.load(Ordering::SeqCst)
    }

    /// An error if `here` and the fuse blows.
    pub(crate) fn fail(&self, here: bool) -> Result<(), BoxError> {
        if here && self.blows() { Err("the fuse blew".into()) } else { Ok(()) }
    }

    /// A panic if `here` and the fuse blows.
    pub(crate) fn panic(&self, here: bool) {
        assert!(!(here && self.blows()), "the fuse blew");
    }
}
