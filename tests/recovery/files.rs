//! Files into files: every line once, whatever is killed when.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use flow::{Job, collection, file, pipeline, worker};

use crate::{
    ROUNDS,
    job::{Process, moment},
};

/// Numbers into files, slow enough to be killed in the middle.
#[pipeline(guarantee = exactly_once)]
fn numbers(directory: &Path) {
    source(collection::generate(20_000, |n| n).splits(2).take(300_000))
        .map(|n| format!("line {n}"))
        .sink(file::to_lines(directory));
}

/// The job, when this test binary is started as one.
#[test]
fn as_a_job() {
    let Ok(directory) = std::env::var("FLOW_TEST_JOB") else { return };
    let directory = Path::new(&directory);
    let job: Job<numbers> = numbers(&directory.join("out"));
    let parallelism = std::env::var("FLOW_TEST_PARALLELISM").unwrap().parse().unwrap();
    let mut config = worker::Config::with_parallelism(job.plan(), parallelism);
    config.checkpoint_dir = Some(directory.join("checkpoints").display().to_string());
    config.checkpoint_interval = Some(Duration::from_millis(50));
    worker::run(&job, &config).unwrap();
}

fn numbers_killed(parallelism: usize) {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["files::as_a_job", "--exact", "--nocapture"])
            .env("FLOW_TEST_JOB", directory.path())
            .env("FLOW_TEST_PARALLELISM", parallelism.to_string());
        Process::start(command, &directory.path().join("log"))
    };
    for _ in 0..ROUNDS {
        let mut job = start();
        std::thread::sleep(moment(100, 400));
        job.still_runs();
        job.kill();
    }
    start().finish(Duration::from_secs(60));
    let mut seen = vec![0u8; 300_000];
    for line in lines(&directory.path().join("out")) {
        let n: usize = line.strip_prefix("line ").and_then(|n| n.parse().ok()).expect("a whole line");
        seen[n] += 1;
    }
    let wrong: Vec<_> = seen.iter().enumerate().filter(|(_, times)| **times != 1).take(10).collect();
    assert!(wrong.is_empty(), "numbers, and how often they came: {wrong:?}");
}

#[test]
fn numbers_at_parallelism_1() {
    numbers_killed(1);
}

#[test]
fn numbers_at_parallelism_2() {
    numbers_killed(2);
}

/// `examples/word_count.rs` over a text that takes longer than all the rounds before the last one together.
fn word_count_killed(parallelism: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (input, checkpoints) = (directory.path().join("input.txt"), directory.path().join("checkpoints"));
    let mut text = String::new();
    let mut expected = BTreeMap::<String, u64>::new();
    // The same block again and again: the debug build takes its time.
    for n in 0..100_000u64 {
        for word in [format!("w{}", n % 1000), format!("x{}", n * 7 % 5000), "the".to_owned()] {
            text.push_str(&word);
            text.push(' ');
            *expected.entry(word).or_default() += BLOCKS;
        }
        text.push('\n');
    }
    fs::write(&input, text.repeat(BLOCKS as usize)).unwrap();
    let arguments = [
        "--input".to_owned(),
        input.display().to_string(),
        "--output".to_owned(),
        directory.path().join("out").display().to_string(),
        "--parallelism".to_owned(),
        parallelism.to_string(),
        "--checkpoint-dir".to_owned(),
        checkpoints.display().to_string(),
        "--checkpoint-interval".to_owned(),
        "20ms".to_owned(),
    ];
    let start = || Process::example("word_count", &arguments, &directory.path().join("log"));
    for round in 0..ROUNDS {
        let before = entries(&checkpoints);
        let mut job = start();
        if round % 3 > 0 {
            // It has come further, so that the next round begins elsewhere.
            let deadline = Instant::now() + Duration::from_secs(60);
            while entries(&checkpoints).is_subset(&before) {
                job.still_runs();
                assert!(Instant::now() < deadline, "no checkpoint in a minute:\n{}", job.log());
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(moment(0, 60));
        job.still_runs();
        job.kill();
    }
    start().finish(Duration::from_secs(240));
    let found: BTreeMap<String, u64> = lines(&directory.path().join("out"))
        .map(|line| {
            let (word, n) = line.split_once('\t').expect("word<TAB>count");
            (word.to_owned(), n.parse().expect("a count"))
        })
        .collect();
    assert_eq!(found, expected);
}

/// How many blocks the text has.
const BLOCKS: u64 = 60;

/// The names in a directory, if it is there.
pub(crate) fn entries(directory: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}

#[test]
fn word_count_at_parallelism_1() {
    word_count_killed(1);
}

#[test]
fn word_count_at_parallelism_2() {
    word_count_killed(2);
}

/// The lines of all finished files.
pub(crate) fn lines(directory: &Path) -> impl Iterator<Item = String> {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let hidden = path.file_name().unwrap().to_string_lossy().starts_with(['.', '_']);
        if !hidden {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}
