//! The bytes of a file, decompressed, from an offset on.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use super::FileSplit;
use crate::connectors::file::FileError;

/// What a file is read through.
pub(super) type Input = Box<dyn Read + Send>;

enum Compression {
    None,
    Gzip,
    Zstd,
}

fn compression(path: &str) -> Compression {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("gz" | "gzip") => Compression::Gzip,
        Some("zst" | "zstd") => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Whether offsets count what is not there before decompression, so that the file can only be read from its start.
pub(super) fn is_compressed(path: &str) -> bool {
    !matches!(compression(path), Compression::None)
}

/// Opens the file of `split` at `offset`.
pub(super) fn open(split: &FileSplit, offset: u64) -> Result<Input, FileError> {
    let path = &split.path;
    let failed = |cause| FileError::read(path, cause);
    let mut file = File::open(path).map_err(|cause| vanished(split, cause))?;
    let mut input: Input = match compression(path) {
        Compression::None => {
            let now = file.metadata().map_err(failed)?.len();
            let before = split.end.unwrap_or(offset).max(offset);
            if now < before {
                return Err(FileError::Shrank { path: path.clone(), before, now });
            }
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            return Ok(Box::new(file));
        }
        // A gzip file may have several members, one after the other.
        Compression::Gzip => {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(64 * 1024, file)))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file).map_err(failed)?),
    };
    let skipped = io::copy(&mut input.by_ref().take(offset), &mut io::sink()).map_err(failed)?;
    if skipped < offset {
        return Err(FileError::Shrank { path: path.clone(), before: offset, now: skipped });
    }
    Ok(input)
}

fn vanished(split: &FileSplit, cause: io::Error) -> FileError {
    use crate::source::Split;
    match cause.kind() {
        io::ErrorKind::NotFound => {
            FileError::Vanished { path: split.path.clone(), position: split.position() }
        }
        _ => FileError::read(&split.path, cause),
    }
}
