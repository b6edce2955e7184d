//! Files of the newest checkpoint are damaged, and put back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::random::Random;

/// A damaged file, with what was in it.
pub(crate) struct Damaged {
    pub(crate) path: PathBuf,
    content: Vec<u8>,
}

impl Damaged {
    /// Damages a file that the newest checkpoint needs. `None` when there is no checkpoint yet.
    pub(crate) fn any(checkpoints: &Path, cut: bool, random: &mut Random) -> Result<Option<Self>, String> {
        let cannot = |e: std::io::Error| format!("cannot damage a file below {}: {e}", checkpoints.display());
        let Some(newest) = newest(checkpoints) else { return Ok(None) };
        let manifest = fs::read(newest.join("manifest")).map_err(cannot)?;
        let text = String::from_utf8_lossy(&manifest);
        // The paths of the parts stand in it in plain text.
        let parts = text.split('"').filter(|word| word.ends_with(".part")).map(|part| checkpoints.join(part));
        let mut files: Vec<PathBuf> = parts.collect();
        files.push(newest.join("manifest"));
        let path = random.of(&files);
        let content = fs::read(&path).map_err(cannot)?;
        let mut damaged = content.clone();
        let at = random.below(content.len() as u64) as usize;
        if cut {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << random.below(8);
        }
        fs::write(&path, damaged).map_err(cannot)?;
        Ok(Some(Damaged { path, content }))
    }

    pub(crate) fn mend(&self) -> Result<(), String> {
        fs::write(&self.path, &self.content).map_err(|e| format!("cannot mend {}: {e}", self.path.display()))
    }
}

/// The folder of the newest complete checkpoint.
pub(crate) fn newest(checkpoints: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(checkpoints).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|folder| folder.join("manifest").exists()).max()
}
