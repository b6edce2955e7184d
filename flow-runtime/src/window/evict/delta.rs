//! Keeping the records that are near the last one.

use super::{Element, Evictor, When};

/// Removes the records whose distance to the last one is `threshold` or more.
///
/// ```
/// use flow_runtime::window::{evict, global, trigger, windows};
///
/// let near = windows(global())
///     .trigger(trigger::count(1))
///     .evictor(evict::delta(100.0, |then: &f64, now: &f64| now - then));
/// ```
#[must_use]
pub const fn delta<F>(threshold: f64, distance: F) -> DeltaEvictor<F> {
    DeltaEvictor { threshold, distance, when: When::Before }
}

/// See [`delta`].
#[derive(Clone, Copy, Debug)]
pub struct DeltaEvictor<F> {
    threshold: f64,
    distance: F,
    when: When,
}

impl<F> DeltaEvictor<F> {
    /// Evicts after the window's function, which sees the others once more then.
    #[must_use]
    pub fn after(self) -> Self {
        DeltaEvictor { when: When::After, ..self }
    }

    fn evict<In>(&self, elements: &mut Vec<Element<In>>, when: When)
    where
        F: Fn(&In, &In) -> f64,
    {
        let Some(last) = elements.last().filter(|_| when == self.when) else { return };
        let far = |element: &Element<In>| (self.distance)(&element.record, &last.record) >= self.threshold;
        let far: Vec<bool> = elements.iter().map(far).collect();
        let mut far = far.into_iter();
        elements.retain(|_| !far.next().unwrap_or(false));
    }
}

impl<In, W, F: Fn(&In, &In) -> f64> Evictor<In, W> for DeltaEvictor<F> {
    fn evict_before(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::Before);
    }

    fn evict_after(&self, elements: &mut Vec<Element<In>>, _: &W) {
        self.evict(elements, When::After);
    }
}
