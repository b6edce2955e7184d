//! The sinks, which are all one.

use std::{fmt, marker::PhantomData, sync::Arc};

use super::{
    closure::Batches,
    committer::{LedgerCommitter, NoCommitter},
    each_row::EachRow,
    handle::Staged,
    ledger::Owner,
    recover,
    table::{InsertRows, UpsertRows},
    url::DatabaseUrl,
    work::Work,
    writer::{DirectWriter, LedgerWriter},
};
use crate::{
    error::BoxError,
    sink::{ExactlyOnce, Recovered, Sink, SinkContext, Standing},
};

/// Rows are staged in the checkpoint and applied once it is complete, in one transaction with a ledger: exactly once.
#[derive(Clone, Copy, Debug)]
pub enum Ledger {}

/// Rows are written as they come, into a transaction that is prepared with the checkpoint and committed once it is
/// complete: exactly once, for rows that no other subtask or sink writes.
#[derive(Clone, Copy, Debug)]
pub enum Prepared {}

/// Rows are written as they come, and again after a crash: at least once.
#[derive(Clone, Copy, Debug)]
pub enum Direct {}

/// A sink into a SQL database: made by [`insert`](super::insert), [`upsert`](super::upsert),
/// [`execute`](super::execute) and [`apply`](super::apply).
pub struct SqlSink<W, M> {
    pub(super) setup: Arc<Setup<W>>,
    mode: PhantomData<fn(M)>,
}

/// Inserts each record.
pub type Insert<M = Ledger> = SqlSink<InsertRows, M>;
/// Inserts each record, or updates the row that has its key.
pub type Upsert<M = Direct> = SqlSink<UpsertRows, M>;
/// Runs a statement for each record.
pub type Execute<M = Ledger> = SqlSink<EachRow, M>;
/// Calls a closure for each batch of records.
pub type Apply<R, M = Ledger> = SqlSink<Batches<R>, M>;

/// What a sink, its writers and its committers share.
#[derive(Clone, Debug)]
pub(super) struct Setup<W> {
    pub(super) url: DatabaseUrl,
    pub(super) prepare: Vec<String>,
    pub(super) work: W,
}

impl<W, M> SqlSink<W, M> {
    pub(super) fn new(url: DatabaseUrl, work: W) -> Self {
        SqlSink { setup: Arc::new(Setup { url, prepare: Vec::new(), work }), mode: PhantomData }
    }

    fn in_mode<N>(self) -> SqlSink<W, N> {
        SqlSink { setup: self.setup, mode: PhantomData }
    }
}

impl<W: Clone, M> SqlSink<W, M> {
    pub(super) fn change(mut self, change: impl FnOnce(&mut Setup<W>)) -> Self {
        change(Arc::make_mut(&mut self.setup));
        self
    }

    /// Runs a statement whenever the job starts, before anything is written: mostly `CREATE TABLE IF NOT EXISTS ..`. More
    /// than one are run in order.
    #[must_use]
    pub fn prepare(self, statement: impl Into<String>) -> Self {
        self.change(|setup| setup.prepare.push(statement.into()))
    }
}

fn names<I: IntoIterator<Item: Into<String>>>(names: I) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}

impl<M> Insert<M> {
    /// The columns to write. Of a struct, the fields of these names; of a tuple, its fields in this order.
    #[must_use]
    pub fn columns<I: IntoIterator<Item: Into<String>>>(self, columns: I) -> Self {
        self.change(|setup| setup.work.0.columns = Some(names(columns)))
    }
}

impl<M> Upsert<M> {
    /// The columns to write. Of a struct, the fields of these names; of a tuple, its fields in this order.
    #[must_use]
    pub fn columns<I: IntoIterator<Item: Into<String>>>(self, columns: I) -> Self {
        self.change(|setup| setup.work.0.columns = Some(names(columns)))
    }
}

impl Insert<Ledger> {
    /// Writes rows as they come and commits them with the checkpoint, by prepared transactions instead of the ledger:
    /// see [there](super#exactly-once-by-prepared-transactions) for when that is right.
    #[must_use]
    pub fn prepared_transactions(self) -> Insert<Prepared> {
        self.in_mode()
    }

    /// Writes rows as they come instead of with the checkpoint: sooner, without a ledger, and again after a crash.
    #[must_use]
    pub fn at_least_once(self) -> Insert<Direct> {
        self.in_mode()
    }
}

impl Execute<Ledger> {
    /// Runs the statements as records come and commits them with the checkpoint, by prepared transactions instead of the
    /// ledger: see [there](super#exactly-once-by-prepared-transactions) for when that is right.
    #[must_use]
    pub fn prepared_transactions(self) -> Execute<Prepared> {
        self.in_mode()
    }

    /// Runs the statements as records come instead of with the checkpoint: sooner, without a ledger, and again after a
    /// crash.
    #[must_use]
    pub fn at_least_once(self) -> Execute<Direct> {
        self.in_mode()
    }
}

impl Upsert<Direct> {
    /// Writes rows with the checkpoint instead of as they come, so that readers never see a value that a crash takes
    /// back for a moment.
    #[must_use]
    pub fn ledger(self) -> Upsert<Ledger> {
        self.in_mode()
    }

    /// Writes rows as they come and commits them with the checkpoint, by prepared transactions: as with the
    /// [ledger](Self::ledger), readers never see a value that a crash takes back. See
    /// [there](super#exactly-once-by-prepared-transactions) for when that is right.
    #[must_use]
    pub fn prepared_transactions(self) -> Upsert<Prepared> {
        self.in_mode()
    }
}

impl<R> Apply<R> {
    /// Calls the closure as records come and commits with the checkpoint, by prepared transactions instead of the ledger:
    /// see [there](super#exactly-once-by-prepared-transactions) for when that is right.
    #[must_use]
    pub fn prepared_transactions(self) -> Apply<R, Prepared> {
        self.in_mode()
    }
}

impl<R, M> Apply<R, M> {
    /// How many records the closure is given at once, at most: 10,000 unless said.
    #[must_use]
    pub fn batch(self, records: usize) -> Self {
        self.change(|setup| setup.work.most = records.max(1))
    }
}

/// An [`upsert`](super::upsert) that lacks its key.
#[derive(Clone, Debug)]
#[must_use = "an upsert needs `.key([..])`"]
pub struct UpsertInto {
    pub(super) url: DatabaseUrl,
    pub(super) table: String,
}

impl UpsertInto {
    /// The columns that tell rows apart. The table needs a unique index, or its primary key, on just these.
    pub fn key<I: IntoIterator<Item: Into<String>>>(self, columns: I) -> Upsert {
        let table = super::table::Table { name: self.table, columns: None, key: names(columns) };
        SqlSink::new(self.url, UpsertRows(table))
    }
}

impl<W: Work> Sink for SqlSink<W, Ledger> {
    type Buffer = W::Buffer;
    type Handle = Staged;
    type Writer = LedgerWriter<W::Buffer>;
    type Committer = LedgerCommitter<W>;

    fn buffer(&self, _: &SinkContext) -> W::Buffer {
        self.setup.work.buffer(self.setup.url.backend())
    }

    async fn recover(&self, cx: &SinkContext, handles: Vec<Recovered<Staged>>) -> Result<(), BoxError> {
        recover::ledger(&self.setup, cx, &handles).await
    }

    async fn open(&self, cx: &SinkContext) -> Result<(Self::Writer, Self::Committer), BoxError> {
        let committer = LedgerCommitter::open(Arc::clone(&self.setup), Owner::new(cx), cx.subtask).await?;
        Ok((LedgerWriter::new(committer.stands_at()), committer))
    }

    async fn open_committer(
        &self,
        cx: &SinkContext,
        carried: &[Recovered<Staged>],
    ) -> Result<Self::Committer, BoxError> {
        recover::take_ledger(&self.setup, cx, carried).await?;
        LedgerCommitter::open(Arc::clone(&self.setup), Owner::new(cx), cx.subtask).await
    }

    async fn standing(
        &self,
        cx: &SinkContext,
        transaction: &Recovered<Staged>,
    ) -> Result<Standing, BoxError> {
        recover::standing(&self.setup, cx, transaction).await
    }
}

impl<W: Work> Sink for SqlSink<W, Direct> {
    type Buffer = W::Buffer;
    type Handle = ();
    type Writer = DirectWriter<W>;
    type Committer = NoCommitter;

    fn buffer(&self, _: &SinkContext) -> W::Buffer {
        self.setup.work.buffer(self.setup.url.backend())
    }

    async fn recover(&self, cx: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        recover::direct(&self.setup, cx).await
    }

    async fn open(&self, cx: &SinkContext) -> Result<(Self::Writer, Self::Committer), BoxError> {
        Ok((DirectWriter::open(Arc::clone(&self.setup), cx).await?, NoCommitter))
    }
}

#[diagnostic::do_not_recommend]
impl<W: Work> ExactlyOnce for SqlSink<W, Ledger> {}

/// Writing a row again changes nothing.
#[diagnostic::do_not_recommend]
impl ExactlyOnce for Upsert<Direct> {}

impl<W, M> Clone for SqlSink<W, M> {
    fn clone(&self) -> Self {
        SqlSink { setup: Arc::clone(&self.setup), mode: PhantomData }
    }
}

impl<W: fmt::Debug, M> fmt::Debug for SqlSink<W, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlSink").field("setup", &self.setup).finish_non_exhaustive()
    }
}
