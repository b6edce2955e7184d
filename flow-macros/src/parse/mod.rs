//! From tokens to options, ordinary statements and method chains over streams. No semantics yet.

mod body;
mod checkpoint;
mod locals;
mod options;
mod restart;
mod setting;
mod signature;
pub(crate) mod span;

pub(crate) use body::{Bound, Call, Chain, Root, Statement, Streams, is_source};
pub(crate) use checkpoint::{Checkpoint, Compression, Retention};
pub(crate) use locals::{Local, bound, mentioned};
pub(crate) use options::{Guarantee, Mode, Options, Policy, Time, choose, duration, integer};
pub(crate) use restart::Restart;
pub(crate) use signature::{Parameter, Shape, Signature, stream_item};

use proc_macro2::{Ident, TokenStream};
use syn::ItemFn;

use crate::diag::Errors;

/// A function under `#[pipeline]`, taken apart.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) options: Options,
    pub(crate) signature: Signature,
    pub(crate) statements: Vec<Statement>,
    pub(crate) locals: Vec<Local>,
}

/// The names of the streams in a function that may not be right otherwise.
pub(crate) fn streams(function: &ItemFn) -> Vec<Ident> {
    let signature = signature::parse(function, &mut Errors::default());
    body::streams(function, &signature)
}

/// Parses attribute and function.
pub(crate) fn pipeline(options: TokenStream, function: &ItemFn) -> Result<Pipeline, Errors> {
    let mut errors = Errors::default();
    let signature = signature::parse(function, &mut errors);
    let options = options::parse(options, &signature, &mut errors);
    let (statements, locals) = body::parse(function, &signature, &mut errors);
    errors.finish(Pipeline { options, signature, statements, locals })
}
