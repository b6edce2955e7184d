//! The two halves of a sink's subtask, for any handle.

use std::marker::PhantomData;

use flow::{
    BoxError,
    file::{FileBuffer, Lines},
    sink::{CheckpointId, CommitError, Committed, SinkCommitter, SinkWriter},
};

pub struct Writer<H>(PhantomData<fn() -> H>);

impl<H: 'static> SinkWriter for Writer<H> {
    type Buffer = FileBuffer<Lines>;
    type Handle = H;

    async fn write(&mut self, _: &mut FileBuffer<Lines>) -> Result<(), BoxError> {
        unimplemented!()
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<H>, BoxError> {
        unimplemented!()
    }
}

pub struct Committer<H>(PhantomData<fn() -> H>);

impl<H: Sync + 'static> SinkCommitter for Committer<H> {
    type Handle = H;

    async fn commit(&mut self, _: CheckpointId, _: &H) -> Result<Committed, CommitError> {
        unimplemented!()
    }
}
