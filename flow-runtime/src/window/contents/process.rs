//! Windows that hold all of their records.

use super::Contents;
use crate::{error::BoxError, state::StateValue, time::Timestamp, window::evict::Element};

/// Windows hold all of their records, and give what a function makes of them.
#[derive(Clone, Copy, Debug)]
pub struct Process<F> {
    pub(crate) function: F,
}

/// The records of a window that fires, the earliest first; those of the same time in the order in which they came.
#[derive(Clone, Debug)]
pub struct Records<'w, In> {
    elements: std::slice::Iter<'w, Element<In>>,
}

impl<'w, In> Records<'w, In> {
    /// With their times.
    pub fn timed(self) -> impl Iterator<Item = (Timestamp, &'w In)> {
        self.elements.map(|element| (element.timestamp, &element.record))
    }
}

impl<'w, In> Iterator for Records<'w, In> {
    type Item = &'w In;

    #[inline]
    fn next(&mut self) -> Option<&'w In> {
        self.elements.next().map(|element| &element.record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl<In> ExactSizeIterator for Records<'_, In> {}

impl<K, W, In, I, F> Contents<K, W, In> for Process<F>
where
    In: StateValue,
    F: Fn(&K, &W, Records<'_, In>) -> I,
    I: IntoIterator,
{
    keeps_records!(In);
    type Output = I::Item;

    fn emit(
        &self,
        key: &K,
        window: &W,
        held: &mut Self::Held,
        out: impl FnMut(I::Item),
    ) -> Result<(), BoxError> {
        // Which subtask's records come first is not determined; this much of their order is.
        held.sort_by_key(|element| element.timestamp);
        let records = Records { elements: held.iter() };
        (self.function)(key, window, records).into_iter().for_each(out);
        Ok(())
    }
}
