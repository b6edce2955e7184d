//! `name = value` and `name(..)`, as they stand in the options of a pipeline.

use proc_macro2::Ident;
use syn::{
    Expr, Token, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    token::Paren,
};

use crate::diag::Errors;

/// Something that is set.
pub(super) struct Setting {
    pub(super) name: Ident,
    /// Missing where only the name was written.
    pub(super) value: Option<Value>,
}

pub(super) enum Value {
    Expr(Box<Expr>),
    List(Vec<Setting>),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        let value = if input.peek(Paren) {
            let list;
            parenthesized!(list in input);
            let settings = Punctuated::<Setting, Token![,]>::parse_terminated(&list)?;
            Some(Value::List(settings.into_iter().collect()))
        } else if input.parse::<Option<Token![=]>>()?.is_some() {
            Some(Value::Expr(Box::new(input.parse()?)))
        } else {
            None
        };
        Ok(Setting { name, value })
    }
}

/// Takes settings one by one; what is set twice, or to nothing, is an error. `what` is what they are called.
pub(super) fn each(
    settings: impl IntoIterator<Item = Setting>,
    what: &str,
    errors: &mut Errors,
    mut take: impl FnMut(&Ident, Value, &mut Errors),
) {
    let mut seen: Vec<Ident> = Vec::new();
    for Setting { name, value } in settings {
        if seen.contains(&name) {
            errors.at(&name, format!("{what} `{name}` is set twice")).help("remove one of the two");
            continue;
        }
        match value {
            Some(value) => take(&name, value, errors),
            None => {
                errors.at(&name, format!("{what} `{name}` has no value")).help(format!("{name} = .."));
            }
        }
        seen.push(name);
    }
}

/// As [`each`], for settings of which each has one value; `known` are their names.
pub(super) fn each_value(
    settings: Vec<Setting>,
    what: &str,
    known: &[&str],
    errors: &mut Errors,
    mut take: impl FnMut(&str, &Expr, &mut Errors),
) {
    each(settings, what, errors, |name, value, errors| match value {
        _ if !known.contains(&name.to_string().as_str()) => {
            super::options::unknown(name, what, known, errors)
        }
        Value::Expr(value) => take(&name.to_string(), &value, errors),
        Value::List(_) => {
            errors
                .at(name, format!("{what} `{name}` takes one value, and no list"))
                .help(format!("{name} = .."));
        }
    });
}
