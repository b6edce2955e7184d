//! What the generated code looks like. It is meant to be read: whoever changes it, reads it.

use proc_macro2::TokenStream;
use syn::File;

use super::{assert_text, forms, read};
use crate::expand;

#[test]
fn the_expansion_of_word_count_reads_well() {
    let mut function = syn::parse_str(&read("word_count.rs.txt")).expect("a function");
    let forms = forms(&mut function);
    let expanded: TokenStream = expand::function(&function, &forms);
    let file: File = syn::parse2(expanded).expect("generated code parses");
    assert_text("word_count.expanded.rs.txt", &prettyplease::unparse(&file));
}
