//! A source that forgets what it has delivered.

use flow::{
    BoxError,
    collection::{Range, RangeReader, RangeSplit},
    source::{Source, SourceContext},
};

pub struct Ticks;

impl Source for Ticks {
    type Split = RangeSplit;
    type Batch = <Range as Source>::Batch;
    type Reader = RangeReader;

    async fn discover(&self, _: bool) -> Result<Vec<RangeSplit>, BoxError> {
        unimplemented!()
    }

    async fn open(&self, _: SourceContext, _: Vec<RangeSplit>) -> Result<RangeReader, BoxError> {
        unimplemented!()
    }
}
