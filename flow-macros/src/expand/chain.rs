//! One chain: its handles, and its loop.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;

use super::{
    ahead::waits_at,
    answer,
    capture::{captures, functions},
    inputs::sides,
    join,
    operator::{REC, TIME, bound_function, handle_name},
    process, window,
};
use crate::{
    check::skips,
    fuse::{Chain, Layout, Root, Step},
    graph::{Graph, NodeId},
    names::{here, local, local_at, method, private, private_at},
    parse::{Guarantee, Mode},
    vocab::Kind,
};

/// Writes one closure over records.
pub(super) struct Loop<'g> {
    pub(super) graph: &'g Graph,
    pub(super) layout: &'g Layout,
    /// Handles that the closure borrows for each batch.
    handles: Vec<Ident>,
    /// Operators whose functions it applies.
    pub(super) operators: Vec<NodeId>,
    /// Further functions that it applies.
    pub(super) applied: Vec<&'g Expr>,
    /// The window whose results it takes.
    pub(super) results_of: Option<NodeId>,
    /// Windows, whose results come when they fire, and aggregates of a batch pipeline, whose results come at the end.
    pub(super) deferred: Vec<NodeId>,
    /// Windows into which it puts values that may wait there until it ends.
    pub(super) settles: Vec<(Ident, NodeId)>,
    /// The aggregate at which records wait.
    pub(super) ahead: Option<NodeId>,
    /// Its table.
    pub(super) table: Option<Ident>,
    /// What comes from there, record by record.
    pub(super) turn: TokenStream,
    /// What is done with it then.
    pub(super) turned: TokenStream,
}

impl<'g> Loop<'g> {
    fn new(graph: &'g Graph, layout: &'g Layout) -> Self {
        Loop {
            graph,
            layout,
            results_of: None,
            handles: Vec::new(),
            operators: Vec::new(),
            applied: Vec::new(),
            deferred: Vec::new(),
            settles: Vec::new(),
            ahead: None,
            table: None,
            turn: TokenStream::new(),
            turned: TokenStream::new(),
        }
    }

    /// The operator's number at run time. Those of a helper function come after its caller's.
    pub(super) fn index(&self, id: NodeId) -> TokenStream {
        index(self.graph, id)
    }

    pub(super) fn handle(&mut self, id: NodeId) -> Ident {
        self.borrow(handle_name(self.graph, id))
    }

    fn borrow(&mut self, handle: Ident) -> Ident {
        if !self.handles.contains(&handle) {
            self.handles.push(handle.clone());
        }
        handle
    }

    pub(super) fn skipped(&self, id: NodeId) -> Ident {
        skipped_name(self.graph, id)
    }

    /// Everything that the record does after `id`.
    pub(super) fn children(&mut self, id: NodeId) -> TokenStream {
        let mut branches = Vec::new();
        let consumers: Vec<_> = self.graph.consumers(id).collect();
        for consumer in consumers {
            branches.push(if self.layout.cuts(self.graph, id, consumer) {
                let out = self.borrow(cut_name(self.graph, id, consumer));
                let span = self.graph.nodes[consumer].span;
                match self.graph.nodes[consumer].kind {
                    Kind::Part => self.hand_over(&out),
                    _ => self.forward(id, consumer, &out, span),
                }
            } else {
                self.applies(consumer);
                // The key is made where the state is.
                if self.graph.nodes[consumer].kind.keyed() {
                    self.operators.extend(&self.graph.nodes[consumer].inputs);
                }
                self.operator(consumer)
            });
        }
        if self.graph.output == Some(id) {
            let out = self.borrow(local("to_caller"));
            branches.push(self.hand_over(&out));
        }
        let Some(last) = branches.pop() else { return TokenStream::new() };
        if branches.is_empty() {
            return last;
        }
        // The stream as the user calls it.
        let binding = self.graph.bindings.iter().find(|binding| binding.node == id);
        let span = binding.map_or(self.graph.nodes[id].span, |binding| binding.name.span());
        let (private, rec) = (private_at(here(span)), local_at("rec", span));
        let fork = quote_spanned!(here(span)=> #private::fork(&#rec));
        quote! {
            #({ let #rec = #fork; #branches })*
            #last
        }
    }

    /// Notes that the functions of `id` are applied here. With one subtask an exchange does nothing.
    fn applies(&mut self, id: NodeId) {
        if !(self.layout.single && self.graph.nodes[id].kind.exchange()) {
            self.operators.push(id);
        }
    }

    /// Into a helper function or out of it: its item types are written down, so records go as they are.
    fn hand_over(&self, out: &Ident) -> TokenStream {
        let private = private();
        self.send(out, &quote!(#private::Plain(#REC)))
    }

    fn forward(&self, from: NodeId, to: NodeId, out: &Ident, span: Span) -> TokenStream {
        self.send(out, &self.cargo(from, to, span))
    }

    fn send(&self, out: &Ident, record: &TokenStream) -> TokenStream {
        let target = local("target");
        quote!(let #target = #out.forward_or_rebalance(); #out.send(#target, #record);)
    }

    /// The closure, with what it captures. `cloned` are handles that other closures of the chain use too.
    fn closure(
        &self,
        parameter: &TokenStream,
        body: &TokenStream,
        first: &TokenStream,
        share: bool,
        elsewhere: &[NodeId],
    ) -> TokenStream {
        let private = private();
        let at = local("at");
        let handles = &self.handles;
        let results = self.results_of.into_iter().flat_map(|id| window::of_results(&self.graph.nodes[id]));
        let functions = functions(self.graph, &self.operators).chain(self.applied.iter().copied());
        let functions: Vec<_> = functions.chain(results).collect();
        let (before, inside) = captures(self.graph, &functions, elsewhere);
        let clone = share.then(|| quote!(#(let #handles = ::core::clone::Clone::clone(&#handles);)*));
        let settle = self.settles.iter().map(|(handle, id)| {
            let operator = self.index(*id);
            quote!(#at.enter(#operator); #at.check_waited(#handle.settle())?;)
        });
        let base = base(self.graph);
        let closure = quote! {
            move |#parameter| {
                #inside
                #(let mut #handles = #handles.borrow_mut();)*
                let mut #at = #private::At::start(#first);
                #body
                #(#settle)*
                ::core::result::Result::Ok(())
            }
        };
        let prepare = quote!(#clone #base #before);
        if prepare.is_empty() { closure } else { quote!({ #prepare #closure }) }
    }
}

/// Where the operators of a helper function begin at run time.
pub(super) fn base(graph: &Graph) -> Option<TokenStream> {
    (!graph.is_job()).then(|| {
        let (base, chain) = (local("base"), local("chain"));
        quote!(let #base = #chain.base();)
    })
}

/// The operator's number at run time.
pub(super) fn index(graph: &Graph, id: NodeId) -> TokenStream {
    let id = syn::Index::from(id);
    if graph.is_job() {
        quote!(#id)
    } else {
        let base = local("base");
        quote!((#base + #id))
    }
}

/// The edge and the output of a cut between two operators.
fn cut_name(graph: &Graph, from: NodeId, to: NodeId) -> Ident {
    local(&format!("to_{}_from_{}", handle_name(graph, to), handle_name(graph, from)))
}

/// The variable that holds the receiving end of an edge.
fn edge_name(output: &Ident) -> Ident {
    local(&format!("edge_{output}"))
}

/// The counter of an operator that skips records.
pub(super) fn skipped_name(graph: &Graph, id: NodeId) -> Ident {
    local(&format!("skipped_by_{}", handle_name(graph, id)))
}

fn parallelism(value: Option<usize>) -> TokenStream {
    match value {
        Some(value) => {
            let value = syn::Index::from(value);
            quote!(::core::option::Option::Some(#value))
        }
        None => quote!(::core::option::Option::None),
    }
}

/// The edges that `to` reads from: one, or several for a union or a helper function.
pub(super) fn incoming(graph: &Graph, layout: &Layout, to: NodeId) -> Vec<Ident> {
    let node = &graph.nodes[to];
    let cut = node.inputs.iter().filter(|from| layout.cuts(graph, **from, to));
    cut.map(|from| cut_edge(graph, *from, to)).collect()
}

fn cut_edge(graph: &Graph, from: NodeId, to: NodeId) -> Ident {
    let mut edge = edge_name(&cut_name(graph, from, to));
    edge.set_span(here(graph.nodes[to].span));
    edge
}

/// An input of a chain: the loop over what arrives there.
struct Entrance<'g> {
    edges: Vec<Ident>,
    /// Whether event time arrives with the records.
    timed: bool,
    main: Loop<'g>,
    body: TokenStream,
}

/// The inputs of a chain that has no source: one, or two if it begins with an operator that has so many.
fn entrances<'g>(graph: &'g Graph, layout: &'g Layout, root: Root) -> Vec<Entrance<'g>> {
    let entrance = |edges, timed, first: Option<NodeId>, body: &dyn Fn(&mut Loop<'g>) -> TokenStream| {
        let mut main = Loop::new(graph, layout);
        main.ahead = waits_at(graph, layout, root);
        first.into_iter().for_each(|id| main.applies(id));
        let body = body(&mut main);
        Entrance { edges, timed, main, body }
    };
    match root {
        Root::Before(id) if graph.nodes[id].kind.two_inputs() => {
            let inputs = sides(graph, id).map(|(side, from)| {
                let edge = match layout.straight(graph, from, id) {
                    true => outgoing(graph, from),
                    false => cut_edge(graph, from, id),
                };
                let timed = graph.takes_time_from(id, from);
                entrance(vec![edge], timed, None, &|main| main.enter(id, side))
            });
            inputs.collect()
        }
        Root::Before(id) => {
            let edges = incoming(graph, layout, id);
            vec![entrance(edges, graph.takes_time(id), Some(id), &|main| main.operator(id))]
        }
        Root::After(id) | Root::Source(id) => {
            let edges = vec![outgoing(graph, id)];
            vec![entrance(edges, graph.takes_time(id), None, &|main| main.children(id))]
        }
    }
}

/// The edge on which what comes out of `node` arrives.
pub(super) fn outgoing(graph: &Graph, node: NodeId) -> Ident {
    match &graph.nodes[node].input {
        Some(parameter) => parameter.clone(),
        None => edge_name(&handle_name(graph, node)),
    }
}

/// What is sent back from a helper function.
pub(super) fn to_caller() -> Ident {
    edge_name(&local("to_caller"))
}

/// The operators of the steps that follow.
pub(super) fn later(steps: &[Step]) -> Vec<NodeId> {
    steps
        .iter()
        .flat_map(|step| match step {
            Step::Chain(chain) => chain.operators.clone(),
            Step::Part(id) => vec![*id],
        })
        .collect()
}

pub(super) fn chain(graph: &Graph, layout: &Layout, chain: &Chain, later_steps: &[Step]) -> TokenStream {
    let (private, flow, variable) = (private(), local("flow"), local("chain"));
    let mut later = later(later_steps);
    // A key is made in the chain of the state, by the closure of the chain before.
    later.extend(
        later
            .clone()
            .iter()
            .filter(|id| graph.nodes[**id].kind.keyed())
            .flat_map(|id| &graph.nodes[*id].inputs),
    );

    let begin = match chain.root {
        Root::Source(id) | Root::After(id) | Root::Before(id) => id,
    };
    let mut entrances = entrances(graph, layout, chain.root);
    // What follows a window, a join, or an aggregate of a batch pipeline, is a loop of its own, and may contain further
    // ones.
    let mut finishes = Vec::new();
    let mut deferred = Vec::new();
    for entrance in &mut entrances {
        let own = std::mem::take(&mut entrance.main.deferred);
        deferred.extend(own.into_iter().filter(|id| !deferred.contains(id)).collect::<Vec<_>>());
    }
    while !deferred.is_empty() {
        let id = deferred.remove(0);
        let mut finish = Loop::new(graph, layout);
        let body = match graph.nodes[id].kind {
            kind if kind.window() => finish.fired(id),
            Kind::Join => finish.joined(id),
            kind if kind.asks() => finish.answered(id),
            kind if kind.processes() => finish.processed(id),
            _ => finish.results(id),
        };
        deferred.append(&mut finish.deferred);
        finishes.push((id, finish, body));
    }

    let share = !finishes.is_empty() || entrances.len() > 1;
    let behind: Vec<_> =
        finishes.iter().flat_map(|(id, finish, _)| finish.operators.iter().chain([id])).copied().collect();
    let (at, batch, slot) = (local("at"), local("batch"), local("slot"));
    let first = index(graph, begin);
    let source = entrances.iter().enumerate().map(|(i, Entrance { edges, timed, main, body })| {
        let after = entrances[i + 1..].iter().flat_map(|entrance| &entrance.main.operators);
        let others: Vec<_> = later.iter().chain(&behind).chain(after).copied().collect();
        if let Root::Source(id) = chain.root {
            let (records, body) = (quote!(#private::Batch::records(#batch)), quote!(#at.next(); #body));
            let loop_ = match main.ahead {
                Some(_) => main.split_loop(&records, &quote!(#REC), &body),
                None => quote!(for #REC in #records { #body }),
            };
            let closure = main.closure(&batch_parameter(&batch), &loop_, &first, share, &others);
            let source = &graph.nodes[id].arguments[0];
            let method = source_method(graph, id);
            let local_index = syn::Index::from(id);
            let source = match graph.options.mode {
                Mode::Batch => {
                    let (private, span) = (private_at(graph.nodes[id].span), graph.nodes[id].span);
                    quote_spanned!(span=> #private::bounded(#source))
                }
                Mode::Streaming => quote!(#source),
            };
            return quote!(#variable.#method(#local_index, #source, #closure););
        }
        let edges = match &edges[..] {
            [edge] => quote!(&#edge),
            edges => quote!(&[#(#edges),*]),
        };
        let input = method("input", graph.nodes[begin].span);
        let lent = if *timed { quote!((#TIME, #REC)) } else { quote!(#REC) };
        let body = quote! {
            let #lent = #slot.lend();
            #at.next();
            #body
        };
        let loop_ = match main.ahead {
            Some(_) => {
                let slots = local("slots");
                let split = main.split_loop(&quote!(#slots.iter_mut()), &quote!(#slot), &body);
                quote!(let mut #slots = #batch.all_slots(); #split)
            }
            None => quote!(for mut #slot in #batch.slots() { #body }),
        };
        let closure = main.closure(&batch_parameter(&batch), &loop_, &first, share, &others);
        let local_index = syn::Index::from(begin);
        quote!(#variable.#input(#local_index, #edges, #closure);)
    });
    let source: Vec<_> = source.collect();
    let mut seen: Vec<NodeId> =
        entrances.iter().flat_map(|entrance| entrance.main.operators.clone()).collect();
    let finish = finishes.iter().enumerate().map(|(i, (id, finish, body))| {
        let first = index(graph, *id);
        let mut others = later.clone();
        others
            .extend(finishes[i + 1..].iter().flat_map(|(id, finish, _)| finish.operators.iter().chain([id])));
        if graph.nodes[*id].kind.asks() {
            let turn = local("turn");
            let closure = finish.closure(&quote!(mut #turn), body, &first, true, &others);
            let (local_index, handle) = (syn::Index::from(*id), handle_name(graph, *id));
            let origin = match graph.takes_time(*id) {
                true => origin_before(graph, chain.root, *id),
                false => quote!(::core::option::Option::None),
            };
            return quote!(#variable.on_answers(#local_index, #origin, &#handle, #closure););
        }
        let kind = graph.nodes[*id].kind;
        if kind.window() || kind == Kind::Join || kind.processes() {
            let turn = local("turn");
            let closure = finish.closure(&quote!(mut #turn), body, &first, true, &others);
            let (local_index, origin) = (syn::Index::from(*id), origin(graph, chain.root, *id));
            let window = handle_name(graph, *id);
            others.push(*id);
            let late = window::late_function(graph, *id, &others);
            return quote!(#late #variable.on_watermark(#local_index, #origin, &#window, #closure););
        }
        let closure = finish.closure(&TokenStream::new(), body, &first, true, &others);
        quote!(#variable.finish(#closure);)
    });
    let finish: Vec<_> = finish.collect();
    seen.extend(finishes.iter().flat_map(|(_, finish, _)| finish.operators.clone()));

    let (handles, edges) = handles(graph, layout, chain, &seen);
    let own: Vec<_> = chain.operators.iter().map(|id| syn::Index::from(*id)).collect();
    let chain_parallelism = parallelism(chain.parallelism.filter(|_| !layout.single));
    let block = |edges| {
        quote! {{
            let mut #variable = #flow.chain(&[#(#own),*], #chain_parallelism);
            #handles
            #(#source)*
            #(#finish)*
            #edges
        }}
    };
    let edges = match &edges[..] {
        [] => return block(quote!()),
        [edge] => quote!(#edge),
        edges => quote!((#(#edges),*)),
    };
    let block = block(edges.clone());
    quote!(let #edges = #block;)
}

fn batch_parameter(batch: &Ident) -> TokenStream {
    quote!(#batch)
}

/// What the guarantee demands of a source is demanded by the method that takes it.
fn source_method(graph: &Graph, id: NodeId) -> Ident {
    let name = match graph.options.guarantee {
        Guarantee::AtMostOnce => "source",
        Guarantee::ExactlyOnce | Guarantee::AtLeastOnce => "rewindable_source",
    };
    method(name, graph.nodes[id].span)
}

/// The states, sinks, outputs and counters of a chain, and the edges that leave it.
fn handles(graph: &Graph, layout: &Layout, chain: &Chain, seen: &[NodeId]) -> (TokenStream, Vec<Ident>) {
    let variable = local("chain");
    let (mut handles, mut edges) = (TokenStream::new(), Vec::new());
    let mut output = |name: &Ident,
                      span: Span,
                      forward: Option<bool>,
                      time: Option<TokenStream>,
                      receivers: Option<usize>| {
        let edge = edge_name(name);
        let receivers = parallelism(receivers.filter(|_| !layout.single));
        edges.push(edge.clone());
        let (output, forward) = match (forward, time) {
            (Some(forward), Some(origin)) => (method("timed_output", span), quote!(#origin, #forward,)),
            (Some(forward), None) => (method("output", span), quote!(#forward,)),
            (None, _) => (method("hand_over", span), quote!()),
        };
        quote!(let (#name, #edge) = #variable.#output(#forward #receivers);)
    };
    // With the records that go into `to`.
    let time = |from, to| graph.takes_time_from(to, from).then(|| origin(graph, chain.root, from));
    let mut senders: Vec<NodeId> = chain.operators.clone();
    if let Root::After(id) = chain.root {
        senders.push(id);
    }
    for &id in &chain.operators {
        let node = &graph.nodes[id];
        let (name, local_index) = (handle_name(graph, id), syn::Index::from(id));
        match node.kind {
            Kind::Sink => {
                let sink = &node.arguments[0];
                let add = match graph.options.guarantee {
                    Guarantee::ExactlyOnce => method("exactly_once_sink", node.span),
                    _ => method("sink", node.span),
                };
                handles.extend(quote!(let #name = #variable.#add(#local_index, #sink);));
            }
            Kind::Watermarks => {
                let (watermarks, of_source) =
                    (method("watermarks", node.span), matches!(chain.root, Root::Source(_)));
                let strategy = &node.arguments[0];
                handles
                    .extend(quote!(let #name = #variable.#watermarks(#local_index, #of_source, #strategy);));
            }
            kind if kind.window() => handles.extend(window::make(graph, id, &variable)),
            Kind::Join => handles.extend(join::make(graph, id, &variable)),
            kind if kind.asks() => handles.extend(answer::make(graph, id, &variable)),
            kind if kind.processes() => handles.extend(process::make(graph, id, &variable)),
            Kind::BroadcastJoin => handles.extend(join::make_broadcast(graph, id, &variable)),
            kind if kind.keyed() => {
                let keyed = local_at("keyed", node.span);
                handles.extend(quote!(let #name = #variable.#keyed(#local_index);));
            }
            kind if kind.exchange() && !layout.single => {
                let forward = Some(kind == Kind::Forward);
                let time = graph.takes_time(id).then(|| origin(graph, chain.root, id));
                let declare = output(&name, node.span, forward, time, graph.receivers(id));
                handles.extend(declare);
            }
            _ => {}
        }
        if skips(node, graph.options.on_error) {
            let counter = skipped_name(graph, id);
            handles.extend(quote!(let #counter = #variable.skipped(#local_index);));
        }
        if node.kind == Kind::Fold {
            let (initial, value) = (local(&format!("initial_{id}")), &node.arguments[0]);
            handles.extend(quote!(let #initial = #value;));
        }
    }
    for id in dedup(seen) {
        let node = &graph.nodes[id];
        if node.kind == Kind::Sink || node.kind.processes() {
            continue;
        }
        for (i, argument) in node.arguments.iter().enumerate() {
            if matches!(node.kind, Kind::Fold | Kind::Watermarks) && i == 0 {
                continue;
            }
            if let Some(name) = bound_function(id, i, argument) {
                handles.extend(quote!(let mut #name = #argument;));
            }
        }
    }
    // What leaves by an exchange is sent on, or handed over, behind it.
    senders.retain(|from| !layout.ends(graph, *from) || chain.root == Root::After(*from));
    for from in senders {
        for to in graph.consumers(from).filter(|to| layout.cuts(graph, from, *to)) {
            let receivers = match graph.nodes[to].kind.exchange() {
                // An exchange runs in the chain that sends.
                true => graph.nodes[from].parallelism,
                false => graph.nodes[to].parallelism,
            };
            let forward = (graph.nodes[to].kind != Kind::Part).then_some(true);
            let declare =
                output(&cut_name(graph, from, to), graph.nodes[to].span, forward, time(from, to), receivers);
            handles.extend(declare);
        }
        if graph.output == Some(from) {
            let declare = output(&local("to_caller"), graph.nodes[from].span, None, None, None);
            handles.extend(declare);
        }
    }
    (handles, edges)
}

/// The `.watermarks(..)` of this chain by which the event time of what comes out of `node` goes; none if it arrives
/// with the records.
fn origin(graph: &Graph, root: Root, mut node: NodeId) -> TokenStream {
    loop {
        let kind = graph.nodes[node].kind;
        if kind == Kind::Watermarks || kind.asks() {
            let node = syn::Index::from(node);
            return quote!(::core::option::Option::Some(#node));
        }
        match (root, graph.nodes[node].inputs.first()) {
            (Root::Before(first) | Root::After(first) | Root::Source(first), _) if first == node => break,
            (_, Some(&input)) => node = input,
            (_, None) => break,
        }
    }
    quote!(::core::option::Option::None)
}

/// As [`origin`], for what goes into `node`.
fn origin_before(graph: &Graph, root: Root, node: NodeId) -> TokenStream {
    match (root, graph.nodes[node].inputs.first()) {
        (Root::Before(first), _) if first == node => quote!(::core::option::Option::None),
        (_, Some(&input)) => origin(graph, root, input),
        (_, None) => quote!(::core::option::Option::None),
    }
}

fn dedup(ids: &[NodeId]) -> Vec<NodeId> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
