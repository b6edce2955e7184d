//! Word count over a text file, an update per word, against two loops written by hand: one that owns each word, and
//! one that borrows words and allocates for new ones only. All read the file, and use the same map and hasher.

mod common;

use std::{
    fs::{File, rename},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use common::{Bench, Seen, Tally, check, size};
use flow::{file, pipeline, worker};
use hashbrown::HashMap;

#[pipeline]
fn word_count(input: &Path, seen: &Seen) {
    let words = source(file::text(input.display().to_string()))
        .flat_map(|line| line.split_ascii_whitespace())
        .map(|word| (word, 1u64));
    words.key_by(|(word, _)| *word).sum(|(_, n)| *n).sink(Tally(seen.clone()));
}

fn flow(input: &Path, parallelism: usize, checkpoint: Option<Duration>) -> u64 {
    let seen = Seen::default();
    let job = word_count(input, &seen);
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

/// A text of so many words: of 10,000 different ones, the frequent ones short and much more frequent, as in a language.
fn text(words: u64) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("words-{words}.txt"));
    if path.exists() {
        return path;
    }
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let partial = path.with_extension("partial");
    let mut writer = BufWriter::new(File::create(&partial).expect("a file in the target directory"));
    for n in 1..=words {
        let uniform = (random() >> 11) as f64 / (1u64 << 53) as f64;
        // Zipf's law, roughly: the rank's logarithm is uniform.
        let rank = 10_000f64.powf(uniform) as u64;
        let end = if n.is_multiple_of(12) { '\n' } else { ' ' };
        write!(writer, "{}{end}", spell(rank)).expect("room in the target directory");
    }
    writer.flush().expect("room in the target directory");
    rename(partial, &path).expect("the file was written");
    path
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

const EACH_SECOND: Option<Duration> = Some(Duration::from_secs(1));

fn main() {
    let words = size("FLOW_BENCH_WORDS", 100_000_000);
    let input = text(words);
    let mut bench = Bench::new("word_count", "An update per word of a text file of 10,000 different words.");
    let with = |run: fn(&Path) -> u64| {
        let input = input.clone();
        move || run(&input)
    };
    bench
        .case("word count over text", words)
        .way("floor: borrows words", with(|input| floor(input, borrow)))
        .way("floor: owns each word", with(|input| floor(input, own)))
        .way("flow, parallelism 1", with(|input| flow(input, 1, None)))
        .way("flow, parallelism 1, exactly once each second", with(|input| flow(input, 1, EACH_SECOND)))
        .way("flow, parallelism 2", with(|input| flow(input, 2, None)));
    bench.run();
}
