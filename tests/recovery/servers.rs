//! The servers that `tests/run` has started.

use std::{
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Scenarios share the servers, and some kill them: one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address from the environment. A test without its server fails; it is never skipped.
pub(crate) fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run the tests by `tests/run`, which starts the servers")
    })
}

/// `kill` or `start` a server.
pub(crate) fn control(server: &str, action: &str) {
    let ctl = std::path::Path::new(&address("FLOW_TEST_SERVICES")).join("ctl");
    let output = Command::new(ctl).args([server, action]).output().expect("the control script");
    assert!(output.status.success(), "{server} {action}: {}", String::from_utf8_lossy(&output.stderr));
}
