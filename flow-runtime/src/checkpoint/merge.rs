//! Making one segment of several, so that a restore does not read the history of the state.

use std::collections::BTreeMap;

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{
    CheckpointError, decode_groups,
    snapshot::{Encoded, Keys},
};
use crate::state::StoredKey;

/// Merges segments of one state, later ones over earlier ones. With `whole` the first is all of the state as it once
/// was, and so is the result of all: removed keys are gone.
pub(crate) type Merge = fn(&[Bytes], whole: bool) -> Result<Bytes, CheckpointError>;

/// [`Merge`] for states by this key.
///
/// Keys are decoded and compared, since equal ones may be encoded differently. Values are passed on as they are. Needs
/// memory for the result, and for the keys of one key group at a time.
pub(crate) fn merge_segments<K: StoredKey>(
    segments: &[Bytes],
    whole: bool,
) -> Result<Bytes, CheckpointError> {
    let mut groups = BTreeMap::<u32, Vec<(usize, Bytes)>>::new();
    for (number, segment) in segments.iter().enumerate() {
        for group in decode_groups(segment) {
            let (group, bytes) = group?;
            groups.entry(group).or_default().push((number, bytes));
        }
    }
    let mut out = Vec::with_capacity(segments.iter().map(Bytes::len).max().unwrap_or(0));
    out.extend_from_slice(&u32::try_from(groups.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (group, parts) in groups {
        out.extend_from_slice(&group.to_le_bytes());
        let at = out.len();
        out.extend_from_slice(&[0; 8]);
        merge_group::<K>(&mut out, &parts, whole)?;
        let length = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&length.to_le_bytes());
    }
    Ok(out.into())
}

fn merge_group<K: StoredKey>(
    out: &mut Vec<u8>,
    parts: &[(usize, Bytes)],
    whole: bool,
) -> Result<(), CheckpointError> {
    if let [(number, bytes)] = parts
        && (!whole || *number == 0)
    {
        // Nothing to merge, and nothing removed.
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let mut entries = HashMap::<K, &[u8], FixedState>::default();
    for (_, bytes) in parts {
        for entry in Keys::<K>::new(bytes) {
            let Encoded { key, value, bytes } = entry?;
            if whole && value.is_none() {
                entries.remove(&key);
            } else {
                entries.insert(key, bytes);
            }
        }
    }
    for bytes in entries.values() {
        out.extend_from_slice(bytes);
    }
    Ok(())
}
