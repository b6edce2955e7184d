//! Operators with two inputs: each has a loop of its own over what arrives, in which the record is put into the
//! operator's handle. What comes out runs in a closure behind both.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

use super::{
    chain::Loop,
    operator::{REC, TIME},
};
use crate::{
    graph::NodeId,
    names::{here, local, local_at, method, private, private_at},
};

impl Loop<'_> {
    /// Puts the record into the handle of an operator with two inputs, by `put_left(key, time, record)` or
    /// `put_right(..)`. The key is given in the form in which it is stored, since the record that it may borrow from
    /// moves.
    pub(super) fn put(&mut self, id: NodeId, side: usize) -> TokenStream {
        self.deferred.push(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let Some(&key_by) = node.inputs.get(side) else { return TokenStream::new() };
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let (make_key, key) = self.key(key_by);
        let time = if self.graph.takes_time(id) { quote!(#TIME) } else { quote!(#private::NO_TIME) };
        let (held, record) = (local_at("held", self.graph.nodes[key_by].span), local_at("record", node.span));
        let made = self.graph.nodes[key_by].span;
        let (door, bare) = (private_at(here(made)), method("bare", node.span));
        let hold = quote_spanned!(here(made)=> #door::stored(#key));
        let put = put_name(side, node.span);
        quote! {
            #make_key
            let #held = #hold;
            let #record = #private::Owning::new(#REC).#bare();
            #at.enter(#operator);
            #at.check(#handle.#put(#held, #time, #record))?;
        }
    }
}

fn put_name(side: usize, span: proc_macro2::Span) -> Ident {
    local_at(if side == 0 { "put_left" } else { "put_right" }, span)
}
