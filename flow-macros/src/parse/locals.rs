//! The ordinary variables of a pipeline, and which names an expression speaks of.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Arm, Block, Expr, ExprClosure, ExprForLoop, ExprLet, ExprPath, Pat, PatIdent,
    ext::IdentExt,
    visit::{self, Visit},
};

/// A variable that closures may capture.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: Ident,
    pub(crate) mutable: bool,
}

/// The variables that a pattern binds.
pub(crate) fn bound(pattern: &Pat) -> Vec<Local> {
    struct Binder(Vec<Local>);
    impl<'ast> Visit<'ast> for Binder {
        fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
            let name = pattern.ident.clone();
            // `None`, `MAX`: a constant or a unit variant, not a variable.
            if !name.unraw().to_string().starts_with(|c: char| c.is_ascii_uppercase()) {
                self.0.push(Local { name, mutable: pattern.mutability.is_some() });
            }
            visit::visit_pat_ident(self, pattern);
        }
    }
    let mut binder = Binder(Vec::new());
    binder.visit_pat(pattern);
    binder.0
}

/// Whether the expression speaks of the variable `name`, and not of another one of that name that it binds itself.
pub(crate) fn mentioned(name: &Ident, expression: &Expr) -> bool {
    let mut mentions = Mentions::of(vec![name.clone()]);
    mentions.visit_expr(expression);
    mentions.found.is_some()
}

/// Looks for the first mention of one of several names.
#[derive(Debug)]
pub(super) struct Mentions {
    /// The names that are not hidden here by a pattern.
    names: Vec<Ident>,
    /// Where, and which.
    pub(super) found: Option<(Span, Ident)>,
}

impl Mentions {
    pub(super) fn of(names: Vec<Ident>) -> Self {
        Mentions { names, found: None }
    }

    /// What a pattern binds is another variable of that name.
    fn hide(&mut self, pattern: &Pat) {
        let hidden = bound(pattern);
        self.names.retain(|name| hidden.iter().all(|local| local.name != *name));
    }

    /// Patterns hide names up to the end of the scope.
    fn scope(&mut self, visit: impl FnOnce(&mut Self)) {
        let names = self.names.clone();
        visit(self);
        self.names = names;
    }
}

impl<'ast> Visit<'ast> for Mentions {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(name) = path.path.get_ident().filter(|name| self.names.contains(name)) {
            self.found.get_or_insert((name.span(), name.clone()));
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = self.names.iter().find(|name| in_tokens(name, call.tokens.clone())) {
            let span = call.path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
            self.found.get_or_insert((span, name.clone()));
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.scope(|mentions| {
            closure.inputs.iter().for_each(|pattern| mentions.hide(pattern));
            visit::visit_expr_closure(mentions, closure);
        });
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.scope(|mentions| visit::visit_block(mentions, block));
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        self.scope(|mentions| {
            mentions.hide(&arm.pat);
            visit::visit_arm(mentions, arm);
        });
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        self.hide(&local.pat);
    }

    fn visit_expr_let(&mut self, condition: &'ast ExprLet) {
        visit::visit_expr_let(self, condition);
        self.hide(&condition.pat);
    }

    fn visit_expr_for_loop(&mut self, repeat: &'ast ExprForLoop) {
        self.visit_expr(&repeat.expr);
        self.scope(|mentions| {
            mentions.hide(&repeat.pat);
            mentions.visit_block(&repeat.body);
        });
    }
}

/// Whether a macro's tokens mention `name`, also inside a format string. What they bind is unknown.
fn in_tokens(name: &Ident, tokens: TokenStream) -> bool {
    let mut after_dot = false;
    for token in tokens {
        let found = match &token {
            // A field or method of this name is no variable.
            TokenTree::Ident(ident) => !after_dot && ident == name,
            TokenTree::Group(group) => in_tokens(name, group.stream()),
            TokenTree::Literal(literal) => {
                captured_by_format(&name.unraw().to_string(), &literal.to_string())
            }
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
            literal[at + 1..].strip_prefix(name).is_some_and(|rest| rest.starts_with(['}', ':']))
        })
}

#[cfg(test)]
mod tests {
    use quote::format_ident;
    use syn::parse_quote;

    use super::*;

    fn limit_in(expression: &Expr) -> bool {
        mentioned(&format_ident!("limit"), expression)
    }

    #[test]
    fn finds_variables_but_not_fields() {
        assert!(limit_in(&parse_quote!(|x| x > limit)));
        assert!(limit_in(&parse_quote!(|x| vec![limit; x])));
        assert!(limit_in(&parse_quote!(|x| format!("{x} of {limit:?}"))));
        assert!(limit_in(&parse_quote!(|x| Range { limit })));
        assert!(!limit_in(&parse_quote!(|x| x.limit)));
        assert!(limit_in(&parse_quote!(0..limit)));
    }

    #[test]
    fn another_variable_of_the_same_name_is_another_variable() {
        assert!(!limit_in(&parse_quote!(|limit| limit + 1)));
        assert!(!limit_in(&parse_quote!(|(limit, _)| limit.clone())));
        assert!(limit_in(&parse_quote!(|x| x.map(|limit| limit + 1) + limit)));
        assert!(!limit_in(&parse_quote!(|x| {
            let limit = x;
            limit
        })));
        assert!(limit_in(&parse_quote!(|x| {
            let limit = limit + x;
            limit
        })));
        assert!(!limit_in(&parse_quote!(|x| if let Some(limit) = x { limit } else { 0 })));
        assert!(!limit_in(&parse_quote!(|x| match x {
            Some(limit) => limit,
            None => 0,
        })));
    }
}
