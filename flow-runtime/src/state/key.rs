//! Keys: what partitions a stream, and under which keyed state is stored.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;

use crate::record::{Lend, Octets, Portable, Record, Text};

/// The number of a key group: keys with equal hash modulo `max_parallelism`. State moves between subtasks by whole
/// groups, so that a restore may use another parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyGroup(pub u32);

/// How key groups are dealt out: group `g` of `max_parallelism` belongs to subtask `g * parallelism / max_parallelism`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyGroups {
    pub(crate) max_parallelism: u32,
    pub(crate) parallelism: u32,
}

impl KeyGroups {
    /// The group of a hash. Bits from the middle decide, since the hash table uses the lowest for the bucket and the
    /// seven highest as tags: a subtask's keys would otherwise share them.
    #[inline(always)]
    pub(crate) fn group(self, hash: u64) -> KeyGroup {
        let middle = u64::from((hash >> 20) as u32);
        KeyGroup(((middle * u64::from(self.max_parallelism)) >> 32) as u32)
    }

    /// The subtask that owns a group.
    #[inline(always)]
    pub(crate) fn owner(self, group: KeyGroup) -> usize {
        (u64::from(group.0) * u64::from(self.parallelism) / u64::from(self.max_parallelism)) as usize
    }
}

/// The hash by which keys are partitioned and found. Checkpoints depend on it: foldhash promises no stability between
/// versions, hence its version is pinned, and another one needs another checkpoint format.
#[inline(always)]
pub(crate) fn hash<K: Hash + ?Sized>(key: &K) -> u64 {
    FixedState::default().hash_one(key)
}

/// A key as it flows in a chain, perhaps borrowed: `&str`, a number, a tuple of keys, or a type of your own with
/// `#[derive(Key)]`.
///
/// State is looked up by this form; only a new key is owned. Equal keys must have equal hashes, also between the two
/// forms.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "this key cannot be hashed and compared for equality, or not stored",
    note = "for a type of your own: `#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, flow::Key)]`; floating-point numbers are no keys, since NaN equals nothing: use an integer, or `f64::to_bits`"
)]
pub trait Key: Record<Owned = Self::Stored> + Hash {
    /// The form in state. A name of its own for [`Record::Owned`], so that what is a record but no key (a `f64`) has
    /// none, and rustc says so once.
    type Stored: StoredKey;

    /// Whether this is the stored key.
    fn is(&self, stored: &Self::Stored) -> bool;

    /// A copy to store: called for a new key only.
    fn store(&self) -> Self::Stored;
}

/// The owned form of a [`Key`], in state and between subtasks.
pub trait StoredKey: Lend + Portable + Hash + Eq + Clone {}
impl<K: Lend + Portable + Hash + Eq + Clone> StoredKey for K {}

/// What a type parameter of a key of your own has to be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "this key cannot be hashed and compared for equality, or not stored",
    note = "for a type of your own: `#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, flow::Key)]`"
)]
pub trait StoredKeyPart: Portable + Hash + Eq + Clone {}

#[diagnostic::do_not_recommend]
impl<K: Portable + Hash + Eq + Clone> StoredKeyPart for K {}

impl Key for &str {
    type Stored = Text;
    #[inline(always)]
    fn is(&self, stored: &Text) -> bool {
        *self == stored.as_str()
    }
    #[inline]
    fn store(&self) -> Text {
        (*self).into_owned()
    }
}

impl Key for &[u8] {
    type Stored = Octets;
    #[inline(always)]
    fn is(&self, stored: &Octets) -> bool {
        *self == stored.as_slice()
    }
    #[inline]
    fn store(&self) -> Octets {
        (*self).into_owned()
    }
}

macro_rules! owned_keys {
    ($($t:ty),* $(,)?) => { $(
        impl Key for $t {
            type Stored = $t;
            #[inline(always)]
            fn is(&self, stored: &$t) -> bool { self == stored }
            #[inline]
            fn store(&self) -> $t { self.clone() }
        }
    )* };
}

owned_keys! {
    (), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, String,
    std::time::Duration, std::net::IpAddr,
    crate::time::Timestamp, crate::window::Window,
}

impl<T: Key> Key for Option<T> {
    type Stored = Option<T::Stored>;
    #[inline]
    fn is(&self, stored: &Self::Stored) -> bool {
        match (self, stored) {
            (Some(key), Some(stored)) => key.is(stored),
            (None, None) => true,
            _ => false,
        }
    }
    #[inline]
    fn store(&self) -> Self::Stored {
        self.as_ref().map(T::store)
    }
}

macro_rules! tuple_keys {
    ($( ($($t:ident $i:tt),+) )*) => { $(
        impl<$($t: Key),+> Key for ($($t,)+) {
            type Stored = ($($t::Stored,)+);
            #[inline(always)]
            fn is(&self, stored: &Self::Stored) -> bool { $(self.$i.is(&stored.$i))&&+ }
            #[inline]
            fn store(&self) -> Self::Stored { ($(self.$i.store(),)+) }
        }
    )* };
}

tuple_keys! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<K: Key + Clone>(key: K) {
        let owned = key.clone().into_owned();
        assert_eq!(hash(&key), hash(&owned));
        assert!(key.is(&owned));
    }

    #[test]
    fn borrowed_and_owned_keys_hash_alike() {
        agrees("a word");
        agrees(("a", 7u64, Some("b")));
        agrees(&b"bytes"[..]);
        agrees(String::from("s"));
    }

    #[test]
    fn every_group_has_an_owner_and_every_subtask_a_group() {
        for parallelism in 1..=128 {
            let groups = KeyGroups { max_parallelism: 128, parallelism };
            let owners: std::collections::BTreeSet<_> = (0..128).map(|g| groups.owner(KeyGroup(g))).collect();
            assert_eq!(owners, (0..parallelism as usize).collect());
        }
    }

    #[test]
    fn groups_stay_in_range() {
        let groups = KeyGroups { max_parallelism: 128, parallelism: 2 };
        for hash in [0, 1, u64::MAX, u64::MAX / 2, 1 << 32] {
            assert!(groups.group(hash).0 < 128);
        }
    }
}
