//! The `#[pipeline]` macro of `flow`.
//!
//! Five stages, each consuming what the former made: [`parse`] finds options and method chains, [`graph`] connects
//! them, [`check`] refuses what cannot work, [`fuse`] cuts the graph into operator chains, [`expand`] writes each
//! chain as one loop.

mod check;
mod diag;
mod expand;
mod fuse;
mod graph;
mod key;
mod names;
mod parse;
mod vocab;

use proc_macro::TokenStream;

/// Compiles the declarative pipeline in a function into fused operator chains. See the documentation of `flow`.
#[proc_macro_attribute]
pub fn pipeline(options: TokenStream, function: TokenStream) -> TokenStream {
    let function = syn::parse_macro_input!(function as syn::ItemFn);
    let expanded = parse::pipeline(options.into(), &function)
        .and_then(graph::build)
        .and_then(check::all)
        .map(fuse::forms)
        .map(|forms| expand::function(&function, &forms));
    match expanded {
        Ok(tokens) => tokens.into(),
        Err(errors) => expand::fallback(&function, errors).into(),
    }
}

/// Makes a type of your own a key: `#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]`.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    key::derive(&syn::parse_macro_input!(input as syn::DeriveInput)).into()
}
