//! A list that nearly always has one element, which is in place then: the entry of a key holds its window itself.
//!
//! Elements are in order, and mostly leave at the front and come at the back; where there are many, they are found by
//! bisection.

use std::{
    collections::VecDeque,
    ops::{Index, IndexMut},
    slice,
};

#[derive(Clone, Debug)]
pub(in crate::window) enum Few<T> {
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
    pub(in crate::window) fn first(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline(always)]
    pub(in crate::window) fn last(&self) -> Option<&T> {
        match self {
            Few::None => None,
            Few::One(value) => Some(value),
            Few::Many(values) => values.back(),
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

    fn parts(&self) -> (&[T], &[T]) {
        match self {
            Few::None => (&[], &[]),
            Few::One(value) => (slice::from_ref(value), &[]),
            Few::Many(values) => values.as_slices(),
        }
    }

    #[inline]
    pub(in crate::window) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (front, back) = self.parts();
        front.iter().chain(back)
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

impl<T> From<Vec<T>> for Few<T> {
    fn from(mut values: Vec<T>) -> Self {
        if values.len() > 1 {
            return Few::Many(Box::new(values.into()));
        }
        values.pop().map_or(Few::None, Few::One)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_whatever_its_length() {
        let mut few = Few::from(Vec::new());
        assert_eq!((few.len(), few.first(), few.last()), (0, None, None));
        assert_eq!(few.remove(0), None);
        for (at, value) in [(0, 2), (0, 1), (2, 4), (2, 3)] {
            few.insert(at, value);
        }
        let all = |few: &Few<i32>| few.iter().copied().collect::<Vec<_>>();
        assert_eq!(all(&few), [1, 2, 3, 4]);
        assert_eq!((few.first(), few.last(), few.get(4)), (Some(&1), Some(&4), None));
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
