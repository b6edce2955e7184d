//! The names of prepared transactions: whose they are, and which.
//!
//! ```text
//! flow:shop~1f0c9a33b2:orders.sink~90ab12cd34:2.1a.8c3f55d0e1b2a394.5f.3b9ac1d2e4f0
//! ---- job ---------- sink ------------------ | |  attempt          |  secret
//!                                             | epoch               connection
//!                                             subtask
//! ```
//!
//! A job and a sink are told by the beginning of their name, for people, and by a hash of all of it. XA takes two parts of
//! up to 64 bytes: the last colon parts them.

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::owner::Owner;

/// How much of a name is shown.
const SHOWN: usize = 14;
/// The bits of a name's hash.
const HASH: u64 = (1 << 40) - 1;
/// The bits of the secret.
const SECRET: u64 = (1 << 48) - 1;

/// What names a prepared transaction in its database.
///
/// No two transactions ever have the same, and nobody can guess one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransactionId {
    /// Of the job and the sink: what [`sink_prefix`] gives, without its colon.
    owner: String,
    /// The subtask that wrote it.
    pub(super) subtask: u32,
    /// The checkpoint that it belongs to. XA wants the name when the transaction begins, and then it is the one that is
    /// expected: after a restore from an older checkpoint the first may bear another number.
    pub(super) epoch: u64,
    /// The attempt of the job.
    pub(super) attempt: u64,
    /// The connection that made it, where the database may have to close it; 0 elsewhere.
    pub(super) connection: u32,
    secret: u64,
}

impl TransactionId {
    pub(super) fn new(owner: &Owner, subtask: usize, epoch: u64, connection: u32) -> Self {
        let owner_name = sink_prefix(&owner.job, &owner.sink);
        // Each of these hashers has a key from the system's randomness.
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write(owner_name.as_bytes());
        hasher.write_u64(epoch);
        TransactionId {
            owner: owner_name.trim_end_matches(':').to_owned(),
            subtask: u32::try_from(subtask).unwrap_or(u32::MAX),
            epoch,
            attempt: owner.attempt,
            connection,
            secret: hasher.finish() & SECRET,
        }
    }

    /// The two parts of an XA name.
    #[cfg(feature = "mysql")]
    pub(super) fn xa(&self) -> (&str, String) {
        (&self.owner, self.branch())
    }

    fn branch(&self) -> String {
        let TransactionId { subtask, epoch, attempt, connection, secret, .. } = self;
        format!("{subtask:x}.{epoch:x}.{attempt:x}.{connection:x}.{secret:x}")
    }

    /// The subtask that wrote it.
    #[must_use]
    pub fn subtask(&self) -> usize {
        self.subtask as usize
    }

    /// The checkpoint that it belongs to. In MariaDB and MySQL the first of an attempt that was restored from an older
    /// checkpoint may bear a lower number.
    #[must_use]
    pub fn checkpoint(&self) -> u64 {
        self.epoch
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.owner, self.branch())
    }
}

/// A name that is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a transaction of flow: expected `flow:JOB:SINK:..`")]
pub struct NotOurs;

impl FromStr for TransactionId {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let (owner, branch) = text.rsplit_once(':').ok_or(NotOurs)?;
        let mut numbers = branch.split('.').map(|n| u64::from_str_radix(n, 16).map_err(|_| NotOurs));
        let mut next = || numbers.next().ok_or(NotOurs)?;
        let small = |n: u64| u32::try_from(n).map_err(|_| NotOurs);
        let (subtask, epoch, attempt) = (small(next()?)?, next()?, next()?);
        let (connection, secret) = (small(next()?)?, next()?);
        let id = TransactionId { owner: owner.to_owned(), subtask, epoch, attempt, connection, secret };
        // Only what we write ourselves, so that nothing that is read can end a quoted text.
        let ours = owner.starts_with("flow:") && owner.bytes().all(|b| b == b':' || b == b'~' || plain(b));
        if ours && id.to_string() == text { Ok(id) } else { Err(NotOurs) }
    }
}

impl Serialize for TransactionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TransactionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What the names of all transactions of a sink begin with.
pub(super) fn sink_prefix(job: &str, sink: &str) -> String {
    format!("flow:{}:{}:", part(job), part(sink))
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn part(name: &str) -> String {
    let shown: String =
        name.chars().take(SHOWN).map(|c| if c.is_ascii() && plain(c as u8) { c } else { '_' }).collect();
    format!("{shown}~{:010x}", fnv(name.as_bytes()) & HASH)
}

/// FNV-1a: the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(job: &str, sink: &str) -> Owner {
        Owner { job: job.into(), sink: sink.into(), attempt: 0xfedc_ba98_7654_3210 }
    }

    #[test]
    fn a_name_is_read_back() {
        let id = TransactionId::new(&owner("shop", "orders.sink"), 2, 26, 95);
        let text = id.to_string();
        assert!(text.starts_with(&sink_prefix("shop", "orders.sink")), "{text}");
        assert_eq!(text.parse::<TransactionId>(), Ok(id.clone()));
        let packed = rmp_serde::to_vec_named(&id).unwrap();
        assert_eq!(rmp_serde::from_slice::<TransactionId>(&packed).unwrap(), id);
    }

    #[test]
    fn no_two_are_equal() {
        let make = || TransactionId::new(&owner("a", "b"), 0, 1, 0).to_string();
        assert_ne!(make(), make());
    }

    #[test]
    #[cfg(feature = "mysql")]
    fn the_parts_fit_into_xa_and_the_whole_into_postgres() {
        for name in ["", "a", "orders of ':' and \"\u{1f980}\" in 'quotes'", &"x".repeat(300)] {
            let mut id = TransactionId::new(&owner(name, name), usize::MAX, u64::MAX, u32::MAX);
            id.secret = SECRET;
            let (global, branch) = id.xa();
            assert!(global.len() <= 64 && branch.len() <= 64, "{id}");
            assert!(id.to_string().len() < 200);
            assert!(id.to_string().bytes().all(|b| plain(b) || b == b':' || b == b'~'), "{id}");
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn no_sink_has_the_prefix_of_another() {
        let names =
            ["", "a", "ab", "a:b", "a.b", "A", "the same first letters 1", "the same first letters 2"];
        let mut prefixes: Vec<_> =
            names.iter().flat_map(|job| names.map(|sink| sink_prefix(job, sink))).collect();
        prefixes.sort();
        for pair in prefixes.windows(2) {
            assert!(!pair[1].starts_with(&pair[0]), "{pair:?}");
        }
        // A name must mean the same in every version: it is in checkpoints.
        assert_eq!(part("shop"), "shop~18e28e2409");
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let id = TransactionId::new(&owner("a", "b"), 1, 2, 3).to_string();
        for text in [
            "",
            "x",
            "flow:a:b",
            "other:a~0000000000:b~0000000000:1.2.3.4.5",
            "flow:a';--~0000000000:b~0000000000:1.2.3.4.5",
            "flow:a~0000000000:b~0000000000:1.2.3.4",
            "flow:a~0000000000:b~0000000000:1.2.3.4.5.6",
            "flow:a~0000000000:b~0000000000:01.2.3.4.5",
            "flow:a~0000000000:b~0000000000:1ffffffff.2.3.4.5",
            &format!("{id} "),
        ] {
            assert_eq!(text.parse::<TransactionId>(), Err(NotOurs), "{text}");
        }
    }
}
