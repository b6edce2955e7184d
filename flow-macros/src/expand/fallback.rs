//! After an error the function still exists, so that one mistake is one error and the editor stays alive.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, ReturnType};

use crate::{diag::Errors, names::private};

pub(crate) fn fallback(function: &ItemFn, errors: Errors) -> TokenStream {
    let private = private();
    let errors = errors.to_compile_errors();
    let (attrs, vis, sig) = (&function.attrs, &function.vis, &function.sig);
    let (name, inputs) = (&sig.ident, &sig.inputs);
    let (impl_generics, ty_generics, where_clause) = sig.generics.split_for_impl();
    let plan = quote!(&#private::Plan {
        name: "",
        guarantee: #private::Guarantee::ExactlyOnce,
        mode: #private::Mode::Streaming,
        checkpoint: ::core::option::Option::None,
        parallelism: ::core::option::Option::None,
        max_parallelism: ::core::option::Option::None,
        operators: &[],
        edges: &[],
    });
    let definition = super::definition(function, &plan);
    let has_receiver = sig.receiver().is_some();
    let function = match &sig.output {
        _ if has_receiver => quote!(),
        ReturnType::Default => quote! {
            #(#attrs)*
            #[allow(unused_variables)]
            #vis fn #name #impl_generics (#inputs) -> #private::Job<#name #ty_generics> #where_clause {
                ::core::unreachable!()
            }
        },
        // A helper function: callers pass what its real form takes, and get anything.
        ReturnType::Type(..) => quote!(),
    };
    let definition = if has_receiver { quote!() } else { definition };
    quote!(#errors #definition #function)
}
