//! One operator of a loop: the code that works on `rec` and then does what follows.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Expr, spanned::Spanned};

use super::chain::Loop;
use crate::{
    check::is_fallible,
    graph::NodeId,
    names::{local, local_at, of_uid, private},
    parse::{Mode, Policy},
    vocab::Kind,
};

/// A function as the loop applies it: closures in place, without their `move`, since the chain owns the captures.
fn function(argument: &Expr, bound: &Ident) -> TokenStream {
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
                self.value(id, quote!(#REC), |value| quote!(let #REC = #value; #next))
            }
            Kind::Filter => {
                let next = self.children(id);
                self.value(id, quote!(&#REC), |value| quote!(if #value { #next }))
            }
            Kind::FilterMap => {
                let next = self.children(id);
                self.value(id, quote!(#REC), |value| quote!(if let ::core::option::Option::Some(#REC) = #value { #next }))
            }
            Kind::FlatMap => {
                let (next, at, operator) = (self.children(id), local("at"), self.index(id));
                // The iterator's own code runs between the records, so the position goes back to it.
                self.value(id, quote!(#REC), |value| quote!(for #REC in #value { #next #at.enter(#operator); }))
            }
            Kind::Inspect => {
                let next = self.children(id);
                self.value(id, quote!(&#REC), |value| quote!(#value; #next))
            }
            Kind::Sink => {
                let (at, sink, operator) = (local("at"), self.handle(id), self.index(id));
                quote!(#at.enter(#operator); #at.written(#sink.write(#REC))?;)
            }
            kind if kind.keyed() => self.aggregate(id),
            kind if kind.exchange() && !self.layout.single => self.exchange(id),
            // A union is where its chain begins, and with one subtask there is nothing to exchange.
            _ => self.children(id),
        }
    }

    /// Applies the operator's function to `argument`, and gives the value to `then`.
    fn value(&mut self, id: NodeId, argument: TokenStream, then: impl FnOnce(TokenStream) -> TokenStream) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (at, operator) = (local("at"), self.index(id));
        let Some(given) = node.arguments.first() else { return TokenStream::new() };
        let f = function(given, &local(&format!("function_{id}_0")));
        if !is_fallible(node) {
            return then(quote!(#at.call(#operator, #argument, #f)));
        }
        match node.on_error.unwrap_or(self.graph.options.on_error) {
            Policy::Fail => then(quote!(#at.attempt(#operator, #argument, #f)?)),
            Policy::Skip => {
                let skipped = self.skipped(id);
                let value = local("value");
                let then = then(quote!(#value));
                quote! {
                    if let ::core::option::Option::Some(#value) = #at.attempt_or_skip(#operator, &#skipped, #argument, #f) {
                        #then
                    }
                }
            }
        }
    }

    /// The record's key, by the closure of the `key_by` that the operator reads from.
    fn key(&self, key_by: NodeId) -> (TokenStream, Ident) {
        let node = &self.graph.nodes[key_by];
        let (at, operator) = (local("at"), self.index(key_by));
        let Some(given) = node.arguments.last() else { return (TokenStream::new(), local("key")) };
        let index = node.arguments.len() - 1;
        let f = function(given, &local(&format!("function_{key_by}_{index}")));
        // What is wrong with the key is wrong where the closure makes it.
        let span = match given {
            Expr::Closure(closure) => closure.body.span(),
            other => other.span(),
        };
        let key = local_at("key", span);
        (quote!(let #key = #at.call(#operator, &#REC, #f);), key)
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
        match node.kind {
            Kind::Sum | Kind::Min | Kind::Max => {
                let method = match node.kind {
                    Kind::Sum => local_at("add", node.span),
                    Kind::Min => local_at("keep_min", node.span),
                    _ => local_at("keep_max", node.span),
                };
                let value = local("projected");
                let update = self.value(id, quote!(&#REC), |projected| {
                    quote! {
                        let #value = #projected;
                        #emit #at.check(#table.#method(#key, #value))?;
                        #next
                    }
                });
                quote!(#make_key #update)
            }
            Kind::Count => quote! {
                #make_key
                #at.enter(#operator);
                #emit #at.check(#table.tally(#key))?;
                #next
            },
            Kind::Fold => {
                let (accumulator, initial) = (local("accumulator"), local(&format!("initial_{id}")));
                let Some(given) = node.arguments.get(1) else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_1")));
                let emit = (!batch).then(|| quote!(let #REC = (#key, ::core::clone::Clone::clone(&*#accumulator));));
                quote! {
                    #make_key
                    let #accumulator = #table.value(&#key, || ::core::clone::Clone::clone(&#initial));
                    #at.call2(#operator, &mut *#accumulator, &#REC, #f);
                    #emit
                    #next
                }
            }
            Kind::Reduce => {
                let (held, previous, witness) = (local("held"), local("previous"), self.witness(&table));
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let (private, own) = (private(), self.own(node.span));
                let (keep, rest) = if batch {
                    (quote!(*#held = ::core::option::Option::Some(#own);), TokenStream::new())
                } else {
                    let copy = local("copy");
                    let own = self.own_named(&copy, node.span);
                    (
                        quote! {
                            let #copy = ::core::clone::Clone::clone(&#REC);
                            *#held = ::core::option::Option::Some(#own);
                        },
                        next,
                    )
                };
                quote! {
                    #witness
                    #make_key
                    let #held = #table.slot(&#key);
                    let mut #previous = #held.take().map(#private::Slot::new);
                    let #REC = match &mut #previous {
                        ::core::option::Option::Some(slot) => #at.call2(#operator, slot.lend(), #REC, #f),
                        ::core::option::Option::None => #REC,
                    };
                    #keep
                    #rest
                }
            }
            Kind::MinBy | Kind::MaxBy => {
                let (held, by, kept, copy) = (local("held"), local("by"), local("kept"), local("copy"));
                let witness = self.witness_by(&table, &by);
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                let (private, own) = (private(), self.own_named(&copy, node.span));
                let better = if node.kind == Kind::MinBy { quote!(<) } else { quote!(>) };
                let emit = (!batch).then(|| {
                    quote! {
                        let mut #kept = #private::Slot::new(::core::clone::Clone::clone(&#held.1));
                        let #REC = #kept.lend();
                    }
                });
                quote! {
                    #make_key
                    let #by = #at.call(#operator, &#REC, #f);
                    #witness
                    let #held = #table.slot(&#key);
                    if #held.as_ref().is_none_or(|held| #by #better held.0) {
                        let #copy = #REC;
                        *#held = ::core::option::Option::Some((#by, #own));
                    }
                    if let ::core::option::Option::Some(#held) = &*#held {
                        #emit
                        #next
                    }
                }
            }
            _ => TokenStream::new(),
        }
    }

    /// The loop over the final results of an aggregate in batch mode.
    pub(super) fn results(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (table, key, value, at) = (self.handle(id), local("key"), local("value"), local("at"));
        let (private, next) = (private(), self.children(id));
        let begin = quote!(#at.next(););
        match node.kind {
            Kind::Reduce => quote! {
                for (_, #value) in #table.results() {
                    #begin
                    if let ::core::option::Option::Some(#value) = #value {
                        let mut #value = #private::Slot::new(#value);
                        let #REC = #value.lend();
                        #next
                    }
                }
            },
            Kind::MinBy | Kind::MaxBy => quote! {
                for (_, #value) in #table.results() {
                    #begin
                    if let ::core::option::Option::Some((_, #value)) = #value {
                        let mut #value = #private::Slot::new(#value);
                        let #REC = #value.lend();
                        #next
                    }
                }
            },
            _ => quote! {
                for (mut #key, #value) in #table.results() {
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
        let own = self.own(node.span);
        match node.kind {
            Kind::KeyBy => {
                let (make_key, key) = self.key(id);
                quote! {
                    let #target = { #make_key #out.by_key(&#key) };
                    #out.send(#target, #own);
                }
            }
            Kind::PartitionCustom => {
                let (make_key, key) = self.key(id);
                let Some(given) = node.arguments.first() else { return TokenStream::new() };
                let f = function(given, &local(&format!("function_{id}_0")));
                quote! {
                    let #target = {
                        #make_key
                        let targets = #out.targets();
                        #at.call2(#operator, #key, targets, #f)
                    };
                    let #target = #at.check(#out.custom(#target))?;
                    #out.send(#target, #own);
                }
            }
            Kind::Broadcast => quote!(#out.send_to_all(#own);),
            kind => {
                let choose = local(kind.name());
                quote!(let #target = #out.#choose(); #out.send(#target, #own);)
            }
        }
    }

    /// `rec`, owned.
    pub(super) fn own(&self, span: Span) -> TokenStream {
        self.own_named(&local("rec"), span)
    }

    fn own_named(&self, record: &Ident, span: Span) -> TokenStream {
        let private = private();
        let own = local_at("own", span);
        quote! {{
            #[allow(unused_imports)]
            use #private::{OwnPlain as _, OwnRecord as _};
            #private::Owning::new(#record).#own()
        }}
    }

    /// Tells the type of the state before the closure that works on it is checked.
    fn witness(&self, table: &Ident) -> TokenStream {
        let private = private();
        quote! {{
            #[allow(unused_imports)]
            use #private::{WitnessPlain as _, WitnessRecord as _};
            #table.holds(#private::Witness::new(&#REC).owned());
        }}
    }

    fn witness_by(&self, table: &Ident, by: &Ident) -> TokenStream {
        let private = private();
        quote! {{
            #[allow(unused_imports)]
            use #private::{WitnessPlain as _, WitnessRecord as _};
            #table.holds_by(&#by, #private::Witness::new(&#REC).owned());
        }}
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

/// The variable of an operator's state, sink or output.
pub(super) fn handle_name(uid: &str) -> Ident {
    of_uid("", uid)
}

