//! Aggregates: added record by record, and merged of any two parts.

use super::*;
use crate::window::aggregate::{
    Aggregate, Itself, count, distinct, each, first, last, max, mean, min, sum, top_n,
};

/// The result over records, which are their own times, however they are cut in two.
fn of<In, A: Aggregate<In>>(aggregate: &A, records: &[(i64, In)]) -> A::Output {
    let all = |records: &[(i64, In)]| {
        let mut records = records.iter();
        let (time, record) = records.next().unwrap();
        let mut all = aggregate.create(record, at(*time)).unwrap();
        for (time, record) in records {
            aggregate.add(&mut all, record, at(*time)).unwrap();
        }
        all
    };
    let whole = aggregate.result(&all(records));
    for cut in 1..records.len() {
        let mut merged = all(&records[..cut]);
        aggregate.merge(&mut merged, all(&records[cut..])).unwrap();
        let merged = serde_json::to_value(merged).unwrap();
        assert_eq!(merged, serde_json::to_value(all(records)).unwrap(), "cut at {cut}");
    }
    whole
}

#[test]
fn each_has_its_result() {
    let records = [(3, 5i64), (1, -2), (2, 9), (3, 7), (1, 5)];
    assert_eq!(of(&count(), &records), 5);
    assert_eq!(of(&sum(Itself), &records), 24);
    assert_eq!(of(&min(Itself), &records), -2);
    assert_eq!(of(&max(Itself), &records), 9);
    assert_eq!(of(&mean(Itself), &records), 4.8);
    assert_eq!(of(&top_n(2, Itself), &records), [9, 7]);
    assert_eq!(of(&top_n(9, Itself), &records), [9, 7, 5, 5, -2]);
    assert!(of(&top_n(0, Itself), &records).is_empty());
    assert_eq!(of(&distinct(Itself), &records), 4);
    assert_eq!(of(&first(Itself), &records), -2, "the one that came first of the earliest");
    assert_eq!(of(&last(Itself), &records), 7, "the one that came last of the latest");
}

#[test]
fn several_at_once_over_the_whole_record_or_its_parts() {
    let records = [(0, (1u32, "a".to_owned())), (1, (2, "b".to_owned())), (2, (3, "a".to_owned()))];
    let whole = (count(), sum(|r: &(u32, String)| r.0), distinct(|r: &(u32, String)| r.1.clone()));
    assert_eq!(of(&whole, &records), (3, 6, 2));
    assert_eq!(of(&each((mean(Itself), last(Itself))), &records), (2.0, "a".to_owned()));
}

#[test]
fn the_mean_of_large_integers_is_exact() {
    let records = [(0, i64::MAX), (0, i64::MAX), (0, 2 - i64::MAX), (0, -i64::MAX)];
    assert_eq!(of(&mean(Itself), &records), 0.5);
}

#[test]
fn nan_does_not_displace_a_number() {
    let records = [(0, 2.0), (0, f64::NAN), (0, 1.0)];
    let aggregate = (min(Itself), max(Itself));
    let mut all = aggregate.create(&records[0].1, at(0)).unwrap();
    records[1..].iter().for_each(|(_, n)| aggregate.add(&mut all, n, at(0)).unwrap());
    assert_eq!(aggregate.result(&all), (1.0, 2.0));
}

#[test]
fn a_sum_that_overflows_is_an_error() {
    let w = Windows::detached(super::super::windows(super::super::tumbling(ms(10))).aggregate(sum(Itself)))
        .unwrap();
    let mut w = w.borrow_mut();
    w.add(&1u32, at(0), 200u8).unwrap();
    let error = w.add(&1u32, at(0), 56u8).unwrap_err().to_string();
    assert!(error.contains("does not fit into `u8`"), "{error}");
}
