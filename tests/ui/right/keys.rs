//! Keys of the user's own: a struct, an enum, a generic one, and tuples of them.
#![deny(warnings)]
use std::hash::Hash;

use flow::{Key, collection::range, file, pipeline};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]
struct User {
    id: u64,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]
enum Parity {
    Even,
    Odd,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]
struct Pair<T>(T, T);

fn parity(n: &u64) -> Parity {
    if n.is_multiple_of(2) { Parity::Even } else { Parity::Odd }
}

#[pipeline]
fn p() {
    let numbers = source(range(0..9));
    numbers
        .key_by(|n| User { id: *n, name: n.to_string() })
        .count()
        .map(|(user, n)| (user.id + n, user.name))
        .sink(file::to_tsv("a"));
    numbers.key_by(parity).sum(|n| *n).map(|(_, sum)| sum).sink(file::to_lines("b"));
    numbers.key_by(|n| (parity(n), Pair(n % 3, 7))).count().map(|(_, n)| n).sink(file::to_lines("c"));
    numbers.key_by(|_| ()).count().map(|((), n)| n).sink(file::to_lines("d"));
}

#[test]
fn compiles() {
    let _ = p();
}
