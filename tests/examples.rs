//! Every example runs, as a user would run it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use rdkafka::{
    Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer as _},
    producer::{BaseProducer, BaseRecord, Producer as _},
};

/// Cargo builds examples before tests, next to them.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test's own path");
    let path: PathBuf =
        test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST").join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo builds it with the tests of the whole package",
        path.display()
    );
    Command::new(path)
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the example starts");
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("text")
}

fn counts(directory: &Path) -> Vec<String> {
    let mut lines: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .flat_map(|file| {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn word_count() {
    for parallelism in ["1", "2"] {
        let directory = tempfile::tempdir().unwrap();
        let (input, output) = (directory.path().join("in.txt"), directory.path().join("out"));
        fs::write(&input, "to be or not to be\nthat is  the question\n").unwrap();
        let mut job = example("word_count");
        job.arg("--input").arg(&input).arg("--output").arg(&output).args(["--parallelism", parallelism]);
        run(&mut job);
        let expected = ["be\t2", "is\t1", "not\t1", "or\t1", "question\t1", "that\t1", "the\t1", "to\t2"];
        assert_eq!(counts(&output), expected);
    }
}

#[test]
fn sensor_alerts() {
    for parallelism in ["1", "2"] {
        let directory = tempfile::tempdir().unwrap();
        let (input, output) = (directory.path().join("readings.csv"), directory.path().join("out"));
        // Out of order, and the second boiler is too hot twice.
        let readings = "sensor,time,celsius\nb1,5000,91.5\nb2,1000,95\nb1,3000,99\nb1,9000,80\nb2,2000,94\nb1,60000,20\n\
                        b2,63000,91\nb1,61000,20\n";
        // With one subtask it is certain what is late: the file is read in several batches.
        let (filler, late_reading) = match parallelism {
            "1" => ("b3,65000,20\n".repeat(100_000), "b2,3000,97\n"),
            _ => (String::new(), ""),
        };
        let readings = format!("{readings}{filler}{late_reading}");
        fs::write(&input, readings).unwrap();
        let mut job = example("sensor_alerts");
        let late = directory.path().join("late");
        job.arg("--input").arg(&input).arg("--output").arg(&output).arg("--late").arg(&late);
        run(job.args(["--parallelism", parallelism]));
        let lates: &[&str] = if parallelism == "1" { &["b2\t3000\t97"] } else { &[] };
        assert_eq!(counts(&late), lates);
        assert_eq!(counts(&output), ["b1\t3\t5\t2\t99", "b2\t1\t2\t2\t95", "b2\t63\t63\t1\t91"]);
    }
}

#[test]
fn hot_items() {
    // Every window by hand: ten minutes, of which one ends each minute.
    let clicks: Vec<(i64, String)> =
        (0..400).map(|n: i64| (n * 1_700 + n * n % 5_000, format!("item-{}", n * n % 7))).collect();
    let mut expected = Vec::new();
    for end in (1..30).map(|minute| minute * 60_000) {
        let mut counts = std::collections::BTreeMap::new();
        for (_, item) in clicks.iter().filter(|(time, _)| (end - 600_000..end).contains(time)) {
            *counts.entry(item).or_insert(0) += 1;
        }
        let mut ranked: Vec<_> = counts.into_iter().collect();
        // Stable: of those clicked equally often, the first by name.
        ranked.sort_by_key(|(_, clicks)| std::cmp::Reverse(*clicks));
        let top = ranked.iter().take(2).enumerate();
        expected
            .extend(top.map(|(i, (item, clicks))| format!("{}\t{}\t{item}\t{clicks}", end / 1000, i + 1)));
    }
    expected.sort();
    for parallelism in ["1", "3"] {
        let directory = tempfile::tempdir().unwrap();
        let (input, output) = (directory.path().join("clicks.csv"), directory.path().join("out"));
        let lines: String = clicks.iter().map(|(time, item)| format!("{item},{time}\n")).collect();
        fs::write(&input, format!("item,time\n{lines}")).unwrap();
        let mut job = example("hot_items");
        job.arg("--input").arg(&input).arg("--output").arg(&output).args(["--top", "2"]);
        run(job.args(["--parallelism", parallelism]));
        assert_eq!(counts(&output), expected, "{parallelism}");
    }
}

#[test]
fn orders_join() {
    for parallelism in ["1", "2"] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        // Out of order; the second one is paid too late, the third one not at all, the fourth one at the last moment,
        // and the payment of an order that is not there is nobody's.
        let orders = "order,time,customer,cents\n1,10000,ann,500\n3,50000,cid,700\n2,20000,bob,900\n\
                      4,5000000,ann,100\n";
        let payments = "order,time,cents\n1,70000,500\n9,60000,1\n2,3620001,900\n4,8600000,100\n";
        fs::write(path("orders.csv"), orders).unwrap();
        fs::write(path("payments.csv"), payments).unwrap();
        let mut job = example("orders_join");
        job.arg("--orders").arg(path("orders.csv")).arg("--payments").arg(path("payments.csv"));
        job.arg("--paid").arg(path("paid")).arg("--unpaid").arg(path("unpaid"));
        run(job.args(["--parallelism", parallelism]));
        assert_eq!(counts(&path("paid")), ["1\tann\t500\t60", "4\tann\t100\t3600"]);
        assert_eq!(counts(&path("unpaid")), ["2\tbob\t900", "3\tcid\t700"]);
    }
}

#[test]
fn word_count_resumes_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("in.txt"), directory.path().join("out"));
    fs::write(&input, "once\n").unwrap();
    let job = || {
        let mut job = example("word_count");
        job.arg("--input").arg(&input).arg("--output").arg(&output);
        job.arg("--checkpoint-dir").arg(directory.path().join("checkpoints"));
        job.args(["--checkpoint-interval", "500ms"]);
        job
    };
    run(&mut job());
    let again = String::from_utf8(run(&mut job()).stderr).unwrap();
    assert!(again.contains("resuming from checkpoint 1"), "{again}");
    assert_eq!(counts(&output), ["once\t1"]);
}

#[test]
fn socket_word_count_until_a_signal() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = example("socket_word_count")
        .args(["--parallelism", "1", "--address", &listener.local_addr().unwrap().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    connection.write_all(b"tick tock tick\n").unwrap();
    let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
    let printed: Vec<_> = lines.by_ref().take(3).map(Result::unwrap).collect();
    assert_eq!(printed, ["(tick,1)", "(tock,1)", "(tick,2)"]);
    let id = job.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(job.wait().unwrap().code(), Some(0));
}

#[test]
fn custom_source() {
    let printed =
        stdout(example("custom_source").args(["--sensors", "2", "--readings", "3", "--pause", "1"]));
    let mut last: Vec<_> = printed.lines().map(|line| line.rsplit("> ").next().unwrap()).collect();
    last.sort_unstable();
    last.dedup();
    assert!(last.contains(&"(0,24.9)") && last.contains(&"(1,25.9)"), "{printed}");
}

#[test]
fn kafka_to_sql_with_embedded_defaults() {
    let printed = stdout(&mut example("kafka_to_sql"));
    assert!(printed.contains("total = 500000500000 "), "{printed}");
}

/// Needs a broker with transactions: `tests/run` starts it.
#[test]
fn kafka_to_kafka() {
    let brokers = std::env::var("FLOW_TEST_KAFKA")
        .expect("FLOW_TEST_KAFKA is not set: run the tests by `tests/run`, which starts the servers");
    let mut config = rdkafka::ClientConfig::new();
    config.set("bootstrap.servers", &brokers);
    let name = |what: &str| format!("example-{what}-{}", std::process::id());
    let (input, output) = (name("orders"), name("totals"));
    let admin: AdminClient<DefaultClientContext> = config.create().unwrap();
    let topics = [&input, &output].map(|name| NewTopic::new(name, 2, TopicReplication::Fixed(1)));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for result in runtime.block_on(admin.create_topics(&topics, &AdminOptions::new())).unwrap() {
        result.unwrap();
    }
    let producer: BaseProducer = config.create().unwrap();
    for order in [
        r#"{"id":1,"customer":"ann","pieces":3,"price":250}"#,
        r#"{"id":2,"customer":"bob","pieces":1,"price":null}"#,
        r#"{"id":3,"customer":"bob","pieces":2,"price":99}"#,
    ] {
        producer.send(BaseRecord::<(), _>::to(&input).payload(order)).unwrap();
    }
    producer.flush(Duration::from_secs(30)).unwrap();

    let mut job = example("kafka_to_kafka");
    job.args(["--brokers", &brokers, "--input", &input, "--output", &output, "--bounded"]);
    run(job.args(["--parallelism", "2"]));

    let mut config = config.clone();
    config.set("group.id", "example").set("isolation.level", "read_committed");
    let consumer: BaseConsumer = config.set("auto.offset.reset", "earliest").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_range(&output, 0, 1);
    list.set_all_offsets(Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    let mut found: Vec<_> = (0..2)
        .map(|_| {
            let message = consumer.poll(Duration::from_secs(30)).expect("a record").unwrap();
            (text(message.key()), text(message.payload()))
        })
        .collect();
    found.sort();
    let expected = [("ann", r#"{"order":1,"cents":750}"#), ("bob", r#"{"order":3,"cents":198}"#)];
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    drop(consumer);
    let _ = runtime.block_on(admin.delete_topics(&[&input, &output], &AdminOptions::new()));
}

#[test]
fn plans_are_shown_without_running_anything() {
    let names = [
        "word_count",
        "socket_word_count",
        "kafka_word_count",
        "custom_source",
        "kafka_to_sql",
        "kafka_to_kafka",
    ];
    for name in names {
        let text = stdout(example(name).arg("plan"));
        assert!(text.contains(".source -> ") || text.contains("source -> "), "{text}");
        let mermaid = stdout(example(name).args(["plan", "--format", "mermaid"]));
        assert!(mermaid.starts_with("flowchart LR\n"), "{mermaid}");
        let json: serde_json::Value =
            serde_json::from_str(&stdout(example(name).args(["plan", "--format", "json"]))).unwrap();
        assert!(json["operators"].as_array().is_some_and(|operators| operators.len() > 2), "{json}");
        let help = stdout(example(name).arg("--help"));
        assert!(help.contains("--checkpoint-dir") && help.contains("plan"), "{help}");
    }
}

/// `tests/nexmark` does the same in an optimized program with a hundred times the events.
#[test]
fn nexmark() {
    let arguments = "--query all --check --events 10000 --parallelism 2 --rescale 1";
    let printed = stdout(example("nexmark").args(arguments.split(' ')));
    let lines = printed.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    assert_eq!(lines.len(), 21);
    assert!(lines.iter().all(|line| line["events"] == 10_000), "{printed}");
}

#[test]
fn bad_arguments_are_explained() {
    let output = example("word_count").args(["--input", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--output"));

    let missing = tempfile::tempdir().unwrap();
    let output = example("word_count")
        .arg("--input")
        .arg(missing.path().join("nothing-here.txt"))
        .arg("--output")
        .arg(missing.path().join("out"))
        .args(["--restart", "none"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = errors.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains("nothing-here.txt"), "{errors}");
}

#[test]
fn two_phase_sink() {
    let directory = tempfile::tempdir().unwrap();
    let (spool, checkpoints) = (directory.path().join("spool"), directory.path().join("checkpoints"));
    for _ in 0..2 {
        let mut job = example("two_phase_sink");
        job.arg("--spool").arg(&spool).args(["--orders", "20000", "--parallelism", "2"]);
        run(job.arg("--checkpoint-dir").arg(&checkpoints));
        // The second run finds everything done.
        let invoices = counts(&spool);
        assert_eq!(invoices.len(), 20_000);
        assert_eq!(invoices[0], "invoice 0: 0 EUR");
    }
}
