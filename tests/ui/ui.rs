//! What the compiler says: right code, however unusual, compiles without a word, and each mistake is one error.

use std::{fs, path::Path};

#[test]
fn right_code_compiles() {
    trybuild::TestCases::new().pass("pass/*.rs");
}

/// Apart from the others: without code to run, one `cargo check` does for all.
#[test]
fn mistakes_are_reported() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

#[test]
fn each_mistake_is_one_error_without_noise() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    for entry in fs::read_dir(cases).expect("the cases are there") {
        let path = entry.expect("and readable").path();
        if path.extension().is_some_and(|extension| extension == "stderr") {
            let text = fs::read_to_string(&path).expect("as text");
            let count = |word| text.lines().filter(|line| line.starts_with(word)).count();
            assert_eq!((count("error"), count("warning")), (1, 0), "{}", path.display());
        }
    }
}
