//! Counting words allocates for new words and per batch, never per record. A chain, and counts of keys that are known,
//! allocate nothing at all; where records go to other subtasks, only what carries parcels from thread to thread is
//! allocated, some times per batch.

mod common;

use std::{
    alloc::System,
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::{Collected, run};
use flow::{Definition, Job, collection, file, pipeline};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The counter is of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

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

/// Looks at the counter at two records. Nobody else is at work meanwhile: the test is alone, and the job has neither a
/// checkpoint nor anything for its sink.
#[derive(Clone, Default)]
struct Between(Arc<[AtomicUsize; 2]>);

impl Between {
    fn look(&self, n: u64) {
        let at = [RECORDS / 2, RECORDS - 1].iter().position(|at| *at == n);
        if let Some(at) = at {
            self.0[at].store(ALLOCATOR.stats().allocations, Ordering::SeqCst);
        }
    }

    fn allocations(&self) -> usize {
        let [from, to] = [&self.0[0], &self.0[1]].map(|at| at.load(Ordering::SeqCst));
        assert!(from > 0 && to >= from, "both were seen");
        to - from
    }
}

const RECORDS: u64 = 2_000_000;

#[pipeline(guarantee = at_most_once)]
fn chain(between: Between, out: Collected<u64>) {
    source(collection::iterate(|| 0..RECORDS))
        .map(|n| (n, n * 3 + 1))
        .filter(|(_, n)| n % 7 != 0)
        .map(|(n, m)| (n, m ^ (m >> 3)))
        .inspect(|(n, _)| between.look(*n))
        .filter(|(n, _)| *n == RECORDS - 1)
        .map(|(n, _)| n)
        .sink(out.transactional());
}

#[pipeline(guarantee = at_most_once)]
fn counts(between: Between, out: Collected<u64>) {
    source(collection::iterate(|| 0..RECORDS))
        .inspect(|n| between.look(*n))
        .key_by(|n| *n % 100_000)
        .count()
        // The very last record, after which nobody looks.
        .filter(|(key, n)| *key == 99_999 && *n == RECORDS / 100_000)
        .map(|(_, n)| n)
        .sink(out.transactional());
}

/// The allocations of the second half of the records.
fn of_the_steady_state<D: Definition + 'static>(
    pipeline: fn(Between, Collected<u64>) -> Job<D>,
    parallelism: usize,
    expected: u64,
) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Whatever runs the tests may allocate for itself, but hardly three times.
    let allocations = (0..3).map(|_| {
        let (between, out) = (Between::default(), Collected::new());
        run(pipeline(between.clone(), out.clone()), parallelism);
        assert_eq!(out.sorted(), [expected]);
        between.allocations()
    });
    allocations.min().expect("three runs")
}

#[test]
fn a_chain_allocates_nothing() {
    assert_eq!(of_the_steady_state(chain, 1, RECORDS - 1), 0);
}

#[test]
fn counts_of_known_keys_allocate_nothing() {
    assert_eq!(of_the_steady_state(counts, 1, RECORDS / 100_000), 0);
}

#[test]
fn an_exchange_allocates_per_batch_and_not_per_parcel() {
    let (allocations, batches) = (of_the_steady_state(counts, 2, RECORDS / 100_000), RECORDS / 2 / 16_384);
    println!("{allocations} allocations in {batches} batches");
    // Sixteen parcels and two incomplete ones leave a batch.
    assert!(allocations as u64 <= 6 * batches, "{allocations} allocations in {batches} batches");
}

#[test]
fn final_results_allocate_for_new_words_only() {
    more_text_costs_no_more(final_counts);
}

#[test]
fn updates_allocate_for_new_words_only() {
    more_text_costs_no_more(rolling_counts);
}
