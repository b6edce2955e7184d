//! Joins: what is made of the records of two streams that have the same key.
//!
//! | in a pipeline | which records meet |
//! |---|---|
//! | `a.key_by(..).join(b.key_by(..)).window(..).with(..)` | all of a key that are in the same [window](crate::window) |
//! | `a.key_by(..).interval_join(b.key_by(..)).between(..).with(..)` | those of a key whose times are not too far apart, see [`interval`] |
//! | `a.broadcast_join(b, .., ..).with(..)` | each of `a` with the newest of its key in `b`, which is kept in every subtask, see [`broadcast`] |
//!
//! The second stream is a name or a whole method chain. The first two need event time on both streams, by
//! `.watermarks(..)`, and keys of the same type; the watermark behind the join is the lesser one of both. Closures are
//! given the key as other operators are, and the records by reference, owned (a `&str` in a record is a
//! [`Text`](crate::record::Text)), so that nothing is copied per pair.
//!
//! A join is an inner one: what meets nobody is dropped. `left_join`, `right_join` and `full_join`, in windows or `between`
//! bounds, give such records, too, and the closure an `Option` for the side on which there may be nobody.
//!
//! # In windows
//!
//! Windows are those of [`window`](crate::window): `tumbling`, `sliding` and `session`, with `.trigger(..)` and
//! `.allowed_lateness(..)`. When one fires, each left record in it meets each right one; the results have the time of the
//! last millisecond of the window. With an allowed lateness a late record makes its window fire again, with all of its
//! pairs. A record that is late for all of its windows is dropped and counted.
//!
//! ```
//! use flow::{pipeline, testing::{Harness, Input, Output}, watermark::monotonous, window::tumbling};
//!
//! /// When, by whom, what.
//! type Event = (i64, u64, &'static str);
//!
//! #[pipeline]
//! fn bought_after_a_click(clicks: Input<Event>, sales: Input<Event>, out: Output<(u64, String)>) {
//!     let clicks = source(clicks).watermarks(monotonous(), |(time, _, _)| *time);
//!     let sales = source(sales).watermarks(monotonous(), |(time, _, _)| *time);
//!     clicks
//!         .key_by(|(_, user, _)| *user)
//!         .left_join(sales.key_by(|(_, user, _)| *user))
//!         .window(tumbling("1m"))
//!         .with(|user, click, sale| {
//!             (user, format!("{} {}", click.2, sale.map_or("nothing", |sale| sale.2.as_str())))
//!         })
//!         .sink(out);
//! }
//!
//! let mut test = Harness::new();
//! let (clicks, sales, out) = (test.input(), test.input(), test.output());
//! test.start(bought_after_a_click(clicks.clone(), sales.clone(), out.clone()))?;
//! clicks.push((1_000, 1, "home"));
//! clicks.push((2_000, 2, "home"));
//! clicks.push((59_000, 1, "search"));
//! sales.push((50_000, 1, "a book"));
//! sales.push((61_000, 2, "a pen"));
//! test.finish()?;
//! let row = |user, text: &str| (user, text.to_owned());
//! assert_eq!(out.take_sorted(), [row(1, "home a book"), row(1, "search a book"), row(2, "home nothing")]);
//! # Ok::<_, flow::Error>(())
//! ```
//!
//! # Between bounds in time
//!
//! `.between("-5s", "10s")` says that a right record meets the left ones that were up to 10 seconds before it or up to 5
//! seconds after it; both bounds are inclusive, unless `.exclusive_lower()` or `.exclusive_upper()` follows. A bound is a
//! text, a [`Duration`](std::time::Duration) or an [`Offset`](crate::time::Offset). A pair comes out when the second of its
//! records arrives, and has the later time of both. A record that is behind the watermark is dropped and counted.
//!
//! Records wait until the watermark says that nobody can meet them any more, and only then an outer join knows that
//! nobody has: what it gives has that time.
//!
//! ```
//! use flow::{pipeline, testing::{Harness, Input, Output}, watermark::bounded};
//!
//! #[pipeline]
//! fn paid(orders: Input<(i64, u64)>, payments: Input<(i64, u64, u64)>, out: Output<(u64, u64)>) {
//!     let orders = source(orders).watermarks(bounded("5s"), |(time, _)| *time);
//!     let payments = source(payments).watermarks(bounded("5s"), |(time, _, _)| *time);
//!     orders
//!         .key_by(|(_, order)| *order)
//!         .interval_join(payments.key_by(|(_, order, _)| *order))
//!         .between("0s", "1h")
//!         .with(|order, _, (_, _, cents)| (order, *cents))
//!         .sink(out);
//! }
//!
//! let mut test = Harness::new();
//! let (orders, payments, out) = (test.input(), test.input(), test.output());
//! test.start(paid(orders.clone(), payments.clone(), out.clone()))?;
//! payments.push((7_000, 1, 250));
//! orders.push((6_000, 1));
//! orders.push((8_000, 2));
//! payments.push((3_700_000, 2, 999));
//! test.finish()?;
//! assert_eq!(out.take(), [(1, 250)], "the second payment came too late");
//! # Ok::<_, flow::Error>(())
//! ```
//!
//! # With a stream that is everywhere
//!
//! A small stream, such as exchange rates, is sent to every subtask, which keeps the newest record of each key; the other
//! stream stays where it is, without an exchange. Its records are looked up as they come, with no regard to time: one that
//! comes before the first record of its key finds nobody. Only the event time of the large stream counts, and goes on.
//!
//! ```
//! use flow::{pipeline, testing::{Harness, Input, Output}};
//!
//! #[pipeline]
//! fn in_cents(amounts: Input<(&'static str, u64)>, rates: Input<(&'static str, u64)>, out: Output<u64>) {
//!     let rates = source(rates);
//!     source(amounts)
//!         .broadcast_join(rates, |(currency, _)| *currency, |(currency, _)| *currency)
//!         .with(|(_, amount), rate| rate.map_or(0, |(_, rate)| amount * rate))
//!         .sink(out);
//! }
//!
//! let mut test = Harness::new();
//! let (amounts, rates, out) = (test.input(), test.input(), test.output());
//! test.start(in_cents(amounts.clone(), rates.clone(), out.clone()))?;
//! rates.push(("EUR", 100));
//! test.settle()?;
//! amounts.push(("EUR", 3));
//! amounts.push(("XXX", 3));
//! test.finish()?;
//! assert_eq!(out.take(), [300, 0]);
//! # Ok::<_, flow::Error>(())
//! ```

mod arrivals;
pub mod broadcast;
pub mod interval;
pub(crate) mod keys;
pub mod matching;
mod window;

pub use keys::SameKey;
pub use matching::{FullOuter, Inner, LeftOuter, Matching, Pair, RightOuter};
pub(crate) use window::Tables;
pub use window::{Joined, Met, Rows, Side, Sides, WindowJoin, WindowJoinMut};

#[cfg(test)]
mod tests;
