//! Records that have met, on their way out.

use std::{collections::VecDeque, slice};

use super::state::Stamped;
use crate::{
    join::{Matching, Pair, Side},
    record::Slot,
    state::StoredKey,
    time::Timestamp,
};

/// Pairs of one record, or records of one key that have met nobody.
#[derive(Debug)]
pub struct Met<'m, K, L, R, M: Matching> {
    pub(super) key: K,
    pub(super) who: Who<'m, L, R, M>,
}

/// Who has met whom.
#[derive(Debug)]
pub(super) enum Who<'m, L, R, M: Matching> {
    /// A left record these right ones.
    Left(&'m Stamped<L, M::Noted>, slice::Iter<'m, Stamped<R, M::Noted>>),
    /// A right record these left ones.
    Right(slice::Iter<'m, Stamped<L, M::Noted>>, &'m Stamped<R, M::Noted>),
    /// These nobody.
    Alone { records: VecDeque<(Timestamp, Side<L, R>)>, current: Option<(Timestamp, Side<L, R>)> },
}

impl<K: StoredKey, L, R, M: Matching> Met<'_, K, L, R, M> {
    /// The next one.
    #[inline(always)]
    pub fn next_pair(&mut self) -> Option<Pair<'_, K, L, R, M>> {
        let (left, right) = match &mut self.who {
            Who::Left(left, rights) => (&**left, rights.next()?),
            Who::Right(lefts, right) => (lefts.next()?, &**right),
            Who::Alone { records, current } => {
                let (timestamp, record) = current.insert(records.pop_front()?);
                let (left, right) = match record {
                    Side::Left(record) => M::pair(Some(record), None),
                    Side::Right(record) => M::pair(None, Some(record)),
                }?;
                return Some(Pair { key: Slot::new(self.key.clone()), timestamp: *timestamp, left, right });
            }
        };
        let timestamp = left.time.max(right.time);
        let (left, right) = M::pair(Some(&left.record), Some(&right.record))?;
        Some(Pair { key: Slot::new(self.key.clone()), timestamp, left, right })
    }
}
