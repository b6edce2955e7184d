//! What kind of function is annotated: a pipeline, or a part of one.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    FnArg, GenericArgument, ItemFn, Pat, PathArguments, ReturnType, Safety, Type, TypeReference, visit::Visit,
};

use crate::diag::Errors;

/// The function's name and parameters.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: Ident,
    pub(crate) shape: Shape,
    pub(crate) parameters: Vec<Parameter>,
}

/// What it makes.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A job.
    Job,
    /// A helper from stream to stream.
    Part { inputs: Vec<Ident> },
}

/// A parameter that is no stream.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl Parameter {
    /// The type behind `&`, if the parameter is a reference.
    pub(crate) fn referent(&self) -> Option<&Type> {
        match &self.ty {
            Type::Reference(reference) => Some(&reference.elem),
            _ => None,
        }
    }
}

pub(super) fn parse(function: &ItemFn, errors: &mut Errors) -> Signature {
    let signature = &function.sig;
    if let Some(token) = &signature.asyncness {
        errors
            .at(token, "a pipeline is wired, not awaited")
            .help("remove `async`: sources and sinks do their I/O when the job runs");
    }
    if let Some(token) = &signature.constness {
        errors.at(token, "a pipeline cannot be `const`").help("remove `const`");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        errors.at(token, "a pipeline cannot be `unsafe`").help("remove `unsafe`");
    }
    owned_items(signature, errors);
    let (mut inputs, mut parameters) = (Vec::new(), Vec::new());
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors
                    .at(receiver, "a pipeline is a function of its own, not a method")
                    .help("pass what it needs of `self` as an argument");
            }
            FnArg::Typed(typed) => {
                let Pat::Ident(pattern) = &*typed.pat else {
                    errors
                        .at(&typed.pat, "a parameter of a pipeline is a plain name")
                        .help("take it apart inside");
                    continue;
                };
                if stream_item(&typed.ty).is_some() {
                    inputs.push(pattern.ident.clone());
                } else {
                    parameters.push(Parameter { name: pattern.ident.clone(), ty: (*typed.ty).clone() });
                }
            }
        }
    }
    let shape = match (&signature.output, inputs.is_empty()) {
        (ReturnType::Default, true) => Shape::Job,
        (ReturnType::Type(_, ty), false) => match stream_item(ty) {
            Some(_) => Shape::Part { inputs },
            None => {
                errors
                    .at(ty, "a helper function that takes a stream returns one")
                    .help("-> Stream<Item>, with the type of the items");
                Shape::Job
            }
        },
        (ReturnType::Type(_, ty), true) => {
            if stream_item(ty).is_some() {
                errors
                    .at(ty, "a helper function that returns a stream takes one")
                    .help("write `source(..)` in the pipeline itself, and pass the stream");
            } else {
                errors
                    .at(ty, "a pipeline has no return type")
                    .help(format!("remove it: what `{}` gives is a `flow::Job`", signature.ident));
            }
            Shape::Job
        }
        (ReturnType::Default, false) => {
            errors
                .at(&signature.ident, format!("helper function `{}` returns no stream", signature.ident))
                .help("-> Stream<Item>, and end its body with a stream");
            Shape::Job
        }
    };
    Signature { name: signature.ident.clone(), shape, parameters }
}

/// A helper function is a chain of its own, and what is handed over to it outlives the chain before.
fn owned_items(signature: &syn::Signature, errors: &mut Errors) {
    struct Borrow<'a>(Option<&'a TypeReference>);
    impl<'a> Visit<'a> for Borrow<'a> {
        fn visit_type_reference(&mut self, reference: &'a TypeReference) {
            self.0.get_or_insert(reference);
        }
    }
    let mut borrow = Borrow(None);
    let inputs = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => stream_item(&typed.ty),
        FnArg::Receiver(_) => None,
    });
    let output = match &signature.output {
        ReturnType::Type(_, ty) => stream_item(ty),
        ReturnType::Default => None,
    };
    inputs.chain(output).for_each(|item| borrow.visit_type(item));
    if let Some(reference) = borrow.0 {
        errors.at(reference, "the items of a helper function's streams cannot borrow").help(
            "own them, as in `Stream<String>`, and call `.map(|item| item.to_owned())` before the helper",
        );
    }
}

/// The item type of `Stream<Item>`.
pub(crate) fn stream_item(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    if last.ident != "Stream" {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(item)) if arguments.args.len() == 1 => Some(item),
        _ => None,
    }
}

impl ToTokens for Parameter {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        self.name.to_tokens(tokens);
    }
}
