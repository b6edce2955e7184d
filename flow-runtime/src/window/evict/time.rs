//! Keeping the newest records.

use std::time::Duration;

use super::{Element, Evictor, When};

/// Keeps the records that are less than `span` older than the newest one in the window.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{evict, global, trigger, windows};
///
/// let last_minute = windows(global()).trigger(trigger::count(1)).evictor(evict::time(Duration::from_secs(60)));
/// ```
#[must_use]
pub const fn time(span: Duration) -> TimeEvictor {
    TimeEvictor { span, when: When::Before }
}

/// See [`time`].
#[derive(Clone, Copy, Debug)]
pub struct TimeEvictor {
    span: Duration,
    when: When,
}

impl TimeEvictor {
    /// Evicts after the window's function, which sees the others once more then.
    #[must_use]
    pub const fn after(self) -> Self {
        TimeEvictor { when: When::After, ..self }
    }

    fn evict<In>(self, elements: &mut Vec<Element<In>>, when: When) {
        if when == self.when
            && let Some(newest) = elements.iter().map(|element| element.timestamp).max()
        {
            let oldest = newest - self.span;
            elements.retain(|element| element.timestamp > oldest);
        }
    }
}

impl<In, W> Evictor<In, W> for TimeEvictor {
    fn evict_before(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::Before);
    }

    fn evict_after(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::After);
    }
}
