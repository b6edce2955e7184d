//! Kafka into one hot row of a SQL database, exactly once.
//!
//! Each record is a number of points, and all of them go to the same student: two subtasks update the same row all the
//! time. With a two-phase commit that holds its locks from one checkpoint to the next this hangs; here nothing is locked
//! between checkpoints, and after `kill -9` the total is right.
//!
//! Without arguments everything is embedded: a mock broker with 1,000,000 records, and SQLite in a temporary directory.
//!
//! ```sh
//! cargo run --release --example kafka_to_sql
//! cargo run --release --example kafka_to_sql -- --brokers localhost:9092 --topic points \
//!     --database-url mysql://user:password@localhost/school --checkpoint-dir /var/lib/points
//! ```

use std::{cell::OnceCell, path::PathBuf, process::ExitCode};

use flow::{
    BoxError, Job,
    kafka::{self, Start, mock::MockBroker},
    pipeline,
    sql::{self, Transaction},
};

mod support {
    pub(crate) mod progress;
}
use support::progress::Progress;

/// Adds up the points of a student.
#[derive(clap::Args, Clone)]
struct Args {
    /// Kafka brokers, HOST:PORT[,HOST:PORT..]. Without, everything is embedded
    #[arg(long, requires = "topic", requires = "database_url")]
    brokers: Option<String>,
    /// The topic: each record's value is a number of points
    #[arg(long, default_value = "points")]
    topic: String,
    /// The database of table `student(id, total)`, which is created if need be: sqlite:PATH, postgres://.., mysql://..
    #[arg(long)]
    database_url: Option<String>,
    /// Stop at the records that the topic has at the start
    #[arg(long)]
    bounded: bool,
    #[arg(skip)]
    progress: Progress,
}

#[pipeline(guarantee = exactly_once, checkpoint = "1s", parallelism = 2)]
fn kafka_to_sql(args: &Args) {
    let points = source(
        kafka::lines(&args.topic)
            .brokers(args.brokers.as_deref().unwrap_or_default())
            .group("kafka-to-sql")
            .start(Start::Earliest)
            .bounded_if(args.bounded),
    )
    .map(|value| {
        Ok(value.trim().parse::<i64>().map_err(|e| format!("`{value}` is no number of points: {e}"))?)
    })
    .inspect(|_| args.progress.add(1));

    points.sink(
        sql::apply(args.database_url.as_deref().unwrap_or_default(), async |tx: &mut Transaction, points: &[i64]| {
            let sum: i64 = points.iter().sum();
            tx.sql("UPDATE student SET total = total + ? WHERE id = 1", (sum,)).await?;
            Ok(())
        })
        .prepare("CREATE TABLE IF NOT EXISTS student (id BIGINT PRIMARY KEY, total BIGINT NOT NULL)")
        .prepare("INSERT INTO student (id, total) SELECT 1, 0 WHERE NOT EXISTS (SELECT 1 FROM student WHERE id = 1)"),
    );
}

/// What stands in for servers when there are none.
struct Demo {
    /// There until the process ends: a client that closes behind the job would complain of a broker that is gone.
    broker: &'static MockBroker,
    directory: tempfile::TempDir,
}

/// Records in the embedded broker: 1, 2, 3, .. points.
const RECORDS: i64 = 1_000_000;

impl Demo {
    fn start() -> Result<Self, BoxError> {
        println!("no --brokers: using an embedded broker and SQLite; filling in {RECORDS} records");
        let broker = Box::leak(Box::new(MockBroker::start()?));
        broker.create_topic("points", 4)?;
        broker.fill_values("points", (1..=RECORDS).map(|points| points.to_string()))?;
        Ok(Demo { broker, directory: tempfile::tempdir()? })
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("school.db")
    }

    fn arguments(&self, args: &Args) -> Args {
        Args {
            brokers: Some(self.broker.brokers()),
            topic: "points".to_owned(),
            database_url: Some(format!("sqlite:{}", self.database().display())),
            bounded: true,
            progress: args.progress.clone(),
        }
    }

    /// Whether the row is what the records add up to.
    fn check(&self) -> Result<(), BoxError> {
        use flow::sql::diesel::{self, Connection, RunQueryDsl, SqliteConnection};

        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            total: i64,
        }

        let mut connection = SqliteConnection::establish(&self.database().display().to_string())?;
        let row: Row =
            diesel::sql_query("SELECT total FROM student WHERE id = 1").get_result(&mut connection)?;
        let expected = RECORDS * (RECORDS + 1) / 2;
        if row.total == expected {
            println!("total = {} = 1 + 2 + .. + {RECORDS}: every record counted exactly once", row.total);
            Ok(())
        } else {
            Err(format!("the total is {}, but {RECORDS} records add up to {expected}", row.total).into())
        }
    }
}

fn main() -> ExitCode {
    let demo = OnceCell::new();
    let code = flow::run(|args: &Args| -> Job<kafka_to_sql> {
        args.progress.show();
        if args.brokers.is_some() {
            return kafka_to_sql(args);
        }
        match Demo::start() {
            Ok(started) => kafka_to_sql(&demo.get_or_init(|| started).arguments(args)),
            Err(error) => {
                eprintln!("error: the demo could not be set up: {error}");
                std::process::exit(1);
            }
        }
    });
    match demo.get().map(Demo::check) {
        Some(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        _ => code,
    }
}
