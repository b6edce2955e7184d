//! What a sink does before anything is written: commit what the checkpoint names, and tidy up behind attempts that
//! were killed.

use std::{
    fs::{self, File},
    path::Path,
};

use super::{
    PendingFiles,
    commit::publish_all,
    names,
    output::{Place, cannot, sync_directory},
};
use crate::{error::BoxError, sink::Recovered};

/// Recovers all subtasks of a sink. `overwrite` removes finished files of an earlier run when this one starts afresh.
pub(super) fn recover(
    place: &Place,
    handles: &[Recovered<PendingFiles>],
    overwrite: bool,
) -> Result<(), BoxError> {
    let dir = &place.dir;
    check_prefix(&place.prefix)?;
    fs::create_dir_all(dir).map_err(|error| cannot("create directory", dir, error))?;
    check_writable(place)?;
    for handle in handles {
        publish_all(dir, &handle.handle)?;
    }
    check_finished(place, overwrite)?;
    let owner = names::owner(&place.cx);
    for name in names_in(dir)?.iter().filter(|name| name.starts_with(&owner)) {
        remove(&dir.join(name))?;
    }
    sync_directory(dir)
}

fn check_prefix(prefix: &str) -> Result<(), BoxError> {
    if prefix.is_empty() || prefix.starts_with(['.', '_']) || prefix.contains(['/', '\\']) {
        return Err(format!(
            "`.prefix({prefix:?})` is no beginning of a file name; it must not be empty, start with `.` or `_`, or \
             contain a slash"
        )
        .into());
    }
    Ok(())
}

/// Says now, and not at the first checkpoint, that nothing can be written.
fn check_writable(place: &Place) -> Result<(), BoxError> {
    let probe = place.dir.join(format!("{}probe", names::owner(&place.cx)));
    File::create(&probe).map_err(|error| cannot("write into directory", &place.dir, error))?;
    remove(&probe)
}

/// Finished files that this run cannot have written would be mixed with its own.
fn check_finished(place: &Place, overwrite: bool) -> Result<(), BoxError> {
    let Place { dir, prefix, extension, cx } = place;
    let finished = |name: &String| names::checkpoint(name, prefix, extension);
    for name in names_in(dir)? {
        let path = dir.join(&name);
        match (finished(&name), cx.restored) {
            (Some(_), None) if overwrite => remove(&path)?,
            (Some(_), None) => {
                return Err(format!(
                    "`{}` is there from another run; choose another directory, remove its `{prefix}-*.{extension}`, \
                     or let this sink do so with `.overwrite()`",
                    path.display()
                )
                .into());
            }
            (Some(later), Some(restored)) if later > restored => {
                return Err(format!(
                    "`{}` was finished after checkpoint {restored}, from which this job resumes, so that its records \
                     would be written twice; resume from the latest checkpoint, or remove the files of later ones",
                    path.display()
                )
                .into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The names in a directory; those that are no UTF-8 are none of ours.
fn names_in(dir: &Path) -> Result<Vec<String>, BoxError> {
    let failed = |error| cannot("list", dir, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn remove(path: &Path) -> Result<(), BoxError> {
    fs::remove_file(path).map_err(|error| cannot("remove", path, error))
}
