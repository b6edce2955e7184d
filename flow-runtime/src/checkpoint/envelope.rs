//! The checksummed wrapping of parts and manifests. Every single changed, missing or additional byte is noticed.

use bytes::Bytes;

use super::{CheckpointError, Damage, Manifest};

const MAGIC: &[u8; 8] = b"FLOWPART";
/// The payload as it is.
pub(super) const PLAIN: u32 = 1;
/// The payload in a frame of Zstandard.
pub(super) const ZSTD: u32 = 2;
const HEADER: usize = 24;

const MANIFEST_MAGIC: &str = "flow-checkpoint ";

/// The checksum of a manifest.
fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The checksum of a part's payload. That of a compressed one covers the format too: taken for a plain one it would
/// otherwise be sound.
pub(super) fn part_crc(format: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if format != PLAIN {
        hasher.update(&format.to_le_bytes());
    }
    hasher.update(payload);
    hasher.finalize()
}

/// What stands before the payload of a part.
pub(super) fn part_header(format: u32, payload: &[u8], crc: u32) -> Bytes {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&format.to_le_bytes());
    header.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    header.extend_from_slice(&crc.to_le_bytes());
    header.into()
}

/// A part as it was found in its file, and as it was written: still compressed, if it was.
pub(super) struct Part {
    pub(super) format: u32,
    pub(super) payload: Bytes,
    pub(super) crc: u32,
}

/// The part in `file`, without a copy.
pub(super) fn open_part(path: &str, file: &Bytes) -> Result<Part, CheckpointError> {
    let short = || {
        let damage = Damage::Length { expected: HEADER as u64, found: file.len() as u64 };
        CheckpointError::damaged(path, damage)
    };
    let (magic, rest) = file.split_first_chunk::<8>().ok_or_else(short)?;
    if magic != MAGIC {
        return Err(CheckpointError::damaged(path, Damage::Magic));
    }
    let (format, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let (sum, payload) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let format = u32::from_le_bytes(*format);
    if !(PLAIN..=ZSTD).contains(&format) {
        return Err(CheckpointError::Format { path: path.to_owned(), found: format, supported: ZSTD });
    }
    let expected = u64::from_le_bytes(*length).saturating_add(HEADER as u64);
    if expected != file.len() as u64 {
        return Err(CheckpointError::damaged(path, Damage::Length { expected, found: file.len() as u64 }));
    }
    let crc = u32::from_le_bytes(*sum);
    if part_crc(format, payload) != crc {
        return Err(CheckpointError::damaged(path, Damage::Checksum));
    }
    Ok(Part { format, payload: file.slice(HEADER..), crc })
}

fn manifest_header(format: u32, body: &[u8]) -> String {
    format!("{MANIFEST_MAGIC}{format} crc32={:08x} bytes={}\n", crc(body), body.len())
}

/// The file of a manifest.
pub(super) fn seal_manifest(path: &str, manifest: &Manifest) -> Result<Bytes, CheckpointError> {
    let mut body = serde_json::to_vec_pretty(manifest)
        .map_err(|e| CheckpointError::Encode { cause: format!("manifest `{path}`: {e}") })?;
    body.push(b'\n');
    let mut file = manifest_header(Manifest::FORMAT, &body).into_bytes();
    file.append(&mut body);
    Ok(file.into())
}

/// The manifest in `file`.
pub(super) fn open_manifest(path: &str, file: &[u8]) -> Result<Manifest, CheckpointError> {
    let damaged = |damage| CheckpointError::damaged(path, damage);
    let end = file.iter().position(|b| *b == b'\n').map(|i| i + 1);
    let (header, body) = file.split_at(end.unwrap_or(file.len()));
    let header = std::str::from_utf8(header).map_err(|_| damaged(Damage::Magic))?;
    let fields = header.strip_prefix(MANIFEST_MAGIC).ok_or_else(|| damaged(Damage::Magic))?;
    let mut fields = fields.split_ascii_whitespace();
    let format = fields.next().and_then(|f| f.parse::<u32>().ok()).ok_or_else(|| damaged(Damage::Magic))?;
    if format != Manifest::FORMAT {
        let (path, supported) = (path.to_owned(), Manifest::FORMAT);
        return Err(CheckpointError::Format { path, found: format, supported });
    }
    let length = fields.find_map(|f| f.strip_prefix("bytes=")?.parse::<u64>().ok());
    if let Some(length) = length.filter(|length| *length != body.len() as u64) {
        let head = header.len() as u64;
        let (expected, found) = (length.saturating_add(head), file.len() as u64);
        return Err(damaged(Damage::Length { expected, found }));
    }
    // Compared as text, so that nothing in the line can change unnoticed.
    if header != manifest_header(format, body) {
        return Err(damaged(Damage::Checksum));
    }
    serde_json::from_slice(body).map_err(|e| damaged(Damage::Content(e.to_string())))
}
