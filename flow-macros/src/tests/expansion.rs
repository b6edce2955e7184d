//! What the generated code looks like. It is meant to be read: whoever changes it, reads it.

use proc_macro2::TokenStream;
use syn::File;

use super::{assert_text, forms, read};
use crate::expand;

fn assert_expansion(name: &str) {
    let mut function = syn::parse_str(&read(&format!("{name}.rs.txt"))).expect("a function");
    let forms = forms(&mut function);
    let expanded: TokenStream = expand::function(&function, &forms);
    let file: File = syn::parse2(expanded).expect("generated code parses");
    assert_text(&format!("{name}.expanded.rs.txt"), &prettyplease::unparse(&file));
}

#[test]
fn the_expansion_of_word_count_reads_well() {
    assert_expansion("word_count");
}

#[test]
fn the_expansion_of_several_outputs_reads_well() {
    assert_expansion("split");
}
