//! Joins of streams whose records and keys borrow, are of types of one's own, or both.

use std::time::Duration;

use flow::{
    Key, Stream,
    collection::collection,
    pipeline,
    print::print,
    time::Offset,
    watermark::monotonous,
    window::{session, trigger, tumbling},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]
struct User(u32);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    user: User,
    item: String,
    time: i64,
}

fn words(_: User, order: &Order, word: Option<&Order>) -> String {
    format!("{} {}", order.item, word.map_or("", |word| &word.item))
}

#[pipeline(guarantee = at_least_once)]
fn joins(orders: Vec<Order>, patience: Duration) {
    let orders = source(collection(orders)).watermarks(monotonous(), |order| order.time);
    let texts = orders.map(|order| (order.time, format!("{} {}", order.item, order.user.0)));
    let by_word = texts.key_by(|(_, text)| text.as_str());
    let by_item = orders.key_by(|order| order.item.as_str());
    // Borrowed keys, in windows with all that can be said of them.
    by_item
        .full_join(by_word)
        .uid("everything")
        .window(session("1s"))
        .allowed_lateness("2s")
        .trigger(trigger::event_time())
        .with(|item, order, text| match (order, text) {
            (Some(order), Some((time, text))) => format!("{item} {} {time} {text}", order.time),
            _ => item.to_owned(),
        })
        .sink(print());
    // Keys of one's own, a function instead of a closure, bounds that are known at the start only.
    let by_user = orders.key_by(|order| order.user.clone());
    by_user
        .left_join(orders.map(|order| order).key_by(|order| order.user.clone()))
        .between(Offset::back(patience), patience)
        .exclusive_lower()
        .exclusive_upper()
        .parallelism(2)
        .with(words)
        .sink(print());
    // What comes out may borrow from both.
    let lengths = by_item
        .interval_join(texts.filter(|_| true).key_by(|(_, text)| text.as_str()))
        .between("-1m", "500ms")
        .with(|item, order, (_, text)| (item, order.item.as_str(), text.as_str()));
    lengths.map(|(a, b, c)| a.len() + b.len() + c.len()).sink(print());
    // A right join of a union, with owned keys.
    by_user
        .map(|order| (order.time, order.item))
        .key_by(|(_, item)| item.clone())
        .right_join(texts.union(texts.map(|text| text)).key_by(|(_, text)| text.clone()))
        .window(tumbling("1s"))
        .with(|key, left, (_, right)| format!("{key}{}{right}", left.is_some()))
        .sink(print());
    // A stream that is everywhere.
    let prefix = String::from("> ");
    orders
        .broadcast_join(texts, |order| order.item.as_str(), |(_, text)| text.as_str())
        .with(|order, text| format!("{prefix}{} {:?}", order.item, text.map(|(_, text)| text)))
        .sink(print());
}

/// Both streams come straight from where the helper function is called.
#[pipeline(guarantee = at_least_once)]
fn priced(amounts: Stream<(String, u64)>, rates: Stream<(String, u64)>) -> Stream<u64> {
    amounts
        .broadcast_join(rates, |(currency, _)| currency.as_str(), |(currency, _)| currency.as_str())
        .with(|(_, amount), rate| amount * rate.map_or(1, |(_, rate)| *rate))
}

#[pipeline(guarantee = at_least_once)]
fn of_helpers(amounts: Vec<(String, u64)>, rates: Vec<(String, u64)>) {
    let amounts = source(collection(amounts));
    let rates = source(collection(rates));
    priced(amounts, rates)
        .broadcast_join(priced(rates, amounts), |n| *n, |n| *n)
        .with(|n, other| n + other.unwrap_or(&0))
        .sink(print());
}

#[test]
fn compiles() {
    let _ = (joins, of_helpers);
}
