//! Which types can be state, and how they may change from one version of a job to the next.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::checkpoint::{decode_entries, encode_entry, verify_entries};

/// Writes `value` as key and as value, and reads it as another type.
fn change<A: Serialize, B: DeserializeOwned>(value: &A) -> Result<B, String> {
    let mut bytes = Vec::new();
    encode_entry(&mut bytes, value, value).unwrap();
    encode_entry(&mut bytes, value, value).unwrap();
    let read: Vec<_> = decode_entries::<B, B>(&bytes)
        .map(|entry| entry.map(|(k, v)| (k, v.unwrap())))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    assert_eq!(read.len(), 2);
    Ok(read.into_iter().next().unwrap().1)
}

fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
    assert_eq!(change::<T, T>(&value).unwrap(), value);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Old {
    count: u64,
    name: String,
}

#[test]
fn fields_may_come_go_and_move() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Gained {
        #[serde(default)]
        last: Option<u64>,
        name: String,
        count: u64,
        #[serde(default)]
        tags: Vec<String>,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Lost {
        name: String,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Renamed {
        #[serde(alias = "count")]
        total: u64,
        name: String,
    }
    let old = Old { count: 3, name: "x".into() };
    let gained = Gained { last: None, name: "x".into(), count: 3, tags: vec![] };
    assert_eq!(change::<_, Gained>(&old).unwrap(), gained);
    assert_eq!(change::<_, Old>(&gained).unwrap(), old);
    assert_eq!(change::<_, Lost>(&old).unwrap(), Lost { name: "x".into() });
    assert_eq!(change::<_, Renamed>(&old).unwrap(), Renamed { total: 3, name: "x".into() });
}

#[test]
fn a_field_without_default_says_which() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Demanding {
        count: u64,
        name: String,
        more: u64,
    }
    let error = change::<_, Demanding>(&Old { count: 3, name: "x".into() }).unwrap_err();
    assert!(error.contains("`more`") && error.contains("#[serde(default)]"), "{error}");
}

#[test]
fn numbers_may_grow_and_not_overflow() {
    assert_eq!(change::<u8, u64>(&200).unwrap(), 200);
    assert_eq!(change::<u64, u8>(&200).unwrap(), 200);
    assert!(change::<u64, u8>(&300).is_err());
    assert!(change::<i32, u64>(&-1).is_err());
    assert!(change::<&str, u64>(&"1").is_err());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    New(u32),
    Tuple(u8, String),
    Struct { a: Option<u8>, b: Vec<Shape> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(f64),
    Text(String),
    Address { ip: IpAddr },
    List(Vec<Untagged>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    A { ip: IpAddr, at: Duration },
    B(Old),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(u8, u8),
    B,
}

#[test]
fn enums_in_all_representations() {
    same(Shape::Unit);
    same(Shape::New(7));
    same(Shape::Tuple(1, "x".into()));
    same(Shape::Struct { a: None, b: vec![Shape::Unit, Shape::Struct { a: Some(1), b: vec![] }] });
    same(Untagged::List(vec![Untagged::Number(0.5), Untagged::Text("x".into())]));
    // Text for people, which untagged, tagged and flattened types can only read.
    same(Untagged::Address { ip: "::1".parse().unwrap() });
    same(Tagged::A { ip: "10.0.0.1".parse().unwrap(), at: Duration::from_nanos(5) });
    same(Tagged::B(Old { count: 1, name: "x".into() }));
    same(Adjacent::A(1, 2));
    same(Adjacent::B);
    same(Err::<u8, String>("x".into()));
}

#[test]
fn a_new_variant_may_come_anywhere() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Later {
        First(u8),
        Unit,
        New(u32),
    }
    assert_eq!(change::<_, Later>(&Shape::New(7)).unwrap(), Later::New(7));
    assert_eq!(change::<_, Later>(&Shape::Unit).unwrap(), Later::Unit);
    assert!(change::<_, Shape>(&Later::First(1)).unwrap_err().contains("First"));
}

#[test]
fn flattened_structs_and_maps() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        id: u32,
        #[serde(flatten)]
        inner: Inner,
        #[serde(flatten)]
        rest: BTreeMap<String, serde_json::Value>,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        ip: IpAddr,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    let rest = BTreeMap::from([("x".to_owned(), serde_json::json!([1, {"y": null}]))]);
    same(Outer { id: 1, inner: Inner { ip: "::1".parse().unwrap(), note: None }, rest });
}

#[test]
fn json_values() {
    same(serde_json::json!({
        "a": [1, -1, u64::MAX, i64::MIN, 0.5, 1e300], "b": null, "c": {"d": true, "": "ü\u{1F600}\0"},
    }));
}

#[test]
fn extreme_numbers() {
    for n in [0, 1, 255, u128::from(u64::MAX), u128::MAX, 1 << 127] {
        same(n);
    }
    for n in [i128::MIN, i128::MAX, -1] {
        same(n);
    }
    for n in [i64::MIN, i64::MAX, -1, -129] {
        same(n);
    }
    for n in [f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 0.1, -0.0] {
        assert_eq!(change::<f64, f64>(&n).unwrap().to_bits(), n.to_bits());
    }
    for bits in [f64::NAN.to_bits(), 0x7ff8_dead_beef_0001, 0xfff0_0000_0000_0001] {
        assert_eq!(change::<f64, f64>(&f64::from_bits(bits)).unwrap().to_bits(), bits);
    }
    assert_eq!(change::<f32, f32>(&f32::NAN).unwrap().to_bits(), f32::NAN.to_bits());
}

#[test]
fn what_else_people_keep() {
    same((1u8, 'ü', "text".to_owned(), [1u16, 2], ()));
    same(Some(5u8));
    same(None::<u8>);
    same(vec![0u8, 255]);
    same(HashMap::from([((1, "a".to_owned()), vec![Some(1.5)]), ((2, "b".to_owned()), vec![None])]));
    same(BTreeMap::from([(Some(3), 'x'), (None, 'y')]));
    same(std::time::UNIX_EPOCH + Duration::new(5, 7));
    same(SystemTime::UNIX_EPOCH);
    same(std::sync::Arc::<str>::from("shared"));
    same(compact_str::CompactString::from("compact"));
    same(std::num::NonZeroU8::MIN);
    same(1..5);
}

/// Types that ask serde for bytes, as `serde_bytes` and `bytes` do.
#[test]
fn bytes_are_bytes() {
    #[derive(Debug, PartialEq)]
    struct Blob(Vec<u8>);
    impl Serialize for Blob {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }
    impl<'de> Deserialize<'de> for Blob {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Blob;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                    Ok(Blob(bytes.to_vec()))
                }
            }
            deserializer.deserialize_byte_buf(Visitor)
        }
    }
    same(Blob(vec![]));
    same(Blob((0..=255).collect()));
    same(vec![Blob(vec![1; 70_000])]);
}

/// A key may be looked up and written in its borrowed form.
#[test]
fn borrowed_and_owned_are_written_alike() {
    let (mut borrowed, mut owned) = (Vec::new(), Vec::new());
    encode_entry(&mut borrowed, "key", &(&[1u8, 2][..], Some("x"))).unwrap();
    encode_entry(&mut owned, &"key".to_owned(), &(vec![1u8, 2], Some("x".to_owned()))).unwrap();
    assert_eq!(borrowed, owned);
}

#[test]
fn json_as_deep_as_it_can_be_parsed() {
    let text = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    same(vec![Some(BTreeMap::from([("x".to_owned(), value)]))]);
}

/// serde gives such a type no way back; better said at the first checkpoint than at the first restore.
#[test]
fn what_cannot_come_back_is_found_early() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Wide {
        #[allow(dead_code)]
        Number(u128),
    }
    let mut bytes = Vec::new();
    encode_entry(&mut bytes, "k", &Wide::Number(u128::MAX)).unwrap();
    assert!(verify_entries::<String, Wide>(&bytes).is_err());
    assert!(verify_entries::<String, u128>(&bytes).is_ok());
}
