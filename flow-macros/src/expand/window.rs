//! Windows in a loop: records go in where they come, results come out in a loop of their own when windows fire.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Index};

use super::{
    capture::captures,
    chain::Loop,
    operator::{REC, TIME, function, handle_name},
};
use crate::{
    graph::{Graph, Node, NodeId, Window},
    names::{here, local, local_at, method, private, private_at},
};

/// Makes the windows of a node, in the chain `variable`.
pub(super) fn make(graph: &Graph, id: NodeId, variable: &Ident) -> TokenStream {
    let node = &graph.nodes[id];
    let Some(window) = &node.window else { return TokenStream::new() };
    let (private, span) = (private(), node.span);
    let (windows, aggregate) = (made(window, span), &window.aggregate);
    let holds = match window.name() {
        "aggregate" => quote!(.aggregate(#aggregate)),
        "process" => quote!(.process(#private::all_records)),
        "reduce" => {
            let function = later_function(graph, id);
            let (handle, add, index) = (handle_name(graph, id), method("window", span), Index::from(id));
            let reduce = local("reduce");
            return quote! {
                let (#function, #reduce) = #private::later();
                let #handle =
                    #variable.#add(#index, #windows .reduce(#reduce));
            };
        }
        name => {
            let of = local(&format!("window_{name}"));
            quote!(.aggregate(#private::#of()))
        }
    };
    let (handle, add, index) = (handle_name(graph, id), method("window", span), Index::from(id));
    quote! {
        let #handle =
            #variable.#add(#index, #windows #holds);
    }
}

/// The windows, before it is said what they hold.
pub(super) fn made(window: &Window, span: Span) -> TokenStream {
    let Window { assigner, trigger, evictor, lateness, .. } = window;
    let (private, windows) = (private(), method("windows", span));
    let setting = |name: &str, value: &Option<(Span, Expr)>| {
        value.as_ref().map(|(span, value)| {
            let name = method(name, *span);
            quote!(.#name(#value))
        })
    };
    let (trigger, evictor) = (setting("trigger", trigger), setting("evictor", evictor));
    let lateness = setting("allowed_lateness", lateness);
    quote!(#private::#windows(#assigner) #trigger #evictor #lateness)
}

/// The functions that are applied where records go into windows.
pub(super) fn of_records(node: &Node) -> &[Expr] {
    match node.window.as_ref().map(|window| window.name()) {
        Some("sum" | "min" | "max") => &node.arguments[..1],
        _ => &[],
    }
}

/// The functions that are applied where results come out.
pub(super) fn of_results(node: &Node) -> &[Expr] {
    if node.join.is_some() || node.kind.asks() {
        return &node.arguments;
    }
    match &node.window {
        Some(window) if window.with => &node.arguments[node.arguments.len() - 1..],
        Some(window) if window.is("process") => &node.arguments,
        _ => &[],
    }
}

/// The function of a `reduce`, which windows get when the type of the records is known.
fn later_function(graph: &Graph, id: NodeId) -> Ident {
    local(&format!("reduce_{}", handle_name(graph, id)))
}

/// Gives windows the function of their `reduce`: behind the loop, where the type of the records is known.
pub(super) fn late_function(graph: &Graph, id: NodeId, elsewhere: &[NodeId]) -> Option<TokenStream> {
    let node = &graph.nodes[id];
    node.window.as_ref().filter(|window| window.is("reduce"))?;
    let base = super::chain::base(graph);
    let (before, inside) = captures(graph, &[node.arguments.first()?], elsewhere);
    let (private, later, at) = (private(), later_function(graph, id), local("at"));
    let operator = super::chain::index(graph, id);
    let f = function(node.arguments.first()?, &local(&format!("function_{id}_0")));
    let (a, b, call2) = (local("a"), local("b"), method("call2", node.span));
    let (private_here, bare) = (private_at(here(node.span)), method("bare", node.span));
    let result = quote!(#at.#call2(#operator, #a.lend(), #b.lend(), #f));
    let owned = quote_spanned!(here(node.span)=> #private_here::Owning::new(#result).#bare());
    Some(quote! {
        #later.is({
            #base
            #before
            move |#a, #b| {
            #inside
            let (mut #a, mut #b) = (#private::Lending::new(#a).slot(), #private::Lending::new(#b).slot());
            let mut #at = #private::At::start(#operator);
            #owned
            }
        });
    })
}

impl Loop<'_> {
    /// Puts the record into its windows.
    pub(super) fn window(&mut self, id: NodeId) -> TokenStream {
        self.deferred.push(id);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (Some(window), Some(&key_by)) = (&node.window, node.inputs.first()) else {
            return TokenStream::new();
        };
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let (make_key, key) = self.key(key_by);
        let time = if self.graph.takes_time(id) { quote!(#TIME) } else { quote!(#private::NO_TIME) };
        let put = local_at("put", node.span);
        match window.name() {
            "count" => quote! {
                #make_key
                #at.enter(#operator);
                #at.check(#handle.#put(&#key, #time, ()))?;
            },
            "sum" | "min" | "max" => {
                let value = local("projected");
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let (f, call) =
                    (function(given, &local(&format!("function_{id}_0"))), method("call", node.span));
                quote! {
                    #make_key
                    let #value = #at.#call(#operator, &#REC, #f);
                    #at.check(#handle.#put(&#key, #time, #value))?;
                }
            }
            _ => {
                // The record moves into its windows, and the key may borrow from it.
                let (held, record) = (local_at("held", node.span), local_at("record", node.span));
                let hold =
                    quote_spanned!(here(node.span)=> #private::Slot::new(#private::Record::into_owned(#key)));
                let bare = method("bare", node.span);
                quote! {
                    #make_key
                    let mut #held = #hold;
                    let #record = #private::Owning::new(#REC).#bare();
                    #at.enter(#operator);
                    #at.check(#handle.#put(&#held.lend(), #time, #record))?;
                }
            }
        }
    }

    /// The loop over what has fired.
    pub(super) fn fired(&mut self, id: NodeId) -> TokenStream {
        self.results_of = Some(id);
        let next = self.output(id, 0);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (at, turn, fired) = (local("at"), local("turn"), local_at("fired", node.span));
        let time = self.graph.gives_time(id).then(|| quote!(let #TIME = #fired.timestamp();));
        let emit = self.result(id, node, &fired, &next);
        quote! {
            while #at.check(#handle.turn(&mut #turn))? {
                for mut #fired in #handle.fired() {
                    #at.next();
                    #time
                    #emit
                }
            }
        }
    }

    /// The record that a result becomes.
    fn result(&self, id: NodeId, node: &Node, fired: &Ident, next: &TokenStream) -> TokenStream {
        let Some(window) = &node.window else { return TokenStream::new() };
        let (private, at, operator) = (private(), local("at"), self.index(id));
        let (call3, lend) = (method("call3", node.span), local_at("lend", node.span));
        let value = match window.name() {
            "process" => {
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let records = local("records");
                return quote! {
                    let mut #records = #private::Lending::new(#fired.result).places();
                    let #REC = #at.#call3(#operator, #fired.key.#lend(), #fired.window, #records.lend(), #f);
                    #next
                };
            }
            "reduce" => {
                let held = local("held");
                let lent = quote!(#held.lend());
                let next = match window.with {
                    false => quote!(let #REC = (#fired.key.#lend(), #lent); #next),
                    true => self.with(id, node, &call3, fired, &lent, next),
                };
                return quote! {
                    let mut #held = #private::Lending::new(#fired.result).slot();
                    #next
                };
            }
            _ => quote!(#fired.result),
        };
        match window.with {
            false => quote!(let #REC = (#fired.key.#lend(), #value); #next),
            true => self.with(id, node, &call3, fired, &value, next),
        }
    }

    fn with(
        &self,
        id: NodeId,
        node: &Node,
        call3: &Ident,
        fired: &Ident,
        value: &TokenStream,
        next: &TokenStream,
    ) -> TokenStream {
        let Some(given) = node.arguments.last() else { return TokenStream::new() };
        let last = node.arguments.len() - 1;
        let f = function(given, &local(&format!("function_{id}_{last}")));
        let (at, operator, lend) = (local("at"), self.index(id), local_at("lend", node.span));
        quote! {
            let #REC = #at.#call3(#operator, #fired.key.#lend(), #fired.window, #value, #f);
            #next
        }
    }
}
