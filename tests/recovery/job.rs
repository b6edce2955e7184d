//! A job as a process of its own.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

/// A running job; killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts an example with these arguments; what it prints goes to a log beside its checkpoints.
    pub(crate) fn example(name: &str, arguments: &[String], log: &Path) -> Self {
        let mut command = Command::new(example(name));
        command.args(arguments);
        Self::start(command, log)
    }

    /// Starts a command.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log file");
        let child = command
            .stdin(std::process::Stdio::null())
            .stdout(file.try_clone().expect("the log's handle"))
            .stderr(file)
            .spawn()
            .expect("the job starts");
        Process { child, log: log.to_owned() }
    }

    /// Kills it with -9, or returns its status if it ended before.
    pub(crate) fn kill(&mut self) -> Option<ExitStatus> {
        if let Some(status) = self.child.try_wait().expect("the job's status") {
            return Some(status);
        }
        self.child.kill().expect("the job is killed");
        self.child.wait().expect("the job is gone");
        None
    }

    /// Its status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the job's status")
    }

    /// Asks it to stop at a last checkpoint.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    }

    /// Fails the test, with the log, if the job has ended.
    pub(crate) fn still_runs(&mut self) {
        if let Some(status) = self.child.try_wait().expect("the job's status") {
            panic!("the job ended with {status}:\n{}", self.log());
        }
    }

    /// Waits for a good end.
    pub(crate) fn finish(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait().expect("the job's status") {
                Some(status) if status.success() => return,
                Some(status) => panic!("the job ended with {status}:\n{}", self.log()),
                None if Instant::now() > deadline => {
                    panic!("the job did not end in {within:?}:\n{}", self.log())
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The end of what it printed.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cargo builds examples before tests, next to them.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let path =
        test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST").join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo builds it with the tests of the whole package",
        path.display()
    );
    path
}

/// A moment between `from` and `to` milliseconds, different each time.
pub(crate) fn moment(from: u64, to: u64) -> Duration {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    Duration::from_millis(from + random % (to - from))
}
