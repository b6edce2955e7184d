//! Committing a prepared transaction, and telling what became of one that is not there.

use super::{
    PreparedTransaction,
    control::{Control, End, Ended},
    marker::{self, Found, TABLE},
};
use crate::{
    connectors::sql::{
        error::{Class, SqlError, classify},
        url::Backend,
    },
    sink::{CommitError, Committed},
};

/// Commits, or finds out that it was done already, or that it cannot be done any more.
pub(super) async fn commit(
    control: &mut Control,
    transaction: &PreparedTransaction,
) -> Result<Committed, CommitError> {
    let PreparedTransaction { id, marker, .. } = transaction;
    let place = marker.place();
    let ended = match control.end(id, End::Commit).await {
        // In MariaDB it is worth making sure.
        Ok(Ended::Now) if control.connection.backend() != Backend::Mysql => return Ok(Committed::Now),
        Ok(ended) => ended,
        Err(error) => {
            let told =
                format!("{place}: cannot commit the prepared transaction `{id}`: {error}{}", remedy(&error));
            // It is still prepared, so it is worth trying as long as there may be another answer.
            return Err(match classify(&error) {
                Class::Permanent => CommitError::Lost(told.into()),
                Class::Transient | Class::Unclear => CommitError::Retry(told.into()),
            });
        }
    };
    match marker::find(&mut control.connection, marker).await {
        Ok(Found::Committed) => {
            Ok(if ended == Ended::Now { Committed::Now } else { Committed::Already })
        }
        Ok(Found::Other(attempt)) => Err(CommitError::Lost(
            format!(
                "{place}: another copy of this job (attempt {:016x}) has committed this checkpoint, so this one must not; if both are meant to run, give them different names",
                attempt.cast_unsigned()
            )
            .into(),
        )),
        Ok(Found::Nothing) if ended == Ended::Now => Err(CommitError::Lost(
            format!(
                "{place}: the server says that it has committed the transaction `{id}`, and has not: MariaDB can lose sight of a transaction whose connection is just being closed. nothing is lost: restart the database server, which finds it again, and start the job"
            )
            .into(),
        )),
        Ok(Found::Nothing) => Err(CommitError::Lost(
            format!(
                "{place}: the transaction `{id}` is lost with its {} rows: the database has it neither prepared nor committed (no marker in the table `{TABLE}`). was it rolled back by hand, or is this another database than before, or restored from a backup? start the job from an older checkpoint to write the rows again, or, to go on without them, run: {}",
                transaction.rows,
                marker::forgive(control.connection.backend(), marker)
            )
            .into(),
        )),
        Err(error) => Err(CommitError::Retry(format!("{place}: {}", SqlError::from(error)).into())),
    }
}

fn remedy(error: &SqlError) -> &'static str {
    if error.to_string().contains("denied") {
        "; only the user who prepared it, and a superuser, may: connect as that user"
    } else {
        ""
    }
}
