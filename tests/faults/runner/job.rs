//! The job as a process.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// A running job; killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, String> {
        let cannot = |e: std::io::Error| format!("the job cannot be started: {e}");
        let file = File::options().create(true).append(true).open(log).map_err(cannot)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(cannot)?)
            .stderr(file)
            .spawn()
            .map_err(cannot)?;
        Ok(Process { child, log: log.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its status, if it ends within this time.
    pub(crate) fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            match self.ended() {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                status => return status,
            }
        }
    }

    /// Kills it with -9.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The end of what it printed.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The job's program: cargo builds it next to this one.
pub(crate) fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("the runner's own path: {e}"))?;
    let path = own.with_file_name("chaos_job");
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is missing: start this by tests/chaos", path.display()))
    }
}
