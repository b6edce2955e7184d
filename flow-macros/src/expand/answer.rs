//! Operators that ask outside: records are put aside where they come, asked for after the batch, and go on in a loop of
//! their own when they are answered.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Index};

use super::{
    chain::Loop,
    operator::{REC, TIME, function, handle_name},
};
use crate::{
    check::skips,
    graph::{Graph, NodeId},
    names::{here, local, local_at, method, private, private_at},
    parse::mentioned,
    vocab::Kind,
};

/// Makes what an operator has under way, in the chain `variable`.
pub(super) fn make(graph: &Graph, id: NodeId, variable: &Ident) -> TokenStream {
    let node = &graph.nodes[id];
    let Some(answers) = &node.answers else { return TokenStream::new() };
    let (private, handle, index) = (private(), handle_name(graph, id), Index::from(id));
    let settings = answers.settings.iter().map(|(word, value)| quote!(.#word(#value)));
    let late = answers.on_timeout.map(|_| quote!(.late_value()));
    let lookup = answers.lookup.as_ref().map(|lookup| {
        let (name, make) = (lookup_name(graph, id), method("lookup", node.span));
        quote!(let #name = #variable.#make(#lookup);)
    });
    let add = local_at("map_async", node.span);
    quote! {
        #lookup
        let #handle = #variable.#add(#index, #private::Settings::new() #(#settings)* #late);
    }
}

/// The variable that holds where a lookup looks.
fn lookup_name(graph: &Graph, id: NodeId) -> Ident {
    local(&format!("lookup_of_{}", handle_name(graph, id)))
}

impl Loop<'_> {
    /// Puts the record aside.
    pub(super) fn ask(&mut self, id: NodeId) -> TokenStream {
        self.deferred.push(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let time = if self.graph.takes_time(id) { quote!(#TIME) } else { quote!(#private::NO_TIME) };
        let (put, record, bare) =
            (local_at("put", node.span), local_at("record", node.span), method("bare", node.span));
        quote! {
            let #record = #private::Owning::new(#REC).#bare();
            #at.enter(#operator);
            #handle.#put(#record, #time);
        }
    }

    /// The loop that asks, and over what was answered.
    pub(super) fn answered(&mut self, id: NodeId) -> TokenStream {
        self.results_of = Some(id);
        let next = self.children(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (Some(answers), Some(given)) = (&node.answers, node.arguments.first()) else {
            return TokenStream::new();
        };
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let (turn, more, record, done) =
            (local("turn"), local("more"), local_at("record", node.span), local_at("answer", node.span));
        let f = function(given, &local(&format!("function_{id}_0")));
        let call = method("call", node.span);
        let future = local_at("future", node.span);
        let ask = if node.kind == Kind::LookupJoin {
            let (lookup, key) = (lookup_name(self.graph, id), local_at("key", node.span));
            let look_up = method("look_up", node.span);
            quote! {
                let #key = #at.#call(#operator, &#record, #f);
                #private::#look_up(&#lookup, #key)
            }
        } else {
            let clones = self.clones(given);
            let private_here = private_at(here(node.span));
            let answer = if self.graph.asks_with_question_mark(id) {
                quote!(#private::Fallible.answer::<_, #private::BoxError, _>(#future))
            } else {
                quote_spanned!(here(node.span)=> #private_here::Answering::of(&#future).kind().answer(#future))
            };
            quote! {
                #clones
                let #future = #at.#call(#operator, #record, #f);
                #answer
            }
        };
        let time = self.graph.gives_time(id).then(|| quote!(let #TIME = #done.time;));
        let result = match (&answers.on_timeout, node.arguments.get(1)) {
            (Some(span), Some(late)) if node.kind == Kind::MapAsync => {
                let f = function(late, &local(&format!("function_{id}_1")));
                let call = method("call", *span);
                quote!(#done.result_or(|#record| #at.#call(#operator, #record, #f)))
            }
            _ if node.kind == Kind::LookupJoin => quote!(#done.pair()),
            _ => quote!(#done.result()),
        };
        let value = local("value");
        let next = match node.kind {
            Kind::LookupJoin => self.found(id, &value, &next),
            _ => quote!(let #REC = #value; #next),
        };
        let take = if skips(node, self.graph.options.on_error) {
            let skipped = self.skipped(id);
            quote! {
                if let ::core::option::Option::Some(#value) = #at.check_or_skip(&#skipped, #value) { #next }
            }
        } else {
            quote!(let #value = #at.check(#value)?; #next)
        };
        quote! {
            loop {
                let #more = #handle.turn(&mut #turn, |#record| { #ask });
                if !#at.check(#more)? {
                    break;
                }
                for #done in #handle.done() {
                    #at.answer(#operator, #done.number);
                    #time
                    let #value = #result;
                    #take
                }
            }
        }
    }

    /// The record that becomes of one that was looked up, and what was found.
    fn found(&self, id: NodeId, value: &Ident, next: &TokenStream) -> TokenStream {
        let node = &self.graph.nodes[id];
        let Some(answers) = &node.answers else { return TokenStream::new() };
        let (at, operator) = (local("at"), self.index(id));
        let (record, found) = (local("record"), local("found"));
        let last = node.arguments.len() - 1;
        let rec = match node.arguments.last().filter(|_| answers.with) {
            Some(with) => {
                let f = function(with, &local(&format!("function_{id}_{last}")));
                let call2 = method("call2", node.span);
                quote!(#at.#call2(#operator, #record, #found, #f))
            }
            None => quote!((#record, #found)),
        };
        if answers.left {
            quote!(let (#record, #found) = #value; let #REC = #rec; #next)
        } else {
            quote! {
                if let (#record, ::core::option::Option::Some(#found)) = #value {
                    let #REC = #rec;
                    #next
                }
            }
        }
    }

    /// A copy of each variable that the closure captures, since its futures outlive the call and each has its own.
    fn clones(&self, closure: &Expr) -> TokenStream {
        let Expr::Closure(_) = closure else { return TokenStream::new() };
        let parameters = self.graph.signature.parameters.iter();
        let parameters =
            parameters.filter(|parameter| mentioned(&parameter.name, closure)).map(|parameter| {
                let name = &parameter.name;
                match parameter.referent() {
                    Some(_) => quote!(let #name = ::std::borrow::ToOwned::to_owned(#name);),
                    None => quote!(let #name = ::core::clone::Clone::clone(&#name);),
                }
            });
        let locals = self.graph.locals.iter().filter(|local| mentioned(&local.name, closure)).map(|local| {
            let (name, private) = (&local.name, private_at(here(local.name.span())));
            quote_spanned!(here(name.span())=> let #name = #private::share(&#name);)
        });
        let clones: Vec<_> = parameters.chain(locals).collect();
        quote!(#(#clones)*)
    }
}
