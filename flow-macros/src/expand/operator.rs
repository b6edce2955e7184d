//! One operator of a loop: the code that works on `rec` and then does what follows.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, spanned::Spanned};

use super::chain::Loop;
use crate::{
    check::is_fallible,
    graph::{Graph, NodeId},
    names::{here, local, local_at, method, of_uid, private, private_at},
    parse::{Mode, Policy},
    vocab::Kind,
};

/// A function as the loop applies it: closures in place, without their `move`, since the chain owns the captures.
pub(super) fn function(argument: &Expr, bound: &Ident) -> TokenStream {
    match argument {
        Expr::Closure(closure) => {
            let mut closure = closure.clone();
            closure.capture = None;
            quote!(#closure)
        }
        Expr::Path(path) => quote!(#path),
        // Made once, before the loop.
        _ => quote!(&mut #bound),
    }
}

/// Where an expression ends: on stable Rust its span is only where it begins.
fn last_span(expression: &Expr) -> Span {
    expression.to_token_stream().into_iter().last().map_or_else(Span::call_site, |token| token.span())
}

/// The variable of a function that is made before the loop, if it is no closure and no path.
pub(super) fn bound_function(id: NodeId, index: usize, argument: &Expr) -> Option<Ident> {
    match argument {
        Expr::Closure(_) | Expr::Path(_) => None,
        _ => Some(local(&format!("function_{id}_{index}"))),
    }
}

impl Loop<'_> {
    /// The operator and everything after it in the chain.
    pub(super) fn operator(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        match node.kind {
            Kind::Map => {
                let next = self.children(id);
                self.value(id, quote!(#REC), None, |value| quote!(let #REC = #value; #next))
            }
            Kind::Filter => {
                let next = self.children(id);
                self.value(id, quote!(&#REC), Some(quote!(bool)), |value| quote!(if #value { #next }))
            }
            Kind::FilterMap => {
                let next = self.children(id);
                self.value(
                    id,
                    quote!(#REC),
                    Some(quote!(::core::option::Option<_>)),
                    |value| quote!(if let ::core::option::Option::Some(#REC) = #value { #next }),
                )
            }
            Kind::FlatMap => {
                let (next, at, operator) = (self.children(id), local("at"), self.index(id));
                // The iterator's own code runs between the records, so the position goes back to it.
                self.value(id, quote!(#REC), None, |value| {
                    quote! {
                        #[allow(for_loops_over_fallibles)]
                        for #REC in #value {
                            #next
                            #at.enter(#operator);
                        }
                    }
                })
            }
            Kind::Split => self.split(id),
            Kind::Inspect => {
                let next = self.children(id);
                self.value(id, quote!(&#REC), None, |value| quote!(#value; #next))
            }
            Kind::Sink => {
                let (at, sink, operator) = (local("at"), self.handle(id), self.index(id));
                let (write, rec) = (local_at("write", node.span), local_at("rec", node.span));
                quote!(#at.enter(#operator); #at.written(#sink.#write(#rec))?;)
            }
            Kind::Watermarks => self.watermarks(id),
            kind if kind.window() => self.window(id),
            kind if kind.asks() => self.ask(id),
            Kind::Process => self.process(id),
            Kind::KeyedProcess => self.keyed_process(id),
            _ if self.ahead == Some(id) => self.aggregate_ahead(id),
            kind if kind.keyed() => self.aggregate(id),
            kind if kind.exchange() && !self.layout.single => self.exchange(id),
            // A union is where its chain begins, and with one subtask there is nothing to exchange.
            _ => self.children(id),
        }
    }

    /// Applies the operator's function to `argument`, and gives the value to `then`. Where `ty` says what the value is,
    /// a function that returns something else is reported where it does.
    pub(super) fn value(
        &mut self,
        id: NodeId,
        argument: TokenStream,
        ty: Option<TokenStream>,
        then: impl FnOnce(TokenStream) -> TokenStream,
    ) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (at, operator) = (local("at"), self.index(id));
        let Some(given) = node.arguments.first() else { return TokenStream::new() };
        let f = function(given, &local(&format!("function_{id}_0")));
        let types = ty.map(|ty| quote!(::<_, #ty>));
        if !is_fallible(node) {
            // What is wrong with the value is wrong with the function.
            let at = local_at("at", given.span());
            let call = method("call", node.span);
            let mut arguments = Group::new(Delimiter::Parenthesis, quote!(#operator, #argument, #f));
            arguments.set_span(here(last_span(given)));
            return then(quote!(#at.#call #types #arguments));
        }
        match node.on_error.unwrap_or(self.graph.options.on_error) {
            Policy::Fail => {
                let attempt = method("attempt", node.span);
                then(quote!(#at.#attempt #types(#operator, #argument, #f)?))
            }
            Policy::Skip => {
                let skipped = self.skipped(id);
                let (value, attempt) = (local("value"), method("attempt_or_skip", node.span));
                let then = then(quote!(#value));
                quote! {
                    if let ::core::option::Option::Some(#value) = #at.#attempt #types(#operator, &#skipped, #argument, #f) {
                        #then
                    }
                }
            }
        }
    }

    /// The record's key, by the closure of the `key_by` that the operator reads from.
    pub(super) fn key(&self, key_by: NodeId) -> (TokenStream, Ident) {
        let node = &self.graph.nodes[key_by];
        // Every use of the key is reported where it is made.
        let (at, key, operator) = (local("at"), local_at("key", node.span), self.index(key_by));
        let Some(given) = node.arguments.last() else { return (TokenStream::new(), key) };
        let index = node.arguments.len() - 1;
        let f = function(given, &local(&format!("function_{key_by}_{index}")));
        let call = method("call", node.span);
        (quote!(let #key = #at.#call(#operator, &#REC, #f);), key)
    }

    fn aggregate(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (at, table, operator) = (local("at"), self.handle(id), self.index(id));
        let Some(&key_by) = node.inputs.first() else { return TokenStream::new() };
        let (make_key, key) = self.key(key_by);
        let batch = self.graph.options.mode == Mode::Batch;
        let next = if batch {
            self.deferred.push(id);
            TokenStream::new()
        } else {
            self.children(id)
        };
        let emit = if batch { TokenStream::new() } else { quote!(let #REC =) };
        let (tally, state, slot) =
            (local_at("tally", node.span), local_at("value", node.span), local_at("slot", node.span));
        match node.kind {
            Kind::Sum | Kind::Min | Kind::Max => {
                let update = match node.kind {
                    Kind::Sum => "add",
                    Kind::Min => "keep_min",
                    _ => "keep_max",
                };
                let (update, value) = (local_at(update, node.span), local("projected"));
                let update = self.value(id, quote!(&#REC), None, |projected| {
                    quote! {
                        let #value = #projected;
                        #emit #at.check(#table.#update(#key, #value))?;
                        #next
                    }
                });
                quote!(#make_key #update)
            }
            Kind::Count => quote! {
                #make_key
                #at.enter(#operator);
                #emit #at.check(#table.#tally(#key))?;
                #next
            },
            Kind::Fold => {
                let (accumulator, initial) = (local("accumulator"), local(&format!("initial_{id}")));
                let call2 = method("call2", node.span);
                let Some(given) = node.arguments.get(1) else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_1")));
                let emit =
                    (!batch).then(|| quote!(let #REC = (#key, ::core::clone::Clone::clone(&*#accumulator));));
                quote! {
                    #make_key
                    let #accumulator = #table.#state(&#key, || ::core::clone::Clone::clone(&#initial));
                    #at.#call2(#operator, &mut *#accumulator, &#REC, #f);
                    #emit
                    #next
                }
            }
            Kind::Reduce => {
                let (held, previous, before) =
                    (local_at("held", node.span), local("previous"), local("before"));
                let (private, own, call2) = (private(), self.own(node.span), method("call2", node.span));
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let witness = self.witness(&table, node.span);
                let emit = (!batch).then(|| self.emit_held("copy", &held, node.span, &next));
                quote! {
                    #witness
                    #make_key
                    let #held = #table.#slot(&#key);
                    let mut #previous = #held.take().map(#private::Slot::new);
                    let #REC = match &mut #previous {
                        ::core::option::Option::Some(#before) => #at.#call2(#operator, #before.lend(), #REC, #f),
                        ::core::option::Option::None => #REC,
                    };
                    *#held = ::core::option::Option::Some(#own);
                    #emit
                }
            }
            Kind::MinBy | Kind::MaxBy => {
                let (held, by, best) =
                    (local_at("held", node.span), local_at("by", node.span), local_at("best", node.span));
                let (own, call, own_value) =
                    (self.own(node.span), method("call", node.span), method("own", node.span));
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let witness = self.witness_by(&table, &by, node.span);
                let private = private_at(here(node.span));
                let own_by = quote!(#private::Owning::new(#at.#call(#operator, &#REC, #f)).#own_value());
                let better = match node.kind {
                    Kind::MinBy => quote_spanned!(here(node.span)=> #private::less(&#by, #best)),
                    _ => quote_spanned!(here(node.span)=> #private::less(#best, &#by)),
                };
                let emit = (!batch).then(|| self.emit_held("copy_best", &held, node.span, &next));
                quote! {
                    #make_key
                    let #by = #own_by;
                    #witness
                    let #held = #table.#slot(&#key);
                    if #held.as_ref().is_none_or(|(#best, _)| #better) {
                        *#held = ::core::option::Option::Some((#by, #own));
                    }
                    #emit
                }
            }
            _ => TokenStream::new(),
        }
    }

    /// What follows gets a copy of the record that is held.
    fn emit_held(&self, copy: &str, held: &Ident, span: Span, next: &TokenStream) -> TokenStream {
        let (private, copy, kept) = (private_at(here(span)), local_at(copy, span), local("kept"));
        let copy = quote_spanned!(here(span)=> #private::#copy(#held));
        quote! {
            let mut #kept = #copy;
            let #REC = #kept.lend();
            #next
        }
    }

    /// The loop over the final results of an aggregate in batch mode.
    pub(super) fn results(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (table, key, value, at) = (self.handle(id), local("key"), local("value"), local("at"));
        let (private, next) = (private(), self.children(id));
        let (begin, results) = (quote!(#at.next();), local_at("results", node.span));
        match node.kind {
            Kind::Reduce => quote! {
                for (_, #value) in #table.#results() {
                    #begin
                    if let ::core::option::Option::Some(#value) = #value {
                        let mut #value = #private::Slot::new(#value);
                        let #REC = #value.lend();
                        #next
                    }
                }
            },
            Kind::MinBy | Kind::MaxBy => quote! {
                for (_, #value) in #table.#results() {
                    #begin
                    if let ::core::option::Option::Some((_, #value)) = #value {
                        let mut #value = #private::Slot::new(#value);
                        let #REC = #value.lend();
                        #next
                    }
                }
            },
            _ => quote! {
                for (mut #key, #value) in #table.#results() {
                    #begin
                    let #REC = (#key.lend(), #value);
                    #next
                }
            },
        }
    }

    /// Sends the record to a subtask of the next chain.
    fn exchange(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (at, out, target, operator) = (local("at"), self.handle(id), local("target"), self.index(id));
        let (own, send) =
            (self.own_with_time(self.graph.takes_time(id), node.span), local_at("send", node.span));
        match node.kind {
            Kind::KeyBy => {
                let ((make_key, key), by_key) = (self.key(id), local_at("by_key", node.span));
                quote! {
                    #make_key
                    let #target = #out.#by_key(&#key);
                    #out.#send(#target, #own);
                }
            }
            Kind::PartitionCustom => {
                let (make_key, key) = self.key(id);
                let call2 = method("call2", node.span);
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let (targets, custom) = (local_at("targets", node.span), local_at("custom", node.span));
                quote! {
                    #make_key
                    let #target = #at.#call2(#operator, #key, #out.#targets(), #f);
                    let #target = #at.check(#out.#custom(#target))?;
                    #out.#send(#target, #own);
                }
            }
            Kind::Broadcast => {
                let send_to_all = local_at("send_to_all", node.span);
                quote!(#out.#send_to_all(#own);)
            }
            kind => {
                let choose = local(kind.name());
                quote!(let #target = #out.#choose(); #out.#send(#target, #own);)
            }
        }
    }

    /// The record as it is sent into `to`: owned, and with its event time where that is needed.
    pub(super) fn cargo(&self, from: NodeId, to: NodeId, span: Span) -> TokenStream {
        self.own_with_time(self.graph.takes_time_from(to, from), span)
    }

    fn own_with_time(&self, timed: bool, span: Span) -> TokenStream {
        let own = self.own(span);
        if timed { quote!((#TIME, #own)) } else { own }
    }

    /// `rec`, owned.
    pub(super) fn own(&self, span: Span) -> TokenStream {
        let (private, own) = (private(), method("own", span));
        quote!(#private::Owning::new(#REC).#own())
    }

    /// Tells the type of the state before the closure that works on it is checked.
    fn witness(&self, table: &Ident, span: Span) -> TokenStream {
        let (private, holds) = (private(), local_at("holds", span));
        quote!(#table.#holds(#private::Witness::new(&#REC).owned());)
    }

    fn witness_by(&self, table: &Ident, by: &Ident, span: Span) -> TokenStream {
        let (private, holds) = (private(), local_at("holds_by", span));
        quote!(#table.#holds(&#by, #private::Witness::new(&#REC).owned());)
    }
}

/// The record, as generated code calls it.
pub(super) struct Rec;
pub(super) const REC: Rec = Rec;

impl quote::ToTokens for Rec {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        local("rec").to_tokens(tokens);
    }
}

/// The record's event time.
pub(super) struct Time;
pub(super) const TIME: Time = Time;

impl quote::ToTokens for Time {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        local("time").to_tokens(tokens);
    }
}

/// The variable of an operator's state, sink or output: its uid, as far as identifiers allow.
pub(super) fn handle_name(graph: &Graph, id: NodeId) -> Ident {
    let name = of_uid("", &graph.nodes[id].uid);
    match graph.nodes[..id].iter().any(|before| of_uid("", &before.uid) == name) {
        true => local(&format!("{name}_{id}")),
        false => name,
    }
}
