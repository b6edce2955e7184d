//! Handles of every shape, and a clean expansion under denied lints.
#![deny(warnings, unsafe_code, missing_docs)]

use flow::TransactionHandle;

/// A struct with generics.
#[derive(Debug, PartialEq, TransactionHandle)]
pub struct Of<T> {
    /// Any field that can be stored.
    pub inner: T,
    /// A raw name.
    pub r#type: Option<(u8, String)>,
}

/// A unit.
#[derive(Debug, PartialEq, TransactionHandle)]
pub struct Unit;

/// An enum.
#[derive(Debug, PartialEq, TransactionHandle)]
#[handle(version = 2)]
pub enum Any {
    /// Nothing.
    Nothing,
    /// Unnamed.
    Unnamed(u64, Vec<u8>),
    /// Named.
    Named {
        /// Added in version 2.
        #[handle(default)]
        added: u64,
    },
}

#[test]
fn compiles() {
    let handle = Of { inner: vec![1u64], r#type: Some((1, "a".to_owned())) };
    let encoded = flow::sink::encode_handle(&handle).unwrap();
    assert_eq!(flow::sink::decode_handle::<Of<Vec<u64>>>(&encoded).unwrap(), handle);
    for handle in [Any::Nothing, Any::Unnamed(1, vec![2]), Any::Named { added: 3 }] {
        let encoded = flow::sink::encode_handle(&handle).unwrap();
        assert_eq!(flow::sink::decode_handle::<Any>(&encoded).unwrap(), handle);
    }
    let _ = flow::sink::encode_handle(&Unit).unwrap();
}
