//! Counting words allocates for new words and per batch, never per record.

mod common;

use std::{
    alloc::System,
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use common::{Collected, run};
use flow::{Definition, Job, file, pipeline};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type Counts = Collected<(String, u64)>;

#[pipeline(mode = batch)]
fn final_counts(input: &str, out: Counts) {
    let words = source(file::text(input))
        .flat_map(|line| line.split_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| (word, 1u64));
    let counts = words.key_by(|(word, _)| *word).sum(|(_, n)| *n);
    counts.map(|(word, n)| (word.to_owned(), n)).sink(out.transactional());
}

#[pipeline]
fn rolling_counts(input: &str, out: Counts) {
    let words = source(file::text(input)).flat_map(|line| line.split_whitespace());
    let counts = words.key_by(|word| *word).count();
    // All updates go through the loop, and few to the sink.
    let some = counts.filter(|(_, n)| *n == 1).map(|(word, n)| (word.to_owned(), n));
    some.sink(out.transactional());
}

/// 1000 different words, so many times; some too long to be kept in place.
fn text(dir: &Path, times: usize) -> String {
    let path = dir.join(format!("{times}.txt"));
    let word = |n: usize| {
        if n.is_multiple_of(10) { format!("a-word-of-more-than-24-bytes-{n}") } else { format!("w{n}") }
    };
    let lines: Vec<String> =
        (0..100).map(|line| (0..10).map(|n| word(10 * line + n)).collect::<Vec<_>>().join(" ")).collect();
    fs::write(&path, (lines.join("\n") + "\n").repeat(times)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The allocations of a run over the text.
fn allocations<D: Definition + 'static>(job: Job<D>) -> usize {
    let region = Region::new(ALLOCATOR);
    run(job, 1);
    region.change().allocations
}

fn more_text_costs_no_more<D: Definition + 'static>(pipeline: fn(&str, Counts) -> Job<D>) {
    // The counter is of the whole process.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let (small, large) = (text(dir.path(), 100), text(dir.path(), 1000));
    let bytes = |path: &str| fs::metadata(path).unwrap().len();
    // Whatever is made once in a process.
    allocations(pipeline(&small, Collected::new()));
    let few = allocations(pipeline(&small, Collected::new()));
    let many = allocations(pipeline(&large, Collected::new()));
    let (batches, words) = ((bytes(&large) - bytes(&small)).div_ceil(256 << 10), 900_000);
    let more = many.saturating_sub(few);
    assert!(more as u64 <= 10 * batches + 100, "{more} allocations for {words} words in {batches} batches");
}

#[test]
fn final_results_allocate_for_new_words_only() {
    more_text_costs_no_more(final_counts);
}

#[test]
fn updates_allocate_for_new_words_only() {
    more_text_costs_no_more(rolling_counts);
}
