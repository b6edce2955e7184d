//! Each element once, whatever the parallelism and wherever the job is restored.

use std::time::Duration;

use super::*;
use crate::source::{Batch, Fetched, Progress, Source, SourceContext, SourceReader};

fn cx(subtask: usize, parallelism: usize) -> SourceContext {
    SourceContext { job: "job".into(), operator: "numbers".into(), subtask, parallelism }
}

/// Reads to the end and, at each batch, also from there to the end anew; gives the records.
async fn read<S, R>(source: &S, parallelism: usize) -> Vec<R>
where
    S: Source,
    S::Batch: for<'a> Batch<Item<'a> = R>,
    R: Clone + Ord,
{
    let found = source.discover(false).await.unwrap();
    let mut all = Vec::new();
    for subtask in 0..parallelism {
        let mut splits: Vec<_> = found.iter().skip(subtask).step_by(parallelism).cloned().collect();
        let mut reader = source.open(cx(subtask, parallelism), splits.clone()).await.unwrap();
        let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
        let mut records = Vec::new();
        let mut restored = None;
        loop {
            let progress = reader.fetch(&mut fetched).await.unwrap();
            // Broken off once, to be continued.
            records.extend(fetched.batch.records().take(1));
            records.extend(fetched.batch.records());
            assert!(fetched.batch.records().next().is_none());
            for split in fetched.advanced.drain(..) {
                use crate::source::Split;
                splits.retain(|old| old.id() != split.id());
                splits.insert(0, split);
            }
            if progress == Progress::Finished {
                break;
            }
            if restored.is_none() && records.len() > 3 {
                restored = Some((records.len(), splits.clone()));
            }
        }
        if let Some((before, splits)) = restored {
            let mut reader = source.open(cx(subtask, parallelism), splits).await.unwrap();
            let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
            let mut after = Vec::new();
            while reader.fetch(&mut fetched).await.unwrap() == Progress::More {
                after.extend(fetched.batch.records());
            }
            after.extend(fetched.batch.records());
            // In any order among the splits.
            let mut rest = records[before..].to_vec();
            after.sort_unstable();
            rest.sort_unstable();
            assert!(after == rest, "restored after {before} records");
        }
        all.extend(records);
    }
    all
}

#[tokio::test]
async fn a_range_in_parallel() {
    for len in [0, 1, 7, 100, 3_000_000] {
        for parallelism in [1, 3] {
            let mut numbers = read(&range(10..10 + len), parallelism).await;
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(10..10 + len));
        }
    }
}

#[tokio::test]
async fn elements_in_order() {
    let words: Vec<String> = (0..500).map(|i| format!("word {i}")).collect();
    assert_eq!(read(&collection(words.clone()), 1).await, words);
    let mut parallel = read(&collection(words.clone()), 2).await;
    parallel.sort_by_key(|word| words.iter().position(|other| other == word));
    assert_eq!(parallel, words);
}

#[tokio::test]
async fn an_iterator() {
    for len in [0, 5, BATCH_RECORDS, 3 * BATCH_RECORDS + 1] {
        let source = iterate(move || (0..len).map(|i| i * 2));
        assert!(read(&source, 2).await.into_iter().eq((0..len).map(|i| i * 2)));
    }
}

#[tokio::test]
async fn batches_of_an_iterator_that_are_fetched_ahead() {
    let source = iterate(|| 0..BATCH_RECORDS + 5);
    let mut reader = source.open(cx(0, 1), source.discover(false).await.unwrap()).await.unwrap();
    let mut batches = Vec::new();
    for _ in 0..3 {
        let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
        reader.fetch(&mut fetched).await.unwrap();
        batches.push(fetched.batch);
    }
    let read: Vec<u64> = batches.iter_mut().flat_map(|batch| batch.records()).collect();
    assert!(read.into_iter().eq(0..BATCH_RECORDS + 5));
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    assert_eq!(reader.fetch(&mut fetched).await.unwrap(), Progress::Finished);
}

#[tokio::test(start_paused = true)]
async fn generated_at_a_rate() {
    let began = tokio::time::Instant::now();
    let mut records = read(&generate(1000, |i| i).splits(3).take(2500), 1).await;
    // Twice: once from the beginning and once from where it was restored.
    let seconds = began.elapsed().as_secs_f64();
    assert!((4.9..5.1).contains(&seconds), "{seconds}");
    records.sort_unstable();
    assert!(records.into_iter().eq(0..2500));
}

#[tokio::test(start_paused = true)]
async fn a_slow_generator_sleeps() {
    let source = generate(2, |i| i);
    let mut reader = source.open(cx(0, 1), source.discover(false).await.unwrap()).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    let began = tokio::time::Instant::now();
    for i in 0..4 {
        // Dropping the future loses nothing.
        let _ = tokio::time::timeout(Duration::from_millis(100), reader.fetch(&mut fetched)).await;
        if fetched.batch.records().next().is_none() {
            reader.fetch(&mut fetched).await.unwrap();
            assert_eq!(fetched.batch.records().collect::<Vec<_>>(), [i]);
        }
    }
    assert!(began.elapsed() >= Duration::from_millis(1500));
}
