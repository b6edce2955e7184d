//! A list that nearly always has one element, which is in place then: the entry of a key holds its window itself.

use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug)]
pub(in crate::window) enum Few<T> {
    None,
    One(T),
    Many(Vec<T>),
}

impl<T> Few<T> {
    pub(in crate::window) fn insert(&mut self, at: usize, value: T) {
        match self {
            Few::None => *self = Few::One(value),
            Few::Many(values) => values.insert(at, value),
            Few::One(_) => {
                let mut values = self.take();
                values.insert(at, value);
                *self = Few::Many(values);
            }
        }
    }

    /// Takes out those that `wanted` chooses.
    pub(in crate::window) fn extract(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let (wanted, others) = self.take().into_iter().partition(|value| wanted(value));
        *self = Few::from(others);
        wanted
    }

    pub(in crate::window) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        match self {
            Few::None => {}
            Few::One(value) => {
                if !keep(value) {
                    *self = Few::None;
                }
            }
            Few::Many(values) => {
                values.retain(keep);
                if values.len() <= 1 {
                    *self = values.pop().map_or(Few::None, Few::One);
                }
            }
        }
    }

    fn take(&mut self) -> Vec<T> {
        match std::mem::replace(self, Few::None) {
            Few::None => Vec::new(),
            Few::One(value) => vec![value],
            Few::Many(values) => values,
        }
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(mut values: Vec<T>) -> Self {
        if values.len() > 1 {
            return Few::Many(values);
        }
        values.pop().map_or(Few::None, Few::One)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(value) => std::slice::from_ref(value),
            Few::Many(values) => values,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::None => &mut [],
            Few::One(value) => std::slice::from_mut(value),
            Few::Many(values) => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_whatever_its_length() {
        let mut few = Few::from(Vec::new());
        for (at, value) in [(0, 2), (0, 1), (2, 4), (2, 3)] {
            few.insert(at, value);
        }
        assert_eq!(few[..], [1, 2, 3, 4]);
        assert_eq!(few.extract(|value| value % 2 == 0), [2, 4]);
        assert_eq!(few[..], [1, 3]);
        few.retain(|value| *value == 3);
        assert!(matches!(few, Few::One(3)), "in place again");
        few[0] += 1;
        assert!(few.extract(|_| false).is_empty());
        few.retain(|value| *value == 3);
        assert!(few.is_empty());
    }
}
