//! The hot loops take no more instructions per record than they did, to within three per cent. Instructions are
//! counted by callgrind, so the machine may be as busy as it likes: the same program takes the same number.
//!
//! ```text
//! cargo test --release -p flow-instructions                         # checks
//! FLOW_INSTRUCTIONS=write cargo test --release -p flow-instructions # writes what it finds as the new measure
//! ```
#![cfg(target_arch = "x86_64")]

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// By which a figure may differ from what it was.
const TOLERANCE: f64 = 0.03;

/// Each loop, and a number of records after which nothing new happens in it.
const LOOPS: [(&str, u64); 8] = [
    ("chain", 200_000),
    ("word_count", 200_000),
    ("keyed_count", 200_000),
    ("tumbling_windows", 2_000_000),
    ("session_windows", 1_000_000),
    ("sliding_windows", 500_000),
    ("window_join", 200_000),
    ("interval_join", 200_000),
];

#[test]
fn hot_loops_take_no_more_instructions_than_they_did() {
    let program = build();
    let found: BTreeMap<&str, f64> =
        LOOPS.iter().map(|(name, records)| (*name, per_record(&program, name, *records))).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.tsv");
    if env::var("FLOW_INSTRUCTIONS").is_ok_and(|what| what == "write") {
        let lines = found.iter().map(|(name, instructions)| format!("{name}\t{instructions:.2}\n"));
        fs::write(&file, lines.collect::<String>()).expect("the file of this package");
        return;
    }
    let text = fs::read_to_string(&file).expect("the figures are checked in");
    let known: BTreeMap<&str, f64> = text
        .lines()
        .map(|line| line.split_once('\t').expect("a name and a figure"))
        .map(|(name, figure)| (name, figure.parse().expect("a figure")))
        .collect();
    assert_eq!(known.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "each loop has a figure");
    let mut wrong = Vec::new();
    for (name, now) in found {
        let before = known[name];
        println!("{name:20} {before:8.2} -> {now:8.2} instructions per record");
        if (now / before - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{name}: {before:.2} -> {now:.2}, {:+.1} %", (now / before - 1.0) * 100.0));
        }
    }
    assert!(
        wrong.is_empty(),
        "instructions per record changed by more than {} %:\n{}\nIf this is meant, or better than before, run with \
         FLOW_INSTRUCTIONS=write and say why in docs/performance.md.",
        TOLERANCE * 100.0,
        wrong.join("\n")
    );
}

/// The loops as they are used: with optimizations. If this test has none, they are built.
fn build() -> PathBuf {
    if !cfg!(debug_assertions) {
        return env!("CARGO_BIN_EXE_hot_loops").into();
    }
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments =
        ["build", "--release", "--locked", "--package", "flow-instructions", "--bin", "hot_loops"];
    let status = Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.expect("cargo starts").success(), "the loops do not build");
    // This test is in TARGET/PROFILE/deps.
    let test = env::current_exe().expect("the test's own path");
    test.ancestors().nth(3).expect("the target directory").join("release/hot_loops")
}

/// What a record takes when everything has been seen before: the difference between a run and one of twice the length.
fn per_record(program: &Path, name: &str, records: u64) -> f64 {
    let [short, long] = [2 * records, 4 * records].map(|records| instructions(program, name, records));
    (long - short) as f64 / (2 * records) as f64
}

/// Of a whole run.
fn instructions(program: &Path, name: &str, records: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (out, input) = (folder.path().join("out"), folder.path().join("words.txt"));
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(program).arg(name);
    if name == "word_count" {
        write_words(&input, records).expect("a file in the temporary directory");
        command.arg(&input);
    } else {
        command.arg(records.to_string());
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("valgrind, which counts the instructions, does not start: {error}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let counts = fs::read_to_string(out).expect("callgrind's output");
    let total = counts.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a sum");
    total.trim().parse().expect("a number")
}

/// Lines of twelve words, of which some are much more frequent than others, as in a language.
fn write_words(path: &Path, words: u64) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for n in 1..=words {
        let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let rank = 1_u64 << (spread % 13);
        let end = if n.is_multiple_of(12) { '\n' } else { ' ' };
        write!(file, "word{}{end}", rank + spread % rank)?;
    }
    file.flush()
}
