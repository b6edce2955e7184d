//! Names of tables and columns, quoted as each database wants it.

use super::url::Backend;

/// Quotes one name.
pub(super) fn quote(backend: Backend, name: &str) -> String {
    let mark = if backend == Backend::Mysql { '`' } else { '"' };
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push(mark);
    for c in name.chars() {
        if c == mark {
            quoted.push(mark);
        }
        quoted.push(c);
    }
    quoted.push(mark);
    quoted
}

/// Quotes a table's name, each part of one that names its schema too.
pub(super) fn quote_table(backend: Backend, table: &str) -> String {
    let parts: Vec<_> = table.split('.').map(|part| quote(backend, part)).collect();
    parts.join(".")
}

/// The names joined by commas, quoted.
pub(super) fn quote_list(backend: Backend, names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(|name| quote(backend, name.as_ref())).collect();
    names.join(", ")
}

/// A text between single quotes, for statements that a person may copy and for those that take no parameters.
pub(super) fn quote_text(backend: Backend, text: &str) -> String {
    let text = text.replace('\'', "''");
    if backend == Backend::Mysql { format!("'{}'", text.replace('\\', "\\\\")) } else { format!("'{text}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_their_database() {
        assert_eq!(quote(Backend::Postgres, "order"), "\"order\"");
        assert_eq!(quote(Backend::Sqlite, "a\"b"), "\"a\"\"b\"");
        assert_eq!(quote(Backend::Mysql, "a`b\"c"), "`a``b\"c`");
        assert_eq!(quote_table(Backend::Postgres, "shop.orders"), "\"shop\".\"orders\"");
        assert_eq!(quote_table(Backend::Mysql, "shop.orders"), "`shop`.`orders`");
        assert_eq!(quote_list(Backend::Sqlite, &["a", "b"]), "\"a\", \"b\"");
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quote_text(Backend::Postgres, "it's\\"), "'it''s\\'");
        assert_eq!(quote_text(Backend::Mysql, "it's\\"), "'it''s\\\\'");
    }
}
