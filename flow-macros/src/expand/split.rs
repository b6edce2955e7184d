//! Several outputs: each is a branch, with everything that follows it in place.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{chain::Loop, operator::REC};
use crate::{
    graph::NodeId,
    names::{here, local, local_at, private, private_at},
};

/// The outputs of a `split`, in order.
const VARIANTS: [&str; 4] = ["First", "Second", "Third", "Fourth"];

impl Loop<'_> {
    /// What follows one output of an operator: of one that has a single output, everything after it, and nothing where
    /// nobody reads the output.
    pub(super) fn output(&mut self, id: NodeId, index: usize) -> TokenStream {
        match (self.graph.nodes[id].named, self.graph.branch(id, index)) {
            (None, _) if index == 0 => self.children(id),
            (_, Some(branch)) => {
                self.operators.push(branch);
                self.children(branch)
            }
            _ => TokenStream::new(),
        }
    }

    /// Whether anybody reads an output of an operator.
    pub(super) fn reads(&self, id: NodeId, index: usize) -> bool {
        self.graph.branch(id, index).is_some() || (index == 0 && self.graph.nodes[id].named.is_none())
    }

    /// Gives the record to the output that the closure chose.
    pub(super) fn split(&mut self, id: NodeId) -> TokenStream {
        let node = &self.graph.nodes[id];
        let (private, outputs) = (private(), node.named.unwrap_or_default());
        let choice = local(&format!("Split{outputs}"));
        // What is wrong with the choice is wrong with the closure.
        let span = node.arguments.first().map_or(node.span, Spanned::span);
        let (choose, door) = (local_at(&format!("choice_of_{outputs}"), span), private_at(here(span)));
        let arms: Vec<_> = (0..outputs)
            .zip(VARIANTS)
            .map(|(index, variant)| {
                let (variant, rec) = (local_at(variant, node.span), REC);
                let next = self.output(id, index);
                let bound = if self.reads(id, index) { quote!(#rec) } else { quote!(_) };
                quote!(#private::#choice::#variant(#bound) => { #next })
            })
            .collect();
        self.value(id, quote!(#REC), None, |value| {
            let choice = quote_spanned!(here(span)=> #door::#choose(#value));
            quote!(match #choice { #(#arms)* })
        })
    }
}
