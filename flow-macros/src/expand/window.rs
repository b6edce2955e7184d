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
    let (windows, aggregate, initial) = (made(window, span), &window.aggregate, &window.initial);
    let function = later_function(graph, id);
    let (later, holds) = match window.name() {
        "aggregate" => (None, quote!(.aggregate(#aggregate))),
        "process" => (None, quote!(.process(#private::all_records))),
        "reduce" => {
            let reduce = local("reduce");
            (Some(quote!(let (#function, #reduce) = #private::later();)), quote!(.reduce(#reduce)))
        }
        "fold" => {
            let fold = local("fold");
            let later = quote!(let (#function, #fold) = #private::later_fold(););
            (Some(later), quote!(.fold(#initial, #fold)))
        }
        name => {
            let of = local(&format!("window_{name}"));
            (None, quote!(.aggregate(#private::#of())))
        }
    };
    let (handle, add, index) = (handle_name(graph, id), method("window", span), Index::from(id));
    quote! {
        #later
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
    let assigner = match window.by_clock && !window.says_so() {
        true => quote!(#private::by_clock(#assigner)),
        false => quote!(#assigner),
    };
    quote!(#private::#windows(#assigner) #trigger #evictor #lateness)
}

/// The functions that are applied where records go into windows.
pub(super) fn of_records(node: &Node) -> &[Expr] {
    match node.window.as_ref().map(|window| window.name()) {
        Some("sum" | "min" | "max" | "min_by" | "max_by") => &node.arguments[..1],
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

/// The function of a `reduce` or `fold`, which windows get when the type of the records is known.
fn later_function(graph: &Graph, id: NodeId) -> Ident {
    local(&format!("later_{}", handle_name(graph, id)))
}

/// Gives windows the function of their `reduce` or `fold`: behind the loop, where the type of the records is known.
pub(super) fn late_function(graph: &Graph, id: NodeId, elsewhere: &[NodeId]) -> Option<TokenStream> {
    let node = &graph.nodes[id];
    let window = node.window.as_ref().filter(|window| window.is("reduce") || window.is("fold"))?;
    let base = super::chain::base(graph);
    let (before, inside) = captures(graph, &[node.arguments.first()?], elsewhere);
    let (private, later, at) = (private(), later_function(graph, id), local("at"));
    let operator = super::chain::index(graph, id);
    let f = function(node.arguments.first()?, &local(&format!("function_{id}_0")));
    let (a, b, call2) = (local("a"), local("b"), method("call2", node.span));
    let begin = quote! {
        let mut #b = #private::Lending::new(#b).slot();
        let mut #at = #private::At::start(#operator);
    };
    let body = if window.is("fold") {
        quote!(#begin #at.#call2(#operator, #a, &#b.lend(), #f);)
    } else {
        let (private_here, bare) = (private_at(here(node.span)), method("bare", node.span));
        let result = quote!(#at.#call2(#operator, #a.lend(), #b.lend(), #f));
        let owned = quote_spanned!(here(node.span)=> #private_here::Owning::new(#result).#bare());
        quote! {
            let mut #a = #private::Lending::new(#a).slot();
            #begin
            #owned
        }
    };
    Some(quote! {
        #later.is({
            #base
            #before
            move |#a, #b| {
                #inside
                #body
            }
        });
    })
}

/// What becomes of records that are late for all of their windows.
struct LateRecords {
    /// What follows the late output; none where late records are dropped.
    next: Option<TokenStream>,
    span: Span,
}

impl LateRecords {
    fn of(inside: &mut Loop<'_>, id: NodeId) -> Self {
        let span = inside.graph.nodes[id].span;
        let next = inside.reads(id, 1).then(|| inside.output(id, 1));
        LateRecords { next, span }
    }

    /// The method that puts a record into its windows.
    fn put(&self) -> Ident {
        local_at(if self.next.is_some() { "put_or_return" } else { "put" }, self.span)
    }

    /// After a `put` that has left the record where it was.
    fn lent(&self, put: &TokenStream) -> TokenStream {
        match &self.next {
            None => quote!(#put;),
            Some(next) => quote!(if #put.is_some() { #next }),
        }
    }

    /// After a `put` that has taken the record and gives `back` what `record` is in.
    fn given_back(&self, put: &TokenStream, record: &Ident, back: &TokenStream) -> TokenStream {
        let Some(next) = &self.next else { return quote!(#put;) };
        let (private, slot) = (private(), local("late"));
        quote! {
            if let ::core::option::Option::Some(#back) = #put {
                let mut #slot = #private::Lending::new(#record).slot();
                let #REC = #slot.lend();
                #next
            }
        }
    }
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
        let (make_key, key) = match window.all {
            true => (TokenStream::new(), quote!(())),
            false => {
                let (make_key, key) = self.key(key_by);
                (make_key, quote!(#key))
            }
        };
        let time = if self.graph.takes_time(id) { quote!(#TIME) } else { quote!(#private::NO_TIME) };
        let late = LateRecords::of(self, id);
        let applied = node.arguments.first().map(|given| {
            let f = function(given, &local(&format!("function_{id}_0")));
            let call = method("call", node.span);
            quote!(#at.#call(#operator, &#REC, #f))
        });
        let (put, node) = (late.put(), &self.graph.nodes[id]);
        let values = matches!(window.name(), "count" | "sum" | "min" | "max");
        if values && !window.all && late.next.is_none() {
            // The value may wait for others.
            let value = applied.filter(|_| window.name() != "count").unwrap_or_else(|| quote!(()));
            let (projected, put) = (local("projected"), local_at("put_value", node.span));
            self.settles.push((handle.clone(), id));
            return quote! {
                #make_key
                let #projected = #value;
                #at.enter(#operator);
                #at.check_waited(#handle.#put(#at.record(), &#key, #time, #projected))?;
            };
        }
        match window.name() {
            "count" => {
                let put = late.lent(&quote!(#at.check(#handle.#put(&#key, #time, ()))?));
                quote! {
                    #make_key
                    #at.enter(#operator);
                    #put
                }
            }
            "sum" | "min" | "max" => {
                let value = local("projected");
                let put = late.lent(&quote!(#at.check(#handle.#put(&#key, #time, #value))?));
                quote! {
                    #make_key
                    let #value = #applied;
                    #put
                }
            }
            name => {
                // The record moves into its windows, and the key may borrow from it.
                let (held, record) = (local_at("held", node.span), local_at("record", node.span));
                let hold =
                    quote_spanned!(here(node.span)=> #private::Slot::new(#private::Record::into_owned(#key)));
                let (bare, own, by) =
                    (method("bare", node.span), method("own", node.span), local_at("by", node.span));
                let best = matches!(name, "min_by" | "max_by");
                let private_here = private_at(here(node.span));
                let make_by = best.then(|| quote!(let #by = #private_here::Owning::new(#applied).#own();));
                let into = if best { quote!((#by, #record)) } else { quote!(#record) };
                let back = if best { quote!((_, #record)) } else { quote!(#record) };
                let put = quote!(#at.check(#handle.#put(&#held.lend(), #time, #into))?);
                let put = late.given_back(&put, &record, &back);
                quote! {
                    #make_key
                    let mut #held = #hold;
                    #make_by
                    let #record = #private::Owning::new(#REC).#bare();
                    #at.enter(#operator);
                    #put
                }
            }
        }
    }

    /// The loop over what has fired.
    pub(super) fn fired(&mut self, id: NodeId) -> TokenStream {
        self.results_of = Some(id);
        let next = self.output(id, 0);
        let rec = if self.reads(id, 0) { quote!(#REC) } else { quote!(_) };
        let output = self.graph.branch(id, 0).unwrap_or(id);
        let timed = self.reads(id, 0) && self.graph.gives_time(output);
        let handle = self.handle(id);
        let node = &self.graph.nodes[id];
        let (at, turn, fired) = (local("at"), local("turn"), local_at("fired", node.span));
        let time = timed.then(|| quote!(let #TIME = #fired.timestamp();));
        let emit = self.result(id, node, &fired, &rec, &next);
        // To lend the key.
        let mutable = node.window.as_ref().filter(|window| !window.all).map(|_| quote!(mut));
        quote! {
            while #at.check(#handle.turn(&mut #turn))? {
                for #mutable #fired in #handle.fired() {
                    #at.next();
                    #time
                    #emit
                }
            }
        }
    }

    /// The record that a result becomes.
    fn result(
        &self,
        id: NodeId,
        node: &Node,
        fired: &Ident,
        rec: &TokenStream,
        next: &TokenStream,
    ) -> TokenStream {
        let Some(window) = &node.window else { return TokenStream::new() };
        let private = private();
        let (before, value) = match window.name() {
            "process" => {
                let records = local("records");
                let lay_down = quote!(let mut #records = #private::Lending::new(#fired.result).places(););
                (Some(lay_down), quote!(#records.lend()))
            }
            "reduce" | "min_by" | "max_by" => {
                let held = local("held");
                let hold = quote!(let mut #held = #private::Lending::new(#fired.result).slot(););
                (Some(hold), quote!(#held.lend()))
            }
            _ => (None, quote!(#fired.result)),
        };
        let record = match (window.with || window.is("process"), window.all) {
            (true, all) => self.formed(id, node, all, fired, &value),
            (false, true) => value,
            (false, false) => {
                let lend = local_at("lend", node.span);
                quote!((#fired.key.#lend(), #value))
            }
        };
        quote! {
            #before
            let #rec = #record;
            #next
        }
    }

    /// What the closure of `with` or `process` makes of a result.
    fn formed(&self, id: NodeId, node: &Node, all: bool, fired: &Ident, value: &TokenStream) -> TokenStream {
        let Some(given) = node.arguments.last() else { return TokenStream::new() };
        let last = node.arguments.len() - 1;
        let f = function(given, &local(&format!("function_{id}_{last}")));
        let (at, operator, lend) = (local("at"), self.index(id), local_at("lend", node.span));
        if all {
            let call2 = method("call2", node.span);
            return quote!(#at.#call2(#operator, #fired.window, #value, #f));
        }
        let call3 = method("call3", node.span);
        quote!(#at.#call3(#operator, #fired.key.#lend(), #fired.window, #value, #f))
    }
}
