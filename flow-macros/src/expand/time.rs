//! Event time in a loop: where it begins.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    chain::Loop,
    operator::{REC, TIME, function},
};
use crate::{
    check::{is_fallible, skips},
    graph::NodeId,
    names::{local, local_at, method},
};

impl Loop<'_> {
    /// Takes the record's timestamp.
    pub(super) fn watermarks(&mut self, id: NodeId) -> TokenStream {
        let next = self.children(id);
        let node = &self.graph.nodes[id];
        let (at, operator, generators) = (local("at"), self.index(id), self.handle(id));
        let time = if self.graph.gives_time(id) { quote!(#TIME) } else { quote!(_) };
        let Some(given) = node.arguments.get(1) else {
            // The time is that of the clock.
            let enter = local_at("enter", node.span);
            return quote! {
                let #time = #generators.#enter();
                #next
            };
        };
        let f = function(given, &local(&format!("function_{id}_1")));
        let (stamp, taken) = (local_at("stamp", node.span), local_at("taken", node.span));
        let take = quote!(#generators.#stamp(#taken));
        match (is_fallible(node), skips(node, self.graph.options.on_error)) {
            (false, false) => {
                let call = method("call", node.span);
                quote! {
                    let #taken = #at.#call(#operator, &#REC, #f);
                    let #time = #at.check(#take)?;
                    #next
                }
            }
            (true, false) => {
                let attempt = method("attempt", node.span);
                quote! {
                    let #taken = #at.#attempt(#operator, &#REC, #f)?;
                    let #time = #at.check(#take)?;
                    #next
                }
            }
            (false, true) => {
                let (call, skipped) = (method("call", node.span), self.skipped(id));
                quote! {
                    let #taken = #at.#call(#operator, &#REC, #f);
                    if let ::core::option::Option::Some(#time) = #at.check_or_skip(&#skipped, #take) {
                        #next
                    }
                }
            }
            (true, true) => {
                let (attempt, skipped) = (method("attempt_or_skip", node.span), self.skipped(id));
                quote! {
                    if let ::core::option::Option::Some(#taken) =
                        #at.#attempt(#operator, &#skipped, &#REC, #f)
                        && let ::core::option::Option::Some(#time) = #at.check_or_skip(&#skipped, #take)
                    {
                        #next
                    }
                }
            }
        }
    }
}
