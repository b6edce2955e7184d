//! A list that nearly always has one element, which is in place then: the entry of a key holds its window itself, with what
//! its trigger remembers.
//!
//! Elements are in order, and mostly leave at the front and come at the back; where there are many, they are found by
//! bisection.

use std::{
    collections::VecDeque,
    ops::{Index, IndexMut},
    slice,
};

use super::{List, Open};

#[derive(Clone, Debug, Default)]
pub enum Few<T> {
    #[default]
    None,
    One(T),
    /// Boxed, so that one element decides the size.
    #[allow(clippy::box_collection, reason = "the box is what keeps it small")]
    Many(Box<VecDeque<T>>),
}

impl<T> Few<T> {
    #[inline(always)]
    pub(in crate::window) fn len(&self) -> usize {
        match self {
            Few::None => 0,
            Few::One(_) => 1,
            Few::Many(values) => values.len(),
        }
    }

    #[inline(always)]
    pub(in crate::window) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub(in crate::window) fn get(&self, at: usize) -> Option<&T> {
        match self {
            Few::None => None,
            Few::One(value) => (at == 0).then_some(value),
            Few::Many(values) => values.get(at),
        }
    }

    #[inline(always)]
    pub(in crate::window) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        match self {
            Few::None => None,
            Few::One(value) => (at == 0).then_some(value),
            Few::Many(values) => values.get_mut(at),
        }
    }

    #[inline(always)]
    pub(in crate::window) fn last_mut(&mut self) -> Option<&mut T> {
        match self {
            Few::None => None,
            Few::One(value) => Some(value),
            Few::Many(values) => values.back_mut(),
        }
    }

    /// How many elements at the front are such that `is` holds, which it does for none after those.
    #[inline]
    pub(in crate::window) fn partition_point(&self, mut is: impl FnMut(&T) -> bool) -> usize {
        match self {
            Few::None => 0,
            Few::One(value) => usize::from(is(value)),
            Few::Many(values) => values.partition_point(is),
        }
    }

    pub(in crate::window) fn insert(&mut self, at: usize, value: T) {
        match std::mem::replace(self, Few::None) {
            Few::None => *self = Few::One(value),
            Few::One(one) => {
                let mut values = VecDeque::with_capacity(2);
                values.push_back(one);
                values.insert(at, value);
                *self = Few::Many(Box::new(values));
            }
            Few::Many(mut values) => {
                values.insert(at, value);
                *self = Few::Many(values);
            }
        }
    }

    pub(in crate::window) fn remove(&mut self, at: usize) -> Option<T> {
        match std::mem::replace(self, Few::None) {
            Few::None => None,
            Few::One(value) => (at == 0).then_some(value),
            Few::Many(mut values) => {
                let removed = values.remove(at);
                *self = match values.len() {
                    0 | 1 => values.pop_front().map_or(Few::None, Few::One),
                    _ => Few::Many(values),
                };
                removed
            }
        }
    }
}

impl<T> Index<usize> for Few<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, at: usize) -> &T {
        match self {
            Few::None => &<&[T]>::default()[at],
            Few::One(value) => &slice::from_ref(value)[at],
            Few::Many(values) => &values[at],
        }
    }
}

impl<T> IndexMut<usize> for Few<T> {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut T {
        match self {
            Few::None => &mut <&mut [T]>::default()[at],
            Few::One(value) => &mut slice::from_mut(value)[at],
            Few::Many(values) => &mut values[at],
        }
    }
}

impl<W, H, O> List<W, H, O> for Few<Open<W, H, O>>
where
    W: Copy + PartialEq + Send,
    H: Clone + Send,
    O: Clone + Send,
{
    #[inline(always)]
    fn len(&self) -> usize {
        Few::len(self)
    }

    #[inline(always)]
    fn window(&self, at: usize) -> Option<W> {
        self.get(at).map(|open| open.window)
    }

    #[inline(always)]
    fn held(&self, at: usize) -> Option<&H> {
        self.get(at)?.held.as_ref()
    }

    #[inline(always)]
    fn held_mut(&mut self, at: usize) -> Option<&mut H> {
        self.get_mut(at)?.held.as_mut()
    }

    #[inline(always)]
    fn near(&mut self, window: &W) -> Option<&mut H> {
        self.last_mut().filter(|last| last.window == *window)?.held.as_mut()
    }

    #[inline(always)]
    fn only(&mut self) -> Option<(W, &mut H)> {
        match self {
            Few::One(Open { window, held: Some(held), .. }) => Some((*window, held)),
            _ => None,
        }
    }

    fn of(&self, at: usize) -> Option<&O> {
        self.get(at).map(|open| &open.timing)
    }

    #[inline(always)]
    fn with<R>(&mut self, at: usize, something: impl FnOnce(&W, &mut O) -> R) -> Option<R> {
        self.get_mut(at).map(|Open { window, timing, .. }| something(window, timing))
    }

    fn set_held(&mut self, at: usize, held: Option<H>) {
        if let Some(open) = self.get_mut(at) {
            open.held = held;
        }
    }

    #[inline(always)]
    fn set_window(&mut self, at: usize, window: W) {
        if let Some(open) = self.get_mut(at) {
            open.window = window;
        }
    }

    fn insert(&mut self, at: usize, open: Open<W, H, O>) {
        Few::insert(self, at, open);
    }

    fn remove(&mut self, at: usize) -> Option<Open<W, H, O>> {
        Few::remove(self, at)
    }

    #[inline]
    fn partition_point(&self, mut is: impl FnMut(&W) -> bool) -> usize {
        Few::partition_point(self, |open| is(&open.window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_whatever_its_length() {
        let mut few = Few::default();
        assert_eq!((few.len(), few.get(0), few.get(1)), (0, None, None));
        assert_eq!(few.remove(0), None);
        for (at, value) in [(0, 2), (0, 1), (2, 4), (2, 3)] {
            few.insert(at, value);
        }
        let all = |few: &Few<i32>| (0..few.len()).map(|at| few[at]).collect::<Vec<_>>();
        assert_eq!(all(&few), [1, 2, 3, 4]);
        assert_eq!((few.get(0), few.get(4)), (Some(&1), None));
        assert_eq!(few.last_mut(), Some(&mut 4));
        assert_eq!(few.partition_point(|value| *value < 3), 2);
        assert_eq!((few.remove(0), few.remove(2)), (Some(1), Some(4)));
        assert_eq!(all(&few), [2, 3]);
        assert_eq!(few.remove(0), Some(2));
        assert!(matches!(few, Few::One(3)), "in place again");
        few[0] += 1;
        assert_eq!((few.len(), few[0], few.partition_point(|value| *value < 3)), (1, 4, 0));
        assert_eq!((few.remove(1), few.remove(0)), (None, None));
    }
}
