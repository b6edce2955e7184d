//! Records that have met, on their way out.

use std::collections::VecDeque;

use super::{Arrived, Waiting};
use crate::{
    join::{Matching, Pair, Side},
    record::Slot,
    state::StoredKey,
    time::Timestamp,
};

/// Pairs of one record, or records of one key that have met nobody.
#[derive(Debug)]
pub struct Met<'m, K, L, R, M>(Kind<'m, K, L, R>, std::marker::PhantomData<M>);

#[derive(Debug)]
enum Kind<'m, K, L, R> {
    Range(Range<'m, K, L, R>),
    Alone { key: K, records: VecDeque<(Timestamp, Side<L, R>)>, current: Option<(Timestamp, Side<L, R>)> },
}

/// A record with those that it meets.
#[derive(Debug)]
pub(super) struct Range<'m, K, L, R> {
    pub(super) key: K,
    pub(super) waiting: &'m Waiting<L, R>,
    pub(super) arrived: Arrived,
}

impl<'m, K: StoredKey, L, R, M: Matching> Met<'m, K, L, R, M> {
    pub(super) fn range(range: Range<'m, K, L, R>) -> Self {
        Met(Kind::Range(range), std::marker::PhantomData)
    }

    pub(super) fn alone(key: K, records: VecDeque<(Timestamp, Side<L, R>)>) -> Self {
        Met(Kind::Alone { key, records, current: None }, std::marker::PhantomData)
    }

    /// The next one.
    #[inline]
    pub fn next_pair(&mut self) -> Option<Pair<'_, K, L, R, M>> {
        match &mut self.0 {
            Kind::Range(Range { key, waiting, arrived }) => {
                let partner = arrived.partners.next()?;
                let (left, right) = match arrived.side {
                    Side::Left(()) => (arrived.at, partner),
                    Side::Right(()) => (partner, arrived.at),
                };
                let (left, right) = (waiting.left.get(left)?, waiting.right.get(right)?);
                let timestamp = left.0.max(right.0);
                let (left, right) = M::pair(Some(&left.2), Some(&right.2))?;
                Some(Pair { key: Slot::new(key.clone()), timestamp, left, right })
            }
            Kind::Alone { key, records, current } => {
                let (timestamp, record) = current.insert(records.pop_front()?);
                let (left, right) = match record {
                    Side::Left(record) => M::pair(Some(record), None),
                    Side::Right(record) => M::pair(None, Some(record)),
                }?;
                Some(Pair { key: Slot::new(key.clone()), timestamp: *timestamp, left, right })
            }
        }
    }
}
