//! Which files a pattern means.

use std::{fs, io, path::Path};

use super::FileError;

/// The files that `pattern` (a file, a directory, or a glob) means now, with their lengths, in the order of their
/// names.
///
/// Files whose name starts with `.` or `_` are those of somebody who still writes (our own sink does so), and are
/// not taken, unless the pattern itself names them.
pub(super) fn find(pattern: &str) -> Result<Vec<(String, u64)>, FileError> {
    let path = Path::new(pattern);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => in_directory(path),
        Ok(meta) => Ok(vec![(pattern.to_owned(), meta.len())]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => matching(pattern),
        Err(error) => Err(FileError::read(pattern, error)),
    }
}

/// Whether the pattern may match nothing now and something later.
pub(super) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

fn in_directory(directory: &Path) -> Result<Vec<(String, u64)>, FileError> {
    let failed = |error| FileError::read(&directory.to_string_lossy(), error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !hidden(&entry.path()) {
            files.extend(regular(&entry.path())?);
        }
    }
    files.sort();
    Ok(files)
}

fn matching(pattern: &str) -> Result<Vec<(String, u64)>, FileError> {
    if !is_glob(pattern) {
        return Err(FileError::NothingMatches { pattern: pattern.to_owned() });
    }
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let paths = glob::glob_with(pattern, options)
        .map_err(|error| FileError::Pattern { pattern: pattern.to_owned(), cause: error.to_string() })?;
    let asks_for_hidden = hidden(Path::new(pattern));
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            let path = error.path().to_string_lossy().into_owned();
            FileError::read(&path, error.into())
        })?;
        if asks_for_hidden || !hidden(&path) {
            files.extend(regular(&path)?);
        }
    }
    files.sort();
    Ok(files)
}

fn hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes()[0] == b'_')
}

fn regular(path: &Path) -> Result<Option<(String, u64)>, FileError> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // Gone since the directory was listed, or a dangling link.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::read(&path.to_string_lossy(), error)),
    };
    if !meta.is_file() {
        return Ok(None);
    }
    match path.to_str() {
        Some(name) => Ok(Some((name.to_owned(), meta.len()))),
        // The path becomes part of a checkpoint.
        None => Err(FileError::Path { path: path.to_string_lossy().into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        let found = find(pattern).unwrap();
        found.iter().map(|(path, _)| path.rsplit('/').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_file_a_directory_or_a_glob() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.txt", "a.txt", "c.csv", ".hidden.txt", "_tmp.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("d.txt")).unwrap();
        let root = dir.path().to_str().unwrap();
        assert_eq!(names(root), ["a.txt", "b.txt", "c.csv"]);
        assert_eq!(names(&format!("{root}/*.txt")), ["a.txt", "b.txt"]);
        assert_eq!(names(&format!("{root}/_*")), ["_tmp.txt"]);
        assert_eq!(names(&format!("{root}/.hidden.txt")), [".hidden.txt"]);
        assert_eq!(find(&format!("{root}/a.txt")).unwrap()[0].1, 5);
        assert_eq!(names(&format!("{root}/*.none")), [""; 0]);
    }

    #[test]
    fn nothing_there() {
        let error = find("/no/such/file").unwrap_err();
        assert!(error.to_string().starts_with("no file matches `/no/such/file`"), "{error}");
        assert!(matches!(find("/no/[/x"), Err(FileError::Pattern { .. })));
    }

    #[test]
    fn a_file_with_glob_characters_in_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a[1].txt");
        fs::write(&path, "x").unwrap();
        assert_eq!(names(path.to_str().unwrap()), ["a[1].txt"]);
    }
}
