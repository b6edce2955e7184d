//! A pipeline, its arguments and a helper function that are generic.
#![deny(warnings)]
use flow::{Stream, collection::collection, file, pipeline};
use serde::{Serialize, de::DeserializeOwned};

trait Event: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {
    fn size(&self) -> u64;
}

#[derive(Clone)]
struct Args<T> {
    events: Vec<T>,
}

#[pipeline]
fn p<T: Event>(args: &Args<T>)
where
    T: PartialEq,
{
    let events = source(collection(args.events.clone()));
    sizes(events).sink(file::to_tsv("out"));
}

#[pipeline]
fn sizes<T: Event>(events: Stream<T>) -> Stream<(u64, u64)> {
    events.key_by(|event| event.size()).count()
}

#[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Click(u64);

impl Event for Click {
    fn size(&self) -> u64 {
        self.0
    }
}

#[test]
fn compiles() {
    let _ = p(&Args { events: vec![Click(1)] });
}
