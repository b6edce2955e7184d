//! The sinks into databases and Kafka, against the suite that is there for everybody's.

use std::time::Duration;

use flow::{
    BoxError, kafka,
    sink::{Sink, Write},
    sql::{self, Insert},
    testing::{SinkUnderTest, two_phase_commit_suite},
};

use crate::{
    database::Database,
    servers::{address, alone},
    topic,
};

/// Rows of one number each.
struct Rows<M> {
    database: Database,
    sink: fn(&str) -> Insert<M>,
}

fn insert(url: &str) -> Insert {
    sql::insert(url, "numbers").columns(["n"]).prepare("CREATE TABLE IF NOT EXISTS numbers (n BIGINT)")
}

impl<M> SinkUnderTest for Rows<M>
where
    Insert<M>: Sink<Buffer: Write<(i64,)>>,
{
    type Sink = Insert<M>;
    type Record = (i64,);

    fn sink(&self) -> Insert<M> {
        (self.sink)(&self.database.url)
    }

    fn record(&self, number: u64) -> (i64,) {
        (number as i64,)
    }

    async fn visible(&self) -> Result<Vec<u64>, BoxError> {
        let database = Database { url: self.database.url.clone() };
        let numbers =
            tokio::task::spawn_blocking(move || database.numbers("SELECT n AS number FROM numbers"));
        Ok(numbers.await?.into_iter().map(i64::cast_unsigned).collect())
    }
}

/// Records of one number each.
struct Records(String);

impl SinkUnderTest for Records {
    type Sink = kafka::KafkaSink<kafka::sink::Values>;
    type Record = String;

    fn sink(&self) -> Self::Sink {
        kafka::to(&self.0).brokers(address("FLOW_TEST_KAFKA"))
    }

    fn record(&self, number: u64) -> String {
        number.to_string()
    }

    async fn visible(&self) -> Result<Vec<u64>, BoxError> {
        let topic = self.0.clone();
        // The end of a transaction is written a moment after its producer is told.
        let settled = tokio::task::spawn_blocking(move || {
            let mut before = topic::committed(&topic, 1, 0);
            loop {
                std::thread::sleep(Duration::from_millis(300));
                let now = topic::committed(&topic, 1, 0);
                if now.len() == before.len() {
                    return now;
                }
                before = now;
            }
        });
        settled.await?.iter().map(|(_, number)| Ok(number.parse()?)).collect()
    }
}

fn conforms(subject: impl SinkUnderTest) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(two_phase_commit_suite(&subject)).assert();
}

#[test]
fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    conforms(Rows { database: Database::sqlite(directory.path()), sink: insert });
}

#[test]
fn mariadb() {
    let _alone = alone();
    conforms(Rows { database: Database::mariadb("conformance"), sink: insert });
}

#[test]
fn postgres() {
    let _alone = alone();
    conforms(Rows { database: Database::postgres("conformance"), sink: insert });
}

#[test]
fn mariadb_xa() {
    let _alone = alone();
    let sink = |url: &str| insert(url).prepared_transactions();
    conforms(Rows { database: Database::mariadb("conformance_xa"), sink });
}

#[test]
fn postgres_prepared() {
    let _alone = alone();
    let sink = |url: &str| insert(url).prepared_transactions();
    conforms(Rows { database: Database::postgres("conformance_prepared"), sink });
}

#[test]
fn kafka_topic() {
    let _alone = alone();
    conforms(Records(topic::create("conformance", 1)));
}
