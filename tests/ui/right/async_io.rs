//! Futures of all kinds: blocks, functions, with and without `?`, over captured variables and borrowed records.
#![deny(warnings)]
use std::{collections::HashMap, sync::Arc};

use flow::{
    BoxError,
    async_io::{Lookup, TimedOut, exponential, fixed_delay},
    file, pipeline,
};

#[derive(Clone)]
struct Client(Arc<HashMap<u64, String>>);

impl Client {
    async fn name(&self, id: u64) -> Result<String, std::io::Error> {
        self.0.get(&id).cloned().ok_or_else(|| std::io::Error::other("nobody"))
    }
}

#[derive(Debug)]
struct Names(HashMap<u64, String>);

impl Lookup<u64> for Names {
    type Value = String;
    async fn get(&self, key: u64) -> Result<Option<String>, BoxError> {
        Ok(self.0.get(&key).cloned())
    }
}

async fn half(n: u64) -> u64 {
    n / 2
}

#[pipeline(on_error = skip)]
fn p(client: Client, prefix: &str) {
    let factor = Arc::new(2);
    let lines = source(file::text("in"));
    let numbers = lines.map_async(|line| async move {
        let n: u64 = line.trim().parse()?;
        Ok(n)
    });
    let names = numbers
        .map_async(|n| async move { client.name(n * *factor).await })
        .unordered()
        .capacity(10)
        .timeout("2s")
        .on_timeout(|n| n.to_string())
        .retry(exponential(3, "100ms").up_to("1s").when(|error| error.is::<TimedOut>()))
        .on_error(fail)
        .uid("names");
    names.map(|name| format!("{prefix}{name}")).sink(file::to_lines("names"));
    let halves = numbers.map_async(half).retry(fixed_delay(1, "10ms"));
    halves.key_by(|n| n % 3).sum(|n| *n).sink(file::to_tsv("halves"));
    let known = Names(HashMap::new());
    let both = halves.lookup_join(known.cache(10, "1m").with_misses(), |n| *n);
    both.sink(file::to_tsv("both"));
    halves
        .left_lookup_join(Names(HashMap::new()), |n| *n)
        .unordered()
        .with(|n, name: Option<String>| name.unwrap_or_else(|| n.to_string()))
        .sink(file::to_lines("all"));
}

#[test]
fn compiles() {
    let _ = p(Client(Arc::default()), "");
}
