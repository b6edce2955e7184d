//! What the closures of a chain capture. A chain owns its captures, because it outlives the wiring; what several
//! chains use is cloned for each.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Expr;

use crate::{
    graph::{Graph, NodeId},
    names::{here, private_at},
    parse::mentioned,
    vocab::Kind,
};

/// The statements that prepare what `functions` capture: one before the chain's closure, to own them, and one
/// inside, to give them the type they had. `elsewhere` are the operators that are wired later in this form.
pub(super) fn captures(
    graph: &Graph,
    functions: &[&Expr],
    elsewhere: &[NodeId],
) -> (TokenStream, TokenStream) {
    let (mut before, mut inside) = (TokenStream::new(), TokenStream::new());
    let uses = |name| functions.iter().any(|function| mentioned(name, function));
    let used_later = |name| {
        elsewhere
            .iter()
            .flat_map(|id| graph.nodes[*id].expressions())
            .any(|argument| mentioned(name, argument))
    };
    for parameter in &graph.signature.parameters {
        let (name, ty) = (&parameter.name, &parameter.ty);
        if !uses(name) {
            continue;
        }
        if parameter.referent().is_some() {
            before.extend(quote!(let #name = ::std::borrow::ToOwned::to_owned(#name);));
            inside.extend(quote!(let #name: #ty = ::core::borrow::Borrow::borrow(&#name);));
        } else {
            before.extend(quote!(let #name = ::core::clone::Clone::clone(&#name);));
        }
    }
    for local in &graph.locals {
        let name = &local.name;
        if !uses(name) {
            continue;
        }
        let (mutable, allow) =
            (local.mutable.then(|| quote!(mut)), local.mutable.then(|| quote!(#[allow(unused_mut)])));
        before.extend(if used_later(name) {
            let private = private_at(here(name.span()));
            let share = quote_spanned!(here(name.span())=> #private::share(&#name));
            quote!(#allow let #mutable #name = #share;)
        } else if local.mutable {
            // The next worker's wiring has a variable of its own; this one belongs to the chain.
            quote!(#allow let mut #name = #name;)
        } else {
            quote!()
        });
    }
    (before, inside)
}

/// The arguments of operators that become part of the loop.
pub(super) fn functions<'g>(graph: &'g Graph, operators: &'g [NodeId]) -> impl Iterator<Item = &'g Expr> {
    operators.iter().flat_map(|id| {
        let node = &graph.nodes[*id];
        match node.kind {
            Kind::Source | Kind::Sink | Kind::Join | Kind::BroadcastJoin => &[],
            kind if kind.processes() || kind.asks() => &[],
            // The first is the strategy.
            Kind::Watermarks => node.arguments.get(1..).unwrap_or_default(),
            kind if kind.window() => super::window::of_records(node),
            _ => &node.arguments[..],
        }
    })
}
