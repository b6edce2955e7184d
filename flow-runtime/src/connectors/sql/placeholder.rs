//! Finds the `?` of a statement, where they are parameters and not text.

use super::{error::SqlError, url::Backend};

/// A statement cut at its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) pieces: Vec<Piece>,
    /// How many parameters it takes.
    pub(super) params: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Sql(String),
    /// The parameter's index, from 0.
    Param(usize),
}

impl Template {
    /// `?` and `?1` are parameters in every database and `$1` in PostgreSQL, but not inside quotes or comments. `??` is a
    /// question mark, which PostgreSQL has among its operators.
    pub(super) fn parse(backend: Backend, text: &str) -> Result<Self, SqlError> {
        let mut template = Template { pieces: Vec::new(), params: 0 };
        let (mut plain, mut rest) = (String::new(), text);
        let (mut marks, mut numbered) = (0, 0);
        while let Some(c) = rest.chars().next() {
            let skipped = skip(backend, rest);
            if skipped > 0 {
                plain.push_str(&rest[..skipped]);
                rest = &rest[skipped..];
            } else if let Some(after) = rest.strip_prefix("??") {
                plain.push('?');
                rest = after;
            } else if let Some((number, after)) = numbered_mark(backend, rest, &plain) {
                template.param(&mut plain, number - 1);
                numbered = numbered.max(number);
                rest = after;
            } else if c == '?' {
                template.param(&mut plain, marks);
                marks += 1;
                rest = &rest[1..];
            } else {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        if marks > 0 && numbered > 0 {
            return Err(SqlError::Setup(format!(
                "the statement mixes `?` with parameters that have a number; use one of them: {text}"
            )));
        }
        if !plain.is_empty() {
            template.pieces.push(Piece::Sql(plain));
        }
        template.params = marks.max(numbered);
        Ok(template)
    }

    fn param(&mut self, plain: &mut String, index: usize) {
        if !plain.is_empty() {
            self.pieces.push(Piece::Sql(std::mem::take(plain)));
        }
        self.pieces.push(Piece::Param(index));
    }

    /// The statement with `$1`, `$2`, .. for its parameters.
    #[cfg(any(feature = "postgres", test))]
    pub(super) fn numbered(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Sql(sql) => text.push_str(sql),
                Piece::Param(index) => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "${}", index + 1);
                }
            }
        }
        text
    }
}

/// How many bytes at the front are quoted or a comment.
fn skip(backend: Backend, text: &str) -> usize {
    let backslash = backend == Backend::Mysql;
    let bytes = text.as_bytes();
    let len = match bytes[0] {
        b'\'' | b'"' => quoted(bytes, backslash),
        b'`' if backend != Backend::Postgres => quoted(bytes, false),
        b'-' if text.starts_with("--") => text.find('\n').unwrap_or(text.len()),
        b'#' if backend == Backend::Mysql => text.find('\n').unwrap_or(text.len()),
        b'/' if text.starts_with("/*") => text[2..].find("*/").map_or(text.len(), |at| at + 4),
        b'$' if backend == Backend::Postgres => dollar_quoted(text),
        _ => 0,
    };
    len.min(text.len())
}

/// A doubled mark ends one piece of quoted text and begins the next, which comes to the same.
fn quoted(bytes: &[u8], backslash: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash => at += 2,
            mark if mark == bytes[0] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// PostgreSQL's `$tag$ .. $tag$`.
fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$') else { return 0 };
    let tag = &text[..end + 2];
    let name = &tag[1..tag.len() - 1];
    if name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        return 0;
    }
    text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len())
}

/// `?1`, and in PostgreSQL `$1`.
fn numbered_mark<'a>(backend: Backend, text: &'a str, before: &str) -> Option<(usize, &'a str)> {
    let in_name = || before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let dollar = || text.strip_prefix('$').filter(|_| backend == Backend::Postgres && !in_name());
    let rest = text.strip_prefix('?').or_else(dollar)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number: usize = rest[..digits].parse().ok()?;
    (1..=65_535).contains(&number).then_some((number, &rest[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(backend: Backend, text: &str) -> (String, usize) {
        let template = Template::parse(backend, text).unwrap();
        (template.numbered(), template.params)
    }

    #[test]
    fn marks_become_numbers() {
        let (text, params) = numbered(Backend::Sqlite, "UPDATE s SET total = total + ? WHERE id = ?");
        assert_eq!((text.as_str(), params), ("UPDATE s SET total = total + $1 WHERE id = $2", 2));
        assert_eq!(numbered(Backend::Postgres, "SELECT ?::int, ñ").0, "SELECT $1::int, ñ");
    }

    #[test]
    fn quotes_and_comments_are_no_parameters() {
        for (backend, text) in [
            (Backend::Sqlite, "SELECT '?''?', \"a?\" -- ?\n, [b] /* ? */"),
            (Backend::Mysql, "SELECT 'it\\'s ?', `a?` # ?"),
            (Backend::Postgres, "SELECT $q$ ? $1 $q$, $$?$$, a$1"),
        ] {
            assert_eq!(numbered(backend, text), (text.to_owned(), 0));
        }
        assert_eq!(numbered(Backend::Postgres, "SELECT a ?? 'k', ?").0, "SELECT a ? 'k', $1");
    }

    #[test]
    fn marks_with_numbers_may_repeat() {
        for backend in [Backend::Sqlite, Backend::Mysql, Backend::Postgres] {
            let (text, params) = numbered(backend, "SELECT ?2 WHERE ?1 <= ?2 AND '?3' <> ?10");
            assert_eq!((text.as_str(), params), ("SELECT $2 WHERE $1 <= $2 AND '?3' <> $10", 10));
            assert!(Template::parse(backend, "SELECT ?1, ?").is_err());
        }
    }

    #[test]
    fn dollars_are_numbers_in_postgresql_only() {
        let (text, params) = numbered(Backend::Postgres, "SELECT $2, $1, $2");
        assert_eq!((text.as_str(), params), ("SELECT $2, $1, $2", 2));
        assert_eq!(numbered(Backend::Sqlite, "SELECT $1").1, 0);
        assert!(Template::parse(Backend::Postgres, "SELECT $1, ?").is_err());
    }

    #[test]
    fn an_open_quote_ends_with_the_text() {
        for text in ["SELECT 'a", "SELECT /* ?", "SELECT 'a\\", "--", "SELECT $a$ ?", "$", "/*"] {
            for backend in [Backend::Sqlite, Backend::Mysql, Backend::Postgres] {
                assert!(Template::parse(backend, text).is_ok(), "{text}");
            }
        }
    }
}
