//! Process functions: what no other operator does, with state, timers and a second output.
//!
//! A [`KeyedProcessFunction`] is given every record of a keyed stream together with the [`State`] of its key, and sets
//! timers; a [`ProcessFunction`] is given the records of any stream. Both emit any number of records, at any time that
//! they are called, to two outputs.
//!
//! Streams of two types are connected: `a.connect(b).process(..)` takes a [`KeyedCoProcessFunction`] where both are
//! keyed, a [`CoProcessFunction`] where none is, and a [`KeyedBroadcastProcessFunction`] where the second one is
//! `.broadcast()`.
//!
//! ```
//! use flow::{
//!     BoxError, KeyedProcessFunction, State, Timer, ValueState, pipeline,
//!     process::{KeyedContext, NoSide},
//!     testing::{Harness, Input, Output},
//!     watermark::monotonous,
//! };
//!
//! /// What a user has left in the cart, when nothing came for half an hour.
//! struct Abandoned;
//!
//! #[derive(State)]
//! struct Cart {
//!     items: ValueState<u64>,
//! }
//!
//! impl KeyedProcessFunction for Abandoned {
//!     type Key = String;
//!     type In = (i64, String, u64);
//!     type Out = (String, u64);
//!     type Side = NoSide;
//!     type State = Cart;
//!
//!     fn process(
//!         &mut self,
//!         cart: &mut Cart,
//!         (_, _, items): (i64, String, u64),
//!         cx: &mut KeyedContext<'_, Self>,
//!     ) -> Result<(), BoxError> {
//!         let now = cx.timestamp().ok_or("clicks have times")?;
//!         cart.items.set(items);
//!         cx.register_event_time_timer(now.plus_millis(30 * 60_000));
//!         Ok(())
//!     }
//!
//!     fn on_timer(
//!         &mut self,
//!         cart: &mut Cart,
//!         _: Timer,
//!         cx: &mut KeyedContext<'_, Self>,
//!     ) -> Result<(), BoxError> {
//!         if let Some(items) = cart.items.take() {
//!             cx.emit((cx.key().clone(), items));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! #[pipeline]
//! fn carts(clicks: Input<(i64, String, u64)>, out: Output<(String, u64)>) {
//!     let clicks = source(clicks).watermarks(monotonous(), |(time, _, _)| *time);
//!     clicks.key_by(|(_, user, _)| user.clone()).process(Abandoned).sink(out);
//! }
//!
//! let mut test = Harness::new();
//! let (clicks, out) = (test.input(), test.output());
//! test.start(carts(clicks.clone(), out.clone()))?;
//! clicks.push((0, "ann".to_owned(), 3));
//! clicks.push((1_900_000, "bob".to_owned(), 1));
//! test.settle()?;
//! assert_eq!(out.take(), [("ann".to_owned(), 3)]);
//! test.finish()?;
//! assert_eq!(out.take(), [("bob".to_owned(), 1)]);
//! # Ok::<_, flow::Error>(())
//! ```
//!
//! A keyed function is called where the key's state is, and what it emits is kept until the batch is done: what follows
//! it is a loop of its own, as behind windows, since it runs for timers too.

pub(crate) mod broadcast;
pub(crate) mod co;
mod connected;
mod context;
mod function;
pub(crate) mod keyed;
pub(crate) mod plain;
pub mod state;

pub use broadcast::BroadcastProcess;
pub use co::{CoProcess, KeyedCoProcess};
pub use connected::{
    BroadcastContext, CoContext, CoProcessFunction, KeyedBroadcastContext, KeyedBroadcastProcessFunction,
    KeyedCoContext, KeyedCoProcessFunction,
};
pub use context::{Context, KeyedContext, PlainContext, ProcessContext, SetsTimers};
pub use function::{
    Becomes, KeyedProcessFunction, NoSide, Once, ProcessFunction, TimeDomain, Timer, WithoutSide,
};
pub use keyed::{KeyFor, KeyedProcess};
pub use plain::Process;
pub use state::{
    AggregatingState, ListState, MapState, Reducer, ReducingState, State, Ttl, TtlUpdate, TtlVisibility,
    ValueState,
};

#[cfg(test)]
mod tests;
