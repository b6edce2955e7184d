//! What a pipeline says of its windows.

use std::time::Duration;

use super::{
    Assigner, Bounds, Windowing,
    contents::{Contents, Fold, Incremental, Process, Records, Reduce, With, Wrap},
    evict::Evicting,
    timing::{Timing, Triggering},
    trigger::Set,
};
use crate::{error::BoxError, join::Joined, state::StateValue, time::millis};

/// Windows of this kind, with its default trigger and evictor and no allowed lateness.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::window::{aggregate::count, trigger, tumbling, windows};
///
/// let spec = windows(tumbling(Duration::from_secs(60)))
///     .allowed_lateness(Duration::from_secs(300))
///     .trigger(trigger::purging(trigger::event_time()))
///     .aggregate(count());
/// ```
pub fn windows<A: Windowing>(assigner: A) -> WindowsOf<A, A::Trigger, A::Evictor> {
    let (trigger, evictor) = (assigner.trigger(), assigner.evictor());
    WindowsOf { assigner, trigger, evictor, lateness: 0, usual: true }
}

/// Windows for which nothing is said yet about what they hold; see [`windows`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct WindowsOf<A, T, E> {
    assigner: A,
    trigger: T,
    evictor: E,
    lateness: i64,
    /// Whether the trigger is the default.
    usual: bool,
}

impl<A, T, E> WindowsOf<A, T, E> {
    /// Another trigger instead of the default.
    pub fn trigger<T2>(self, trigger: T2) -> WindowsOf<A, Set<T2>, E> {
        let WindowsOf { assigner, evictor, lateness, .. } = self;
        WindowsOf { assigner, trigger: Set(trigger), evictor, lateness, usual: false }
    }

    /// Windows keep all of their records for this evictor.
    pub fn evictor<E2>(self, evictor: E2) -> WindowsOf<A, T, Evicting<E2>> {
        let WindowsOf { assigner, trigger, lateness, usual, .. } = self;
        WindowsOf { assigner, trigger, evictor: Evicting(evictor), lateness, usual }
    }

    /// How long after its end, in event time, a window still takes records. It fires again at each of them.
    pub fn allowed_lateness(self, lateness: Duration) -> Self {
        WindowsOf { lateness: millis(lateness), ..self }
    }

    fn holding<C>(self, contents: C) -> Spec<A, T, E::Contents>
    where
        E: Wrap<C>,
    {
        let WindowsOf { assigner, trigger, evictor, lateness, .. } = self;
        Spec { assigner, trigger, contents: evictor.wrap(contents), lateness }
    }

    /// Windows give the result of an aggregate.
    pub fn aggregate<G>(self, aggregate: G) -> Spec<A, T, E::Contents>
    where
        E: Wrap<Incremental<G>>,
    {
        self.holding(Incremental { aggregate })
    }

    /// Windows give what `function` makes of the key, the window and the result of an aggregate: an iterator.
    pub fn aggregate_with<G, K, R, I, F>(self, aggregate: G, function: F) -> Spec<A, T, E::Contents>
    where
        A: Windowing,
        E: Wrap<With<G, F>>,
        F: Fn(&K, &A::Window, R) -> I,
        I: IntoIterator,
    {
        self.holding(With { aggregate, function })
    }

    /// Windows give one record, made of two by `function` again and again.
    pub fn reduce<In, F>(self, function: F) -> Spec<A, T, E::Contents>
    where
        E: Wrap<Reduce<F>>,
        F: Fn(In, In) -> In,
    {
        self.holding(Reduce { function })
    }

    /// Windows give a value that begins as `initial` and to which `function` adds each record, in the order in which
    /// they come. Not for sessions: when two become one, nobody says how.
    pub fn fold<In, G: StateValue, F>(self, initial: G, function: F) -> Spec<A, T, E::Contents>
    where
        E: Wrap<Fold<G, F>>,
        F: Fn(&mut G, In),
    {
        self.holding(Fold { initial, function })
    }

    /// Windows keep all of their records and give what `function` makes of the key, the window and the records: an
    /// iterator.
    pub fn process<K, In, I, F>(self, function: F) -> Spec<A, T, E::Contents>
    where
        A: Windowing,
        E: Wrap<Process<F>>,
        F: Fn(&K, &A::Window, Records<'_, In>) -> I,
        I: IntoIterator,
    {
        self.holding(Process { function })
    }

    /// Windows keep the records of two streams, of type [`Side`](crate::join::Side), and give their pairs.
    pub fn join<M>(self, matching: M) -> Spec<A, T, E::Contents>
    where
        E: Wrap<Joined<M>>,
    {
        let once = self.usual && self.lateness == 0;
        self.holding(Joined::new(matching, once))
    }
}

impl<A: Windowing, T, G> Spec<A, T, Incremental<G>> {
    /// Gives what `function` makes of the key, the window and the result: an iterator. With an evictor write
    /// [`aggregate_with`](WindowsOf::aggregate_with) instead.
    pub fn with<K, R, I, F>(self, function: F) -> Spec<A, T, With<G, F>>
    where
        F: Fn(&K, &A::Window, R) -> I,
        I: IntoIterator,
    {
        let Spec { assigner, trigger, contents, lateness } = self;
        Spec { assigner, trigger, contents: With { aggregate: contents.aggregate, function }, lateness }
    }
}

/// All that a pipeline says of its windows.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Spec<A, T, C> {
    pub(crate) assigner: A,
    pub(super) trigger: T,
    pub(crate) contents: C,
    /// In milliseconds.
    pub(super) lateness: i64,
}

/// The types of windows over records `In` of keys `K`: implemented by [`Spec`] where its parts fit.
pub trait Definition<K, In> {
    /// The windows.
    type Window: Bounds;
    /// What they hold.
    type Held: StateValue;
    /// What is remembered of them for when they fire.
    type Timing: Timing;
    /// Their results.
    type Output;
    /// What assigns them.
    type Assigner: Assigner<In, Window = Self::Window>;
    /// What fires them.
    type Trigger: Triggering<In, Self::Window, Timing = Self::Timing>;
    /// What holds their records.
    type Contents: Contents<K, Self::Window, In, Held = Self::Held, Output = Self::Output>;

    /// The parts.
    fn spec(&self) -> &Spec<Self::Assigner, Self::Trigger, Self::Contents>;
}

impl<K, In, A, T, C> Definition<K, In> for Spec<A, T, C>
where
    A: Assigner<In>,
    T: Triggering<In, A::Window>,
    C: Contents<K, A::Window, In>,
{
    type Window = A::Window;
    type Held = C::Held;
    type Timing = T::Timing;
    type Output = C::Output;
    type Assigner = A;
    type Trigger = T;
    type Contents = C;

    fn spec(&self) -> &Spec<A, T, C> {
        self
    }
}

/// Whether the arguments make sense.
pub(crate) fn check<K, In, S: Definition<K, In>>(definition: &S) -> Result<(), BoxError> {
    let (merging, by_clock) = (<S::Assigner as Windowing>::MERGING, <S::Assigner as Windowing>::BY_CLOCK);
    if merging && !<S::Contents as Contents<K, S::Window, In>>::JOINS {
        return Err("a `fold` of session windows, which become one when a record comes between them: use `reduce`, an aggregate or `process`".into());
    }
    if by_clock && definition.spec().lateness > 0 {
        return Err("an allowed lateness of windows in processing time, for which no record is late".into());
    }
    definition.spec().assigner.check()
}
