//! From chains to tokens: one loop per chain, one line per operator, and one call for everything else.

mod ahead;
mod answer;
mod apart;
mod capture;
mod chain;
mod fallback;
mod inputs;
mod join;
mod operator;
mod part;
mod plan;
mod process;
mod split;
mod time;
mod window;

pub(crate) use fallback::fallback;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{ItemFn, Stmt};

use crate::{
    fuse::{Forms, Layout, Step},
    graph::Graph,
    names::{local, private, private_at},
    parse::{Parameter, bound},
    vocab::Kind,
};

/// The whole function.
pub(crate) fn function(function: &ItemFn, forms: &Forms) -> TokenStream {
    let graph = &forms.graph;
    let definition = definition(function, &plan::plan(graph, forms));
    let wiring = wiring(forms);
    let function =
        if graph.is_job() { job(function, graph, &wiring) } else { part::part(function, graph, &wiring) };
    quote!(#definition #function)
}

/// The type of the function's name, which carries its plan.
fn definition(function: &ItemFn, plan: &TokenStream) -> TokenStream {
    let private = private();
    let (vis, name) = (&function.vis, &function.sig.ident);
    let doc = format!(" The plan of the pipeline [`{name}`](fn@{name}).");
    quote! {
        #[doc = #doc]
        #[allow(dead_code, non_camel_case_types)]
        #vis enum #name {}
        impl #private::Definition for #name {
            const PLAN: &'static #private::Plan = #plan;
        }
    }
}

/// A pipeline becomes a function that returns a job.
fn job(function: &ItemFn, graph: &Graph, wiring: &TokenStream) -> TokenStream {
    let private = private();
    let (attrs, vis, name, inputs) =
        (&function.attrs, &function.vis, &function.sig.ident, &function.sig.inputs);
    let (impl_generics, _, where_clause) = function.sig.generics.split_for_impl();
    let flow = local("flow");
    let plain = plain(graph);
    let parameters = &graph.signature.parameters;
    let choices = choices(graph);
    // Each worker wires the job for itself, and again after a failure.
    let keep = parameters.iter().map(keep);
    let lend = parameters.iter().map(lend);
    quote! {
        #(#attrs)*
        #vis fn #name #impl_generics (#inputs) -> #private::Job<#name> #where_clause {
            #(#keep)*
            #private::Job::new(move |#flow: &mut #private::Wiring| {
                #choices
                #(#lend)*
                #plain
                #wiring
            })
        }
    }
}

/// The statements that are not about streams. A closure that changes a variable of theirs works on its chain's own.
fn plain(graph: &Graph) -> TokenStream {
    graph
        .plain
        .iter()
        .map(|statement| {
            let changed =
                matches!(statement, Stmt::Local(local) if bound(&local.pat).iter().any(|name| name.mutable));
            let allow = changed.then(|| quote!(#[allow(unused_mut)]));
            quote!(#allow #statement)
        })
        .collect()
}

/// The traits whose methods choose how a record is owned.
fn choices(graph: &Graph) -> TokenStream {
    let private = private();
    let windows = graph.nodes.iter().any(|node| node.window.is_some() || node.kind.two_inputs() || node.kind.processes()).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #private::{
                BarePlain as _, BareRecord as _, LendPlain as _, LendPlains as _, LendRecord as _, LendRecords as _,
            };
        }
    });
    let watermarks = graph.nodes.iter().any(|node| node.kind == Kind::Watermarks).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #private::WatermarkStrategy as _;
        }
    });
    let answers = graph.nodes.iter().any(|node| node.kind.asks()).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #private::{AnswerFallible as _, AnswerPlain as _, BarePlain as _, BareRecord as _};
        }
    });
    quote! {
        #[allow(unused_imports)]
        use #private::{OwnPlain as _, OwnRecord as _, WitnessPlain as _, WitnessRecord as _};
        #watermarks
        #windows
        #answers
    }
}

/// Owns a parameter for as long as the job lives.
fn keep(parameter: &Parameter) -> TokenStream {
    let name = &parameter.name;
    let (private, span) = (private_at(name.span()), name.span());
    let reference = parameter.referent().is_none().then(|| quote_spanned!(span=> &));
    let kept = quote_spanned!(span=> #private::keep(#reference #name));
    quote!(let #name = #kept;)
}

/// Gives the wiring the parameter in its declared type.
fn lend(parameter: &Parameter) -> TokenStream {
    let (name, ty) = (&parameter.name, &parameter.ty);
    match parameter.referent() {
        Some(_) => quote!(let #name: #ty = ::core::borrow::Borrow::borrow(&#name);),
        None => quote!(let #name = ::core::clone::Clone::clone(&#name);),
    }
}

/// The wiring of both forms.
fn wiring(forms: &Forms) -> TokenStream {
    let single = steps(&forms.graph, &forms.single);
    let Some(split) = &forms.split else { return single };
    let split = steps(&forms.graph, split);
    let explicit = forms.graph.explicit();
    let flow = local("flow");
    quote! {
        if #flow.single(&[#(#explicit),*]) {
            #single
        } else {
            #split
        }
    }
}

fn steps(graph: &Graph, layout: &Layout) -> TokenStream {
    let steps = layout.steps.iter().enumerate().map(|(i, step)| match step {
        Step::Chain(chain) => chain::chain(graph, layout, chain, &layout.steps[i + 1..]),
        Step::Part(id) => part::call(graph, layout, *id, &layout.steps[i + 1..]),
    });
    let result = part::result(graph);
    quote!(#(#steps)* #result)
}
