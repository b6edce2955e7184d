//! Whether what a closure returns can outlive the record that it is given.
//!
//! A key that borrows from its record cannot wait for longer than the record is where it is. Types are not known here, so
//! this goes by what the closure looks like: an expression that copies or makes anew all that it returns. What cannot be
//! told is taken to borrow.

use syn::{Expr, ExprClosure, Ident, Pat, Stmt, UnOp};

/// Methods that return something of their own, whatever they are called on.
const OWNING: &[&str] = &[
    "abs",
    "abs_diff",
    "clone",
    "div_euclid",
    "is_empty",
    "is_none",
    "is_some",
    "len",
    "rem_euclid",
    "to_bits",
    "to_owned",
    "to_string",
    "to_vec",
    "unsigned_abs",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
];

/// Whether nothing that the closure returns borrows from its argument, which is a reference.
pub(super) fn is_apart(function: &Expr) -> bool {
    let Expr::Closure(ExprClosure { inputs, body, .. }) = function else { return false };
    let mut names = Vec::new();
    inputs.iter().all(|input| bound(input, &mut names)) && apart(body, &names)
}

/// Collects the names that a pattern binds. False if it is one that is not understood.
fn bound<'p>(pattern: &'p Pat, names: &mut Vec<&'p Ident>) -> bool {
    match pattern {
        Pat::Ident(name) => {
            names.push(&name.ident);
            name.subpat.as_ref().is_none_or(|(_, pattern)| bound(pattern, names))
        }
        Pat::Tuple(tuple) => tuple.elems.iter().all(|pattern| bound(pattern, names)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().all(|pattern| bound(pattern, names)),
        Pat::Struct(fields) => fields.fields.iter().all(|field| bound(&field.pat, names)),
        Pat::Reference(reference) => bound(&reference.pat, names),
        Pat::Type(typed) => bound(&typed.pat, names),
        Pat::Paren(paren) => bound(&paren.pat, names),
        Pat::Wild(_) | Pat::Rest(_) => true,
        _ => false,
    }
}

/// Whether the value of an expression borrows from none of these names. Each may be a reference.
fn apart(expression: &Expr, names: &[&Ident]) -> bool {
    let operand = |expression: &Expr| is_place(expression) || apart(expression, names);
    match expression {
        Expr::Lit(_) => true,
        Expr::Path(path) => path.path.get_ident().is_none_or(|name| !names.contains(&name)),
        // What is read out of a place is copied.
        Expr::Field(field) => operand(&field.base),
        Expr::Index(index) => operand(&index.expr) && apart(&index.index, names),
        Expr::Unary(unary) => match unary.op {
            UnOp::Deref(_) => is_place(&unary.expr),
            _ => operand(&unary.expr),
        },
        Expr::Binary(binary) => operand(&binary.left) && operand(&binary.right),
        Expr::Cast(cast) => operand(&cast.expr),
        Expr::Paren(paren) => apart(&paren.expr, names),
        Expr::Group(group) => apart(&group.expr, names),
        Expr::Tuple(tuple) => tuple.elems.iter().all(|part| apart(part, names)),
        Expr::Array(array) => array.elems.iter().all(|part| apart(part, names)),
        Expr::Struct(parts) => {
            parts.rest.is_none() && parts.fields.iter().all(|field| apart(&field.expr, names))
        }
        Expr::Call(call) => {
            apart(&call.func, names) && call.args.iter().all(|argument| apart(argument, names))
        }
        Expr::MethodCall(call) => {
            // A value that the closure has made would not live long enough to be borrowed from.
            let of_value = !is_place(&call.receiver) && apart(&call.receiver, names);
            let owning = OWNING.iter().any(|name| call.method == name) && operand(&call.receiver);
            owning || of_value && call.args.iter().all(|argument| apart(argument, names))
        }
        Expr::Block(block) if block.label.is_none() => match &block.block.stmts[..] {
            [Stmt::Expr(value, None)] => apart(value, names),
            _ => false,
        },
        _ => false,
    }
}

/// Whether it is something that can be borrowed, and not a value that was made just now.
fn is_place(expression: &Expr) -> bool {
    match expression {
        Expr::Path(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Index(index) => is_place(&index.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)) && is_place(&unary.expr),
        Expr::Paren(paren) => is_place(&paren.expr),
        Expr::Group(group) => is_place(&group.expr),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(functions: &[&str], apart: bool) {
        for function in functions {
            let parsed = syn::parse_str(function).expect("a closure");
            assert_eq!(is_apart(&parsed), apart, "{function}");
        }
    }

    #[test]
    fn what_is_copied_or_made_is_apart() {
        all(
            &[
                "|n| *n",
                "|n| key(*n)",
                "|(word, _)| *word",
                "|(key, _)| (*key, 1)",
                "|order| order.customer",
                "|order| (order.customer, order.items[0])",
                "|order| { order.customer.id % 10 }",
                "|order| order.name.clone()",
                "|order| Place { x: order.x / 10, y: -order.y }",
                "|n| mix(*n).rotate_left(7)",
                "|()| 1u8",
                "|n: &u64| *n as u32",
            ],
            true,
        );
    }

    #[test]
    fn what_may_borrow_is_not() {
        all(
            &[
                "|order| order.name.as_str()",
                "|order| &order.name",
                "|order| name_of(order)",
                "|(word, _)| word",
                "|word| word",
                "|order| (order.customer, &*order.name)",
                "|order| { let name = &order.name; name }",
                "|order| match order { Order::One { name } => name, _ => other }",
                "|order| order.names.iter().next().unwrap()",
                "name_of",
            ],
            false,
        );
    }
}
