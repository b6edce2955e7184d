//! Looking something up by a key, for each record.

use std::{
    cell::Cell,
    fmt,
    future::Future,
    hash::Hash,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use lru::LruCache;

use crate::{error::BoxError, time::Clock};

/// What records can be looked up in: a database, a service, a map.
///
/// In a pipeline: `orders.lookup_join(users, |order| order.user).with(|order, user| ..)`. The SQL databases have one,
/// `sql::lookup`. What is found is that of the moment in which it is looked up: after a restart
/// a record that was under way is looked up again.
///
/// ```
/// use std::collections::HashMap;
/// use flow_runtime::{async_io::Lookup, error::BoxError};
///
/// struct Names(HashMap<u64, String>);
///
/// impl Lookup<u64> for Names {
///     type Value = String;
///
///     async fn get(&self, key: u64) -> Result<Option<String>, BoxError> {
///         Ok(self.0.get(&key).cloned())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing can be looked up in `{Self}` by a key of type `{K}`",
    note = "implement `flow::async_io::Lookup` for it, or let the closure of the key return what it takes"
)]
pub trait Lookup<K>: Send + Sync + 'static {
    /// What is found.
    type Value: Send + 'static;

    /// What there is for this key. Runs on tokio, and many at the same time.
    fn get(&self, key: K) -> impl Future<Output = Result<Option<Self::Value>, BoxError>> + Send;

    /// What processing time is read from, if it means something.
    fn use_clock(&self, clock: &Clock) {
        let _ = clock;
    }

    /// Keeps what was found, of so many keys that were wanted last, and for so long. In a pipeline: `.cache(10_000, "1m")`.
    ///
    /// Each subtask has a cache of its own. Several records of a key that come at the same time may each be looked up.
    fn cache(self, keys: usize, time: Duration) -> Cached<K, Self>
    where
        Self: Sized,
        K: Eq + Hash,
    {
        Cached::new(self, keys, time)
    }
}

/// See [`Lookup::cache`].
pub struct Cached<K, L: Lookup<K>> {
    inner: L,
    time: Duration,
    misses: bool,
    clock: OnceLock<Clock>,
    kept: Mutex<LruCache<K, Kept<L::Value>>>,
}

struct Kept<V> {
    until: Duration,
    value: Option<V>,
}

impl<K: Eq + Hash, L: Lookup<K>> Cached<K, L> {
    fn new(inner: L, keys: usize, time: Duration) -> Self {
        let keys = NonZeroUsize::new(keys).unwrap_or(NonZeroUsize::MIN);
        // It grows with what it holds.
        let mut kept = LruCache::unbounded();
        kept.resize(keys);
        Cached { inner, time, misses: false, clock: OnceLock::new(), kept: Mutex::new(kept) }
    }

    /// Also keeps that of a key nothing was found. Otherwise what is new outside is found by the next record.
    #[must_use]
    pub fn with_misses(mut self) -> Self {
        self.misses = true;
        self
    }

    fn kept(&self) -> MutexGuard<'_, LruCache<K, Kept<L::Value>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, L> Lookup<K> for Cached<K, L>
where
    K: Eq + Hash + Clone + Send + 'static,
    L: Lookup<K, Value: Clone>,
{
    type Value = L::Value;

    async fn get(&self, key: K) -> Result<Option<L::Value>, BoxError> {
        let now = self.clock.get_or_init(Clock::system).elapsed();
        {
            let mut kept = self.kept();
            match kept.get(&key) {
                Some(found) if found.until > now => return Ok(found.value.clone()),
                Some(_) => drop(kept.pop(&key)),
                None => {}
            }
        }
        let value = self.inner.get(key.clone()).await?;
        if value.is_some() || self.misses {
            let until = now.saturating_add(self.time);
            self.kept().put(key, Kept { until, value: value.clone() });
        }
        Ok(value)
    }

    fn use_clock(&self, clock: &Clock) {
        let _ = self.clock.set(clock.clone());
        self.inner.use_clock(clock);
    }
}

impl<K, L: Lookup<K> + fmt::Debug> fmt::Debug for Cached<K, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("inner", &self.inner).field("time", &self.time).finish_non_exhaustive()
    }
}

/// Where an operator looks.
#[derive(Debug)]
pub struct Looking<L> {
    lookup: Arc<L>,
    clock: Clock,
    told: Cell<bool>,
}

impl<L> Looking<L> {
    pub(crate) fn new(lookup: L, clock: Clock) -> Self {
        Looking { lookup: Arc::new(lookup), clock, told: Cell::new(false) }
    }
}

/// The future of one record.
#[inline]
pub fn look_up<K, L: Lookup<K>>(
    looking: &Looking<L>,
    key: K,
) -> impl Future<Output = Result<Option<L::Value>, BoxError>> + Send + use<K, L>
where
    K: Send + 'static,
{
    if !looking.told.replace(true) {
        looking.lookup.use_clock(&looking.clock);
    }
    let lookup = Arc::clone(&looking.lookup);
    async move { lookup.get(key).await }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::time::Timestamp;

    /// Knows even numbers, and counts how often it is asked.
    #[derive(Clone, Default)]
    struct Half(Arc<AtomicU64>);

    impl Lookup<u64> for Half {
        type Value = u64;
        async fn get(&self, key: u64) -> Result<Option<u64>, BoxError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(key.is_multiple_of(2).then_some(key / 2))
        }
    }

    #[tokio::test]
    async fn a_cache_asks_once_while_it_is_fresh_and_there_is_room() {
        let (half, clock) = (Half::default(), Clock::manual(Timestamp::EPOCH));
        let cached = half.clone().cache(2, Duration::from_secs(60));
        cached.use_clock(&clock);
        let asked = || half.0.load(Ordering::SeqCst);
        for key in [4, 6, 4, 6] {
            assert_eq!(cached.get(key).await.unwrap(), Some(key / 2));
        }
        assert_eq!(asked(), 2);
        // 4 was wanted before 6, and goes.
        cached.get(8).await.unwrap();
        cached.get(6).await.unwrap();
        assert_eq!(asked(), 3);
        cached.get(4).await.unwrap();
        assert_eq!(asked(), 4);
        clock.advance(Duration::from_secs(60));
        cached.get(4).await.unwrap();
        assert_eq!(asked(), 5);
    }

    #[tokio::test]
    async fn that_nothing_was_found_is_kept_if_wanted() {
        let half = Half::default();
        let cached = half.clone().cache(10, Duration::from_secs(60));
        for _ in 0..3 {
            assert_eq!(cached.get(3).await.unwrap(), None);
        }
        assert_eq!(half.0.load(Ordering::SeqCst), 3);
        let cached = half.clone().cache(10, Duration::from_secs(60)).with_misses();
        for _ in 0..3 {
            assert_eq!(cached.get(3).await.unwrap(), None);
        }
        assert_eq!(half.0.load(Ordering::SeqCst), 4);
    }
}
