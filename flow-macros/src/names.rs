//! Identifiers in generated code, and its one path into the runtime.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The private door of the runtime.
pub(crate) fn private() -> TokenStream {
    quote!(::flow::__private)
}

/// A local of generated code: invisible to the user's closures, and they to it.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The same, reported at `span` when rustc has something to say about it.
pub(crate) fn local_at(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(span))
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
