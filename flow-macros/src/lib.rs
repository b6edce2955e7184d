//! The `#[pipeline]` macro of `flow`.
//!
//! Five stages, each consuming what the former made: `parse` finds options and method chains, `graph` connects
//! them, `check` refuses what cannot work, `fuse` cuts the graph into operator chains, `expand` writes each
//! chain as one loop.

mod check;
mod diag;
mod expand;
mod fuse;
mod graph;
mod handle;
mod key;
mod names;
mod parse;
mod state;
#[cfg(test)]
mod tests;
mod vocab;

use proc_macro::TokenStream;

/// Compiles the declarative pipeline in a function into fused operator chains. See the documentation of `flow`.
#[proc_macro_attribute]
pub fn pipeline(options: TokenStream, function: TokenStream) -> TokenStream {
    let function = match syn::parse(function.clone()) {
        Ok(function) => function,
        Err(error) => return not_a_function(&error, function),
    };
    let expanded = parse::pipeline(options.into(), &function)
        .and_then(graph::build)
        .and_then(check::all)
        .map(fuse::forms)
        .map(|forms| expand::function(&function, &forms));
    match expanded {
        Ok(tokens) => tokens.into(),
        Err(errors) => expand::fallback(&function, &errors).into(),
    }
}

/// What is no function stays as it is, so that nothing else breaks.
fn not_a_function(error: &syn::Error, mut item: TokenStream) -> TokenStream {
    let mut errors = diag::Errors::default();
    errors
        .at_span(error.span(), "a pipeline is a function")
        .help("write `#[pipeline]` above a `fn` with a body");
    item.extend(errors.to_compile_errors().map(|error| TokenStream::from(quote::quote!(#error))));
    item
}

/// Makes a type of your own a key: `#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Key)]`.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    key::derive(&syn::parse_macro_input!(input as syn::DeriveInput)).into()
}

/// Makes a struct or an enum the handle of a transaction, which is written to the checkpoint and used to commit after
/// a crash: `#[derive(TransactionHandle)]`. See the documentation of the trait of that name.
#[proc_macro_derive(TransactionHandle, attributes(handle))]
pub fn derive_transaction_handle(input: TokenStream) -> TokenStream {
    handle::derive(&syn::parse_macro_input!(input as syn::DeriveInput)).into()
}

/// Makes a struct of `ValueState`s, `ListState`s, `MapState`s and the like what a process function keeps of each key:
/// `#[derive(State)]`. See the documentation of the trait of that name.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    state::derive(&syn::parse_macro_input!(input as syn::DeriveInput)).into()
}
