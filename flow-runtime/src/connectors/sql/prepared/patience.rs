//! How often a writer tries again, and when it gives up.

use std::time::Duration;

use tokio::time::Instant;

use crate::connectors::sql::{
    error::{Class, Fault, is_lock_timeout},
    retry::Backoff,
};

/// How long a server may be away, or busy.
const AWAY: Duration = Duration::from_secs(60);
/// How many waits for a lock that nobody of ours is about to release, of the session's 10 s each.
pub(super) const LOCK_WAITS: u32 = 3;
/// How many failures of a kind that is not known.
const UNCLEAR: u32 = 5;

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole transaction again; after a wait for a lock, orphans may be the cause.
    Again { locked: bool },
    /// The rows are refused.
    Refused,
    /// A lock does not go away.
    Locked,
    /// The server does not come back.
    GiveUp,
}

/// Of one call.
#[derive(Debug)]
pub(super) struct Patience {
    backoff: Backoff,
    since: Option<Instant>,
    locks: u32,
    unclear: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Patience { backoff: Backoff::new(), since: None, locks: 0, unclear: 0 }
    }

    /// `pending` says whether an earlier epoch of the same subtask waits for its checkpoint: its locks are the likely
    /// cause then, and go away with it, however long that takes.
    pub(super) fn judge(&mut self, fault: &Fault, pending: bool) -> Verdict {
        if is_lock_timeout(fault.error.as_ref()) {
            self.locks += u32::from(!pending);
            return if self.locks >= LOCK_WAITS { Verdict::Locked } else { Verdict::Again { locked: true } };
        }
        let again = match fault.class() {
            Class::Permanent => return Verdict::Refused,
            Class::Transient => true,
            Class::Unclear => {
                self.unclear += 1;
                self.unclear <= UNCLEAR
            }
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if again && since.elapsed() < AWAY { Verdict::Again { locked: false } } else { Verdict::GiveUp }
    }

    pub(super) async fn pause(&mut self) {
        self.backoff.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use diesel::result::{DatabaseErrorKind, Error};

    use super::*;
    use crate::connectors::sql::SqlError;

    fn fault(text: &str) -> Fault {
        Fault::new(SqlError::from(Error::DatabaseError(
            DatabaseErrorKind::Unknown,
            Box::new(text.to_owned()),
        )))
    }

    #[test]
    fn a_lock_that_stays_is_given_up_but_not_ones_own() {
        for text in [
            "Lock wait timeout exceeded; try restarting transaction",
            "canceling statement due to lock timeout",
        ] {
            let mut patience = Patience::new();
            for _ in 0..10 {
                assert_eq!(patience.judge(&fault(text), true), Verdict::Again { locked: true });
            }
            assert_eq!(patience.judge(&fault(text), false), Verdict::Again { locked: true });
            assert_eq!(patience.judge(&fault(text), false), Verdict::Again { locked: true });
            assert_eq!(patience.judge(&fault(text), false), Verdict::Locked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_be_away_for_a_while() {
        let mut patience = Patience::new();
        let deadlock = fault("Deadlock found when trying to get lock");
        assert_eq!(patience.judge(&deadlock, false), Verdict::Again { locked: false });
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(patience.judge(&deadlock, false), Verdict::Again { locked: false });
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(patience.judge(&deadlock, false), Verdict::GiveUp);
    }

    #[test]
    fn what_is_refused_is_refused_at_once() {
        assert_eq!(Patience::new().judge(&fault("Table 'x' doesn't exist"), false), Verdict::Refused);
        let mut patience = Patience::new();
        let odd = fault("something odd");
        for _ in 0..5 {
            assert_eq!(patience.judge(&odd, false), Verdict::Again { locked: false });
        }
        assert_eq!(patience.judge(&odd, false), Verdict::GiveUp);
    }
}
