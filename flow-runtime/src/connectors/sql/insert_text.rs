//! The texts of `INSERT`, and of `INSERT` that updates the row that is there.

use super::{
    identifier::{quote, quote_list, quote_table},
    url::Backend,
};

/// `INSERT INTO table (columns)`.
pub(super) fn head(backend: Backend, table: &str, columns: &[String]) -> String {
    format!("INSERT INTO {} ({})", quote_table(backend, table), quote_list(backend, columns))
}

/// What is to happen when a row with this key is there. Begins with a blank.
pub(super) fn on_conflict(backend: Backend, columns: &[String], key: &[String]) -> String {
    let others: Vec<_> = columns.iter().filter(|column| !key.contains(column)).collect();
    let assign = |columns: &[&String]| {
        let assigned = columns.iter().map(|column| {
            let column = quote(backend, column);
            if backend == Backend::Mysql {
                format!("{column} = VALUES({column})")
            } else {
                format!("{column} = excluded.{column}")
            }
        });
        assigned.collect::<Vec<_>>().join(", ")
    };
    match backend {
        // It has no "do nothing" that would let other errors through.
        Backend::Mysql if others.is_empty() => {
            format!(" ON DUPLICATE KEY UPDATE {}", assign(&key.iter().collect::<Vec<_>>()))
        }
        Backend::Mysql => format!(" ON DUPLICATE KEY UPDATE {}", assign(&others)),
        _ if others.is_empty() => format!(" ON CONFLICT ({}) DO NOTHING", quote_list(backend, key)),
        _ => format!(" ON CONFLICT ({}) DO UPDATE SET {}", quote_list(backend, key), assign(&others)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn heads() {
        let columns = names(&["word", "n"]);
        assert_eq!(
            head(Backend::Postgres, "a.counts", &columns),
            r#"INSERT INTO "a"."counts" ("word", "n")"#
        );
        assert_eq!(head(Backend::Mysql, "counts", &columns), "INSERT INTO `counts` (`word`, `n`)");
    }

    #[test]
    fn conflicts() {
        let (columns, key) = (names(&["word", "n", "at"]), names(&["word"]));
        assert_eq!(
            on_conflict(Backend::Sqlite, &columns, &key),
            r#" ON CONFLICT ("word") DO UPDATE SET "n" = excluded."n", "at" = excluded."at""#
        );
        assert_eq!(
            on_conflict(Backend::Mysql, &columns, &key),
            " ON DUPLICATE KEY UPDATE `n` = VALUES(`n`), `at` = VALUES(`at`)"
        );
        assert_eq!(on_conflict(Backend::Postgres, &key, &key), r#" ON CONFLICT ("word") DO NOTHING"#);
        assert_eq!(
            on_conflict(Backend::Mysql, &key, &key),
            " ON DUPLICATE KEY UPDATE `word` = VALUES(`word`)"
        );
    }
}
