//! Where jobs write to, and what is found there.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use flow::sql::{
    diesel::{self, Connection as _, QueryableByName, SqliteConnection, sql_types},
    diesel_async::{AsyncConnection as _, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl as AsyncRun},
};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
};

use crate::results;

/// As the job has it.
const KEYS: u64 = 101;

/// A sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    Files,
    TwoPhaseCommit,
    SqliteLedger,
    MariadbLedger,
    PostgresLedger,
    MariadbPrepared,
    PostgresPrepared,
    Kafka,
    /// Windows, timers and a join, into files.
    EventTime,
}

/// What a reader finds, against what should be there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) records: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Count) {
        self.records += other.records;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
    }
}

/// The place of one case.
pub(crate) struct Target {
    kind: Kind,
    /// What the job gets as `--target`.
    pub(crate) name: String,
}

impl Kind {
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Files,
        Kind::TwoPhaseCommit,
        Kind::SqliteLedger,
        Kind::MariadbLedger,
        Kind::PostgresLedger,
        Kind::MariadbPrepared,
        Kind::PostgresPrepared,
        Kind::Kafka,
        Kind::EventTime,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Kind::Files => "files",
            Kind::TwoPhaseCommit => "own two-phase sink",
            Kind::SqliteLedger => "SQLite, ledger",
            Kind::MariadbLedger => "MariaDB, ledger",
            Kind::PostgresLedger => "PostgreSQL, ledger",
            Kind::MariadbPrepared => "MariaDB, XA",
            Kind::PostgresPrepared => "PostgreSQL, prepared",
            Kind::Kafka => "Kafka",
            Kind::EventTime => "windows, timers, join",
        }
    }

    /// The pipeline of the job.
    pub(crate) fn pipeline(self) -> &'static str {
        match self {
            Kind::Files => "files",
            Kind::TwoPhaseCommit => "two_phase_commit",
            Kind::SqliteLedger | Kind::MariadbLedger | Kind::PostgresLedger => "ledger",
            Kind::MariadbPrepared | Kind::PostgresPrepared => "prepared",
            Kind::Kafka => "topic",
            Kind::EventTime => "event_time",
        }
    }

    /// The server that it writes to.
    pub(crate) fn server(self) -> Option<&'static str> {
        match self {
            Kind::Files | Kind::TwoPhaseCommit | Kind::SqliteLedger | Kind::EventTime => None,
            Kind::MariadbLedger | Kind::MariadbPrepared => Some("mariadb"),
            Kind::PostgresLedger | Kind::PostgresPrepared => Some("postgres"),
            Kind::Kafka => Some("kafka"),
        }
    }

    /// Whether a job with this sink comes by a failpoint.
    pub(crate) fn passes(self, point: &str) -> bool {
        match point.split_once('.').map_or(point, |(group, _)| group) {
            "file" => self == Kind::Files,
            "ledger" => self.pipeline() == "ledger",
            "prepared" => self.pipeline() == "prepared",
            "kafka" => self == Kind::Kafka,
            _ => true,
        }
    }
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = sql_types::BigInt)]
    n: i64,
}

impl Target {
    /// A fresh one. `name` is like no other's.
    pub(crate) fn new(kind: Kind, directory: &Path, name: &str) -> Result<Self, String> {
        let name = match kind {
            Kind::Files | Kind::TwoPhaseCommit | Kind::EventTime => {
                directory.join("out").display().to_string()
            }
            Kind::SqliteLedger => format!("sqlite:{}", directory.join("out.db").display()),
            Kind::MariadbLedger | Kind::MariadbPrepared => database("FLOW_TEST_MARIADB", name)?,
            Kind::PostgresLedger | Kind::PostgresPrepared => database("FLOW_TEST_POSTGRES", name)?,
            Kind::Kafka => topic(name)?,
        };
        Ok(Target { kind, name })
    }

    pub(crate) fn arguments(&self) -> Result<Vec<String>, String> {
        let mut arguments = vec!["--target".to_owned(), self.name.clone()];
        if self.kind == Kind::Kafka {
            arguments.extend(["--brokers".to_owned(), address("FLOW_TEST_KAFKA")?]);
        }
        Ok(arguments)
    }

    /// Compares what is there with what should be.
    pub(crate) fn count(&self, records: u64) -> Result<Count, String> {
        let found = self.read().map_err(|e| format!("{} cannot be read: {e}", self.name))?;
        let mut times = BTreeMap::<i64, u64>::new();
        for n in &found {
            *times.entry(*n).or_default() += 1;
        }
        let mut count = Count { records: found.len() as u64, ..Count::default() };
        let expected = match self.kind {
            Kind::EventTime => results::expected(records),
            _ => counts(records),
        };
        for n in expected {
            match times.remove(&n) {
                None => count.lost += 1,
                Some(times) => count.duplicated += times - 1,
            }
        }
        // What should not be there at all comes of counting something twice.
        count.duplicated += times.values().sum::<u64>();
        Ok(count)
    }

    /// Removes what a server would keep.
    pub(crate) fn drop(&self) -> Result<(), String> {
        if self.kind.server().is_some()
            && let Some((server, name)) = self.name.rsplit_once('/')
        {
            run(&format!("{server}/flow"), &[format!("DROP DATABASE {name}")])?;
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
        let query = "SELECT n FROM chaos";
        match self.kind {
            Kind::Files | Kind::EventTime => lines(Path::new(&self.name), |name| !name.starts_with('.')),
            Kind::TwoPhaseCommit => lines(Path::new(&self.name), |name| !name.ends_with(".open")),
            Kind::SqliteLedger => {
                let path = self.name.trim_start_matches("sqlite:");
                let mut connection = SqliteConnection::establish(path)?;
                let rows: Vec<Row> = diesel::RunQueryDsl::load(diesel::sql_query(query), &mut connection)?;
                Ok(rows.into_iter().map(|row| row.n).collect())
            }
            Kind::MariadbLedger | Kind::MariadbPrepared => runtime().block_on(async {
                let mut connection = AsyncMysqlConnection::establish(&self.name).await?;
                let rows: Vec<Row> = AsyncRun::load(diesel::sql_query(query), &mut connection).await?;
                Ok(rows.into_iter().map(|row| row.n).collect())
            }),
            Kind::PostgresLedger | Kind::PostgresPrepared => runtime().block_on(async {
                let mut connection = AsyncPgConnection::establish(&self.name).await?;
                let rows: Vec<Row> = AsyncRun::load(diesel::sql_query(query), &mut connection).await?;
                Ok(rows.into_iter().map(|row| row.n).collect())
            }),
            Kind::Kafka => consume(&self.name),
        }
    }
}

/// The running counts of all keys.
fn counts(records: u64) -> Vec<i64> {
    let of_key = |key: u64| (1..=(records - key).div_ceil(KEYS)).map(move |n| (key * 1_000_000 + n) as i64);
    (0..KEYS.min(records)).flat_map(of_key).collect()
}

/// An address from the environment, which `tests/chaos` sets.
pub(crate) fn address(variable: &str) -> Result<String, String> {
    std::env::var(variable).map_err(|_| format!("{variable} is not set: start this by tests/chaos"))
}

fn lines(directory: &Path, finished: impl Fn(&str) -> bool) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if finished(&entry.file_name().to_string_lossy()) {
            for line in fs::read_to_string(entry.path())?.lines() {
                numbers.push(line.parse()?);
            }
        }
    }
    Ok(numbers)
}

fn database(variable: &str, name: &str) -> Result<String, String> {
    let server = address(variable)?;
    let (before, _) = server.rsplit_once('/').ok_or_else(|| format!("{variable} is no URL of a database"))?;
    run(&server, &[format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}")])?;
    Ok(format!("{before}/{name}"))
}

fn run(url: &str, statements: &[String]) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{statements:?}: {e}");
    runtime().block_on(async {
        if url.starts_with("postgres") {
            let mut connection = AsyncPgConnection::establish(url).await.map_err(|e| failed(&e))?;
            for statement in statements {
                let query = diesel::sql_query(statement);
                AsyncRun::execute(query, &mut connection).await.map_err(|e| failed(&e))?;
            }
        } else {
            let mut connection = AsyncMysqlConnection::establish(url).await.map_err(|e| failed(&e))?;
            for statement in statements {
                let query = diesel::sql_query(statement);
                AsyncRun::execute(query, &mut connection).await.map_err(|e| failed(&e))?;
            }
        }
        Ok(())
    })
}

fn topic(name: &str) -> Result<String, String> {
    let failed = |e: &dyn std::fmt::Display| format!("topic {name}: {e}");
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", address("FLOW_TEST_KAFKA")?)
        .create()
        .map_err(|e| failed(&e))?;
    let new = NewTopic::new(name, 2, TopicReplication::Fixed(1));
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    let created = runtime().block_on(admin.create_topics([&new], &options)).map_err(|e| failed(&e))?;
    for result in created {
        result.map_err(|(_, code)| failed(&code))?;
    }
    Ok(name.to_owned())
}

/// All records that are committed.
fn consume(topic: &str) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", address("FLOW_TEST_KAFKA")?)
        .set("group.id", "chaos")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .create()?;
    let mut partitions = TopicPartitionList::new();
    for partition in 0..2 {
        partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&partitions)?;
    let (mut numbers, mut ended) = (Vec::new(), std::collections::BTreeSet::new());
    while ended.len() < 2 {
        match consumer.poll(Duration::from_secs(30)) {
            Some(Ok(message)) => {
                let text = std::str::from_utf8(message.payload().unwrap_or_default())?;
                numbers.push(text.parse()?);
            }
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
            }
            Some(Err(error)) => return Err(error.into()),
            None => return Err("the broker does not answer".into()),
        }
    }
    Ok(numbers)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
