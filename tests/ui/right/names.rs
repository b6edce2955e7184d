//! Names that generated code might use too.
#![deny(warnings)]
#![allow(non_snake_case)]
use flow::{collection::range, file, pipeline};

mod option {}
#[allow(dead_code)]
enum Option {}
#[allow(dead_code)]
struct Vec;

#[pipeline]
fn p(chain: u64, flow: u64, base: u64) {
    let at = 1u64;
    let batch = 2u64;
    let key = 3u64;
    let rec = 4u64;
    let target = 5u64;
    let slot = 6u64;
    let held = 7u64;
    let accumulator = String::from("x");
    let source = 8u64;
    let r#type =
        source(range(0..9)).map(|n| n + chain + flow + base + at + batch + key + rec + target + slot);
    let r#fn = r#type.filter(|slot| *slot > held).map(|n| n + source);
    let out = r#fn.key_by(|rec| rec % key).reduce(|a, b| a + b + slot + held + at);
    let value = out.key_by(|at| at + key).max_by(|key| *key + slot + batch);
    let r#match = value
        .key_by(|n| n + held)
        .fold(accumulator.clone(), |all, n| all.push_str(&format!("{n}{accumulator}{at}")));
    r#match.map(|(key, value)| format!("{key}{value}")).sink(file::to_lines("a"));
    r#type.partition_custom(|key, targets| (key + slot) as usize % targets, |n| *n).sink(file::to_lines("b"));
}

#[test]
fn compiles() {
    let _ = p(1, 2, 3);
}
