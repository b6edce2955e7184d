//! The content of a segment of state: key groups, and in each keyed entries and removed keys.

use std::{iter::FusedIterator, marker::PhantomData};

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
    let groups: Vec<(u32, Vec<u8>)> = groups.into_iter().collect();
    // As much as is needed at once: to grow would need the memory twice more.
    let length = groups.iter().map(|(_, bytes)| 12 + bytes.len()).sum::<usize>();
    let mut out = Vec::with_capacity(4 + length);
    out.extend_from_slice(&[0; 4]);
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
    out.push(0);
    let written = write(out, key).and_then(|()| {
        let middle = out.len();
        write(out, value)?;
        Ok(out.len() - middle)
    });
    match written {
        Ok(length) => {
            // Nearly always one byte, which is there already.
            let (header, used) = varint(length as u64 + 1);
            out[before] = header[0];
            if used > 1 {
                out.splice(before + 1..=before, header[1..used].iter().copied());
            }
            Ok(())
        }
        Err(e) => {
            out.truncate(before);
            Err(e)
        }
    }
}

/// Appends to the bytes of a group that a key was removed.
///
/// # Errors
/// When the `Serialize` of the key fails; `out` is then as before.
pub fn encode_removal<K: Serialize + ?Sized>(out: &mut Vec<u8>, key: &K) -> Result<(), CheckpointError> {
    let before = out.len();
    out.push(0);
    write(out, key).inspect_err(|_| out.truncate(before))
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), CheckpointError> {
    let mut serializer = Serializer::new(out).with_struct_map().with_human_readable();
    value.serialize(&mut serializer).map_err(|e| CheckpointError::Encode { cause: e.to_string() })
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(mut value: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut used) = ([0; 10], 0);
    loop {
        bytes[used] = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return (bytes, used + 1);
        }
        bytes[used] |= 0x80;
        used += 1;
    }
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads the entries of a group: keys with their values, and removed ones without.
#[must_use]
pub fn decode_entries<K: DeserializeOwned, V: DeserializeOwned>(group: &[u8]) -> Entries<'_, K, V> {
    Entries { keys: Keys::new(group), of: PhantomData }
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
    keys: Keys<'a, K>,
    of: PhantomData<fn() -> V>,
}

impl<K: DeserializeOwned, V: DeserializeOwned> Iterator for Entries<'_, K, V> {
    type Item = Result<(K, Option<V>), CheckpointError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = match self.keys.next()? {
            Ok(Encoded { key, value: None, .. }) => return Some(Ok((key, None))),
            Ok(Encoded { key, value: Some(value), .. }) => decode::<V>(value).map(|value| (key, Some(value))),
            Err(e) => return Some(Err(e)),
        };
        Some(entry.inspect_err(|_| self.keys = Keys::new(&[])))
    }
}

/// The entries of a group with their values as they are encoded. Ends after the first error.
#[derive(Debug)]
pub(super) struct Keys<'a, K> {
    rest: &'a [u8],
    of: PhantomData<fn() -> K>,
}

/// An entry of which only the key is decoded.
#[derive(Debug)]
pub(super) struct Encoded<'a, K> {
    pub(super) key: K,
    /// `None` says that the key was removed.
    pub(super) value: Option<&'a [u8]>,
    /// All of the entry.
    pub(super) bytes: &'a [u8],
}

impl<'a, K> Keys<'a, K> {
    pub(super) fn new(group: &'a [u8]) -> Self {
        Keys { rest: group, of: PhantomData }
    }
}

impl<'a, K: DeserializeOwned> Keys<'a, K> {
    fn step(&mut self) -> Result<Encoded<'a, K>, CheckpointError> {
        let short = || CheckpointError::Decode { cause: "an entry is cut off".to_owned() };
        let mut rest = self.rest;
        let length = read_varint(&mut rest).ok_or_else(short)?;
        let mut from = deserializer(rest);
        let key = K::deserialize(&mut from).map_err(not_decoded)?;
        let mut rest = *from.get_ref();
        let mut value = None;
        if let Some(length) = length.checked_sub(1) {
            let (of_value, after) =
                usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)).ok_or_else(short)?;
            (value, rest) = (Some(of_value), after);
        }
        let bytes = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Ok(Encoded { key, value, bytes })
    }
}

impl<'a, K: DeserializeOwned> Iterator for Keys<'a, K> {
    type Item = Result<Encoded<'a, K>, CheckpointError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(self.step().inspect_err(|_| self.rest = &[]))
    }
}

fn decode<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, CheckpointError> {
    let mut from = deserializer(bytes);
    let value = V::deserialize(&mut from).map_err(not_decoded)?;
    if from.get_ref().is_empty() {
        Ok(value)
    } else {
        Err(CheckpointError::Decode { cause: "a value is shorter than it was".to_owned() })
    }
}

fn deserializer(bytes: &[u8]) -> Deserializer<ReadReader<&[u8]>, HumanReadableConfig<DefaultConfig>> {
    let mut from = Deserializer::new(bytes).with_human_readable();
    from.set_max_depth(MAX_DEPTH);
    from
}

fn not_decoded(e: rmp_serde::decode::Error) -> CheckpointError {
    CheckpointError::Decode { cause: e.to_string() }
}
