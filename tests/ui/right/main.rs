//! Right code compiles without a word, however unusual it is: a module for each case.
#![deny(future_incompatible)]
#![allow(clippy::multiple_bound_locations, clippy::useless_vec, reason = "users write it")]
#![allow(clippy::unimplemented, unreachable_pub, reason = "nothing runs, and cases are written like crates")]

pub mod async_io;
pub mod bare;
pub mod borrowed;
pub mod captures;
pub mod event_time;
pub mod exchanges;
pub mod fallible;
pub mod forks;
pub mod functions;
pub mod generic;
pub mod handles;
pub mod helpers;
pub mod helpers_with_options;
pub mod joins;
pub mod keys;
pub mod lints;
pub mod names;
pub mod own_flow_module;
pub mod process;
pub mod records;
pub mod windows;

/// A file that is not a module above is compiled by nobody.
#[test]
fn every_case_is_compiled() {
    let (main, folder) = (include_str!("main.rs"), concat!(env!("CARGO_MANIFEST_DIR"), "/right"));
    for entry in std::fs::read_dir(folder).expect("the cases are there") {
        let path = entry.expect("and readable").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(name == "main" || main.contains(&format!("pub mod {name};\n")), "{}", path.display());
    }
}
