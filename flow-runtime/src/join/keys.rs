//! Keys as operators with two inputs are given them: owned, and of the same type on both sides.

use std::hash::{Hash, Hasher};

use crate::{
    record::Record,
    state::{Key, StoredKey},
};

/// What the keys of one stream have to be, where those of the other one are `K`: the same.
#[diagnostic::on_unimplemented(
    message = "the keys of the two streams are of different types: `{K}` and `{Self}`",
    label = "this key is a `{Self}`, and that of the other stream a `{K}`",
    note = "the records of both streams meet by equal keys: let both closures return the same type"
)]
pub trait SameKey<K> {
    /// The key.
    fn same(self) -> K;
    /// The same key, the other way round.
    fn same_ref(key: &K) -> &Self;
}

#[diagnostic::do_not_recommend]
impl<K> SameKey<K> for K {
    #[inline(always)]
    fn same(self) -> K {
        self
    }
    #[inline(always)]
    fn same_ref(key: &K) -> &K {
        key
    }
}

/// A key in the form in which it is stored.
pub(crate) struct Owned<'k, K>(pub(crate) &'k K);

impl<K: StoredKey> Record for Owned<'_, K> {
    type Owned = K;
    fn into_owned(self) -> K {
        self.0.clone()
    }
}

impl<K: StoredKey> Hash for Owned<'_, K> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K: StoredKey> Key for Owned<'_, K> {
    type Stored = K;
    #[inline(always)]
    fn is(&self, stored: &K) -> bool {
        self.0 == stored
    }
    #[inline]
    fn store(&self) -> K {
        self.0.clone()
    }
}
