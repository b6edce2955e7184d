//! Helper functions from stream to stream.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{ItemFn, spanned::Spanned};

use super::chain::{incoming, later, outgoing, to_caller};
use crate::{
    fuse::{Layout, Step},
    graph::{Graph, NodeId},
    names::{here, local, private, private_at},
    parse::mentioned,
};

/// A helper function keeps its signature: a stream is the edge on which its items arrive.
pub(super) fn part(function: &ItemFn, graph: &Graph, wiring: &TokenStream) -> TokenStream {
    let private = private();
    let (attrs, vis, name) = (&function.attrs, &function.vis, &function.sig.ident);
    let (inputs, output) = (&function.sig.inputs, &function.sig.output);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let (flow, plain, choices) = (local("flow"), super::plain(graph), super::choices(graph));
    quote! {
        #(#attrs)*
        #vis fn #name #impl_generics (#flow: &mut #private::Wiring, #inputs) #output #where_clause {
            #choices
            #plain
            #wiring
        }
    }
}

/// The call of a helper function: one hand-over in, one out.
pub(super) fn call(graph: &Graph, layout: &Layout, id: NodeId, later_steps: &[Step]) -> TokenStream {
    let private = private();
    let node = &graph.nodes[id];
    let (flow, out) = (local("flow"), outgoing(graph, id));
    let (path, local_index) = (&node.part, syn::Index::from(id));
    let mut edges = incoming(graph, layout, id).into_iter();
    let later = later(later_steps);
    let arguments = node.arguments.iter().map(|argument| {
        if graph.named(argument).is_some() {
            let mut edge = edges.next();
            if let Some(edge) = &mut edge {
                edge.set_span(here(argument.span()));
            }
            return quote!(#edge);
        }
        let used_later = graph.locals.iter().any(|local| {
            mentioned(&local.name, argument)
                && later
                    .iter()
                    .flat_map(|id| graph.nodes[*id].expressions())
                    .any(|other| mentioned(&local.name, other))
        });
        if used_later { quote!(#private::share(&#argument)) } else { quote!(#argument) }
    });
    // Said at the helper's name, and by no more than its plan.
    let span = path.as_ref().map_or(node.span, Spanned::span);
    let door = private_at(here(span));
    let (guarantee, mode) = (super::plan::guarantee(graph), super::plan::mode(graph));
    let refusal = quote!(#door::helper_refusal(#guarantee, #mode, <#path as #door::Definition>::PLAN));
    let (words, none) = (local("refusal"), quote!(::core::option::Option::None));
    let refuse = quote_spanned!(span=> ::core::panic!("{}", #words));
    let fits = quote! {
        const _: () = match #refusal {
            ::core::option::Option::Some(#words) => #refuse,
            #none => {}
        };
    };
    quote! {
        #fits
        let #out = #flow.part(#local_index, <#path as #private::Definition>::PLAN, |#flow| {
            #path(#flow, #(#arguments),*)
        });
    }
}

/// What the wiring of a helper function ends with.
pub(super) fn result(graph: &Graph) -> TokenStream {
    if graph.is_job() {
        return TokenStream::new();
    }
    let mut edge = to_caller();
    if let Some(output) = graph.output {
        edge.set_span(here(graph.nodes[output].span));
    }
    quote!(#edge)
}
