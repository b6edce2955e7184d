//! A split that is ahead of the others in event time waits for them: of files and of Kafka.

use std::{
    fmt::Write as _,
    fs,
    sync::{Arc, Mutex},
};

use flow::{
    Error, Job, file,
    kafka::{self, Start, mock::MockBroker},
    pipeline,
    testing::{Harness, Output},
    watermark::bounded,
    window::tumbling,
};

/// Lines in each split. One second passes between two of the fast one, and a quarter of it between two of the slow one.
const LINES: i64 = 1_000;
const FAST: i64 = 1_000;
const SLOW: i64 = 250;

/// What is under way when a split has to wait: some batches of 32 lines, a line being 8 KiB long.
const UNDER_WAY: i64 = 8 * 32 * FAST;

fn line(split: &str, time: i64) -> String {
    let mut line = format!("{split} {time} ");
    let _ = write!(line, "{:.<8192}", "");
    line
}

fn parse(line: &str) -> Result<(bool, i64), std::num::ParseIntError> {
    let mut fields = line.split(' ');
    let fast = fields.next() == Some("fast");
    Ok((fast, fields.next().unwrap_or_default().parse()?))
}

/// How far the fast split got ahead.
#[derive(Default)]
struct Lead {
    slow: i64,
    most: i64,
}

impl Lead {
    fn see(&mut self, fast: bool, time: i64) {
        if !fast {
            self.slow = time;
        } else if self.slow < (LINES - 1) * SLOW {
            self.most = self.most.max(time - self.slow);
        }
    }
}

type Counted = (bool, i64, u64);

#[pipeline]
fn files(directory: &str, lead: Arc<Mutex<Lead>>, out: Output<Counted>) {
    let lines = source(file::text(directory))
        .watermarks(bounded("0s").with_alignment("10s").with_idleness("1h"), |line| Ok(parse(line)?.1));
    lines
        .map(|line| {
            let (fast, time) = parse(line)?;
            lead.lock().unwrap().see(fast, time);
            Ok((fast, time))
        })
        .key_by(|(fast, _)| *fast)
        .window(tumbling("5s"))
        .count()
        .with(|fast, window, count| (fast, window.start.as_millis(), count))
        .sink(out);
}

/// As [`files`], and nobody waits.
#[pipeline]
fn unaligned(directory: &str, lead: Arc<Mutex<Lead>>, out: Output<Counted>) {
    let lines = source(file::text(directory)).watermarks(bounded("0s"), |line| Ok(parse(line)?.1));
    lines
        .map(|line| {
            let (fast, time) = parse(line)?;
            lead.lock().unwrap().see(fast, time);
            Ok((fast, time))
        })
        .key_by(|(fast, _)| *fast)
        .window(tumbling("5s"))
        .count()
        .with(|fast, window, count| (fast, window.start.as_millis(), count))
        .sink(out);
}

#[pipeline]
fn topic(brokers: String, lead: Arc<Mutex<Lead>>, out: Output<Counted>) {
    let lines = source(kafka::lines("lines").brokers(brokers).start(Start::Earliest).bounded())
        .watermarks(bounded("0s").with_alignment("10s").with_idleness("1h"), |line| Ok(parse(line)?.1));
    lines
        .map(|line| {
            let (fast, time) = parse(line)?;
            lead.lock().unwrap().see(fast, time);
            Ok((fast, time))
        })
        .key_by(|(fast, _)| *fast)
        .window(tumbling("5s"))
        .count()
        .with(|fast, window, count| (fast, window.start.as_millis(), count))
        .sink(out);
}

/// Runs a job to its end, and says how far the fast split got ahead.
fn lead<D: flow::Definition + 'static>(
    parallelism: usize,
    job: impl FnOnce(Arc<Mutex<Lead>>, Output<Counted>) -> Job<D>,
) -> Result<i64, Error> {
    let mut test = Harness::new();
    let (lead, out) = (Arc::<Mutex<Lead>>::default(), test.output());
    test.parallelism(parallelism).start(job(Arc::clone(&lead), out.clone()))?;
    let summary = test.finish()?;
    assert_eq!(summary.late.values().sum::<u64>(), 0);
    let windows = |fast: bool, pace: i64| {
        (0..LINES * pace / 5_000).map(move |window| (fast, window * 5_000, (5_000 / pace) as u64))
    };
    assert_eq!(out.take_sorted(), windows(false, SLOW).chain(windows(true, FAST)).collect::<Vec<_>>());
    let most = lead.lock().unwrap().most;
    Ok(most)
}

#[test]
fn the_file_that_is_ahead_waits() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, pace) in [("fast", FAST), ("slow", SLOW)] {
        let lines: Vec<_> = (0..LINES).map(|n| line(name, n * pace)).collect();
        fs::write(directory.path().join(name), lines.join("\n")).expect("written");
    }
    let path = directory.path().to_str().expect("text");
    for parallelism in [1, 2] {
        let most = lead(parallelism, |lead, out| files(path, lead, out))?;
        assert!((1..10_000 + UNDER_WAY).contains(&most), "{most} ms ahead at parallelism {parallelism}");
    }
    // One reader takes one file after the other, if nobody says otherwise.
    let most = lead(1, |lead, out| unaligned(path, lead, out))?;
    assert!(most > 3 * UNDER_WAY, "{most} ms ahead");
    Ok(())
}

#[test]
fn the_partition_that_is_ahead_waits() -> Result<(), Error> {
    let broker = MockBroker::start().expect("a broker");
    broker.create_topic("lines", 2).expect("a topic");
    let both = |n| [line("fast", n * FAST), line("slow", n * SLOW)];
    broker.fill_values("lines", (0..LINES).flat_map(both)).expect("filled");
    for parallelism in [1, 2] {
        let most = lead(parallelism, |lead, out| topic(broker.brokers(), lead, out))?;
        assert!((1..10_000 + UNDER_WAY).contains(&most), "{most} ms ahead at parallelism {parallelism}");
    }
    Ok(())
}
