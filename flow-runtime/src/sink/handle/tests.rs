use flow_macros::TransactionHandle;

use super::{decode_handle, describe_handle, encode_handle};

#[derive(Clone, Debug, PartialEq, TransactionHandle)]
struct First {
    gid: String,
    rows: u64,
    dropped: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, TransactionHandle)]
#[handle(version = 2)]
struct Grown {
    gid: String,
    rows: u64,
    #[handle(default)]
    servers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, TransactionHandle)]
#[handle(version = 3, from = Grown)]
struct Other {
    name: String,
}

impl From<Grown> for Other {
    fn from(old: Grown) -> Self {
        Other { name: format!("{}/{}", old.gid, old.rows) }
    }
}

#[derive(Clone, Debug, PartialEq, TransactionHandle)]
enum Either {
    Staged { bytes: Vec<u8> },
    Prepared(String, u64),
    Nothing,
}

fn first() -> First {
    First { gid: "a".to_owned(), rows: 3, dropped: None }
}

#[test]
fn a_handle_comes_back() {
    let encoded = encode_handle(&first()).unwrap();
    assert_eq!(decode_handle::<First>(&encoded).unwrap(), first());
    for handle in [Either::Staged { bytes: vec![1, 2] }, Either::Prepared("x".into(), 7), Either::Nothing] {
        assert_eq!(decode_handle::<Either>(&encode_handle(&handle).unwrap()).unwrap(), handle);
    }
}

#[test]
fn older_versions_are_read() {
    let encoded = encode_handle(&first()).unwrap();
    let grown = Grown { gid: "a".to_owned(), rows: 3, servers: Vec::new() };
    assert_eq!(decode_handle::<Grown>(&encoded).unwrap(), grown);
    assert_eq!(decode_handle::<Other>(&encoded).unwrap(), Other { name: "a/3".to_owned() });
    assert_eq!(decode_handle::<Other>(&encode_handle(&grown).unwrap()).unwrap().name, "a/3");
}

#[test]
fn later_versions_are_refused() {
    let encoded = encode_handle(&Other { name: "b".to_owned() }).unwrap();
    let error = decode_handle::<Grown>(&encoded).unwrap_err().to_string();
    assert!(
        error.starts_with("it is of version 3, and this program knows handles up to version 2"),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let encoded = encode_handle(&"name".to_owned()).unwrap();
    let error = decode_handle::<First>(&encoded).unwrap_err().to_string();
    assert!(error.contains("no field `gid`"), "{error}");
    let error = decode_handle::<Either>(&encoded).unwrap_err().to_string();
    assert!(error.contains("which this program does not know"), "{error}");
    assert!(decode_handle::<First>(b"no handle").is_err());
}

#[test]
fn a_handle_is_described_without_its_type() {
    assert_eq!(describe_handle(&encode_handle(&first()).unwrap()), r#"gid="a" rows=3 dropped=none"#);
    let prepared = Either::Prepared("x".into(), 7);
    assert_eq!(describe_handle(&encode_handle(&prepared).unwrap()), r#"Prepared 0="x" 1=7"#);
    assert_eq!(describe_handle(b"junk"), "4 bytes that are no handle");
}
