//! Prepared transactions: `PREPARE TRANSACTION` in PostgreSQL, XA in MariaDB and MySQL.
//!
//! ```text
//! rows -> writer: BEGIN .. rows .. marker, PREPARE -> handle: its name   (the checkpoint carries no rows)
//!                 checkpoint complete -> committer, on its own connection: COMMIT PREPARED
//! after a crash:  commit what the checkpoint names, roll back everything else of this job and sink
//! ```
//!
//! The protocol in one paragraph: an epoch's rows go into one transaction, whose last statement inserts a row of its own
//! into `flow_transactions`, the marker. It is prepared at the barrier; from then on it outlives its connection, its
//! process and its server, and everybody who knows its name can end it. "The server does not know that name" may mean
//! committed or lost: the marker decides. The table also says which attempt owns the sink; another one inserts no marker
//! any more, so it prepares nothing.

mod check;
mod committer;
mod control;
mod doubt;
mod handle;
mod id;
mod live;
mod marker;
#[cfg(feature = "mysql")]
mod mysql;
mod open;
mod owner;
mod patience;
#[cfg(feature = "postgres")]
mod postgres;
mod recover;
mod settle;
mod sink;
mod sweep;
mod writer;

pub use self::{
    committer::PreparedCommitter,
    doubt::{InDoubt, Resolved},
    handle::PreparedTransaction,
    id::{NotOurs, TransactionId},
    writer::PreparedWriter,
};
