//! Windows that hold all of their records for an evictor.

use super::Contents;
use crate::{
    error::BoxError,
    state::StateValue,
    time::Timestamp,
    window::evict::{Element, Evicting, Evictor, NoEvictor},
};

/// Windows hold all of their records in the order in which they came, and make what they give of those that an evictor
/// leaves.
#[derive(Clone, Copy, Debug)]
pub struct Kept<C, E> {
    contents: C,
    evictor: E,
}

/// What windows hold when there is an evictor, or none.
pub trait Wrap<C> {
    /// What they hold.
    type Contents;
    /// With this evictor.
    fn wrap(self, contents: C) -> Self::Contents;
}

impl<C> Wrap<C> for NoEvictor {
    type Contents = C;
    fn wrap(self, contents: C) -> C {
        contents
    }
}

impl<C, E> Wrap<C> for Evicting<E> {
    type Contents = Kept<C, E>;
    fn wrap(self, contents: C) -> Kept<C, E> {
        Kept { contents, evictor: self.0 }
    }
}

impl<K, W, In, C, E> Contents<K, W, In> for Kept<C, E>
where
    In: StateValue,
    C: Contents<K, W, In>,
    E: Evictor<In, W>,
{
    keeps_records!(In);
    type Output = C::Output;

    fn emit(
        &self,
        key: &K,
        window: &W,
        held: &mut Self::Held,
        out: impl FnMut(C::Output),
    ) -> Result<(), BoxError> {
        self.evictor.evict_before(held, window);
        let mut elements = held.iter().cloned();
        // When all are evicted there is nothing to make a result of.
        if let Some(Element { timestamp, record }) = elements.next() {
            let mut made = self.contents.first(record, timestamp)?;
            for Element { timestamp, record } in elements {
                self.contents.add(&mut made, record, timestamp)?;
            }
            self.contents.emit(key, window, &mut made, out)?;
        }
        self.evictor.evict_after(held, window);
        Ok(())
    }
}
