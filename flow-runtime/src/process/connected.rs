//! What a user implements for two connected streams.

use super::{Context, PlainContext, State, Timer};
use crate::{
    error::BoxError,
    state::{Redistribution, StateItems, StoredKey},
};

/// The context of a [`KeyedCoProcessFunction`].
pub type KeyedCoContext<'c, F> = Context<
    'c,
    <F as KeyedCoProcessFunction>::Key,
    <F as KeyedCoProcessFunction>::Out,
    <F as KeyedCoProcessFunction>::Side,
>;

/// The context of a [`CoProcessFunction`].
pub type CoContext<'c, F> = PlainContext<'c, <F as CoProcessFunction>::Out, <F as CoProcessFunction>::Side>;

/// The context of a [`KeyedBroadcastProcessFunction`] for what belongs to a key.
pub type KeyedBroadcastContext<'c, F> = Context<
    'c,
    <F as KeyedBroadcastProcessFunction>::Key,
    <F as KeyedBroadcastProcessFunction>::Out,
    <F as KeyedBroadcastProcessFunction>::Side,
>;

/// The context of a [`KeyedBroadcastProcessFunction`] for a record of the broadcast stream.
pub type BroadcastContext<'c, F> =
    PlainContext<'c, <F as KeyedBroadcastProcessFunction>::Out, <F as KeyedBroadcastProcessFunction>::Side>;

/// Works on the records of two keyed streams, which share the state and the timers of each key: the argument of
/// `a.key_by(..).connect(b.key_by(..)).process(..)`.
///
/// Which of two records comes first is not determined when they are of different streams. Event time is the earlier of
/// both, and there is none if one of the streams carries none. Everything else is as for a
/// [`KeyedProcessFunction`](super::KeyedProcessFunction).
///
/// ```
/// use flow::{
///     BoxError, KeyedCoProcessFunction, State, ValueState,
///     process::{KeyedCoContext, NoSide},
/// };
///
/// /// Orders with the newest address of the customer.
/// struct Address;
///
/// #[derive(State)]
/// struct Newest {
///     address: ValueState<String>,
/// }
///
/// impl KeyedCoProcessFunction for Address {
///     type Key = u64;
///     type Left = (u64, u32);
///     type Right = (u64, String);
///     type Out = (u32, String);
///     type Side = NoSide;
///     type State = Newest;
///
///     fn process_left(
///         &mut self,
///         state: &mut Newest,
///         (_, order): (u64, u32),
///         cx: &mut KeyedCoContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         cx.emit((order, state.address.get().cloned().unwrap_or_default()));
///         Ok(())
///     }
///
///     fn process_right(
///         &mut self,
///         state: &mut Newest,
///         (_, address): (u64, String),
///         _: &mut KeyedCoContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         state.address.set(address);
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function for two keyed streams",
    label = "this is to be called with the state of a key",
    note = "implement `flow::KeyedCoProcessFunction` for it"
)]
pub trait KeyedCoProcessFunction: 'static {
    /// The key of both streams, as it is kept.
    type Key: StoredKey;
    /// A record of the first stream, with what it borrows owned.
    type Left;
    /// A record of the second stream, with what it borrows owned.
    type Right;
    /// What it emits.
    type Out;
    /// What it emits to the second output; [`NoSide`](super::NoSide) if there is none.
    type Side;
    /// What it keeps of each key; `()` for nothing.
    type State: State;

    /// Called for each record of the first stream.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process_left(
        &mut self,
        state: &mut Self::State,
        record: Self::Left,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each record of the second stream.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process_right(
        &mut self,
        state: &mut Self::State,
        record: Self::Right,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each timer whose time has come.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn on_timer(
        &mut self,
        state: &mut Self::State,
        timer: Timer,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let _ = (state, timer, cx);
        Ok(())
    }
}

/// Works on the records of two streams without keys: the argument of `a.connect(b).process(..)`.
///
/// Everything is as for a [`ProcessFunction`](super::ProcessFunction), but there are two kinds of records. Which of two
/// records comes first is not determined when they are of different streams.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function for two streams without keys",
    label = "this is to be called with records alone",
    note = "implement `flow::CoProcessFunction` for it; a `KeyedCoProcessFunction` needs `.key_by(..)` on both streams: `a.key_by(..).connect(b.key_by(..))`"
)]
pub trait CoProcessFunction: 'static {
    /// A record of the first stream, with what it borrows owned.
    type Left;
    /// A record of the second stream, with what it borrows owned.
    type Right;
    /// What it emits.
    type Out;
    /// What it emits to the second output; [`NoSide`](super::NoSide) if there is none.
    type Side;
    /// What each subtask remembers: a list or map whose items are in checkpoints; `()` for nothing.
    type State: StateItems + Default;

    /// What becomes of the items when the job goes on with another number of subtasks.
    const REDISTRIBUTION: Redistribution = Redistribution::Even;

    /// Called for each record of the first stream.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process_left(
        &mut self,
        state: &mut Self::State,
        record: Self::Left,
        cx: &mut CoContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each record of the second stream.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process_right(
        &mut self,
        state: &mut Self::State,
        record: Self::Right,
        cx: &mut CoContext<'_, Self>,
    ) -> Result<(), BoxError>;
}

/// Works on the records of a keyed stream by what a second stream says to all subtasks, such as rules: the argument of
/// `keyed.connect(rules.broadcast()).process(..)`.
///
/// The broadcast state is a list or map, which only the records of the broadcast stream change. Each subtask has a copy
/// of its own, and all are equal as long as [`process_broadcast`](Self::process_broadcast) goes by nothing but the
/// records, and their order among several subtasks of the broadcast stream does not matter. A checkpoint holds one of
/// them. Which of two records comes first is not determined when they are of different streams.
///
/// Event time is that of the keyed stream; the broadcast stream holds nothing up.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use flow::{
///     BoxError, KeyedBroadcastProcessFunction,
///     process::{BroadcastContext, KeyedBroadcastContext, NoSide},
/// };
///
/// /// Payments above the limit of their currency.
/// struct Limits;
///
/// impl KeyedBroadcastProcessFunction for Limits {
///     type Key = u64;
///     type In = (u64, String, i64);
///     type Broadcast = (String, i64);
///     type BroadcastState = BTreeMap<String, i64>;
///     type Out = (u64, i64);
///     type Side = NoSide;
///     type State = ();
///
///     fn process(
///         &mut self,
///         _: &mut (),
///         limits: &BTreeMap<String, i64>,
///         (account, currency, amount): (u64, String, i64),
///         cx: &mut KeyedBroadcastContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         if limits.get(&currency).is_some_and(|limit| amount > *limit) {
///             cx.emit((account, amount));
///         }
///         Ok(())
///     }
///
///     fn process_broadcast(
///         &mut self,
///         limits: &mut BTreeMap<String, i64>,
///         (currency, limit): (String, i64),
///         _: &mut BroadcastContext<'_, Self>,
///     ) -> Result<(), BoxError> {
///         limits.insert(currency, limit);
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no process function for a keyed and a broadcast stream",
    label = "this is to be called with the state of a key and what was broadcast",
    note = "implement `flow::KeyedBroadcastProcessFunction` for it"
)]
pub trait KeyedBroadcastProcessFunction: 'static {
    /// The key, as it is kept.
    type Key: StoredKey;
    /// A record of the keyed stream, with what it borrows owned.
    type In;
    /// A record of the broadcast stream, with what it borrows owned.
    type Broadcast;
    /// What the broadcast stream says.
    type BroadcastState: StateItems + Default;
    /// What it emits.
    type Out;
    /// What it emits to the second output; [`NoSide`](super::NoSide) if there is none.
    type Side;
    /// What it keeps of each key; `()` for nothing.
    type State: State;

    /// Called for each record of the keyed stream.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process(
        &mut self,
        state: &mut Self::State,
        broadcast: &Self::BroadcastState,
        record: Self::In,
        cx: &mut KeyedBroadcastContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each record of the broadcast stream, in every subtask. What it emits, each subtask emits.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn process_broadcast(
        &mut self,
        broadcast: &mut Self::BroadcastState,
        record: Self::Broadcast,
        cx: &mut BroadcastContext<'_, Self>,
    ) -> Result<(), BoxError>;

    /// Called for each timer whose time has come.
    ///
    /// # Errors
    /// End the attempt, or are skipped.
    fn on_timer(
        &mut self,
        state: &mut Self::State,
        broadcast: &Self::BroadcastState,
        timer: Timer,
        cx: &mut KeyedBroadcastContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let _ = (state, broadcast, timer, cx);
        Ok(())
    }
}
