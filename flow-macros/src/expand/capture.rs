//! What the closures of a chain capture. A chain owns its captures, because it outlives the wiring; what several
//! chains use is cloned for each.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Expr;

use crate::{
    graph::{Graph, NodeId},
    names::{here, private_at},
    parse::mentioned,
};

/// The statements that prepare the captures of `operators`: one before the chain's closure, to own them, and one
/// inside, to give them the type they had. `elsewhere` are the operators that are wired later in this form.
pub(super) fn captures(
    graph: &Graph,
    operators: &[NodeId],
    elsewhere: &[NodeId],
) -> (TokenStream, TokenStream) {
    let (mut before, mut inside) = (TokenStream::new(), TokenStream::new());
    let uses =
        |name, ids: &[NodeId]| ids.iter().flat_map(|id| closures(graph, *id)).any(|arg| mentioned(name, arg));
    let used_later = |name| {
        elsewhere.iter().flat_map(|id| &graph.nodes[*id].arguments).any(|argument| mentioned(name, argument))
    };
    for parameter in &graph.signature.parameters {
        let (name, ty) = (&parameter.name, &parameter.ty);
        if !uses(name, operators) {
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
        if !uses(name, operators) {
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

/// The arguments that become part of the loop.
fn closures(graph: &Graph, id: NodeId) -> impl Iterator<Item = &Expr> {
    let kind = graph.nodes[id].kind;
    let outside = matches!(kind, crate::vocab::Kind::Source | crate::vocab::Kind::Sink);
    graph.nodes[id].arguments.iter().filter(move |_| !outside)
}
