//! The sink in this mode.

use std::sync::Arc;

use super::{PreparedCommitter, PreparedTransaction, PreparedWriter, live::Live, owner::Owner, recover};
use crate::{
    connectors::sql::{
        sink::{Prepared, SqlSink},
        work::Work,
    },
    error::BoxError,
    sink::{ExactlyOnce, HeldRows, Recovered, Sink, SinkContext},
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
}

#[diagnostic::do_not_recommend]
impl<W: Work> ExactlyOnce for SqlSink<W, Prepared> {}
