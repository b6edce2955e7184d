//! State of an operator that belongs to no key.
//!
//! # How an operator uses it
//!
//! The wiring asks its chain for it, and says what becomes of the items when the job goes on at another parallelism:
//!
//! ```ignore
//! let rules = chain.operator_state::<HashMap<String, Rule>>(3, "rules", Redistribution::Broadcast);
//! ```
//!
//! The handle is cloned into the closures of the chain, which borrow it for each batch like a table of keyed state. What
//! the last checkpoint holds is in it from the start. A container that is not in the standard library implements
//! [`StateItems`]; what is not kept as a list of items at all, such as the records that an operator has under way, does
//! so as well, and makes the list when it is asked for it.
//!
//! The plan of the operator says [`operator_state`](crate::plan::OperatorPlan::operator_state), so that a checkpoint knows
//! the operator and another program that has lost it is refused.
//!
//! At a barrier the items are copied, on the worker, and encoded and written elsewhere; an operator whose state has not
//! been borrowed for writing since the last barrier costs a checkpoint nothing. So operator state is for what is small, or
//! changes seldom: what grows with the number of keys belongs into a table.

use std::{
    cell::{Ref, RefCell, RefMut},
    collections::{BTreeMap, HashMap, VecDeque},
    hash::{BuildHasher, Hash},
    ops::{Deref, DerefMut},
    rc::Rc,
};

use bytes::Bytes;

use super::StateValue;
use crate::checkpoint::{CheckpointError, decode_entries, encode_entry};

/// What becomes of the items of all subtasks when the number of subtasks changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redistribution {
    /// Each subtask gets an equal share of all items, in their order. With as many subtasks as before, each gets its own.
    #[default]
    Even,
    /// Each subtask gets all items, in the order of the subtasks they were of.
    Union,
    /// All subtasks hold the same: one copy is stored, and each gets it.
    Broadcast,
}

/// A container that a checkpoint holds as a list of items.
pub trait StateItems: 'static {
    /// An item.
    type Item: StateValue;

    /// The items as they are now, in an order that means something to [`add`](Self::add).
    fn items(&self) -> Vec<Self::Item>;

    /// Takes up items of a checkpoint, in the order of the subtasks they were of, and in each as they were given.
    fn add(&mut self, items: Vec<Self::Item>);
}

/// Nothing to remember.
impl StateItems for () {
    type Item = ();
    fn items(&self) -> Vec<()> {
        Vec::new()
    }
    fn add(&mut self, _: Vec<()>) {}
}

impl<T: StateValue> StateItems for Vec<T> {
    type Item = T;
    fn items(&self) -> Vec<T> {
        self.clone()
    }
    fn add(&mut self, items: Vec<T>) {
        self.extend(items);
    }
}

impl<T: StateValue> StateItems for VecDeque<T> {
    type Item = T;
    fn items(&self) -> Vec<T> {
        self.iter().cloned().collect()
    }
    fn add(&mut self, items: Vec<T>) {
        self.extend(items);
    }
}

impl<K, V, S> StateItems for HashMap<K, V, S>
where
    K: StateValue + Eq + Hash,
    V: StateValue,
    S: BuildHasher + Default + 'static,
{
    type Item = (K, V);
    fn items(&self) -> Vec<(K, V)> {
        self.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
    fn add(&mut self, items: Vec<(K, V)>) {
        self.extend(items);
    }
}

impl<K, V> StateItems for BTreeMap<K, V>
where
    K: StateValue + Ord,
    V: StateValue,
{
    type Item = (K, V);
    fn items(&self) -> Vec<(K, V)> {
        self.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
    fn add(&mut self, items: Vec<(K, V)>) {
        self.extend(items);
    }
}

/// A handle to the operator state of one operator in one subtask; the chain's loop borrows it for each batch, the
/// checkpoint in between.
#[derive(Debug)]
pub struct OperatorState<C>(Rc<RefCell<Held<C>>>);

/// What a handle shares with the checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Held<C> {
    pub(crate) content: C,
    /// Whether it may have changed since the last barrier.
    pub(crate) changed: bool,
}

impl<C> Clone for OperatorState<C> {
    fn clone(&self) -> Self {
        OperatorState(Rc::clone(&self.0))
    }
}

impl<C> OperatorState<C> {
    /// With this content.
    pub(crate) fn of(content: C) -> Self {
        OperatorState(Rc::new(RefCell::new(Held { content, changed: true })))
    }

    /// To read it.
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, C> {
        Ref::map(self.0.borrow(), |held| &held.content)
    }

    /// To change it. What is only read through this does not count as changed.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> OperatorStateMut<'_, C> {
        OperatorStateMut(self.0.borrow_mut())
    }
}

/// What a loop borrows.
#[derive(Debug)]
pub struct OperatorStateMut<'s, C>(RefMut<'s, Held<C>>);

impl<C> Deref for OperatorStateMut<'_, C> {
    type Target = C;
    #[inline(always)]
    fn deref(&self) -> &C {
        &self.0.content
    }
}

impl<C> DerefMut for OperatorStateMut<'_, C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut C {
        self.0.changed = true;
        &mut self.0.content
    }
}

/// The items at a barrier.
pub(crate) struct Items {
    pub(crate) count: usize,
    /// Runs on a thread that may take its time.
    pub(crate) encode: Box<dyn FnOnce() -> Result<Bytes, CheckpointError> + Send>,
}

/// What a checkpoint needs of an [`OperatorState`], whatever its type.
pub(crate) trait OperatorPort {
    /// Takes up the parts of a checkpoint, in the order of their subtasks: all of them, or an equal share.
    fn restore(&self, parts: &[Bytes], share: Share) -> Result<(), CheckpointError>;

    /// A barrier. Returns nothing if nothing has changed since the last one, unless asked for `all` the same.
    fn close(&self, all: bool) -> Option<Items>;
}

/// Which of all items a subtask gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    /// The part of this number, of so many.
    Of(usize, usize),
}

impl<C: StateItems> Held<C> {
    /// As [`OperatorPort::restore`].
    pub(crate) fn restore(&mut self, parts: &[Bytes], share: Share) -> Result<(), CheckpointError> {
        let mut items = Vec::new();
        for part in parts {
            for entry in decode_entries::<(), C::Item>(part) {
                items.extend(entry?.1);
            }
        }
        if let Share::Of(number, parts) = share {
            let (from, to) = (items.len() * number / parts, items.len() * (number + 1) / parts);
            items.truncate(to);
            items.drain(..from);
        }
        self.content.add(items);
        Ok(())
    }

    /// As [`OperatorPort::close`].
    pub(crate) fn close(&mut self, all: bool) -> Option<Items> {
        if !std::mem::replace(&mut self.changed, false) && !all {
            return None;
        }
        let items = self.content.items();
        Some(Items { count: items.len(), encode: Box::new(move || encode(&items)) })
    }
}

impl<C: StateItems> OperatorPort for OperatorState<C> {
    fn restore(&self, parts: &[Bytes], share: Share) -> Result<(), CheckpointError> {
        self.0.borrow_mut().restore(parts, share)
    }

    fn close(&self, all: bool) -> Option<Items> {
        self.0.borrow_mut().close(all)
    }
}

fn encode<T: StateValue>(items: &[T]) -> Result<Bytes, CheckpointError> {
    let mut bytes = Vec::new();
    items.iter().try_for_each(|item| encode_entry(&mut bytes, &(), item))?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The items of a subtask, as a checkpoint holds them.
    fn part(items: &[u32]) -> Bytes {
        let state = OperatorState::of(items.to_vec());
        let items = state.close(false).expect("it is new");
        (items.encode)().expect("numbers can be written")
    }

    fn restored(parts: &[Bytes], share: Share) -> Vec<u32> {
        let state = OperatorState::<Vec<u32>>::of(Vec::new());
        state.restore(parts, share).expect("what was written can be read");
        std::mem::take(&mut *state.borrow_mut())
    }

    proptest! {
        #[test]
        fn shares_are_equal_and_together_all(
            subtasks in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..9), 0..5),
            now in 1usize..7,
        ) {
            let parts: Vec<Bytes> = subtasks.iter().map(|items| part(items)).collect();
            let all = subtasks.concat();
            prop_assert_eq!(&restored(&parts, Share::All), &all);
            let shares: Vec<Vec<u32>> = (0..now).map(|n| restored(&parts, Share::Of(n, now))).collect();
            prop_assert_eq!(shares.concat(), all.clone());
            for share in shares {
                prop_assert!(share.len() == all.len() / now || share.len() == all.len().div_ceil(now));
            }
        }
    }

    #[test]
    fn maps_come_back() {
        let state = OperatorState::of(BTreeMap::from([("a".to_owned(), 1u8), ("b".to_owned(), 2)]));
        let items = state.close(false).expect("it is new");
        assert_eq!(items.count, 2);
        let bytes = (items.encode)().unwrap();
        let hashed = OperatorState::<HashMap<String, u8>>::of(HashMap::new());
        hashed.restore(&[bytes], Share::All).unwrap();
        assert_eq!(hashed.borrow().len(), 2);
        assert_eq!(hashed.borrow()["b"], 2);
    }

    #[test]
    fn only_what_was_borrowed_to_write_counts_as_changed() {
        let state = OperatorState::of(vec![1u8]);
        assert!(state.close(false).is_some());
        assert_eq!(state.borrow_mut().len(), 1);
        assert_eq!(state.borrow().len(), 1);
        assert!(state.close(false).is_none());
        assert_eq!(state.close(true).map(|items| items.count), Some(1));
        state.borrow_mut().push(2);
        assert_eq!(state.close(false).map(|items| items.count), Some(2));
    }

    #[test]
    fn damage_is_an_error() {
        let state = OperatorState::<Vec<u32>>::of(Vec::new());
        let whole = part(&[1, 2, 3]);
        assert!(state.restore(&[whole.slice(..whole.len() - 1)], Share::All).is_err());
        let texts = OperatorState::<Vec<String>>::of(Vec::new());
        assert!(texts.restore(&[whole], Share::All).is_err());
    }
}
