//! The servers that a benchmark needs: those that the environment names, or those of the tests, which are started.

use std::process::Command;

/// What the variable says, or what it is for the servers of `tests/services`.
pub(crate) fn service(variable: &str) -> String {
    if let Ok(address) = std::env::var(variable) {
        return address;
    }
    let script =
        format!("tests/services/up >&2 && eval \"$(tests/services/env)\" && printf %s \"${variable}\"");
    let output = Command::new("bash").args(["-c", &script]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.expect("bash starts");
    assert!(
        output.status.success(),
        "the servers do not start:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}
