//! The plan as a constant.

use std::time::Duration;

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::Index;

use crate::{
    fuse::{Forms, Layout, Step},
    graph::{Graph, Node, NodeId},
    names::{local, private},
    parse::{Checkpoint, Compression, Guarantee, Mode, Restart, Retention},
    vocab::Kind,
};

pub(super) fn plan(graph: &Graph, forms: &Forms) -> TokenStream {
    let private = private();
    let options = &graph.options;
    let name = &options.name;
    let (guarantee, mode) = (guarantee(graph), mode(graph));
    let (checkpoint, restart) = (checkpoint(&options.checkpoint), restart(options.restart));
    let (parallelism, max_parallelism) = (option(options.parallelism), option(options.max_parallelism));
    let layout = forms.split.as_ref().unwrap_or(&forms.single);
    let operators = graph.nodes.iter().enumerate().map(|(id, _)| operator(graph, layout, id));
    let edges = graph.nodes.iter().enumerate().flat_map(|(to, node)| {
        node.inputs.iter().map(move |&from| {
            let (private, ship) = (crate::names::private(), local(graph.nodes[from].kind.ship()));
            let (from, to) = (Index::from(from), Index::from(to));
            quote!(#private::EdgePlan::new(#from, #to, #private::Ship::#ship))
        })
    });
    quote! {
        &#private::Plan {
            name: #name,
            guarantee: #guarantee,
            mode: #mode,
            checkpoint: #checkpoint,
            restart: #restart,
            parallelism: #parallelism,
            max_parallelism: #max_parallelism,
            operators: &[#(#operators),*],
            edges: &[#(#edges),*],
        }
    }
}

/// The guarantee, as the runtime calls it.
pub(super) fn guarantee(graph: &Graph) -> TokenStream {
    let private = private();
    match graph.options.guarantee {
        Guarantee::ExactlyOnce => quote!(#private::Guarantee::ExactlyOnce),
        Guarantee::AtLeastOnce => quote!(#private::Guarantee::AtLeastOnce),
        Guarantee::AtMostOnce => quote!(#private::Guarantee::AtMostOnce),
    }
}

/// The mode, as the runtime calls it.
pub(super) fn mode(graph: &Graph) -> TokenStream {
    let private = private();
    match graph.options.mode {
        Mode::Streaming => quote!(#private::Mode::Streaming),
        Mode::Batch => quote!(#private::Mode::Batch),
    }
}

fn operator(graph: &Graph, layout: &Layout, id: NodeId) -> TokenStream {
    let private = private();
    let node = &graph.nodes[id];
    let (uid, kind) = (&node.uid, kind(node));
    let chain = layout.steps.iter().position(|step| match step {
        Step::Chain(chain) => {
            chain.operators.contains(&id)
                || (node.kind == Kind::Input && chain.root == crate::fuse::Root::After(id))
        }
        Step::Part(part) => *part == id,
    });
    let chain = Index::from(chain.unwrap_or(0));
    let name = node.name.as_ref().map(|name| quote!(.name(#name)));
    let parallelism = node.parallelism.map(Index::from).map(|n| quote!(.parallelism(#n)));
    let stateful = node.kind.stateful().then(|| quote!(.stateful()));
    let operator_state =
        (matches!(node.kind, Kind::Process | Kind::CoProcess | Kind::BroadcastProcess | Kind::BroadcastJoin)
            || node.kind.asks())
        .then(|| quote!(.operator_state()));
    let part = node.part.as_ref().map(|path| quote!(.part(<#path as #private::Definition>::PLAN)));
    quote!(#private::OperatorPlan::new(#uid, #kind, #chain) #name #parallelism #stateful #operator_state #part)
}

/// As it is called in plans. What meets in a join, or what is computed of a window decides what its state is.
fn kind(node: &Node) -> String {
    match &node.window {
        Some(_) if node.join.is_some() => format!("window_{}", node.word()),
        None if node.word() == "interval_join" => node.word().to_owned(),
        None if node.join.is_some() => format!("interval_{}", node.word()),
        Some(window) => format!("{}_{}", node.kind.name(), window.name()),
        None => node.kind.name().to_owned(),
    }
}

fn checkpoint(said: &Checkpoint) -> TokenStream {
    let private = private();
    let interval = said.interval.map(time).map(|time| quote!(.interval(#time)));
    let timeout = said.timeout.map(time).map(|time| quote!(.timeout(#time)));
    let min_pause = said.min_pause.map(time).map(|time| quote!(.min_pause(#time)));
    let max_concurrent = said.max_concurrent.map(number).map(|n| quote!(.max_concurrent(#n)));
    let tolerable = said.tolerable_failures.map(number).map(|n| quote!(.tolerable_failures(#n)));
    let retain = said.retain.map(number).map(|n| quote!(.retain(#n)));
    let compression = said.compression.map(|compression| {
        let name = local(match compression {
            Compression::None => "None",
            Compression::Zstd => "Zstd",
        });
        quote!(.compression(#private::Compression::#name))
    });
    let retention = |retention| {
        let name = local(match retention {
            Retention::Retain => "Retain",
            Retention::Delete => "Delete",
        });
        quote!(#private::Retention::#name)
    };
    let on_cancel = said.on_cancel.map(retention).map(|what| quote!(.on_cancel(#what)));
    let on_success = said.on_success.map(retention).map(|what| quote!(.on_success(#what)));
    quote! {
        #private::CheckpointPlan::new()
            #interval #timeout #min_pause #max_concurrent #tolerable #retain #compression #on_cancel #on_success
    }
}

fn restart(restart: Option<Restart>) -> TokenStream {
    let private = private();
    let Some(restart) = restart else { return quote!(::core::option::Option::None) };
    // What the pipeline does not say is as the runtime has it.
    let usual = |name: &str| {
        let name = local(name);
        quote!(#private::Restart::#name)
    };
    let count = |count: Option<u32>, name| count.map(number).map_or_else(|| usual(name), |n| quote!(#n));
    let pause = |pause: Option<Duration>, name| pause.map_or_else(|| usual(name), time);
    let strategy = match restart {
        Restart::Never => quote!(Never),
        Restart::FixedDelay { attempts, delay } => {
            let (attempts, delay) = (count(attempts, "ATTEMPTS"), pause(delay, "DELAY"));
            quote!(FixedDelay { attempts: #attempts, delay: #delay })
        }
        Restart::Exponential { attempts, initial, max, multiplier, reset_after } => {
            let (attempts, initial) = (count(attempts, "ATTEMPTS"), pause(initial, "INITIAL"));
            let (max, reset_after) = (pause(max, "MAX"), pause(reset_after, "RESET_AFTER"));
            let multiplier = multiplier.map_or_else(|| usual("MULTIPLIER"), |factor| quote!(#factor));
            quote! {
                Exponential {
                    attempts: #attempts,
                    initial: #initial,
                    max: #max,
                    multiplier: #multiplier,
                    reset_after: #reset_after,
                }
            }
        }
        Restart::FailureRate { max, per, delay } => {
            let (max, per, delay) = (number(max), time(per), pause(delay, "DELAY"));
            quote!(FailureRate { max: #max, per: #per, delay: #delay })
        }
    };
    quote!(::core::option::Option::Some(#private::Restart::#strategy))
}

fn time(time: Duration) -> TokenStream {
    let milliseconds = Literal::u64_unsuffixed(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    quote!(::core::time::Duration::from_millis(#milliseconds))
}

fn number(number: u32) -> Literal {
    Literal::u32_unsuffixed(number)
}

fn option(value: Option<usize>) -> TokenStream {
    match value {
        Some(value) => {
            let value = Index::from(value);
            quote!(::core::option::Option::Some(#value))
        }
        None => quote!(::core::option::Option::None),
    }
}
