//! From a path or URL to the place it means.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{CheckpointError, CheckpointId};

/// A place for checkpoints, not opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A directory.
    Local(PathBuf),
    /// A bucket and a prefix in it.
    S3 { bucket: String, prefix: String },
}

impl Location {
    /// Understands `dir`, `/dir`, `file:///dir` and `s3://bucket/prefix`.
    pub(super) fn parse(url: &str) -> Result<Self, CheckpointError> {
        let refuse = |problem: &str| {
            Err(CheckpointError::Location { url: without_credentials(url), problem: problem.to_owned() })
        };
        if url.is_empty() {
            return refuse("it is empty; name a directory");
        }
        let Some((scheme, rest)) = url.split_once("://") else { return Ok(Location::Local(url.into())) };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => match rest.strip_prefix("localhost").unwrap_or(rest) {
                path if path.starts_with('/') => match percent_decode(path) {
                    Some(path) => Ok(Location::Local(path.into())),
                    None => refuse("it has a `%` that does not encode text"),
                },
                _ => refuse("a file URL has an absolute path: `file:///var/lib/job`"),
            },
            "s3" | "s3a" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() || bucket.contains(['@', '?', ':']) || prefix.contains(['?', '#']) {
                    return refuse(
                        "it must read `s3://bucket/prefix`; credentials and region come from AWS_* variables",
                    );
                }
                Ok(Location::S3 { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
            }
            _ => refuse("use a path, `file:///..` or `s3://bucket/prefix`"),
        }
    }
}

/// Splits `dir/chk-12`, `dir/chk-0000000012/manifest` or plain `dir` into the store and the checkpoint.
pub(super) fn split_checkpoint(url: &str) -> (&str, Option<CheckpointId>) {
    let trimmed = |s: &'_ str| -> usize {
        let kept = s.trim_end_matches('/').len();
        // The root directory is its slash.
        if kept == 0 { s.len().min(1) } else { kept }
    };
    let whole = &url[..trimmed(url)];
    let folder = whole.strip_suffix("/manifest").unwrap_or(whole).trim_end_matches('/');
    let (parent, name) = match folder.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((parent, name)) => (parent, name),
        None => (".", folder),
    };
    let digits = name.strip_prefix("chk-").filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
    match digits.and_then(|d| d.parse().ok()) {
        Some(id) => (parent, Some(CheckpointId(id))),
        None => (whole, None),
    }
}

/// Creates `dir` where it is missing, in such a way that it outlives a power failure.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_dir(parent)?;
    match fs::create_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(e) => Err(e),
        Ok(()) if cfg!(unix) => fs::File::open(parent)?.sync_all(),
        Ok(()) => Ok(()),
    }
}

/// For messages and logs: the URL without `user:password@` and without a query.
pub(super) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let (digits, tail) = tail.split_first_chunk::<2>()?;
            let digits =
                std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}
