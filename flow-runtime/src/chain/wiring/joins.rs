//! The joins of a chain.

use super::Chain;
use crate::{
    error::Error,
    join::{
        Joined, Matching, Side, Tables, WindowJoin,
        broadcast::BroadcastJoin,
        interval::{Interval, IntervalJoin},
    },
    state::{Keyed, Redistribution, StateValue, StoredKey},
    window::{self, Assigner, timing::Triggering},
};

impl Chain<'_> {
    /// The join of two streams in windows, with what the restored checkpoint holds of it.
    pub fn window_join<K, L, R, A, T, M>(
        &mut self,
        operator: usize,
        spec: window::Spec<A, T, Joined<M>>,
    ) -> WindowJoin<K, L, R, A, T, M>
    where
        K: StoredKey,
        L: StateValue,
        R: StateValue,
        A: Assigner<Side<L, R>>,
        T: Triggering<Side<L, R>, A::Window>,
        M: Matching,
    {
        if let Err(error) = window::check::<K, Side<L, R>, _>(&spec) {
            let uid = self.uid(operator);
            self.wiring.error.get_or_insert(Error::Config(format!("`{uid}`: {error}")));
        }
        WindowJoin::new(spec, &mut TableOf { chain: self, operator })
    }

    /// The records of two streams that wait to meet, with what the restored checkpoint holds of them.
    pub fn interval_join<K, L, R, M>(
        &mut self,
        operator: usize,
        interval: Interval,
        matching: M,
    ) -> IntervalJoin<K, L, R, M>
    where
        K: StoredKey,
        L: StateValue,
        R: StateValue,
        M: Matching,
    {
        if let Err(error) = interval.check() {
            let uid = self.uid(operator);
            self.wiring.error.get_or_insert(Error::Config(format!("`{uid}`: {error}")));
        }
        let table = self.keyed(operator);
        IntervalJoin::new(interval, matching, table)
    }

    /// The newest record per key of a small stream, for a join that keeps it in every subtask, with what the restored
    /// checkpoint holds of it.
    pub fn broadcast_join<K: StoredKey, R: StateValue>(&mut self, operator: usize) -> BroadcastJoin<K, R> {
        BroadcastJoin::new(self.operator_state(operator, "kept", Redistribution::Broadcast))
    }
}

/// The table of an operator, which it may have once.
struct TableOf<'c, 'w> {
    chain: &'c mut Chain<'w>,
    operator: usize,
}

impl<K: StoredKey> Tables<K> for TableOf<'_, '_> {
    fn table<V: StateValue>(&mut self) -> Keyed<K, V> {
        self.chain.keyed(self.operator)
    }
}
