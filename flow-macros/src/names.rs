//! Identifiers in generated code, and its one path into the runtime.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;

/// The private door of the runtime.
pub(crate) fn private() -> TokenStream {
    private_at(Span::call_site())
}

/// The same, reported at `span`.
pub(crate) fn private_at(span: Span) -> TokenStream {
    quote_spanned!(span=> ::flow::__private)
}

/// Generated code that is reported at `span`.
pub(crate) fn here(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// A local of generated code: invisible to the user's closures, and they to it.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The same, reported at `span` when rustc has something to say about it.
pub(crate) fn local_at(name: &str, span: Span) -> Ident {
    Ident::new(name, here(span))
}

/// A method of the runtime, called on behalf of the word at `span` with arguments of the user's own: rustc speaks of
/// that word as if the user had called the method. With generated arguments [`local_at`] is right, since rustc blames
/// an argument only where it and the method come from the same place.
pub(crate) fn method(name: &str, span: Span) -> Ident {
    Ident::new(name, span)
}

/// A local named after an operator.
pub(crate) fn of_uid(prefix: &str, uid: &str) -> Ident {
    let mut name = String::from(prefix);
    for c in uid.chars() {
        name.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    local(&name)
}
