//! A list of windows of which nothing is remembered but what they hold. One window, or two of the same length, are in place:
//! the entry of a key holds them itself.
//!
//! Records that come out of order belong to two windows, the one that is about to fire and the next, so nearly all records
//! find their window in place. Whether a key has one or two of them cannot be foretold, so what is held is found alike,
//! where it costs nothing to copy: one window then is two that begin at the same time. The length lies where a variant is
//! told from the others, so that a window takes no more than its start and what it holds.

use std::collections::VecDeque;

use super::{List, Open};
use crate::{
    time::Timestamp,
    window::{Bounds, Window},
};

/// The length of a window, in milliseconds.
type Length = u32;

#[derive(Clone, Debug)]
pub enum InPlace<W, H> {
    None,
    /// Of what is not [flat](InPlace::FLAT).
    One {
        length: Length,
        start: Timestamp,
        held: H,
    },
    /// When they begin at the same time, only the first is there.
    Two {
        length: Length,
        starts: [Timestamp; 2],
        held: [H; 2],
    },
    /// More, or of different lengths, or of one that is longer than 49 days.
    Many(VecDeque<(W, H)>),
}

impl<W, H> Default for InPlace<W, H> {
    #[inline(always)]
    fn default() -> Self {
        InPlace::None
    }
}

#[inline(always)]
fn window<W: Bounds>(start: Timestamp, length: Length) -> W {
    W::spanning(Window { start, end: end(start, length) })
}

#[inline(always)]
fn end(start: Timestamp, length: Length) -> Timestamp {
    // It was the end of a window.
    Timestamp::from_millis(start.as_millis().wrapping_add(i64::from(length)))
}

/// The length, if it is one that windows in place can have.
#[inline(always)]
fn length(window: Window) -> Option<Length> {
    window.end.as_millis().checked_sub(window.start.as_millis())?.try_into().ok()
}

/// Whether the window that begins at `start` ends so late.
#[inline(always)]
fn is(window: Window, start: Timestamp, length: Length) -> bool {
    start == window.start && end(start, length) == window.end
}

/// The length of two windows, and when they begin, if they can be in place together.
fn same_length<W: Bounds>(first: W, second: W) -> Option<(Length, [Timestamp; 2])> {
    let spans = [first.span(), second.span()];
    let starts = spans.map(|span| span.start);
    let length = length(spans[0]).filter(|first| Some(*first) == length(spans[1]));
    Some((length.filter(|_| count(&starts) == 2)?, starts))
}

/// How many windows begin at these times.
#[inline(always)]
fn count(starts: &[Timestamp; 2]) -> usize {
    1 + usize::from(starts[0] != starts[1])
}

/// Whether a window can be in place with one that begins at `start` and is so long.
#[inline(always)]
fn joins(window: Window, start: Timestamp, length: Length) -> bool {
    window.start != start && end(window.start, length) == window.end
}

impl<W: Bounds, H: Clone> InPlace<W, H> {
    /// Whether one window is laid out as two.
    const FLAT: bool = !std::mem::needs_drop::<H>();

    #[inline(always)]
    fn of_one(window: W, held: H) -> Self {
        let span = window.span();
        match length(span) {
            Some(length) => Self::one(length, span.start, held),
            None => InPlace::Many(VecDeque::from([(window, held)])),
        }
    }

    #[inline(always)]
    fn one(length: Length, start: Timestamp, held: H) -> Self {
        match Self::FLAT {
            true => InPlace::Two { length, starts: [start; 2], held: [held.clone(), held] },
            false => InPlace::One { length, start, held },
        }
    }

    /// Two, of which the first is the first.
    fn of_two((first, a): (W, H), (second, b): (W, H)) -> Self {
        match same_length(first, second) {
            Some((length, starts)) => InPlace::Two { length, starts, held: [a, b] },
            None => InPlace::Many(VecDeque::from([(first, a), (second, b)])),
        }
    }

    /// What was taken out of two or more leaves what is in place again, if it can be.
    fn settle(mut windows: VecDeque<(W, H)>) -> Self {
        if windows.len() > 2 {
            return InPlace::Many(windows);
        }
        match (windows.pop_front(), windows.pop_front()) {
            (None, _) => InPlace::None,
            (Some((window, held)), None) => InPlace::of_one(window, held),
            (Some(first), Some(second)) => {
                if same_length(first.0, second.0).is_some() {
                    return InPlace::of_two(first, second);
                }
                windows.extend([first, second]);
                InPlace::Many(windows)
            }
        }
    }
}

impl<W: Bounds, H: Clone + Send> List<W, H, ()> for InPlace<W, H> {
    #[inline(always)]
    fn len(&self) -> usize {
        match self {
            InPlace::None => 0,
            InPlace::One { .. } => 1,
            InPlace::Two { starts, .. } => count(starts),
            InPlace::Many(windows) => windows.len(),
        }
    }

    #[inline(always)]
    fn window(&self, at: usize) -> Option<W> {
        match self {
            InPlace::One { length, start, .. } => (at == 0).then(|| window(*start, *length)),
            InPlace::Two { length, starts, .. } => (at < count(starts)).then(|| window(starts[at], *length)),
            InPlace::Many(windows) => windows.get(at).map(|(window, _)| *window),
            InPlace::None => None,
        }
    }

    #[inline(always)]
    fn held(&self, at: usize) -> Option<&H> {
        match self {
            InPlace::One { held, .. } => (at == 0).then_some(held),
            InPlace::Two { starts, held, .. } => held[..count(starts)].get(at),
            InPlace::Many(windows) => windows.get(at).map(|(_, held)| held),
            InPlace::None => None,
        }
    }

    #[inline(always)]
    fn held_mut(&mut self, at: usize) -> Option<&mut H> {
        match self {
            InPlace::One { held, .. } => (at == 0).then_some(held),
            InPlace::Two { starts, held, .. } => held[..count(starts)].get_mut(at),
            InPlace::Many(windows) => windows.get_mut(at).map(|(_, held)| held),
            InPlace::None => None,
        }
    }

    #[inline(always)]
    fn near(&mut self, window: &W) -> Option<&mut H> {
        let span = window.span();
        if let InPlace::Two { length, starts, held } = self {
            // Which of the two it is cannot be foretold, so nothing branches on it.
            let at = usize::from(starts[0] != span.start);
            return is(span, starts[at], *length).then_some(&mut held[at]);
        }
        if Self::FLAT {
            return self.near_elsewhere(window);
        }
        match self {
            InPlace::One { length, start, held } => is(span, *start, *length).then_some(held),
            _ => self.near_elsewhere(window),
        }
    }

    #[inline(always)]
    fn only(&mut self) -> Option<(W, &mut H)> {
        match self {
            InPlace::One { length, start, held } => Some((window(*start, *length), held)),
            InPlace::Two { length, starts, held: [held, _] } if count(starts) == 1 => {
                Some((window(starts[0], *length), held))
            }
            _ => None,
        }
    }

    fn of(&self, at: usize) -> Option<&()> {
        (at < self.len()).then_some(&())
    }

    #[inline(always)]
    fn with<R>(&mut self, at: usize, something: impl FnOnce(&W, &mut ()) -> R) -> Option<R> {
        Some(something(&self.window(at)?, &mut ()))
    }

    fn set_held(&mut self, at: usize, held: Option<H>) {
        if let (Some(place), Some(held)) = (self.held_mut(at), held) {
            *place = held;
        }
    }

    #[inline(always)]
    fn set_window(&mut self, at: usize, to: W) {
        let span = to.span();
        match (&mut *self, length(span)) {
            (InPlace::One { length, start, .. }, Some(new)) if at == 0 => {
                (*start, *length) = (span.start, new);
            }
            (InPlace::Two { length, starts, .. }, Some(new)) if at == 0 && count(starts) == 1 => {
                (*starts, *length) = ([span.start; 2], new);
            }
            _ => self.set_window_elsewhere(at, to),
        }
    }

    fn insert(&mut self, at: usize, Open { window, held, .. }: Open<W, H, ()>) {
        // There is none that holds nothing.
        let Some(held) = held else { return };
        self.put(at, window, held);
    }

    fn remove(&mut self, at: usize) -> Option<Open<W, H, ()>> {
        let (window, held) = self.take(at)?;
        Some(Open { window, held: Some(held), timing: () })
    }

    #[inline]
    fn partition_point(&self, mut is: impl FnMut(&W) -> bool) -> usize {
        match self {
            InPlace::None => 0,
            InPlace::One { length, start, .. } => usize::from(is(&window(*start, *length))),
            InPlace::Two { length, starts, .. } => {
                if !is(&window(starts[0], *length)) {
                    return 0;
                }
                1 + usize::from(count(starts) == 2 && is(&window(starts[1], *length)))
            }
            InPlace::Many(windows) => windows.partition_point(|(window, _)| is(window)),
        }
    }

    #[inline]
    fn holding<'a>(&'a self, from: usize) -> impl Iterator<Item = (W, &'a H)>
    where
        W: 'a,
        H: 'a,
    {
        let (front, back) = match self {
            InPlace::Many(windows) => windows.as_slices(),
            _ => (&[][..], &[][..]),
        };
        let (skipped, from_back) = (from.min(front.len()), from.saturating_sub(front.len()));
        let many = front[skipped..].iter().chain(&back[from_back.min(back.len())..]);
        let in_place = match self {
            InPlace::One { .. } | InPlace::Two { .. } => from..self.len(),
            _ => 0..0,
        };
        let in_place = in_place.filter_map(|at| Some((self.window(at)?, self.held(at)?)));
        in_place.chain(many.map(|(window, held)| (*window, held)))
    }
}

impl<W: Bounds, H: Clone> InPlace<W, H> {
    /// What the newest window holds that is not in place. Apart, so that those in place are told from the rest by one branch.
    #[cold]
    #[inline(never)]
    fn near_elsewhere(&mut self, window: &W) -> Option<&mut H> {
        let InPlace::Many(windows) = self else { return None };
        windows.back_mut().filter(|(last, _)| last == window).map(|(_, held)| held)
    }

    #[inline]
    fn put(&mut self, at: usize, window: W, held: H) {
        match self {
            InPlace::None => *self = InPlace::of_one(window, held),
            InPlace::Two { length, starts, held: places }
                if Self::FLAT && count(starts) == 1 && joins(window.span(), starts[0], *length) =>
            {
                let at = at.min(1);
                (starts[1 - at], starts[at]) = (starts[0], window.span().start);
                places.swap(0, 1 - at);
                places[at] = held;
            }
            _ => self.put_beside(at, window, held),
        }
    }

    #[inline(never)]
    fn put_beside(&mut self, at: usize, window: W, held: H) {
        let one = |length, start, other: H, window, held| {
            let other = (self::window(start, length), other);
            match at {
                0 => InPlace::of_two((window, held), other),
                _ => InPlace::of_two(other, (window, held)),
            }
        };
        *self = match std::mem::take(self) {
            InPlace::None => InPlace::of_one(window, held),
            InPlace::One { length, start, held: other } => one(length, start, other, window, held),
            InPlace::Two { length, starts, held: [other, _] } if count(&starts) == 1 => {
                one(length, starts[0], other, window, held)
            }
            InPlace::Two { length, starts: [a, b], held: [of_a, of_b] } => {
                let mut windows = VecDeque::with_capacity(4);
                windows.push_back((self::window(a, length), of_a));
                windows.push_back((self::window(b, length), of_b));
                windows.insert(at, (window, held));
                InPlace::Many(windows)
            }
            InPlace::Many(mut windows) => {
                windows.insert(at, (window, held));
                InPlace::Many(windows)
            }
        };
    }

    #[inline]
    fn take(&mut self, at: usize) -> Option<(W, H)> {
        if let InPlace::Two { length, starts, held } = self
            && Self::FLAT
            && count(starts) == 2
            && at < 2
        {
            let taken = (window(starts[at], *length), held[at].clone());
            *starts = [starts[1 - at]; 2];
            held.swap(0, 1 - at);
            return Some(taken);
        }
        self.take_apart(at)
    }

    #[inline(never)]
    fn take_apart(&mut self, at: usize) -> Option<(W, H)> {
        let (left, taken) = match std::mem::take(self) {
            InPlace::One { length, start, held } if at == 0 => {
                (InPlace::None, Some((window(start, length), held)))
            }
            InPlace::Two { length, starts, held: [held, _] } if count(&starts) == 1 && at == 0 => {
                (InPlace::None, Some((window(starts[0], length), held)))
            }
            InPlace::Two { length, starts: [a, b], held: [of_a, of_b] } if at < 2 && a != b => {
                let ((stays, held), (goes, taken)) =
                    if at == 0 { ((b, of_b), (a, of_a)) } else { ((a, of_a), (b, of_b)) };
                (Self::one(length, stays, held), Some((window(goes, length), taken)))
            }
            InPlace::Many(mut windows) => {
                let taken = windows.remove(at);
                (InPlace::settle(windows), taken)
            }
            none => (none, None),
        };
        *self = left;
        taken
    }

    #[inline(never)]
    fn set_window_elsewhere(&mut self, at: usize, window: W) {
        if let InPlace::Many(windows) = self {
            if let Some((place, _)) = windows.get_mut(at) {
                *place = window;
            }
        } else if let Some((_, held)) = self.take(at) {
            self.put(at, window, held);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    /// What to do, where, and with a window of which beginning and length.
    type Steps = Vec<(u8, usize, i64, usize)>;

    fn all<H: Clone + Send>(list: &InPlace<Window, H>, from: usize) -> Vec<(Window, H)> {
        list.holding(from).map(|(window, held)| (window, held.clone())).collect()
    }

    #[test]
    fn two_windows_of_the_same_length_take_no_more_than_their_starts_and_what_they_hold() {
        assert_eq!(size_of::<InPlace<Window, u64>>(), 40);
    }

    /// Windows hold what `held` makes of the number of the step.
    fn is_a_list<H>(held: impl Fn(usize) -> H, steps: Steps) -> Result<(), TestCaseError>
    where
        H: Clone + Debug + PartialEq + Send,
    {
        // The last is too long to be in place.
        let lengths = [10, 20, i64::from(u32::MAX) + 1];
        let (mut list, mut expected) = (InPlace::<Window, H>::default(), Vec::<(Window, H)>::new());
        for (n, (what, at, start, length)) in steps.into_iter().enumerate() {
            let window = Window::of_millis(start * 10, start * 10 + lengths[length]);
            match what {
                0 => {
                    let at = at.min(expected.len());
                    list.insert(at, Open { window, held: Some(held(n)), timing: () });
                    expected.insert(at, (window, held(n)));
                }
                1 => {
                    let removed = list.remove(at);
                    let removed = removed.map(|open| (open.window, open.held.unwrap()));
                    let is = (at < expected.len()).then(|| expected.remove(at));
                    prop_assert_eq!(removed, is);
                }
                _ => {
                    list.set_window(at, window);
                    if let Some(place) = expected.get_mut(at) {
                        place.0 = window;
                    }
                }
            }
            prop_assert_eq!(list.len(), expected.len());
            for from in 0..4 {
                let skipped: Vec<_> = expected.iter().skip(from).cloned().collect();
                prop_assert_eq!(all(&list, from), skipped);
            }
            for at in 0..7 {
                let is = expected.get(at);
                prop_assert_eq!(list.window(at), is.map(|is| is.0));
                prop_assert_eq!(list.held(at), is.map(|is| &is.1));
                let found = list.held_mut(at).cloned();
                prop_assert_eq!(found.as_ref(), is.map(|is| &is.1));
            }
            let only = list.only().map(|(window, held)| (window, held.clone()));
            if only.is_some() {
                prop_assert_eq!(&only, &expected.first().cloned());
                prop_assert_eq!(expected.len(), 1);
            }
            // What is near is among those that are equal.
            for (window, _) in expected.clone() {
                if let Some(held) = list.near(&window).cloned() {
                    prop_assert!(expected.contains(&(window, held)));
                }
            }
            let absent = Window::of_millis(7, 17);
            prop_assert_eq!(list.near(&absent), None);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn it_is_a_list_whatever_its_layout(
            steps in prop::collection::vec((0..3u8, 0..6usize, 0..4i64, 0..3usize), 0..60),
        ) {
            is_a_list(|n| n as u64, steps.clone())?;
            // One window of these is laid out otherwise than two.
            is_a_list(|n| n.to_string(), steps)?;
        }
    }
}
