//! A loop that is split at a table, so that the table can look ahead: records wait there, and go on together.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{
    chain::Loop,
    operator::{REC, function},
};
use crate::{
    fuse::{Layout, Root},
    graph::{Graph, NodeId},
    names::{local, local_at, method, private},
    parse::Mode,
    vocab::Kind,
};

/// The aggregate at which the loop is split. None where a record may borrow from what only one turn of the loop has, or
/// where others are made of it on the way, whose number is not known.
pub(super) fn waits_at(graph: &Graph, layout: &Layout, root: Root) -> Option<NodeId> {
    let behind = |id| {
        let mut readers = graph.consumers(id);
        let reader = readers.next().filter(|reader| !layout.cuts(graph, id, *reader));
        reader.filter(|_| readers.next().is_none() && graph.output != Some(id))
    };
    let mut at = match root {
        Root::Source(id) | Root::After(id) => behind(id)?,
        Root::Before(id) => id,
    };
    loop {
        match graph.nodes[at].kind {
            // Event time would have to wait, too.
            Kind::Count | Kind::Sum | Kind::Min | Kind::Max | Kind::Fold => {
                return Some(at).filter(|at| !graph.takes_time(*at));
            }
            Kind::Map | Kind::Filter | Kind::FilterMap | Kind::Inspect | Kind::KeyBy
                if !layout.ends(graph, at) =>
            {
                at = behind(at)?;
            }
            _ => return None,
        }
    }
}

impl Loop<'_> {
    /// The aggregate, up to where the record waits. What it does then is [`Loop::drained`].
    pub(super) fn aggregate_ahead(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (at, table, operator) = (local("at"), self.handle(id), self.index(id));
        let Some(&key_by) = node.inputs.first() else { return TokenStream::new() };
        let (make_key, key) = self.key(key_by);
        let next = match self.graph.options.mode {
            Mode::Batch => {
                self.deferred.push(id);
                TokenStream::new()
            }
            Mode::Streaming => self.children(id),
        };
        let emit = (self.graph.options.mode != Mode::Batch).then(|| quote!(let #REC =));
        let (hash, value) = (local("hash"), local("projected"));
        let update = |name: &str, value: &[&Ident]| {
            let update = local_at(name, node.span);
            quote!(#emit #at.check(#table.#update(#hash, #key #(, #value)*))?; #next)
        };
        let (put, rest, work) = match node.kind {
            Kind::Count => (self.wait(key_by, &key, &quote!(())), quote!(()), update("tally_at", &[])),
            Kind::Fold => {
                let (accumulator, initial) = (local("accumulator"), local(&format!("initial_{id}")));
                let (call2, state) = (method("call2", node.span), local_at("value_at", node.span));
                let Some(given) = node.arguments.get(1) else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_1")));
                let emit =
                    emit.map(|emit| quote!(#emit (#key, ::core::clone::Clone::clone(&*#accumulator));));
                let work = quote! {
                    let #accumulator = #table.#state(#hash, &#key, || ::core::clone::Clone::clone(&#initial));
                    #at.#call2(#operator, &mut *#accumulator, &#REC, #f);
                    #emit
                    #next
                };
                (self.wait(key_by, &key, &quote!(#REC)), quote!(#REC), work)
            }
            kind => {
                let name = match kind {
                    Kind::Sum => "add_at",
                    Kind::Min => "keep_min_at",
                    _ => "keep_max_at",
                };
                let put = self.wait(key_by, &key, &quote!(#value));
                let put =
                    self.value(id, quote!(&#REC), None, |projected| quote!(let #value = #projected; #put));
                (put, quote!(#value), update(name, &[&value]))
            }
        };
        let record = local("record");
        let (ahead, look_ahead) = (self.ahead_at(key_by), local_at("look_ahead", node.span));
        let resume = local("resume");
        self.drained = quote! {
            #table.#look_ahead(&mut #ahead);
            let #resume = #at.record();
            for (#record, #hash, #key, #rest) in #ahead.drain() {
                #at.back_to(#record);
                #at.enter(#operator);
                #work
            }
            #at.back_to(#resume);
        };
        quote!(#make_key #put)
    }

    fn wait(&self, key_by: NodeId, key: &Ident, rest: &TokenStream) -> TokenStream {
        let (at, ahead, more) = (local("at"), self.ahead_at(key_by), local("more"));
        quote! {
            if #ahead.put(&#at, #key, #rest) {
                #more = true;
                break;
            }
        }
    }

    /// The variable of what waits: what is wrong with its keys is wrong where they are made.
    fn ahead_at(&self, key_by: NodeId) -> Ident {
        local_at("ahead", self.graph.nodes[key_by].span)
    }

    /// The loop over `records`, split where they wait.
    pub(super) fn split_loop(
        &self,
        records: &TokenStream,
        item: &TokenStream,
        body: &TokenStream,
    ) -> TokenStream {
        let (private, ahead, more, all) = (private(), local("ahead"), local("more"), local("records"));
        let drained = &self.drained;
        quote! {
            let mut #all = #records;
            let mut #ahead = #private::Ahead::default();
            let mut #more = true;
            while #more {
                #more = false;
                for #item in ::core::iter::Iterator::by_ref(&mut #all) {
                    #body
                }
                #drained
            }
        }
    }
}
