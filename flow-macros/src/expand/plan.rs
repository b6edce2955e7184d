//! The plan as a constant.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Index;

use crate::{
    fuse::{Forms, Layout, Step},
    graph::{Graph, NodeId},
    names::{local, private},
    parse::{Guarantee, Mode},
    vocab::Kind,
};

pub(super) fn plan(graph: &Graph, forms: &Forms) -> TokenStream {
    let private = private();
    let options = &graph.options;
    let name = &options.name;
    let (guarantee, mode) = (guarantee(graph), mode(graph));
    let checkpoint = match options.checkpoint {
        Some(interval) => {
            let milliseconds = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
            quote!(::core::option::Option::Some(::core::time::Duration::from_millis(#milliseconds)))
        }
        None => quote!(::core::option::Option::None),
    };
    let (parallelism, max_parallelism) = (option(options.parallelism), option(options.max_parallelism));
    let layout = forms.split.as_ref().unwrap_or(&forms.single);
    let operators = graph.nodes.iter().enumerate().map(|(id, _)| operator(graph, layout, id));
    let edges = graph.nodes.iter().enumerate().flat_map(|(to, node)| {
        node.inputs.iter().map(move |&from| {
            let (private, ship) = (crate::names::private(), local(graph.nodes[from].kind.ship()));
            let (from, to) = (Index::from(from), Index::from(to));
            quote!(#private::EdgePlan::new(#from, #to, #private::Ship::#ship))
        })
    });
    quote! {
        &#private::Plan {
            name: #name,
            guarantee: #guarantee,
            mode: #mode,
            checkpoint: #checkpoint,
            parallelism: #parallelism,
            max_parallelism: #max_parallelism,
            operators: &[#(#operators),*],
            edges: &[#(#edges),*],
        }
    }
}

/// The guarantee, as the runtime calls it.
pub(super) fn guarantee(graph: &Graph) -> TokenStream {
    let private = private();
    match graph.options.guarantee {
        Guarantee::ExactlyOnce => quote!(#private::Guarantee::ExactlyOnce),
        Guarantee::AtLeastOnce => quote!(#private::Guarantee::AtLeastOnce),
        Guarantee::AtMostOnce => quote!(#private::Guarantee::AtMostOnce),
    }
}

/// The mode, as the runtime calls it.
pub(super) fn mode(graph: &Graph) -> TokenStream {
    let private = private();
    match graph.options.mode {
        Mode::Streaming => quote!(#private::Mode::Streaming),
        Mode::Batch => quote!(#private::Mode::Batch),
    }
}

fn operator(graph: &Graph, layout: &Layout, id: NodeId) -> TokenStream {
    let private = private();
    let node = &graph.nodes[id];
    let (uid, kind) = (&node.uid, node.kind.name());
    let chain = layout.steps.iter().position(|step| match step {
        Step::Chain(chain) => {
            chain.operators.contains(&id)
                || (node.kind == Kind::Input && chain.root == crate::fuse::Root::After(id))
        }
        Step::Part(part) => *part == id,
    });
    let chain = Index::from(chain.unwrap_or(0));
    let name = node.name.as_ref().map(|name| quote!(.name(#name)));
    let parallelism = node.parallelism.map(Index::from).map(|n| quote!(.parallelism(#n)));
    let stateful = node.kind.keyed().then(|| quote!(.stateful()));
    let part = node.part.as_ref().map(|path| quote!(.part(<#path as #private::Definition>::PLAN)));
    quote!(#private::OperatorPlan::new(#uid, #kind, #chain) #name #parallelism #stateful #part)
}

fn option(value: Option<usize>) -> TokenStream {
    match value {
        Some(value) => {
            let value = Index::from(value);
            quote!(::core::option::Option::Some(#value))
        }
        None => quote!(::core::option::Option::None),
    }
}
