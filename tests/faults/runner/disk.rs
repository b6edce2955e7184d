//! Disks that are full, and directories that cannot be written. Both are mounts, which take root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn mount(arguments: &[&str], at: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(at).output().map_err(|e| format!("mount: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("mount {arguments:?} (it takes root): {}", String::from_utf8_lossy(&output.stderr)))
}

fn unmount(at: &Path) {
    // Lazily: a job may still have the directory open.
    let _ = Command::new("umount").arg("-l").arg(at).status();
}

/// A file system of 16 MB; gone when dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn new(at: &Path) -> Result<Self, String> {
        mount(&["-t", "tmpfs", "-o", "size=16m", "tmpfs"], at)?;
        Ok(SmallDisk(at.to_owned()))
    }

    pub(crate) fn fill(&self) -> Result<(), String> {
        // Until it refuses.
        let _ = fs::write(self.filler(), vec![0; 16 << 20]);
        Ok(())
    }

    pub(crate) fn empty(&self) -> Result<(), String> {
        fs::remove_file(self.filler()).map_err(|e| format!("cannot empty the disk: {e}"))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// Keeps a directory from being written as long as this lives.
pub(crate) struct ReadOnly(PathBuf);

impl ReadOnly {
    pub(crate) fn new(at: &Path) -> Result<Self, String> {
        let own = at.display().to_string();
        mount(&["--bind", &own], at)?;
        let read_only = ReadOnly(at.to_owned());
        // It is busy while somebody writes.
        let mut tries = 200;
        while let Err(error) = mount(&["-o", "remount,bind,ro"], at) {
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Ok(read_only)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}
