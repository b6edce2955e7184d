//! Whole pipelines through the stages: their chains, and one expansion, as text to be read.
//!
//! The `.rs.txt` are Rust for the stages, not for rustc. To accept another layout or expansion, set
//! `FLOW_MACROS_ACCEPT=1`, run the tests, and read the difference.

mod expansion;
mod layouts;
mod options;
mod show;

use std::{env, fs, path::PathBuf};

use proc_macro2::TokenStream;
use syn::ItemFn;

use crate::{check, fuse, fuse::Forms, graph, parse};

/// The chains of a pipeline, options and all.
fn forms(function: &mut ItemFn) -> Forms {
    let at = function
        .attrs
        .iter()
        .position(|attribute| attribute.path().is_ident("pipeline"))
        .expect("a pipeline");
    let options = match function.attrs.remove(at).meta {
        syn::Meta::List(list) => list.tokens,
        _ => TokenStream::new(),
    };
    parse::pipeline(options, function)
        .and_then(graph::build)
        .and_then(check::all)
        .map(fuse::forms)
        .expect("a pipeline without mistakes")
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).expect("the file is there")
}

/// Compares with the checked-in text, or replaces it.
fn assert_text(name: &str, actual: &str) {
    if env::var_os("FLOW_MACROS_ACCEPT").is_some() {
        fs::write(path(name), actual).expect("the file can be written");
        return;
    }
    let expected = read(name);
    assert!(expected == actual, "{name} differs:\n{actual}");
}
