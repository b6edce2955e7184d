//! The plan as a constant.

use proc_macro2::TokenStream;
use quote::quote;

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
    let guarantee = local(match options.guarantee {
        Guarantee::ExactlyOnce => "ExactlyOnce",
        Guarantee::AtLeastOnce => "AtLeastOnce",
        Guarantee::AtMostOnce => "AtMostOnce",
    });
    let mode = local(match options.mode {
        Mode::Streaming => "Streaming",
        Mode::Batch => "Batch",
    });
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
            let ship = local(graph.nodes[from].kind.ship());
            let private = crate::names::private();
            quote!(#private::EdgePlan { from: #from, to: #to, ship: #private::Ship::#ship })
        })
    });
    quote! {
        &#private::Plan {
            name: #name,
            guarantee: #private::Guarantee::#guarantee,
            mode: #private::Mode::#mode,
            checkpoint: #checkpoint,
            parallelism: #parallelism,
            max_parallelism: #max_parallelism,
            operators: &[#(#operators),*],
            edges: &[#(#edges),*],
        }
    }
}

fn operator(graph: &Graph, layout: &Layout, id: NodeId) -> TokenStream {
    let private = private();
    let node = &graph.nodes[id];
    let (uid, kind, stateful) = (&node.uid, node.kind.name(), node.kind.keyed());
    let name = node.name.as_ref().unwrap_or(uid);
    let parallelism = option(node.parallelism);
    let chain = layout.steps.iter().position(|step| match step {
        Step::Chain(chain) => {
            chain.operators.contains(&id)
                || (node.kind == Kind::Input && chain.root == crate::fuse::Root::After(id))
        }
        Step::Part(part) => *part == id,
    });
    let chain = chain.unwrap_or(0);
    let part = match &node.part {
        Some(path) => quote!(::core::option::Option::Some(<#path as #private::Definition>::PLAN)),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        #private::OperatorPlan {
            uid: #uid,
            name: #name,
            kind: #kind,
            parallelism: #parallelism,
            stateful: #stateful,
            chain: #chain,
            part: #part,
        }
    }
}

fn option(value: Option<usize>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
