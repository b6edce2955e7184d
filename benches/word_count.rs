//! Word count over a text file, an update per word, against two loops written by hand: one that owns each word, and
//! one that borrows words and allocates for new ones only. All read the file, and use the same map and hasher.

mod common;

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use common::{Seen, Tally, check, compare, size, way};
use flow::{file, pipeline, worker};
use hashbrown::HashMap;

#[pipeline]
fn word_count(input: &Path, seen: &Seen) {
    let words = source(file::text(input.display().to_string()))
        .flat_map(|line| line.split_ascii_whitespace())
        .map(|word| (word, 1u64));
    words.key_by(|(word, _)| *word).sum(|(_, n)| *n).sink(Tally(seen.clone()));
}

fn flow(input: &Path, seen: &Seen, parallelism: usize, checkpoint: Option<Duration>) -> u64 {
    let job = word_count(input, seen);
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_interval = checkpoint.or(Some(Duration::from_secs(3600)));
    let directory = tempfile::tempdir().expect("a temporary directory");
    if checkpoint.is_some() {
        config.checkpoint_dir = Some(directory.path().display().to_string());
    }
    worker::run(&job, &config).expect("the job runs");
    seen.take()
}

type Map = HashMap<String, u64, foldhash::fast::FixedState>;

fn floor(input: &Path, mut update: impl FnMut(&mut Map, &str) -> u64) -> u64 {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(input).expect("the input"));
    let (mut map, mut line, mut count, mut sum) = (Map::default(), String::new(), 0u64, 0u64);
    while reader.read_line(&mut line).expect("text") > 0 {
        for word in line.split_ascii_whitespace() {
            count += 1;
            sum = sum.wrapping_add(update(&mut map, word));
        }
        line.clear();
    }
    check(count, sum)
}

fn own(map: &mut Map, word: &str) -> u64 {
    let n = map.entry(word.to_owned()).or_insert(0);
    *n += 1;
    *n
}

fn borrow(map: &mut Map, word: &str) -> u64 {
    let n = map.entry_ref(word).or_insert(0);
    *n += 1;
    *n
}

/// A text of about this many bytes: 10,000 words, the frequent ones short and much more frequent, as in a language.
fn text(bytes: u64) -> (PathBuf, u64) {
    let path = std::env::temp_dir().join(format!("flow-bench-words-{bytes}.txt"));
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut writer = BufWriter::new(File::create(&path).expect("a file in the temporary directory"));
    let (mut written, mut words) = (0, 0);
    while written < bytes {
        let mut line = String::new();
        for _ in 0..12 {
            let uniform = (random() >> 11) as f64 / (1u64 << 53) as f64;
            // Zipf's law, roughly: the rank's logarithm is uniform.
            let rank = 10_000f64.powf(uniform) as u64;
            line.push_str(&spell(rank));
            line.push(' ');
            words += 1;
        }
        line.pop();
        line.push('\n');
        written += line.len() as u64;
        writer.write_all(line.as_bytes()).expect("room in the temporary directory");
    }
    writer.flush().expect("room in the temporary directory");
    (path, words)
}

fn spell(mut rank: u64) -> String {
    let mut word = String::new();
    loop {
        word.push(char::from(b'a' + (rank % 26) as u8));
        word.push(char::from(b'a' + (rank * 7 % 23) as u8));
        rank /= 26;
        if rank == 0 {
            return word;
        }
    }
}

fn main() {
    let (input, words) = text(size("FLOW_BENCH_BYTES", 500_000_000));
    let rounds = size("FLOW_BENCH_ROUNDS", 5) as usize;
    let seen = Seen::default();
    let second = Some(Duration::from_secs(1));
    let rates = compare(
        "word count over text",
        words,
        rounds,
        vec![
            way("floor: borrows words", || floor(&input, borrow)),
            way("floor: owns each word", || floor(&input, own)),
            way("flow, parallelism 1", || flow(&input, &seen, 1, None)),
            way("flow, parallelism 1, exactly once each second", || flow(&input, &seen, 1, second)),
            way("flow, parallelism 2", || flow(&input, &seen, 2, None)),
        ],
    );
    println!("  flow, parallelism 1: {:.2} of the floor that owns each word", rates[2] / rates[1]);
    println!("  checkpoints each second cost {:.1} %", (1.0 - rates[3] / rates[2]) * 100.0);
    std::fs::remove_file(input).expect("the file was there");
}
