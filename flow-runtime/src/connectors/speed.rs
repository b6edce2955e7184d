//! How fast connectors are alone, beside a loop without them:
//! `cargo test --release -p flow-runtime speed -- --ignored --nocapture --test-threads=1`.

use std::{fmt::Write as _, fs, hint::black_box, time::Instant};

use super::{collection, file};
use crate::{
    checkpoint::CheckpointId,
    sink::{Sink, SinkBuffer, SinkContext, SinkWriter, Write},
    source::{Batch, Fetched, Progress, Source, SourceContext, SourceReader},
};

/// The best of five, in seconds.
fn best<R>(mut work: impl FnMut() -> R) -> f64 {
    let once = |_| {
        let began = Instant::now();
        black_box(work());
        began.elapsed().as_secs_f64()
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

/// Text of about `bytes`, in lines of some ten words; `ä` puts a few bytes that are not ASCII into each line.
fn words(bytes: usize, ascii: bool) -> String {
    let (mut text, mut state) = (String::with_capacity(bytes + 100), 1u64);
    while text.len() < bytes {
        for _ in 0..10 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let end = if ascii { ' ' } else { 'ä' };
            write!(text, "w{}{end}", (state >> 33) % 10_000).expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

/// Runs all of a source through `chain`, batch by batch.
async fn drain<S: Source>(source: &S, mut chain: impl FnMut(&mut S::Batch)) {
    let cx = SourceContext { job: "job".into(), operator: "speed".into(), subtask: 0, parallelism: 1 };
    let mut reader = source.open(cx, source.discover(false).await.unwrap()).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    loop {
        let progress = reader.fetch(&mut fetched).await.unwrap();
        chain(&mut fetched.batch);
        fetched.advanced.clear();
        if progress == Progress::Finished {
            return;
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn text() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for ascii in [true, false] {
        let text = words(250_000_000, ascii);
        let gigabytes = text.len() as f64 / 1e9;
        let path = dir.path().join("words.txt");
        fs::write(&path, &text).unwrap();
        let lines = text.lines().count();
        let floor = best(|| text.lines().fold((0, 0), |(n, len), line| (n + 1, len + line.len())));
        let source = file::text(path.to_str().unwrap());
        let read = best(|| {
            runtime.block_on(async {
                let (mut n, mut len) = (0, 0);
                drain(&source, |batch| {
                    for line in batch.records() {
                        n += 1;
                        len += line.len();
                    }
                })
                .await;
                assert_eq!(n, lines);
                len
            })
        });
        println!("ascii {ascii}: str::lines over memory {:.2} GB/s", gigabytes / floor);
        println!("ascii {ascii}: text() from the page cache {:.2} GB/s", gigabytes / read);
    }
}

#[test]
#[ignore = "a measurement"]
fn word_count() {
    type Counts = hashbrown::HashMap<String, u64, foldhash::fast::RandomState>;
    fn count(counts: &mut Counts, line: &str) -> u64 {
        let mut n = 0;
        for word in line.split_whitespace() {
            *counts.entry_ref(word).or_insert(0) += 1;
            n += 1;
        }
        n
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = words(250_000_000, true);
    let path = dir.path().join("words.txt");
    fs::write(&path, &text).unwrap();
    let mut n = 0;
    let floor = best(|| {
        let mut counts = Counts::default();
        n = text.lines().map(|line| count(&mut counts, line)).sum();
    });
    let source = file::text(path.to_str().unwrap());
    let read = best(|| {
        let mut counts = Counts::default();
        runtime.block_on(drain(&source, |batch| {
            for line in batch.records() {
                black_box(count(&mut counts, line));
            }
        }));
    });
    println!("word count: over memory {:.1} M/s", n as f64 / floor / 1e6);
    println!("word count: through text() {:.1} M/s", n as f64 / read / 1e6);
}

#[inline(always)]
fn call<A, R>(a: A, f: impl FnOnce(A) -> R) -> R {
    f(a)
}

#[test]
#[ignore = "a measurement"]
fn numbers() {
    const N: u64 = 300_000_000;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    macro_rules! chain {
        ($records:expr, $n:ident, $sum:ident) => {
            for rec in $records {
                let rec = call(rec, |x| x * 3 + 1);
                if call(&rec, |x| x % 7 != 0) {
                    let rec = call(rec, |x| x ^ (x >> 3));
                    $n += 1;
                    $sum = u64::wrapping_add($sum, rec);
                }
            }
        };
    }
    let floor = best(|| {
        let (mut n, mut sum) = (0u64, 0u64);
        chain!(0..black_box(N), n, sum);
        (n, sum)
    });
    macro_rules! through {
        ($name:literal, $source:expr) => {
            let source = $source;
            let time = best(|| {
                let (mut n, mut sum) = (0u64, 0u64);
                runtime.block_on(drain(&source, |batch| {
                    // In registers, as in the loop.
                    let (mut some, mut of) = (0u64, 0u64);
                    chain!(batch.records(), some, of);
                    n += some;
                    sum = sum.wrapping_add(of);
                }));
                (n, sum)
            });
            println!("{}: {:.0} M/s, {:.2} of the loop", $name, N as f64 / time / 1e6, floor / time);
        };
    }
    println!("plain loop: {:.0} M/s", N as f64 / floor / 1e6);
    through!("iterate", collection::iterate(|| 0..black_box(N)));
    through!("range", collection::range(0..N));
    through!("collection", collection::collection((0..N).collect::<Vec<u64>>()));
}

#[test]
#[ignore = "a measurement"]
fn tsv() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cx = SinkContext { attempt: 1, ..SinkContext::new("job", "speed") };
    let dir = tempfile::tempdir().unwrap();
    let text = words(50_000_000, true);
    let all: Vec<&str> = text.split_whitespace().collect();
    macro_rules! sink {
        ($name:literal, $sink:expr) => {
            let sink = $sink;
            let mut buffer = sink.buffer(&cx);
            let encode = best(|| {
                for (n, word) in all.iter().enumerate() {
                    buffer.write((*word, n)).unwrap();
                    if buffer.is_full() {
                        buffer.clear();
                    }
                }
            });
            let write = best(|| {
                runtime.block_on(async {
                    sink.recover(&cx, Vec::new()).await.unwrap();
                    let (mut writer, _) = sink.open(&cx).await.unwrap();
                    for (n, word) in all.iter().enumerate() {
                        buffer.write((*word, n)).unwrap();
                        if buffer.is_full() {
                            writer.write(&mut buffer).await.unwrap();
                            buffer.clear();
                        }
                    }
                    writer.write(&mut buffer).await.unwrap();
                    buffer.clear();
                    writer.pre_commit(CheckpointId(1)).await.unwrap();
                })
            });
            let rows = all.len() as f64 / 1e6;
            println!(
                "{}: encoded {:.1} M rows/s, written and synced {:.1} M rows/s",
                $name,
                rows / encode,
                rows / write
            );
        };
    }
    sink!("to_tsv", file::to_tsv(dir.path()));
    sink!("to_json_lines", file::to_json_lines(dir.path()));
}
