//! Writers, committers and recovery, with crashes between any two steps.

use std::{collections::BTreeMap, fs, path::Path};

use super::*;
use crate::{
    checkpoint::CheckpointId,
    sink::{
        CommitError, Committed, Recovered, Sink, SinkCommitter, SinkContext, SinkWriter, Write,
        decode_handle, encode_handle,
    },
};

fn cx(attempt: u64, restored: Option<u64>) -> SinkContext {
    SinkContext {
        subtask: 1,
        parallelism: 2,
        attempt,
        restored: restored.map(CheckpointId),
        ..SinkContext::new("job", "counts.sink")
    }
}

/// What readers see.
fn visible(dir: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
    named
        .filter(|(name, _)| !name.starts_with('.'))
        .map(|(n, path)| (n, fs::read_to_string(path).unwrap()))
        .collect()
}

fn hidden(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count() - visible(dir).len()
}

fn files(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

async fn write<E: Encoder>(sink: &FileSink<E>, writer: &mut FileWriter<E>, records: &[(&str, u64)])
where
    FileBuffer<E>: for<'a> Write<(&'a str, u64)>,
{
    let mut buffer = sink.buffer(&cx(0, None));
    for &record in records {
        buffer.write(record).unwrap();
    }
    writer.write(&mut buffer).await.unwrap();
}

fn recovered(checkpoint: u64, handle: &PendingFiles) -> Vec<Recovered<PendingFiles>> {
    vec![Recovered { subtask: 1, checkpoint: CheckpointId(checkpoint), handle: handle.clone() }]
}

/// Writes and pre-commits checkpoint 1, in a fresh directory.
async fn pending(dir: &Path) -> (FileSink<Columns>, PendingFiles) {
    let sink = to_tsv(dir);
    sink.recover(&cx(1, None), Vec::new()).await.unwrap();
    let (mut writer, _) = sink.open(&cx(1, None)).await.unwrap();
    write(&sink, &mut writer, &[("a", 1), ("b", 2)]).await;
    let handle = writer.pre_commit(CheckpointId(1)).await.unwrap().unwrap();
    // The attempt goes on, and is then killed.
    write(&sink, &mut writer, &[("lost", 3)]).await;
    let handle = encode_handle(&handle).unwrap();
    (sink, decode_handle(&handle).unwrap())
}

const PART: (&str, &str) = ("part-1-1-0.tsv", "a\t1\nb\t2\n");

#[tokio::test]
async fn records_appear_when_they_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("made/here");
    let sink = to_tsv(&out).roll_at(8);
    sink.recover(&cx(1, None), Vec::new()).await.unwrap();
    let (mut writer, mut committer) = sink.open(&cx(1, None)).await.unwrap();
    assert_eq!(writer.pre_commit(CheckpointId(1)).await.unwrap(), None);
    write(&sink, &mut writer, &[("a", 1)]).await;
    write(&sink, &mut writer, &[("b", 2)]).await;
    write(&sink, &mut writer, &[("c", 3)]).await;
    write(&sink, &mut writer, &[]).await;
    let handle = writer.pre_commit(CheckpointId(2)).await.unwrap().unwrap();
    write(&sink, &mut writer, &[("d", 4)]).await;
    assert_eq!(visible(&out), files(&[]));
    assert_eq!(committer.commit(CheckpointId(2), &handle).await.unwrap(), Committed::Now);
    let expected = files(&[("part-1-2-0.tsv", "a\t1\nb\t2\n"), ("part-1-2-1.tsv", "c\t3\n")]);
    assert_eq!(visible(&out), expected);
    assert_eq!(committer.commit(CheckpointId(2), &handle).await.unwrap(), Committed::Already);
    assert_eq!(visible(&out), expected);
}

#[tokio::test]
async fn each_csv_file_begins_with_the_header() {
    #[derive(serde::Serialize)]
    struct Count<'a> {
        word: &'a str,
        count: u64,
    }
    let dir = tempfile::tempdir().unwrap();
    let sink = to_csv(dir.path()).roll_at(1).prefix("counts");
    sink.recover(&cx(1, None), Vec::new()).await.unwrap();
    let (mut writer, mut committer) = sink.open(&cx(1, None)).await.unwrap();
    let mut buffer = sink.buffer(&cx(1, None));
    for word in ["a", "b"] {
        buffer.write(Count { word, count: 1 }).unwrap();
        writer.write(&mut buffer).await.unwrap();
        crate::sink::SinkBuffer::clear(&mut buffer);
    }
    let handle = writer.pre_commit(CheckpointId(1)).await.unwrap().unwrap();
    committer.commit(CheckpointId(1), &handle).await.unwrap();
    let expected = [("counts-1-1-0.csv", "word,count\na,1\n"), ("counts-1-1-1.csv", "word,count\nb,1\n")];
    assert_eq!(visible(dir.path()), files(&expected));
}

#[tokio::test]
async fn killed_before_the_checkpoint_was_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, _) = pending(dir.path()).await;
    assert_eq!(hidden(dir.path()), 2);
    // Neither those of another job nor of another operator.
    for other in [".flow~other~counts.sink~1~1~0", ".flow~job~counts.sink2~1~1~0", ".unrelated"] {
        fs::write(dir.path().join(other), "").unwrap();
    }
    sink.recover(&cx(2, None), Vec::new()).await.unwrap();
    assert_eq!((hidden(dir.path()), visible(dir.path())), (3, files(&[])));
}

#[tokio::test]
async fn killed_before_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, handle) = pending(dir.path()).await;
    sink.recover(&cx(2, Some(1)), recovered(1, &handle)).await.unwrap();
    assert_eq!((hidden(dir.path()), visible(dir.path())), (0, files(&[PART])));
}

#[tokio::test]
async fn killed_after_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, handle) = pending(dir.path()).await;
    let (_, mut committer) = sink.open(&cx(1, None)).await.unwrap();
    committer.commit(CheckpointId(1), &handle).await.unwrap();
    for attempt in 2..4 {
        sink.recover(&cx(attempt, Some(1)), recovered(1, &handle)).await.unwrap();
        assert_eq!((hidden(dir.path()), visible(dir.path())), (0, files(&[PART])));
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_a_rename() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, handle) = pending(dir.path()).await;
    let file = &handle.files[0];
    fs::hard_link(dir.path().join(&file.hidden), dir.path().join(&file.name)).unwrap();
    sink.recover(&cx(2, Some(1)), recovered(1, &handle)).await.unwrap();
    assert_eq!((hidden(dir.path()), visible(dir.path())), (0, files(&[PART])));
}

#[tokio::test]
async fn what_was_pre_committed_and_is_gone_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, handle) = pending(dir.path()).await;
    fs::remove_file(dir.path().join(&handle.files[0].hidden)).unwrap();
    let (_, mut committer) = sink.open(&cx(1, None)).await.unwrap();
    let error = committer.commit(CheckpointId(1), &handle).await.unwrap_err();
    assert!(matches!(&error, CommitError::Lost(_)) && error.to_string().starts_with("neither"), "{error}");
    // A foreign file of that name is not taken for it.
    fs::write(dir.path().join(PART.0), "a\t1\nb\t3\n").unwrap();
    let error = committer.commit(CheckpointId(1), &handle).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Lost(_)) && error.to_string().contains("is not what this job"),
        "{error}"
    );
}

#[tokio::test]
async fn a_foreign_file_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (sink, handle) = pending(dir.path()).await;
    // Even one of the same content: it was written by somebody else, and ours would be missing.
    fs::write(dir.path().join(PART.0), PART.1).unwrap();
    let (_, mut committer) = sink.open(&cx(1, None)).await.unwrap();
    let error = committer.commit(CheckpointId(1), &handle).await.unwrap_err();
    assert!(matches!(&error, CommitError::Lost(_)) && error.to_string().contains(".prefix(..)"), "{error}");
}

#[tokio::test]
async fn output_of_another_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("part-0-18-0.tsv"), "old").unwrap();
    fs::write(dir.path().join("part-0-18-0.csv"), "other").unwrap();
    let sink = to_tsv(dir.path());
    let error = sink.recover(&cx(2, None), Vec::new()).await.unwrap_err().to_string();
    assert!(error.contains("is there from another run") && error.contains("`.overwrite()`"), "{error}");
    let error = sink.recover(&cx(2, Some(17)), Vec::new()).await.unwrap_err().to_string();
    assert!(error.contains("was finished after checkpoint 17"), "{error}");
    sink.recover(&cx(2, Some(18)), Vec::new()).await.unwrap();
    sink.clone().prefix("other").recover(&cx(2, None), Vec::new()).await.unwrap();
    sink.overwrite().recover(&cx(2, None), Vec::new()).await.unwrap();
    assert_eq!(visible(dir.path()), files(&[("part-0-18-0.csv", "other")]));
}

#[tokio::test]
async fn a_directory_that_cannot_be_made() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = to_lines(dir.path().join("file/out")).recover(&cx(1, None), Vec::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot create directory `"), "{error}");
    let error = to_lines(dir.path()).prefix("_x").recover(&cx(1, None), Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("`.prefix(\"_x\")`"), "{error}");
}
