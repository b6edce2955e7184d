//! Process functions in a loop: the record is given to the function, and what it emits goes on in up to two outputs.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Index;

use super::{
    chain::{Loop, skipped_name},
    inputs::put_name,
    operator::{REC, TIME, handle_name},
};
use crate::{
    graph::{Graph, NodeId},
    names::{here, local, local_at, method, private, private_at},
    parse::Policy,
    vocab::Kind,
};

/// Makes the process function of a node, in the chain `variable`.
pub(super) fn make(graph: &Graph, id: NodeId, variable: &Ident) -> TokenStream {
    let node = &graph.nodes[id];
    let Some(function) = node.arguments.first() else { return TokenStream::new() };
    let (handle, index, timed) = (handle_name(graph, id), Index::from(id), graph.takes_time(id));
    let kind = match node.kind {
        Kind::KeyedProcess => "keyed_process",
        Kind::CoProcess => "co_process",
        Kind::KeyedCoProcess => "keyed_co_process",
        Kind::BroadcastProcess => "broadcast_process",
        _ => "process",
    };
    let add = match node.named {
        Some(_) => method(kind, node.span),
        // Where one name is all that there is, a second output would be lost.
        None => method(&format!("{kind}_alone"), node.span),
    };
    let skipped = match node.on_error.unwrap_or(graph.options.on_error) {
        Policy::Skip => quote!(::core::option::Option::Some(#variable.skipped(#index))),
        Policy::Fail => quote!(::core::option::Option::None),
    };
    let counter = skipped_name(graph, id);
    quote! {
        let #counter = #skipped;
        let #handle = #variable.#add(#index, #function, #timed, #counter);
    }
}

impl Loop<'_> {
    /// Gives the record to the function of a key.
    pub(super) fn keyed_process(&mut self, id: NodeId) -> TokenStream {
        self.deferred.push(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let Some(&key_by) = node.inputs.first() else { return TokenStream::new() };
        let (make_key, key) = self.key(key_by);
        let made = self.graph.nodes[key_by].span;
        let (private, door, at, operator) = (private(), private_at(here(made)), local("at"), self.index(id));
        // The record moves, and the key may borrow from it.
        let (held, record) = (local_at("held", made), local_at("record", node.span));
        let hold = quote_spanned!(here(made)=> #door::stored(#key));
        let (bare, put, time) = (method("bare", node.span), local_at("put", node.span), self.time_into(id));
        quote! {
            #make_key
            let #held = #hold;
            let #record = #private::Owning::new(#REC).#bare();
            #at.enter(#operator);
            #at.check(#handle.#put(#held, #time, #record))?;
        }
    }

    /// Gives the record of one of two streams to a function, by no key.
    pub(super) fn put_unkeyed(&mut self, id: NodeId, side: usize) -> TokenStream {
        self.deferred.push(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let (record, bare, put) =
            (local_at("record", node.span), method("bare", node.span), put_name(side, node.span));
        // What was broadcast belongs to no time.
        let time = (node.kind == Kind::CoProcess).then(|| {
            let time = self.time_into(id);
            quote!(#time,)
        });
        quote! {
            let #record = #private::Owning::new(#REC).#bare();
            #at.enter(#operator);
            #at.check(#handle.#put(#time #record))?;
        }
    }

    /// Gives the record to a function without key, and goes on with what it emits.
    pub(super) fn process(&mut self, id: NodeId) -> TokenStream {
        let handle = self.handle(id);
        let (main, side) = self.outputs_of(id, &handle);
        let node = &self.graph.nodes[id];
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let record = local_at("record", node.span);
        let (bare, put, time) = (method("bare", node.span), local_at("put", node.span), self.time_into(id));
        quote! {
            let #record = #private::Owning::new(#REC).#bare();
            #at.enter(#operator);
            #at.check(#handle.#put(#time, #record))?;
            #main
            #side
        }
    }

    /// What a function has emitted for records of a key and timers, or for those of two streams.
    pub(super) fn processed(&mut self, id: NodeId) -> TokenStream {
        let handle = self.handle(id);
        let (main, side) = self.outputs_of(id, &handle);
        let (at, turn) = (local("at"), local("turn"));
        quote! {
            while #at.check(#handle.turn(&mut #turn))? {
                #main
                #side
            }
        }
    }

    /// The loops over what is in the two outputs.
    pub(super) fn outputs_of(&mut self, id: NodeId, handle: &Ident) -> (TokenStream, TokenStream) {
        (self.output_of(id, handle, 0, "emitted"), self.output_of(id, handle, 1, "emitted_aside"))
    }

    fn output_of(&mut self, id: NodeId, handle: &Ident, index: usize, emitted: &str) -> TokenStream {
        let (next, at, span) = (self.output(id, index), local("at"), self.graph.nodes[id].span);
        let emitted = local_at(emitted, span);
        if !self.reads(id, index) {
            return quote!(::core::mem::drop(#handle.#emitted()););
        }
        let branch = self.graph.branch(id, index).unwrap_or(id);
        let time = if self.graph.gives_time(branch) { quote!(#TIME) } else { quote!(_) };
        // Inside of a loop over records, the position is that of the record.
        let step = (self.graph.nodes[id].kind != Kind::Process).then(|| quote!(#at.next();));
        quote! {
            for (#time, #REC) in #handle.#emitted() {
                #step
                #next
            }
        }
    }

    /// The event time that goes into an operator.
    fn time_into(&self, id: NodeId) -> TokenStream {
        let private = private();
        if self.graph.takes_time(id) { quote!(#TIME) } else { quote!(#private::NO_TIME) }
    }
}
