//! Enums, generic structs and nested types as records, and as state.
#![deny(warnings)]
use flow::{collection::range, file, pipeline};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Event {
    Click { at: u64 },
    Buy(u64, Vec<u8>),
    Nothing,
}

#[derive(Clone, Serialize, Deserialize)]
struct Stamped<T> {
    at: u64,
    value: T,
}

fn event(n: u64) -> Event {
    match n % 3 {
        0 => Event::Click { at: n },
        1 => Event::Buy(n, vec![1]),
        _ => Event::Nothing,
    }
}

#[pipeline]
fn p() {
    let stamped = source(range(0..9)).map(event).map(|value| Stamped { at: 1, value: Some(value) });
    let latest =
        stamped.key_by(|stamped| stamped.at).reduce(|a, b| if a.at > b.at { a } else { b }).map(|stamped| {
            match stamped.value {
                Some(Event::Click { at } | Event::Buy(at, _)) => at,
                _ => 0,
            }
        });
    let counted = stamped.rebalance().filter(|stamped| stamped.at > 0).key_by(|stamped| stamped.at).fold(
        Vec::new(),
        |all, stamped| {
            all.push(stamped.value.clone());
        },
    );
    latest.sink(file::to_lines("latest"));
    counted.map(|(key, all)| (key, all.len())).sink(file::to_tsv("counted"));
}

#[derive(Clone, Serialize, Deserialize)]
struct Named {
    name: String,
}

/// A key that borrows from its record, which is nowhere but in the loop.
#[pipeline]
fn by_name() {
    let named =
        source(range(0..9)).map(|n| Named { name: n.to_string() }).key_by(|named| named.name.as_str());
    named.count().map(|(name, n)| (name.to_owned(), n)).sink(file::to_tsv("counts"));
    let long = source(range(0..9)).map(|n| Named { name: n.to_string() }).key_by(|named| &*named.name);
    long.sum(|named| named.name.len()).map(|(name, n)| (name.to_owned(), n)).sink(file::to_tsv("lengths"));
}

#[test]
fn compiles() {
    let _ = (p(), by_name());
}
