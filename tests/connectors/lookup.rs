//! Records are joined with a table of a database: as it is, through a cache, and as it was at the time of the record.

use std::time::Duration;

use flow::{
    Error,
    async_io::Lookup,
    pipeline,
    sql::{
        self,
        diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _},
    },
    testing::{Harness, Input, Output},
    watermark::bounded,
    window::tumbling,
};

/// When, by which user, in which currency, how much.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Order {
    at: i64,
    user: i64,
    currency: String,
    cents: u64,
}

fn order(at: i64, user: i64, currency: &str, cents: u64) -> Order {
    Order { at, user, currency: currency.to_owned(), cents }
}

#[derive(Clone, Debug, serde::Deserialize)]
struct User {
    name: String,
    tier: Option<i64>,
}

/// A database in a file, for as long as the directory is there.
struct Database(tempfile::TempDir);

impl Database {
    fn new(statements: &str) -> Self {
        let database = Database(tempfile::tempdir().expect("a directory"));
        database.run(statements);
        database
    }

    fn path(&self) -> String {
        self.0.path().join("tables.db").display().to_string()
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path())
    }

    fn run(&self, statements: &str) {
        let mut connection = SqliteConnection::establish(&self.path()).expect("a database");
        connection.batch_execute(statements).expect("good statements");
    }
}

#[pipeline]
fn named(
    orders: Input<Order>,
    database: String,
    names: Output<(u64, String, Option<i64>)>,
    all: Output<(u64, Option<String>)>,
) {
    let users = sql::lookup(database.clone(), "SELECT name, tier FROM users WHERE id = ?");
    let orders = source(orders);
    orders
        .lookup_join(users.cache(100, "1m"), |order| order.user)
        .with(|order, user: User| (order.cents, user.name, user.tier))
        .sink(names);
    orders
        .left_lookup_join(sql::lookup(database, "SELECT name FROM users WHERE id = ?"), |order| order.user)
        .with(|order, name: Option<String>| (order.cents, name))
        .sink(all);
}

#[test]
fn orders_get_the_names_of_their_users() -> Result<(), Error> {
    for parallelism in [1, 2] {
        let database = Database::new(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tier INTEGER);
             INSERT INTO users VALUES (1, 'Ada', 3), (2, 'Grace', NULL);",
        );
        let mut test = Harness::new();
        let (orders, names, all) = (test.input(), test.output(), test.output());
        let job = || named(orders.clone(), database.url(), names.clone(), all.clone());
        test.parallelism(parallelism).start(job())?;
        orders.push_all([order(0, 1, "EUR", 10), order(0, 2, "EUR", 20), order(0, 3, "EUR", 30)]);
        let before = test.snapshot()?;
        test.settle()?;
        let found = |cents, name: &str, tier| (cents, name.to_owned(), tier);
        assert_eq!(names.take_sorted(), [found(10, "Ada", Some(3)), found(20, "Grace", None)]);
        let left = |cents, name: Option<&str>| (cents, name.map(str::to_owned));
        assert_eq!(all.take_sorted(), [left(10, Some("Ada")), left(20, Some("Grace")), left(30, None)]);

        // What was found stays in the cache for a minute, and that nothing was found does not.
        database
            .run("UPDATE users SET name = 'Augusta' WHERE id = 1; INSERT INTO users VALUES (3, 'Edsger', 1)");
        orders.push_all([order(0, 1, "EUR", 40), order(0, 3, "EUR", 50)]);
        test.settle()?;
        assert_eq!(names.take_sorted(), [found(40, "Ada", Some(3)), found(50, "Edsger", Some(1))]);
        assert_eq!(all.take_sorted(), [left(40, Some("Augusta")), left(50, Some("Edsger"))]);
        test.advance(Duration::from_secs(60))?;
        orders.push(order(0, 1, "EUR", 60));
        test.settle()?;
        assert_eq!(names.take(), [found(60, "Augusta", Some(3))]);
        drop(all.take());

        // What is asked again after a restore is what is there by then. No order is lost, or there twice.
        test.parallelism(3 - parallelism).restore(&before, job())?;
        test.finish()?;
        let cents: Vec<_> = all.take_sorted().into_iter().map(|(cents, _)| cents).collect();
        assert!(cents.ends_with(&[40, 50, 60]) && cents.len() < 7, "{cents:?}");
    }
    Ok(())
}

/// In euros per hour, at the rate that was valid when the order was placed.
#[pipeline]
fn converted(
    orders: Input<Order>,
    database: String,
    euros: Output<(i64, Option<u64>)>,
    per_hour: Output<(i64, u64)>,
) {
    let rates = sql::lookup(
        database,
        "SELECT rate FROM rates WHERE currency = ?1 AND valid_from <= ?2 AND ?2 < valid_to",
    );
    let at_their_time = source(orders)
        .watermarks(bounded("1h"), |order| order.at)
        .left_lookup_join(rates.cache(1_000, "1h"), |order| (order.currency.clone(), order.at))
        .with(|order, rate: Option<u64>| (order.at, rate.map(|rate| order.cents * rate)));
    at_their_time.sink(euros);
    at_their_time
        .window_all(tumbling("1h"))
        .sum(|(_, cents)| cents.unwrap_or(0))
        .with(|window, cents| (window.start.as_millis(), cents))
        .sink(per_hour);
}

#[test]
fn a_versioned_table_is_joined_as_of_the_time_of_the_record() -> Result<(), Error> {
    const HOUR: i64 = 3_600_000;
    let database = Database::new(&format!(
        "CREATE TABLE rates (currency TEXT, rate INTEGER, valid_from INTEGER, valid_to INTEGER);
         INSERT INTO rates VALUES
             ('USD', 2, 0, {HOUR}), ('USD', 3, {HOUR}, {}), ('GBP', 5, 0, {});",
        i64::MAX,
        i64::MAX,
    ));
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (orders, euros, per_hour) = (test.input(), test.output(), test.output());
        let job = || converted(orders.clone(), database.url(), euros.clone(), per_hour.clone());
        test.parallelism(parallelism).start(job())?;
        // Out of order, and at the edges of what is valid when.
        orders.push_all([
            order(HOUR, 1, "USD", 10),
            order(HOUR - 1, 1, "USD", 10),
            order(2 * HOUR, 1, "GBP", 10),
            order(0, 1, "USD", 100),
            order(7, 1, "JPY", 100),
        ]);
        test.settle()?;
        let found = [(0, Some(200)), (7, None), (HOUR - 1, Some(20)), (HOUR, Some(30)), (2 * HOUR, Some(50))];
        assert_eq!(euros.take_sorted(), found);
        // The join does not touch the times: the windows behind it are of the orders.
        test.finish()?;
        assert_eq!(per_hour.take_sorted(), [(0, 220), (HOUR, 30), (2 * HOUR, 50)]);
    }
    Ok(())
}
