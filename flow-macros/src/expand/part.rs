//! Helper functions from stream to stream.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemFn;

use super::chain::{incoming, later, outgoing, to_caller};
use crate::{
    fuse::{Layout, Step},
    graph::{Graph, NodeId},
    names::{local, private},
    parse::{Shape, mentioned},
};

/// A helper function becomes a function from the edges it is given to the edge that it returns.
pub(super) fn part(function: &ItemFn, graph: &Graph, wiring: &TokenStream) -> TokenStream {
    let private = private();
    let (attrs, vis, name) = (&function.attrs, &function.vis, &function.sig.ident);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let Shape::Part { inputs, output } = &graph.signature.shape else { return TokenStream::new() };
    let flow = local("flow");
    let edges = inputs.iter().enumerate().map(|(id, _)| outgoing(graph, id));
    let items = inputs.iter().map(|(_, item)| item);
    let parameters = &graph.signature.parameters;
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let plain = &graph.plain;
    quote! {
        #(#attrs)*
        #vis fn #name #impl_generics (
            #flow: &mut #private::Wiring,
            #(#edges: #private::Edge<#private::Plain<#items>>,)*
            #(#parameters: #types,)*
        ) -> #private::Edge<#private::Plain<#output>> #where_clause {
            #(#plain)*
            #wiring
        }
    }
}

/// The call of a helper function: one hand-over in, one out.
pub(super) fn call(graph: &Graph, layout: &Layout, id: NodeId, later_steps: &[Step]) -> TokenStream {
    let private = private();
    let node = &graph.nodes[id];
    let (flow, out) = (local("flow"), outgoing(graph, id));
    let (edges, path, local_index) = (incoming(graph, layout, id), &node.part, syn::Index::from(id));
    let later = later(later_steps);
    let arguments = node.arguments.iter().map(|argument| {
        let used_later = graph.locals.iter().any(|local| {
            mentioned(&local.name, argument)
                && later.iter().flat_map(|id| &graph.nodes[*id].arguments).any(|other| mentioned(&local.name, other))
        });
        if used_later { quote!(::core::clone::Clone::clone(&#argument)) } else { quote!(#argument) }
    });
    quote! {
        let #out = #flow.part(#local_index, <#path as #private::Definition>::PLAN, |#flow| {
            #path(#flow, #(#edges,)* #(#arguments,)*)
        });
    }
}

/// What the wiring of a helper function ends with.
pub(super) fn result(graph: &Graph) -> TokenStream {
    if graph.is_job() {
        return TokenStream::new();
    }
    let edge = to_caller();
    quote!(#edge)
}
