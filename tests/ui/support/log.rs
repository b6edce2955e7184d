//! A sink that forgets what it wrote, and so can neither commit nor upsert.

use flow::{
    BoxError,
    file::{FileBuffer, FileCommitter, FileWriter, Lines, PendingFiles},
    sink::{Recovered, Sink, SinkContext},
};

pub struct Log;

impl Sink for Log {
    type Buffer = FileBuffer<Lines>;
    type Handle = PendingFiles;
    type Writer = FileWriter<Lines>;
    type Committer = FileCommitter;

    fn buffer(&self, _: &SinkContext) -> FileBuffer<Lines> {
        unimplemented!()
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<PendingFiles>>) -> Result<(), BoxError> {
        unimplemented!()
    }

    async fn open(&self, _: &SinkContext) -> Result<(FileWriter<Lines>, FileCommitter), BoxError> {
        unimplemented!()
    }
}
