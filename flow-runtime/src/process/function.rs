//! What a user implements.

use super::{KeyedContext, ProcessContext, State};
use crate::{
    error::BoxError,
    state::{Redistribution, StateItems, StoredKey},
    time::Timestamp,
};

/// Works on the records of each key, with state and timers: the argument of `.process(..)` after `.key_by(..)`.
///
/// The function itself holds what configures it. It is made anew for each subtask and each attempt, and nothing of it
/// is in a checkpoint: what is to be remembered belongs into the [`State`].
///
/// This one tells a customer's third failed payment within a minute, and forgets a customer who is quiet:
///
/// ```
/// use flow::{
///     BoxError, KeyedProcessFunction, ListState, State, Timer,
///     process::{KeyedContext, NoSide},
///     time::Timestamp,
/// };
///
/// struct Failures {
///     limit: usize,
/// }
///
/// #[derive(State)]
/// struct Recent {
///     failed: ListState<Timestamp>,
/// }
///
/// impl KeyedProcessFunction for Failures {
///     type Key = u64;
///     type In = (u64, bool);
///     type Out = (u64, Timestamp);
///     type Side = NoSide;
///     type State = Recent;
///
///     fn process(
///         &mut self,
///         state: &mut Recent,
///         (customer, paid): (u64, bool),
///         cx: &mut KeyedContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         if paid {
///             return Ok(());
///         }
///         let at = cx.timestamp().ok_or("payments have times")?;
///         state.failed.push(at);
///         state.failed.retain(|before| at.as_millis() - before.as_millis() < 60_000);
///         if state.failed.len() >= self.limit {
///             cx.emit((customer, at));
///         }
///         cx.register_event_time_timer(at.plus_millis(60_000));
///         Ok(())
///     }
///
///     fn on_timer(
///         &mut self,
///         state: &mut Recent,
///         timer: Timer,
///         _: &mut KeyedContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         state.failed.retain(|before| timer.time.as_millis() - before.as_millis() < 60_000);
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
///
/// # Errors
/// An error ends the attempt, as that of any closure, unless `.process(..).on_error(skip)` says otherwise: then the
/// record or timer is skipped and counted, and what it has emitted is dropped. What it has changed in the state stays
/// changed, so what may fail comes first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function for a keyed stream",
    label = "this is to be called with the state of a key",
    note = "implement `flow::KeyedProcessFunction` for it; a `ProcessFunction` works on a stream without `.key_by(..)`"
)]
pub trait KeyedProcessFunction: 'static {
    /// The key as it is kept: what `.key_by(..)` returns, and [`Text`](crate::record::Text) for a `&str`.
    type Key: StoredKey;
    /// A record, with what it borrows owned: [`Text`](crate::record::Text) for a `&str`.
    type In;
    /// What it emits.
    type Out;
    /// What it emits to the second output, which the second name of a tuple is for:
    /// `let (results, side) = stream.key_by(..).process(..);`. [`NoSide`] if there is none.
    type Side;
    /// What it keeps of each key; `()` for nothing.
    type State: State;

    /// Called for each record. Records of a key come in the order of the stream.
    ///
    /// # Errors
    /// See above.
    fn process(
        &mut self,
        state: &mut Self::State,
        record: Self::In,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each timer whose time has come.
    ///
    /// # Errors
    /// See above.
    fn on_timer(
        &mut self,
        state: &mut Self::State,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let _ = (state, timer, cx);
        Ok(())
    }
}

/// Works on the records of a stream without keys: the argument of `.process(..)` elsewhere than after `.key_by(..)`.
///
/// There are no timers, since a timer belongs to a key. As for [`KeyedProcessFunction`], the function itself only holds
/// what configures it, and an error ends the attempt, unless `.process(..).on_error(skip)` says otherwise.
///
/// ```
/// use flow::{BoxError, ProcessFunction, process::ProcessContext};
///
/// /// Lines that are no numbers go to the second output.
/// struct Parse;
///
/// impl ProcessFunction for Parse {
///     type In = String;
///     type Out = u64;
///     type Side = String;
///     type State = ();
///
///     fn process(
///         &mut self,
///         _: &mut (),
///         line: String,
///         cx: &mut ProcessContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         match line.parse() {
///             Ok(number) => cx.emit(number),
///             Err(_) => cx.emit_side(line),
///         }
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function for a stream without keys",
    label = "this is to be called with records alone",
    note = "implement `flow::ProcessFunction` for it; a `KeyedProcessFunction` needs `.key_by(..)` right before `.process(..)`"
)]
pub trait ProcessFunction: 'static {
    /// A record, with what it borrows owned: [`Text`](crate::record::Text) for a `&str`.
    type In;
    /// What it emits.
    type Out;
    /// What it emits to the second output; [`NoSide`] if there is none.
    type Side;
    /// What each subtask remembers: a list or map whose items are in checkpoints; `()` for nothing.
    type State: StateItems + Default;

    /// What becomes of the items when the job goes on with another number of subtasks.
    const REDISTRIBUTION: Redistribution = Redistribution::Even;

    /// Called for each record.
    ///
    /// # Errors
    /// See above.
    fn process(
        &mut self,
        state: &mut Self::State,
        record: Self::In,
        cx: &mut ProcessContext<'_, Self>,
    ) -> Result<(), BoxError>;
}

/// A timer whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// For when it was registered.
    pub time: Timestamp,
    /// By what it has come.
    pub domain: TimeDomain,
}

/// What timers go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeDomain {
    /// By the watermark.
    EventTime,
    /// By the clock.
    ProcessingTime,
}

/// The second output of a function that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSide {}

/// Second outputs that nobody needs to read.
#[diagnostic::on_unimplemented(
    message = "nobody reads the second output of this process function, which emits `{Self}`",
    label = "this has two outputs",
    note = "name both: `let (results, side) = ...process(..);`, with `_` for one that nobody reads"
)]
pub trait WithoutSide {}
impl WithoutSide for NoSide {}
impl WithoutSide for std::convert::Infallible {}

/// A handle, which is of no known type where `Out` is of none: when a function is no process function, rustc says so
/// once then.
pub type Once<Out, H> = <Out as Becomes<H>>::Handle;

/// See [`Once`].
pub trait Becomes<H> {
    /// The same as `H`.
    type Handle;
}

impl<Out, H> Becomes<H> for Out {
    type Handle = H;
}
