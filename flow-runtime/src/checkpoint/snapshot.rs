//! The content of a state part: key groups, and in each the keyed entries.

use std::iter::FusedIterator;

use bytes::Bytes;
use rmp_serde::{
    Deserializer, Serializer,
    config::{DefaultConfig, HumanReadableConfig},
    decode::ReadReader,
};
use serde::{Serialize, de::DeserializeOwned};

use super::CheckpointError;

/// How deep a value may be nested. More than any JSON that `serde_json` parses (128), and little enough for the stack
/// of a thread even without optimization, where a level takes 3 kB.
const MAX_DEPTH: usize = 200;

/// Puts key groups into the payload of one part.
#[must_use]
pub fn encode_groups(groups: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Bytes {
    let mut out = vec![0; 4];
    let mut count = 0u32;
    for (group, bytes) in groups {
        count += 1;
        out.extend_from_slice(&group.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    out[..4].copy_from_slice(&count.to_le_bytes());
    out.into()
}

/// Takes the payload of a part apart again, without copying the groups.
#[must_use]
pub fn decode_groups(part: &Bytes) -> Groups {
    Groups { rest: part.clone(), left: None }
}

/// The key groups of a part: see [`decode_groups`]. Ends after the first error.
#[derive(Debug)]
pub struct Groups {
    rest: Bytes,
    /// How many are still to come; `None` before the first.
    left: Option<u32>,
}

impl Groups {
    fn step(&mut self) -> Option<Option<(u32, Bytes)>> {
        let left = match self.left {
            Some(left) => left,
            None => u32::from_le_bytes(self.take()?),
        };
        if left == 0 {
            // More bytes than were announced are as wrong as fewer.
            return if self.rest.is_empty() { Some(None) } else { None };
        }
        let group = u32::from_le_bytes(self.take()?);
        let length = usize::try_from(u64::from_le_bytes(self.take()?)).ok()?;
        if length > self.rest.len() {
            return None;
        }
        self.left = Some(left - 1);
        Some(Some((group, self.rest.split_to(length))))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.rest.first_chunk::<N>()?;
        let _ = self.rest.split_to(N);
        Some(taken)
    }
}

impl Iterator for Groups {
    type Item = Result<(u32, Bytes), CheckpointError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Some(Some(_))) {
            *self = Groups { rest: Bytes::new(), left: Some(0) };
        }
        match step {
            Some(group) => group.map(Ok),
            None => Some(Err(CheckpointError::Decode { cause: "its key groups are cut off".to_owned() })),
        }
    }
}

impl FusedIterator for Groups {}

/// Appends a keyed entry to the bytes of its group.
///
/// Structs are written with the names of their fields, so that a later version of the job may add fields
/// (`#[serde(default)]`) and drop others. What serde calls human-readable is written as text (an IP address as
/// `10.0.0.1`), because inside `untagged` and `flatten` serde expects it so.
///
/// As in most formats, `Some(None)` and `Some(())` come back as `None`; use an enum where that matters.
///
/// # Errors
/// When the `Serialize` of key or value fails; `out` is then as before.
pub fn encode_entry<K, V>(out: &mut Vec<u8>, key: &K, value: &V) -> Result<(), CheckpointError>
where
    K: Serialize + ?Sized,
    V: Serialize + ?Sized,
{
    let before = out.len();
    let mut serializer = Serializer::new(&mut *out).with_struct_map().with_human_readable();
    let result = key.serialize(&mut serializer).and_then(|()| value.serialize(&mut serializer));
    result.map_err(|e| {
        out.truncate(before);
        CheckpointError::Encode { cause: e.to_string() }
    })
}

/// Reads the entries of a group.
#[must_use]
pub fn decode_entries<K: DeserializeOwned, V: DeserializeOwned>(group: &[u8]) -> Entries<'_, K, V> {
    let mut from = Deserializer::new(group).with_human_readable();
    from.set_max_depth(MAX_DEPTH);
    Entries { from, of: std::marker::PhantomData }
}

/// Whether the entries of a group can be read again: a few types write what they cannot read, such as a `u128`
/// inside an `untagged` enum, and values nested more than 200 deep are not read. Better found at the first checkpoint than at the first restore.
///
/// # Errors
/// What a restore would say.
pub fn verify_entries<K: DeserializeOwned, V: DeserializeOwned>(group: &[u8]) -> Result<(), CheckpointError> {
    decode_entries::<K, V>(group).try_for_each(|entry| entry.map(drop))
}

/// The entries of a group: see [`decode_entries`]. Ends after the first error.
#[derive(Debug)]
pub struct Entries<'a, K, V> {
    from: Deserializer<ReadReader<&'a [u8]>, HumanReadableConfig<DefaultConfig>>,
    of: std::marker::PhantomData<fn() -> (K, V)>,
}

impl<K: DeserializeOwned, V: DeserializeOwned> Iterator for Entries<'_, K, V> {
    type Item = Result<(K, V), CheckpointError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.from.get_ref().is_empty() {
            return None;
        }
        let entry = K::deserialize(&mut self.from).and_then(|k| Ok((k, V::deserialize(&mut self.from)?)));
        Some(entry.map_err(|e| {
            *self.from.get_mut() = &[];
            CheckpointError::Decode { cause: e.to_string() }
        }))
    }
}
