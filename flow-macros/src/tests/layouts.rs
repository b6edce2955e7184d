//! How pipelines are cut into chains.

use syn::{File, Item};

use super::{assert_text, forms, read, show::show};

/// The file is Rust; above each pipeline, comments say why it is there, and below it, what its chains are.
#[test]
fn pipelines_are_cut_into_chains() {
    let text = read("layouts.rs.txt");
    let mut actual = Vec::new();
    for block in text.trim_end().split("\n\n") {
        let pipeline = block.split("\n// = ").next().unwrap_or(block);
        let File { items, .. } = syn::parse_str(pipeline).expect("a pipeline");
        let Ok([Item::Fn(function)]) = &mut <[Item; 1]>::try_from(items) else {
            panic!("one pipeline a block")
        };
        let chains: String = show(&forms(function)).lines().map(|line| format!("\n// = {line}")).collect();
        actual.push(format!("{pipeline}{chains}"));
    }
    assert_text("layouts.rs.txt", &format!("{}\n", actual.join("\n\n")));
}
