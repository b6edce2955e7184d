//! The ordinary variables of a pipeline, and which of them an expression mentions.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Pat, PatIdent, visit::Visit};

/// A variable that closures may capture.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: Ident,
    pub(crate) mutable: bool,
}

/// The variables that a pattern binds.
pub(super) fn bound(pattern: &Pat) -> Vec<Local> {
    struct Binder(Vec<Local>);
    impl<'ast> Visit<'ast> for Binder {
        fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
            let name = pattern.ident.clone();
            // `None`, `MAX`: a constant or a unit variant, not a variable.
            if !name.to_string().starts_with(|c: char| c.is_ascii_uppercase()) {
                self.0.push(Local { name, mutable: pattern.mutability.is_some() });
            }
            syn::visit::visit_pat_ident(self, pattern);
        }
    }
    let mut binder = Binder(Vec::new());
    binder.visit_pat(pattern);
    binder.0
}

/// Whether the tokens mention `name`, also inside a format string.
pub(crate) fn mentioned(name: &Ident, tokens: &impl ToTokens) -> bool {
    in_tokens(&name.to_string(), tokens.to_token_stream())
}

fn in_tokens(name: &str, tokens: TokenStream) -> bool {
    let mut after_dot = false;
    for token in tokens {
        let found = match &token {
            // A field or method of this name is no variable.
            TokenTree::Ident(ident) => !after_dot && ident == name,
            TokenTree::Group(group) => in_tokens(name, group.stream()),
            TokenTree::Literal(literal) => captured_by_format(name, &literal.to_string()),
            TokenTree::Punct(_) => false,
        };
        if found {
            return true;
        }
        after_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.' && !after_dot);
    }
    false
}

/// `"{name}"`, `"{name:?}"`.
fn captured_by_format(name: &str, literal: &str) -> bool {
    literal.starts_with(['"', 'r'])
        && literal.match_indices('{').any(|(at, _)| {
            literal[at + 1..]
                .strip_prefix(name.trim_start_matches("r#"))
                .is_some_and(|rest| rest.starts_with(['}', ':']))
        })
}

#[cfg(test)]
mod tests {
    use quote::{format_ident, quote};

    use super::*;

    #[test]
    fn finds_variables_but_not_fields() {
        let limit = format_ident!("limit");
        assert!(mentioned(&limit, &quote!(|x| x > limit)));
        assert!(mentioned(&limit, &quote!(|x| vec![limit; x])));
        assert!(mentioned(&limit, &quote!(|x| format!("{x} of {limit:?}"))));
        assert!(!mentioned(&limit, &quote!(|x| x.limit)));
        assert!(mentioned(&limit, &quote!(0..limit)));
    }
}
