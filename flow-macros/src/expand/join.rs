//! Joins in a loop: what comes out when records of both sides have met.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Index, spanned::Spanned};

use super::{
    chain::Loop,
    operator::{REC, TIME, function, handle_name},
    window::made,
};
use crate::{
    graph::{Graph, Matching, NodeId},
    names::{here, local, local_at, method, private, private_at},
};

/// Makes the join of a node, in the chain `variable`.
pub(super) fn make(graph: &Graph, id: NodeId, variable: &Ident) -> TokenStream {
    let node = &graph.nodes[id];
    let Some(join) = &node.join else { return TokenStream::new() };
    let (private, handle, index) = (private(), handle_name(graph, id), Index::from(id));
    let matching = local(match join.matching {
        Matching::Inner => "Inner",
        Matching::Left => "LeftOuter",
        Matching::Right => "RightOuter",
        Matching::Full => "FullOuter",
    });
    let matching = quote!(#private::#matching);
    if let Some(window) = &node.window {
        let add = method("window_join", node.span);
        let windows = made(window, node.span);
        return quote!(let #handle = #variable.#add(#index, #windows.join(#matching)););
    }
    let Some(between) = &join.between else { return TokenStream::new() };
    let (add, interval) = (method("interval_join", node.span), method("between", between.span));
    let (lower, upper) = (&between.lower.value, &between.upper.value);
    let exclusive = |name: &str, span: Option<Span>| {
        span.map(|span| {
            let name = method(name, span);
            quote!(.#name())
        })
    };
    let (no_lower, no_upper) = (
        exclusive("exclusive_lower", between.lower.exclusive),
        exclusive("exclusive_upper", between.upper.exclusive),
    );
    quote! {
        let #handle =
            #variable.#add(#index, #private::#interval(#lower, #upper) #no_lower #no_upper, #matching);
    }
}

/// Makes what a join with a small stream keeps, in the chain `variable`.
pub(super) fn make_broadcast(graph: &Graph, id: NodeId, variable: &Ident) -> TokenStream {
    let (handle, index) = (handle_name(graph, id), Index::from(id));
    let add = method("broadcast_join", graph.nodes[id].span);
    quote!(let #handle = #variable.#add(#index);)
}

impl Loop<'_> {
    /// Keeps the record of the small stream for its key.
    pub(super) fn keep(&mut self, id: NodeId) -> TokenStream {
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let Some(given) = node.arguments.get(1) else { return TokenStream::new() };
        self.applied.push(given);
        let f = function(given, &local(&format!("function_{id}_1")));
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let made = given.span();
        let (key, held, record) = (local_at("key", made), local("held"), local_at("record", node.span));
        let (call, bare, keep) =
            (method("call", node.span), method("bare", node.span), local_at("keep", node.span));
        let door = private_at(here(made));
        let hold = quote_spanned!(here(made)=> #door::stored(#key));
        quote! {
            let #key = #at.#call(#operator, &#REC, #f);
            let #held = #hold;
            let #record = #private::Owning::new(#REC).#bare();
            #handle.#keep(#held, #record);
        }
    }

    /// Looks up what is kept for the key of the record.
    pub(super) fn look_up(&mut self, id: NodeId) -> TokenStream {
        let next = self.children(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let [given, _, with] = &node.arguments[..] else { return TokenStream::new() };
        self.applied.extend([given, with]);
        let f = function(given, &local(&format!("function_{id}_0")));
        let with = function(with, &local(&format!("function_{id}_2")));
        let (at, operator) = (local("at"), self.index(id));
        let (key, kept) = (local_at("key", given.span()), local("kept"));
        let (call, call2, get) =
            (method("call", node.span), method("call2", node.span), local_at("kept_for", given.span()));
        // What is wrong with the key is wrong with the function that makes it.
        let borrowed = quote_spanned!(here(given.span())=> &#key);
        quote! {
            let #key = #at.#call(#operator, &#REC, #f);
            let #kept = #handle.#get(#borrowed);
            let #REC = #at.#call2(#operator, #REC, #kept, #with);
            #next
        }
    }

    /// The loop over the pairs.
    pub(super) fn joined(&mut self, id: NodeId) -> TokenStream {
        self.results_of = Some(id);
        let next = self.children(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let Some(given) = node.arguments.first() else { return TokenStream::new() };
        let f = function(given, &local(&format!("function_{id}_0")));
        let (at, turn, operator) = (local("at"), local("turn"), self.index(id));
        let (met, pair) = (local("met"), local_at("pair", node.span));
        let (call3, lend) = (method("call3", node.span), local_at("lend", node.span));
        let time = self.graph.gives_time(id).then(|| quote!(let #TIME = #pair.timestamp;));
        let each = quote! {
            while let ::core::option::Option::Some(mut #pair) = #met.next_pair() {
                #at.next();
                #time
                let #REC = #at.#call3(#operator, #pair.key.#lend(), #pair.left, #pair.right, #f);
                #next
            }
        };
        quote! {
            while let ::core::option::Option::Some(mut #met) = #at.check(#handle.turn(&mut #turn))? {
                #each
            }
        }
    }
}
