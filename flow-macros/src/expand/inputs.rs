//! Operators with two inputs: each has a loop of its own over what arrives, in which the record is put into the
//! operator's handle. What comes out runs in a closure behind both.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

use super::{
    chain::Loop,
    operator::{REC, TIME},
};
use crate::{
    graph::{Graph, NodeId},
    names::{here, local, local_at, method, private, private_at},
    vocab::Kind,
};

/// The inputs of an operator with two, in the order in which their loops are written: a loop that makes something of what
/// the other one has brought comes second, when its type is known.
pub(super) fn sides(graph: &Graph, id: NodeId) -> impl Iterator<Item = (usize, NodeId)> {
    let mut sides: Vec<_> = graph.nodes[id].inputs.iter().copied().enumerate().collect();
    if graph.nodes[id].kind == Kind::BroadcastJoin {
        sides.reverse();
    }
    sides.into_iter()
}

impl Loop<'_> {
    /// What the loop of one input does with the record.
    pub(super) fn enter(&mut self, id: NodeId, side: usize) -> TokenStream {
        self.operators.push(id);
        match (self.graph.nodes[id].kind, side) {
            (Kind::BroadcastJoin, 0) => self.look_up(id),
            (Kind::BroadcastJoin, _) => self.keep(id),
            (Kind::CoProcess, _) | (Kind::BroadcastProcess, 1) => self.put_unkeyed(id, side),
            _ => {
                // The key is made where the state is.
                self.operators.extend(self.graph.nodes[id].inputs.get(side));
                self.put(id, side)
            }
        }
    }

    /// Puts the record into the handle of an operator with two inputs, by `put_left(key, time, record)` or
    /// `put_right(..)`. The key is given in the form in which it is stored, since the record that it may borrow from
    /// moves.
    fn put(&mut self, id: NodeId, side: usize) -> TokenStream {
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

pub(super) fn put_name(side: usize, span: proc_macro2::Span) -> Ident {
    local_at(if side == 0 { "put_left" } else { "put_right" }, span)
}
