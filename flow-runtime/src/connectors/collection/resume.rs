//! An iterator that is lent out and comes back.

/// Iterates by value, so that the loop around it keeps its state in registers, and puts it back when dropped, so
/// that an iteration that was broken off goes on where it stopped.
pub(super) struct Resume<I, H: FnMut(I)> {
    iter: Option<I>,
    home: H,
}

impl<I, H: FnMut(I)> Resume<I, H> {
    pub(super) fn new(iter: I, home: H) -> Self {
        Resume { iter: Some(iter), home }
    }
}

impl<I: Iterator, H: FnMut(I)> Iterator for Resume<I, H> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        self.iter.as_mut()?.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.iter.as_ref().map_or((0, Some(0)), Iterator::size_hint)
    }
}

impl<I, H: FnMut(I)> Drop for Resume<I, H> {
    #[inline]
    fn drop(&mut self) {
        if let Some(iter) = self.iter.take() {
            (self.home)(iter);
        }
    }
}
