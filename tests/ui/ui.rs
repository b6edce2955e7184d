//! What the compiler says: each mistake is one error.

use std::{fs, path::Path};

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
