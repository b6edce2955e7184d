//! After an error the function still exists, with its body in it, so that one mistake is one error, imports stay used
//! and the editor stays alive.
//!
//! In that body every stream is the value of `compile_error!`, which has no type: rustc says nothing about what is done
//! with it, and still resolves and completes everything else.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Expr, ExprCall, ExprMethodCall, FnArg, ItemFn, ReturnType, TypePath, TypeReference,
    visit_mut::{self, VisitMut},
};

use crate::{
    diag::Errors,
    names::{local, private},
    parse::{self, is_source, stream_item},
};

pub(crate) fn fallback(function: &ItemFn, errors: &Errors) -> TokenStream {
    let private = private();
    let body = body(function, errors);
    let mut function = function.clone();
    Named.visit_signature_mut(&mut function.sig);
    let function = &function;
    let (attrs, vis, name, inputs) =
        (&function.attrs, &function.vis, &function.sig.ident, &function.sig.inputs);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let header = quote! {
        #(#attrs)*
        #[allow(unused, clippy::all)]
        #vis fn #name #impl_generics
    };
    match part_output(function) {
        Some(output) => {
            let definition =
                super::definition(function, &quote!(<#private::Refused as #private::Definition>::PLAN));
            let flow = local("flow");
            quote! {
                #definition
                #header (#flow: &mut #private::Wiring, #inputs) -> #output #where_clause { #body }
            }
        }
        None => quote!(#header (#inputs) -> #private::Job<#private::Refused> #where_clause { #body }),
    }
}

/// What a helper function returns, or was probably meant to; `None` for a pipeline.
fn part_output(function: &ItemFn) -> Option<TokenStream> {
    let mut given = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) if stream_item(&typed.ty).is_some() => Some(&*typed.ty),
        _ => None,
    });
    let private = private();
    match (&function.sig.output, given.next()) {
        (ReturnType::Type(_, ty), _) if stream_item(ty).is_some() => Some(quote!(#ty)),
        (ReturnType::Type(_, ty), Some(_)) => Some(quote!(#private::Stream<#ty>)),
        (ReturnType::Default, Some(input)) => Some(quote!(#input)),
        (_, None) => None,
    }
}

fn body(function: &ItemFn, errors: &Errors) -> TokenStream {
    let stream = local("stream");
    let mut errors = errors.to_compile_errors();
    let first = errors.next();
    let inputs = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) if stream_item(&typed.ty).is_some() => Some(&typed.pat),
        _ => None,
    });
    let mut block = function.block.clone();
    Untyped { streams: parse::streams(function), stream: stream.clone() }.visit_block_mut(&mut block);
    quote! {
        let #stream = #first;
        #(#errors;)*
        #(let #inputs = #stream;)*
        let _ = || #block;
        ::core::unreachable!()
    }
}

/// Gives the items of streams a lifetime, where the mistake may be that they have none.
struct Named;

impl VisitMut for Named {
    fn visit_type_path_mut(&mut self, path: &mut TypePath) {
        if path.path.segments.last().is_some_and(|name| name.ident == "Stream") {
            Static.visit_type_path_mut(path);
        }
    }
}

struct Static;

impl VisitMut for Static {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| syn::parse_quote!('static));
    }
}

/// Takes the types of everything that makes a stream.
struct Untyped {
    streams: Vec<Ident>,
    stream: Ident,
}

impl VisitMut for Untyped {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        let stream = &self.stream;
        if matches!(&*call.func, Expr::Path(path) if is_source(&path.path)) {
            *call.func = syn::parse_quote!(#stream);
        } else if call.args.iter().any(|argument| self.is_stream(argument)) {
            let function = &call.func;
            *call.func = syn::parse_quote!({ let _ = #function; #stream });
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        // `skip` and `fail` are words of the macro, and so are spans of time as text.
        if call.method == "on_error" {
            call.args.clear();
        }
        if call.method == "window"
            || call.method == "window_all"
            || call.method == "watermarks"
            || call.method == "trigger"
            || call.method == "evictor"
        {
            call.args.iter_mut().for_each(|argument| parse::span::texts(argument, &mut Errors::default()));
        }
        visit_mut::visit_expr_method_call_mut(self, call);
    }
}

impl Untyped {
    fn is_stream(&self, argument: &Expr) -> bool {
        matches!(argument, Expr::Path(path) if path.path.get_ident().is_some_and(|name| self.streams.contains(name)))
    }
}
