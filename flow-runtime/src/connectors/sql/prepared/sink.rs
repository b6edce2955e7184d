//! The sink in this mode.

use std::sync::Arc;

use super::{
    InDoubt, PreparedCommitter, PreparedTransaction, PreparedWriter,
    control::Control,
    live::Live,
    marker::{self, Found},
    owner::Owner,
    recover,
};
use crate::{
    connectors::sql::{
        sink::{Prepared, SqlSink},
        work::Work,
    },
    error::BoxError,
    sink::{self, ExactlyOnce, HeldRows, Recovered, Settlement, Sink, SinkContext, Standing},
};

impl<W: Work> Sink for SqlSink<W, Prepared> {
    type Buffer = W::Buffer;
    type Handle = PreparedTransaction;
    type Writer = PreparedWriter<W>;
    type Committer = PreparedCommitter;

    fn buffer(&self, _: &SinkContext) -> W::Buffer {
        self.setup.work.buffer(self.setup.url.backend())
    }

    fn held_rows(&self) -> Option<HeldRows> {
        let table = self.setup.work.table().map(str::to_owned);
        Some(HeldRows { database: self.setup.url.database(), table })
    }

    async fn recover(
        &self,
        cx: &SinkContext,
        handles: Vec<Recovered<PreparedTransaction>>,
    ) -> Result<(), BoxError> {
        recover::recover(&self.setup, cx, &handles).await
    }

    async fn open(&self, cx: &SinkContext) -> Result<(Self::Writer, Self::Committer), BoxError> {
        let (owner, live) = (Owner::new(cx), Arc::new(Live::default()));
        let committer =
            PreparedCommitter::open(&self.setup.url, owner.clone(), cx.subtask, Arc::clone(&live)).await?;
        Ok((PreparedWriter::new(Arc::clone(&self.setup), owner, cx, live), committer))
    }

    async fn open_committer(
        &self,
        cx: &SinkContext,
        _: &[Recovered<PreparedTransaction>],
    ) -> Result<Self::Committer, BoxError> {
        PreparedCommitter::by_hand(&self.setup.url, Owner::new(cx), cx.subtask).await
    }

    async fn standing(
        &self,
        _: &SinkContext,
        transaction: &Recovered<PreparedTransaction>,
    ) -> Result<Standing, BoxError> {
        let mut control = Control::open(&self.setup.url).await?;
        if control.is_prepared(transaction.handle.id()).await? {
            return Ok(Standing::Pending);
        }
        Ok(match marker::find(&mut control.connection, &transaction.handle.marker).await {
            Ok(Found::Committed) => Standing::Committed,
            _ => Standing::Unknown,
        })
    }

    async fn in_doubt(&self, cx: &SinkContext) -> Result<Vec<sink::InDoubt>, BoxError> {
        let held = self.in_doubt(&cx.job, &cx.operator).await?;
        Ok(held
            .into_iter()
            .map(|InDoubt { id, age }| {
                let since = age.map_or_else(String::new, |age| format!(", since {} s", age.as_secs()));
                let detail = format!("prepared by subtask {}{since}", id.subtask());
                sink::InDoubt { id: id.to_string(), detail }
            })
            .collect())
    }

    async fn settle(
        &self,
        _: &SinkContext,
        transaction: &sink::InDoubt,
        settlement: Settlement,
    ) -> Result<(), BoxError> {
        let id = transaction.id.parse()?;
        match settlement {
            Settlement::Commit => self.commit_in_doubt(&id).await?,
            Settlement::Abort => self.abort_in_doubt(&id).await?,
        };
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<W: Work> ExactlyOnce for SqlSink<W, Prepared> {}
