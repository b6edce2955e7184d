//! What can go wrong with a database, and whether trying again can help.

use std::{error::Error, fmt};

use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::url::Backend;
use crate::error::BoxError;

/// An error of a SQL sink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The URL names no kind of database.
    #[error(
        "`{url}` names no database: expected `sqlite:path`, `postgres://user:password@host/database` or `mysql://user:password@host/database`"
    )]
    UnknownUrl {
        /// Without its password.
        url: String,
    },
    /// The URL cannot be parsed.
    #[error("`{url}` is no valid URL: {cause}")]
    InvalidUrl {
        /// Without its password.
        url: String,
        /// What the parser said.
        cause: String,
    },
    /// The driver for this database was not compiled in.
    #[error(
        "`{url}` is a database of {backend}, whose driver is not compiled in: enable the feature `{feature}` of flow",
        feature = backend.feature()
    )]
    FeatureOff {
        /// Without its password.
        url: String,
        /// What it leads to.
        backend: Backend,
    },
    /// SQLite in memory: gone with its connection.
    #[error(
        "`{url}` is in memory: it is another database for each connection and gone after a crash; give the path of a file"
    )]
    InMemory {
        /// As given.
        url: String,
    },
    /// No connection.
    #[error("cannot connect to `{url}`: {cause}")]
    Connect {
        /// Without its password.
        url: String,
        /// What the driver said, without the password.
        cause: String,
    },
    /// The database refused a statement.
    #[error("{}", Told(.0))]
    Database(#[from] DieselError),
    /// A record does not fit the sink.
    #[error("{0}")]
    Record(String),
    /// The table, the statement or the ledger does not fit the sink.
    #[error("{0}")]
    Setup(String),
    /// A staged epoch cannot be decoded.
    #[error("the staged rows cannot be decoded: the checkpoint is damaged, or of a newer version of flow")]
    Damaged,
}

/// A diesel error with what the database added to its message.
struct Told<'a>(&'a DieselError);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DieselError::DatabaseError(_, info) = self.0 else { return self.0.fmt(f) };
        f.write_str(info.message())?;
        if let Some(details) = info.details() {
            write!(f, " ({details})")?;
        }
        if let Some(hint) = info.hint() {
            write!(f, "; hint: {hint}")?;
        }
        Ok(())
    }
}

/// Whether the same transaction may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The server was busy or away, or chose this transaction as the victim of a deadlock.
    Transient,
    /// It will be refused again.
    Permanent,
    /// The driver gave no code, and the text is not one of those known: worth a few more times.
    Unclear,
}

/// What servers and drivers say when trying again helps. The drivers hide the codes, so the texts have to do: those
/// of the drivers and of SQLite are fixed, and the sessions ask their servers for English.
const TRANSIENT: &[&str] = &[
    // MariaDB, MySQL: 1205, 1213, 1020, 1040, 1053, 1203, 1290, 1317, 1927, 4031.
    "lock wait timeout exceeded",
    "deadlock found",
    "record has changed since last read",
    "too many connections",
    "server shutdown in progress",
    "already has more than",
    "running with the --read-only option",
    "query execution was interrupted",
    "connection was killed",
    "disconnected by the server because of inactivity",
    "wsrep has not yet prepared",
    // XA: 1402, 1613, 1614. The transaction was the victim of a deadlock, or is gone; its rows can be written again.
    "transaction branch was rolled back",
    // PostgreSQL: 40P01, 40001, 55P03, 57014, 57P01, 57P02, 57P03, 53300, 25P03, 25006.
    "deadlock detected",
    "could not serialize access",
    "due to lock timeout",
    "could not obtain lock",
    "due to statement timeout",
    "terminating connection",
    "the database system is",
    "too many clients",
    "remaining connection slots",
    "maximum number of prepared transactions reached",
    "in a read-only transaction",
    "prepared transaction with identifier is busy",
    // SQLite: BUSY, LOCKED.
    "database is locked",
    "table is locked",
    // The drivers, when the connection is gone.
    "input/output error",
    "driver error:",
    "error communicating with the server",
    "connection closed",
    "connection reset",
    "broken pipe",
    "connection refused",
];

/// What servers say when trying again is useless, for those errors to which diesel gives no kind.
const PERMANENT: &[&str] = &[
    "syntax error",
    "error in your sql syntax",
    "does not exist",
    "doesn't exist",
    "no such table",
    "no such column",
    "has no column",
    "unknown column",
    "data too long",
    "value too long",
    "out of range",
    "incorrect",
    "invalid input syntax",
    "denied",
    "no unique or exclusion constraint",
    "does not match any primary key or unique constraint",
    "is of type",
    "datatype mismatch",
    "violates",
];

fn classify_text(text: &str) -> Class {
    let text = text.to_lowercase();
    // What stands between quotes may be a value of the row, and say anything: retrying for ever because a log line about
    // a refused connection is no number would be a pity.
    let own_words = text.split(['"', '\'', '`']).next().unwrap_or_default();
    let says = |text: &str, known: &[&str]| known.iter().any(|known| text.contains(known));
    if says(own_words, TRANSIENT) {
        Class::Transient
    } else if says(&text, PERMANENT) {
        Class::Permanent
    } else {
        Class::Unclear
    }
}

fn classify_diesel(error: &DieselError) -> Class {
    match error {
        DieselError::DatabaseError(kind, info) => match kind {
            DatabaseErrorKind::SerializationFailure
            | DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ClosedConnection
            // A primary that became a replica: the address will lead to the new primary.
            | DatabaseErrorKind::ReadOnlyTransaction => Class::Transient,
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::RestrictViolation
            | DatabaseErrorKind::ExclusionViolation => Class::Permanent,
            _ => classify_text(info.message()),
        },
        DieselError::RollbackErrorOnCommit { commit_error, .. } => classify_diesel(commit_error),
        DieselError::BrokenTransactionManager | DieselError::NotInTransaction => Class::Transient,
        _ => Class::Permanent,
    }
}

fn classify_sql(error: &SqlError) -> Class {
    match error {
        SqlError::Database(error) => classify_diesel(error),
        SqlError::Connect { .. } => Class::Transient,
        _ => Class::Permanent,
    }
}

/// Looks for the database's error in whatever a closure made of it.
pub(super) fn classify(error: &(dyn Error + 'static)) -> Class {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<SqlError>() {
            return classify_sql(error);
        }
        if let Some(error) = error.downcast_ref::<DieselError>() {
            return classify_diesel(error);
        }
        next = error.source();
    }
    // The user's own: the same rows will meet the same refusal.
    Class::Permanent
}

/// Whether somebody else held a lock for longer than we wait: 1205 and 55P03.
pub(super) fn is_lock_timeout(error: &(dyn Error + 'static)) -> bool {
    let text = error.to_string().to_lowercase();
    ["lock wait timeout exceeded", "due to lock timeout"].iter().any(|known| text.contains(known))
}

/// A failure while rows were applied, with the rows that the failing statement wrote.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: BoxError,
    pub(super) rows: Option<std::ops::Range<usize>>,
}

impl Fault {
    pub(super) fn new(error: impl Into<BoxError>) -> Self {
        Fault { error: error.into(), rows: None }
    }

    pub(super) fn at(rows: std::ops::Range<usize>, error: impl Into<BoxError>) -> Self {
        Fault { error: error.into(), rows: Some(rows) }
    }

    pub(super) fn class(&self) -> Class {
        classify(self.error.as_ref())
    }
}

impl<E: Into<SqlError>> From<E> for Fault {
    fn from(error: E) -> Self {
        let error: SqlError = error.into();
        Fault::new(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> SqlError {
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(text.to_owned())).into()
    }

    #[test]
    fn texts_are_told_apart() {
        for text in [
            "Lock wait timeout exceeded; try restarting transaction",
            "Deadlock found when trying to get lock; try restarting transaction",
            "deadlock detected",
            "canceling statement due to lock timeout",
            "the database system is starting up",
            "database is locked",
            "Input/output error: Input/output error: Connection reset by peer (os error 104)",
            "Driver error: `Connection to the server is closed.'",
        ] {
            assert_eq!(classify(&unknown(text)), Class::Transient, "{text}");
        }
        for text in
            ["no such table: words", "Table 'flow.words' doesn't exist", "relation \"w\" does not exist"]
        {
            assert_eq!(classify(&unknown(text)), Class::Permanent, "{text}");
        }
        assert_eq!(classify(&unknown("Verklemmung (Deadlock) entdeckt")), Class::Unclear);
    }

    #[test]
    fn the_database_is_found_below_the_users_error() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot update the total")]
        struct Wrapped(#[source] SqlError);

        assert_eq!(classify(&Wrapped(unknown("deadlock detected"))), Class::Transient);
        let own: BoxError = "no".into();
        assert_eq!(classify(own.as_ref()), Class::Permanent);
    }
}
