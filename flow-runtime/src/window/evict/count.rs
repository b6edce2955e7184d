//! Keeping the last records.

use super::{Element, Evictor, When};

/// Keeps the last `n` records.
///
/// ```
/// use flow_runtime::window::{evict, global, trigger, windows};
///
/// let last_three = windows(global()).trigger(trigger::count(1)).evictor(evict::count(3));
/// ```
#[must_use]
pub const fn count(n: u64) -> CountEvictor {
    CountEvictor { n, when: When::Before }
}

/// See [`count`].
#[derive(Clone, Copy, Debug)]
pub struct CountEvictor {
    n: u64,
    when: When,
}

impl CountEvictor {
    /// Evicts after the window's function, which sees the others once more then.
    #[must_use]
    pub const fn after(self) -> Self {
        CountEvictor { when: When::After, ..self }
    }

    fn evict<In>(self, elements: &mut Vec<Element<In>>, when: When) {
        if when == self.when {
            let n = usize::try_from(self.n).unwrap_or(usize::MAX);
            elements.drain(..elements.len().saturating_sub(n));
        }
    }
}

impl<In, W> Evictor<In, W> for CountEvictor {
    fn evict_before(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::Before);
    }

    fn evict_after(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::After);
    }
}
