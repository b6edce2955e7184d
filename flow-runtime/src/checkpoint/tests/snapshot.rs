use bytes::Bytes;
use proptest::prelude::*;

use crate::checkpoint::{
    CheckpointError, decode_entries, decode_groups, encode_entry, encode_groups, encode_removal,
};

type Entry = (String, (u64, f64, Vec<Option<String>>));

fn group(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in entries {
        encode_entry(&mut out, key, value).unwrap();
    }
    out
}

fn entry() -> impl Strategy<Value = Entry> {
    let tags = proptest::collection::vec(proptest::option::of(".{0,8}"), 0..4);
    (".{0,12}", (any::<u64>(), proptest::num::f64::NORMAL, tags))
}

#[test]
fn groups_share_the_memory_of_their_part() {
    let part = encode_groups([(3, b"three".to_vec()), (100, Vec::new())]);
    let groups: Vec<_> = decode_groups(&part).map(Result::unwrap).collect();
    assert_eq!(groups, [(3, Bytes::from("three")), (100, Bytes::new())]);
    assert!(part.as_ptr_range().contains(&groups[0].1.as_ptr()));
    assert_eq!(decode_groups(&encode_groups([])).count(), 0);
}

#[test]
fn cut_off_groups_are_an_error_and_the_end() {
    let part = encode_groups([(3, b"three".to_vec()), (4, b"four".to_vec())]);
    for length in 0..part.len() {
        let groups: Vec<_> = decode_groups(&part.slice(..length)).collect();
        assert!(matches!(groups.last(), Some(Err(CheckpointError::Decode { .. }))), "{length} bytes");
        assert_eq!(groups.iter().filter(|g| g.is_err()).count(), 1, "{length} bytes");
    }
    let longer = Bytes::from([&part[..], b"!"].concat());
    assert!(decode_groups(&longer).last().unwrap().is_err());
}

#[test]
fn entries_end_after_an_error() {
    let bytes = group(&[("a".into(), (1, 0.5, vec![])), ("b".into(), (2, 0.5, vec![]))]);
    let read: Vec<_> = decode_entries::<String, String>(&bytes).collect();
    assert!(matches!(&read[..], [Err(CheckpointError::Decode { .. })]), "{read:?}");
}

#[test]
fn a_failed_entry_leaves_no_trace() {
    struct Fails;
    impl serde::Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let mut out = b"before".to_vec();
    let error = encode_entry(&mut out, "a key", &Fails).unwrap_err();
    assert!(error.to_string().contains("no") && !error.restartable(), "{error}");
    assert_eq!(out, b"before");
}

/// Deeper than any state is, and not deep enough to exhaust a stack.
#[test]
fn deeply_nested_bytes_are_an_error() {
    let bytes = vec![0x91; 100_000];
    assert!(decode_entries::<serde_json::Value, serde_json::Value>(&bytes).last().unwrap().is_err());
}

proptest! {
    #[test]
    fn groups_round_trip(groups in proptest::collection::vec((any::<u32>(), proptest::collection::vec(any::<u8>(), 0..20)), 0..6)) {
        let part = encode_groups(groups.clone());
        let read: Result<Vec<_>, _> = decode_groups(&part).map(|g| g.map(|(n, b)| (n, b.to_vec()))).collect();
        prop_assert_eq!(read.unwrap(), groups);
    }

    #[test]
    fn entries_round_trip(entries in proptest::collection::vec(entry(), 0..6)) {
        let bytes = group(&entries);
        let read: Result<Vec<(String, Option<_>)>, _> = decode_entries(&bytes).collect();
        let written: Vec<_> = entries.into_iter().map(|(key, value)| (key, Some(value))).collect();
        prop_assert_eq!(read.unwrap(), written);
    }

    #[test]
    fn damaged_bytes_never_panic(
        entries in proptest::collection::vec(entry(), 1..4),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut part = encode_groups([(1, group(&entries)), (2, group(&entries))]).to_vec();
        for (at, to) in flips {
            let at = at.index(part.len());
            part[at] = to;
        }
        part.truncate(cut.index(part.len() + 1));
        for group in decode_groups(&Bytes::from(part)).flatten() {
            let _ = decode_entries::<String, (u64, f64, Vec<Option<String>>)>(&group.1).count();
            let _ = decode_entries::<serde_json::Value, serde_json::Value>(&group.1).count();
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = decode_groups(&Bytes::from(bytes.clone())).count();
        let _ = decode_entries::<serde_json::Value, u128>(&bytes).count();
        let _ = decode_entries::<Vec<u8>, Vec<(String, i64)>>(&bytes).count();
    }
}

#[test]
fn entries_with_long_values_and_removals_are_told_apart() {
    let long = "x".repeat(20_000);
    let mut bytes = Vec::new();
    encode_entry(&mut bytes, "a", &long).unwrap();
    encode_removal(&mut bytes, "b").unwrap();
    encode_entry(&mut bytes, "c", "").unwrap();
    let read: Result<Vec<(String, Option<String>)>, _> = decode_entries(&bytes).collect();
    let expected =
        [("a".to_owned(), Some(long)), ("b".to_owned(), None), ("c".to_owned(), Some(String::new()))];
    assert_eq!(read.unwrap(), expected);
    for length in 1..bytes.len() {
        let read: Vec<_> = decode_entries::<String, String>(&bytes[..length]).collect();
        assert!(read.len() < 3 || read.last().unwrap().is_err(), "{length} bytes");
    }
}
