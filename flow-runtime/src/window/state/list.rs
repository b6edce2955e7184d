//! What a list of open windows can do, however it is laid out.

use std::iter;

use super::Open;

/// The open windows of a key, in ascending order, with what they hold and what is remembered of them.
pub trait List<W, H, O>: Default + Clone + Send {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A window.
    fn window(&self, at: usize) -> Option<W>;

    /// What a window holds: nothing, when it has been purged.
    fn held(&self, at: usize) -> Option<&H>;

    /// The same, to be changed.
    fn held_mut(&mut self, at: usize) -> Option<&mut H>;

    /// What a window holds, if it is one of those that can be reached without a search. Most records belong to the newest
    /// window.
    fn near(&mut self, window: &W) -> Option<&mut H>;

    /// The window with what it holds, if there is no other.
    fn only(&mut self) -> Option<(W, &mut H)>;

    /// What is remembered of a window.
    fn of(&self, at: usize) -> Option<&O>;

    /// Does something with a window and what is remembered of it.
    fn with<R>(&mut self, at: usize, something: impl FnOnce(&W, &mut O) -> R) -> Option<R>;

    /// Purges a window, or fills it again. Windows that fire at the end are never purged.
    fn set_held(&mut self, at: usize, held: Option<H>);

    /// Makes a window longer that stays where it is in the order.
    fn set_window(&mut self, at: usize, window: W);

    /// Puts a window where it is in the order.
    fn insert(&mut self, at: usize, open: Open<W, H, O>);

    /// Takes a window out.
    fn remove(&mut self, at: usize) -> Option<Open<W, H, O>>;

    /// How many windows at the front are such that `is` holds, which it does for none after those.
    fn partition_point(&self, is: impl FnMut(&W) -> bool) -> usize;

    /// All from a place on that hold something.
    fn holding<'a>(&'a self, from: usize) -> impl Iterator<Item = (W, &'a H)>
    where
        W: 'a,
        H: 'a,
    {
        let places = (from..self.len()).map(|at| Some((self.window(at)?, self.held(at))));
        places.map_while(|place| place).filter_map(|(window, held)| Some((window, held?)))
    }

    /// The first.
    #[inline(always)]
    fn first(&self) -> Option<W> {
        self.window(0)
    }

    /// All windows.
    fn windows<'a>(&'a self) -> impl Iterator<Item = W>
    where
        W: 'a,
    {
        let mut places = 0..self.len();
        iter::from_fn(move || self.window(places.next()?))
    }
}
