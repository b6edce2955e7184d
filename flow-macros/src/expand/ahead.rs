//! A loop that is split at a table, so that the table can look ahead: records wait there, and go on together.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Lifetime;

use super::{
    apart::is_apart,
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

/// The aggregate at which the loop is split. None where a key may borrow from what only one turn of the loop has, or where
/// other records are made of one on the way, whose number is not known.
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
                return Some(at).filter(|at| !graph.takes_time(*at) && key_waits(graph, *at));
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

/// Whether the key may outlive its record.
fn key_waits(graph: &Graph, id: NodeId) -> bool {
    let key_by = graph.nodes[id].inputs.first().map(|key_by| &graph.nodes[*key_by]);
    key_by.and_then(|key_by| key_by.arguments.last()).is_some_and(is_apart)
}

impl Loop<'_> {
    /// The aggregate, up to where the record waits. What it does then is [`Loop::turned`].
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
        let (spot, value) = (local("spot"), local("projected"));
        let update = |name: &str, value: &[&Ident]| {
            let update = local_at(name, node.span);
            quote!(#emit #at.check(#table.#update(#spot, #key #(, #value)*))?; #next)
        };
        let (arrive, rest, work) = match node.kind {
            Kind::Count => {
                (self.arrive(key_by, &table, &key, &quote!(())), quote!(()), update("tally_at", &[]))
            }
            Kind::Fold => {
                let (accumulator, initial) = (local("accumulator"), local(&format!("initial_{id}")));
                let (call2, state) = (method("call2", node.span), local_at("value_at", node.span));
                let Some(given) = node.arguments.get(1) else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_1")));
                let emit =
                    emit.map(|emit| quote!(#emit (#key, ::core::clone::Clone::clone(&*#accumulator));));
                let work = quote! {
                    let #accumulator = #table.#state(#spot, &#key, || ::core::clone::Clone::clone(&#initial));
                    #at.#call2(#operator, &mut *#accumulator, &#REC, #f);
                    #emit
                    #next
                };
                (self.arrive(key_by, &table, &key, &quote!(#REC)), quote!(#REC), work)
            }
            kind => {
                let name = match kind {
                    Kind::Sum => "add_at",
                    Kind::Min => "keep_min_at",
                    _ => "keep_max_at",
                };
                let arrive = self.arrive(key_by, &table, &key, &quote!(#value));
                let arrive =
                    self.value(id, quote!(&#REC), None, |projected| quote!(let #value = #projected; #arrive));
                (arrive, quote!(#value), update(name, &[&value]))
            }
        };
        self.table = Some(table);
        self.turn = quote!((#spot, #key, #rest));
        self.turned = quote! {
            #at.enter(#operator);
            #work
        };
        quote!(#make_key #arrive)
    }

    /// The record waits, or goes on at once.
    fn arrive(&self, key_by: NodeId, table: &Ident, key: &Ident, rest: &TokenStream) -> TokenStream {
        let (at, ahead, turn, label) = (local("at"), local("ahead"), local("turn"), label());
        // What is wrong with the key is wrong where it is made, as everywhere else: then rustc says so once.
        let arrive = local_at("arrive", self.graph.nodes[key_by].span);
        quote! {
            if let ::core::option::Option::Some(#turn) = #table.#arrive(&mut #ahead, &mut #at, #key, #rest) {
                break #label ::core::option::Option::Some(#turn);
            }
        }
    }

    /// The loop over `records`, split where they wait.
    pub(super) fn split_loop(
        &self,
        records: &TokenStream,
        item: &TokenStream,
        body: &TokenStream,
    ) -> TokenStream {
        let (private, ahead, all, at) = (private(), local("ahead"), local("records"), local("at"));
        let (label, turn, turned, table) = (label(), &self.turn, &self.turned, &self.table);
        quote! {
            let mut #all = #records;
            let mut #ahead = #private::Ahead::of(&#table);
            while let ::core::option::Option::Some(#turn) = #label: {
                if #ahead.gives_out() {
                    break #label #ahead.give_out(&mut #at);
                }
                for #item in ::core::iter::Iterator::by_ref(&mut #all) {
                    #body
                }
                #ahead.end(&mut #at)
            } {
                #turned
            }
        }
    }
}

/// Whose turn it is.
fn label() -> Lifetime {
    Lifetime::new("'turn", Span::mixed_site())
}
