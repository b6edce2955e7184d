//! Windows and generated loops: what goes in is owned, and what comes out is lent in the form in which it came.

use std::{cell::OnceCell, rc::Rc, slice};

use super::{Definition, Windowing, Windows, WindowsMut, aggregate, contents};
use crate::{
    chain::Failed,
    error::BoxError,
    record::{Lend, Lending, Plain},
    state::{Key, StoredKey},
    time::{Timestamp, Watermark},
};

/// What an operator with windows does after each batch: it gives what has fired, goes on to a new watermark, and looks
/// at the clock.
#[derive(Debug)]
pub struct Turn {
    watermark: Option<Watermark>,
    now: Option<Timestamp>,
}

/// Results that are held at a time.
const RESULTS: usize = 1024;

impl Turn {
    /// To a new watermark, if there is one, by the given clock.
    pub(crate) fn new(watermark: Option<Watermark>, now: Timestamp) -> Self {
        Turn { watermark, now: Some(now) }
    }

    /// The new watermark, if there is one, until it is [done](Self::done).
    pub(crate) fn watermark(&self) -> Option<Watermark> {
        self.watermark
    }

    /// What the clock says, unless that is [done](Self::done).
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// All that the new watermark makes due has come out.
    pub(crate) fn done(&mut self) {
        self.watermark = None;
    }
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    /// Puts a record into its windows; one that is late for all of them is dropped and counted.
    ///
    /// # Errors
    /// Those of the user's functions.
    #[inline(always)]
    pub fn put<Q: Key<Stored = K>>(&mut self, key: &Q, time: Timestamp, record: In) -> Result<(), BoxError> {
        self.add(key, time, record).map(drop)
    }

    /// As [`put`](Self::put), of a value of the record with this number, which may wait for others until the loop
    /// [ends](Self::settle) or there are enough of them.
    ///
    /// # Errors
    /// Those of the aggregate, with the number of the record.
    #[inline(always)]
    pub fn put_value<Q: Key<Stored = K>>(
        &mut self,
        number: u64,
        key: &Q,
        time: Timestamp,
        value: In,
    ) -> Result<(), Failed> {
        if self.waits {
            return self.wait(number, key.store(), time, value);
        }
        self.add(key, time, value).map(drop).map_err(|cause| Failed { record: number, cause })
    }

    /// As [`put`](Self::put), but gives back a record that is late for all of its windows: it goes to the late output
    /// and does not count as dropped.
    ///
    /// # Errors
    /// Those of the user's functions.
    #[inline(always)]
    pub fn put_or_return<Q: Key<Stored = K>>(
        &mut self,
        key: &Q,
        time: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let late = self.add(key, time, record)?;
        if late.is_some() {
            self.goes_to_late_output();
        }
        Ok(late)
    }

    /// Lets some windows fire. Returns false when nothing is left to do; otherwise there may be
    /// [results](Self::fired).
    ///
    /// # Errors
    /// Those of the user's functions.
    pub fn turn(&mut self, turn: &mut Turn) -> Result<bool, BoxError> {
        if <S::Assigner as Windowing>::BY_CLOCK {
            let Some(now) = turn.now else { return Ok(false) };
            if !self.advance_clock(now, RESULTS)? {
                turn.now = None;
            }
            return Ok(true);
        }
        if let Some(watermark) = turn.watermark {
            if !self.advance_some(watermark, RESULTS)? {
                turn.watermark = None;
            }
            return Ok(true);
        }
        let Some(now) = turn.now.take() else { return Ok(false) };
        self.advance_processing_time(now)?;
        Ok(true)
    }
}

/// What the engine needs of windows, whatever their types, and of any other operator whose results come out in a
/// closure of their own: see [`Chain::on_watermark`](crate::chain::Chain::on_watermark).
pub trait WindowPort {
    /// Goes on where a checkpoint was.
    fn restore(&self, watermark: Watermark);
    /// Whether windows are in processing time.
    fn by_clock(&self) -> bool {
        false
    }
    /// The time of the records that come.
    fn tell_time(&self, now: Timestamp) {
        let _ = now;
    }
    /// When the clock makes something due.
    fn next_timer(&self) -> Option<Timestamp>;
    /// How many records were late for all of their windows, and dropped.
    fn late(&self) -> u64;
    /// How many went to the late output instead.
    fn late_output(&self) -> u64 {
        0
    }
    /// What it gives, for the errors of what follows.
    fn result(&self) -> &'static str {
        "a result of an operator that gives them later"
    }
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowPort for Windows<K, In, S> {
    fn restore(&self, watermark: Watermark) {
        // The clock goes on by itself.
        if !<S::Assigner as Windowing>::BY_CLOCK {
            self.restore_watermark(watermark);
        }
    }

    fn by_clock(&self) -> bool {
        <S::Assigner as Windowing>::BY_CLOCK
    }

    fn tell_time(&self, now: Timestamp) {
        if <S::Assigner as Windowing>::BY_CLOCK {
            self.set_processing_time(now);
        }
    }

    fn next_timer(&self) -> Option<Timestamp> {
        self.next_processing_timer()
    }

    fn late(&self) -> u64 {
        self.counters().late_dropped
    }

    fn late_output(&self) -> u64 {
        self.counters().late_output
    }

    fn result(&self) -> &'static str {
        "a result of a window"
    }
}

/// The number of records, of which none is kept.
#[must_use]
pub fn window_count() -> aggregate::Count {
    aggregate::count()
}

/// The sum of values.
#[must_use]
pub fn window_sum() -> aggregate::Total<aggregate::Itself> {
    aggregate::sum(aggregate::Itself)
}

/// The smallest of values.
#[must_use]
pub fn window_min() -> aggregate::Min<aggregate::Itself> {
    aggregate::min(aggregate::Itself)
}

/// The largest of values.
#[must_use]
pub fn window_max() -> aggregate::Max<aggregate::Itself> {
    aggregate::max(aggregate::Itself)
}

/// The record with the smallest value, of pairs of value and record.
#[must_use]
pub fn window_min_by() -> aggregate::MinBy<aggregate::Paired> {
    aggregate::MinBy::paired()
}

/// The record with the largest value, of pairs of value and record.
#[must_use]
pub fn window_max_by() -> aggregate::MaxBy<aggregate::Paired> {
    aggregate::MaxBy::paired()
}

/// What `.process(..)` is computed of, in the loop that follows.
pub fn all_records<K, W, In: Clone>(
    _: &K,
    _: &W,
    records: contents::Records<'_, In>,
) -> Option<Vec<(Timestamp, In)>> {
    Some(records.timed().map(|(time, record)| (time, record.clone())).collect())
}

/// A function that is given when its types are known.
#[derive(Debug)]
pub struct Later<A, F>(Rc<OnceCell<F>>, std::marker::PhantomData<A>);

/// A function of two values that is given later, but before it is called.
pub fn later<A, F: Fn(A, A) -> A>() -> (Later<A, F>, impl Fn(A, A) -> A) {
    let function = Rc::new(OnceCell::<F>::new());
    let called = Rc::clone(&function);
    let call = move |a, b| called.get().expect("it was given before the job began")(a, b);
    (Later(function, std::marker::PhantomData), call)
}

impl<A, F: Fn(A, A) -> A> Later<A, F> {
    /// Gives the function.
    pub fn is(self, function: F) {
        let _ = self.0.set(function);
    }
}

/// As [`Later`], for a fold.
#[derive(Debug)]
pub struct LaterFold<A, In, F>(Rc<OnceCell<F>>, std::marker::PhantomData<(A, In)>);

/// A function that adds a record and is given later, but before it is called.
pub fn later_fold<A, In, F: Fn(&mut A, In)>() -> (LaterFold<A, In, F>, impl Fn(&mut A, In)) {
    let function = Rc::new(OnceCell::<F>::new());
    let called = Rc::clone(&function);
    let call =
        move |held: &mut A, record| called.get().expect("it was given before the job began")(held, record);
    (LaterFold(function, std::marker::PhantomData), call)
}

impl<A, In, F: Fn(&mut A, In)> LaterFold<A, In, F> {
    /// Gives the function.
    pub fn is(self, function: F) {
        let _ = self.0.set(function);
    }
}

/// The records of a window, laid down to be lent.
#[derive(Debug)]
pub struct Places<T: Lend>(Vec<(Timestamp, T::Place)>);

impl<T: Lend> Places<T> {
    /// To the closure of `.process(..)`.
    pub fn lend(&mut self) -> Records<'_, T> {
        Records(self.0.iter_mut())
    }
}

/// The records of a window that fires, for the closure of `.process(..)`: the earliest first; those of the same time in
/// the order in which they came.
#[derive(Debug)]
pub struct Records<'w, T: Lend>(slice::IterMut<'w, (Timestamp, T::Place)>);

impl<'w, T: Lend> Records<'w, T> {
    /// With their event times.
    pub fn timed(self) -> impl Iterator<Item = (Timestamp, T::Lent<'w>)> {
        self.0.map(|(time, place)| (*time, T::lend(place)))
    }
}

impl<'w, T: Lend> Iterator for Records<'w, T> {
    type Item = T::Lent<'w>;

    #[inline]
    fn next(&mut self) -> Option<T::Lent<'w>> {
        self.0.next().map(|(_, place)| T::lend(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T: Lend> ExactSizeIterator for Records<'_, T> {}

/// As [`LendRecord`](crate::record::LendRecord), for all records of a window.
pub trait LendRecords {
    /// What is lent.
    type Lend: Lend;
    /// Lays them down.
    fn places(self) -> Places<Self::Lend>;
}

impl<T: Lend> LendRecords for Lending<Vec<(Timestamp, T)>> {
    type Lend = T;
    fn places(self) -> Places<T> {
        Places(self.into_inner().into_iter().map(|(time, record)| (time, record.place())).collect())
    }
}

/// As [`LendPlain`](crate::record::LendPlain), for all records of a window.
pub trait LendPlains {
    /// What is lent.
    type Lend: Lend;
    /// Lays them down.
    fn places(self) -> Places<Self::Lend>;
}

impl<T: 'static> LendPlains for &mut Lending<Vec<(Timestamp, T)>> {
    type Lend = Plain<T>;
    fn places(self) -> Places<Plain<T>> {
        let records = self.take().into_iter();
        Places(records.map(|(time, record)| (time, Plain(record).place())).collect())
    }
}
