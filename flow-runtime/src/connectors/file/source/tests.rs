//! Readers of files, driven as the engine drives them.

use std::{fs, io::Write, path::Path};

use super::*;
use crate::{
    connectors::file::FileError,
    error::BoxError,
    source::{Batch, Fetched, Progress, Source, SourceContext, SourceReader, Split},
};

fn cx() -> SourceContext {
    SourceContext { job: "job".into(), operator: "lines".into(), subtask: 0, parallelism: 1 }
}

/// Reads `splits` to their end; gives the records, and the last position of each split.
async fn read<S: Source, R>(
    source: &S,
    splits: Vec<S::Split>,
    own: impl Fn(<S::Batch as Batch>::Item<'_>) -> R,
) -> Result<(Vec<R>, Vec<S::Split>), BoxError> {
    let mut reader = source.open(cx(), splits).await?;
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    let (mut records, mut ends) = (Vec::new(), Vec::<S::Split>::new());
    loop {
        let progress = reader.fetch(&mut fetched).await?;
        records.extend(fetched.batch.records().map(&own));
        if let Some(error) = fetched.batch.error() {
            return Err(error);
        }
        for split in fetched.advanced.drain(..) {
            ends.retain(|end| end.id() != split.id());
            ends.push(split);
        }
        if progress == Progress::Finished {
            return Ok((records, ends));
        }
    }
}

async fn lines(pattern: &Path) -> Result<Vec<String>, BoxError> {
    let source = text(pattern.to_str().unwrap());
    let splits = source.discover(false).await?;
    Ok(read(&source, splits, str::to_owned).await?.0)
}

async fn records<S, R>(source: &S) -> Result<Vec<R>, BoxError>
where
    S: Source,
    S::Batch: for<'a> Batch<Item<'a> = R>,
{
    let splits = source.discover(false).await?;
    Ok(read(source, splits, |record| record).await?.0)
}

fn file(dir: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// More than one buffer of lines of many lengths, with a last line that has no ending.
fn many_lines() -> String {
    let mut text: String = (0..60_000).map(|i| format!("line {i} {}\r\n", "ä".repeat(i % 17))).collect();
    text.push_str("the last");
    text
}

#[tokio::test]
async fn a_directory_of_plain_and_compressed_files() {
    let dir = tempfile::tempdir().unwrap();
    let content = many_lines();
    file(&dir, "a.txt", &content);
    file(&dir, "b.txt.gz", [gzip(b"one\ntwo\n"), gzip(b"three")].concat());
    file(&dir, "c.zst", zstd::encode_all(content.as_bytes(), 1).unwrap());
    file(&dir, "d.txt", "");
    let mut expected: Vec<&str> = content.lines().collect();
    expected.extend(["one", "two", "three"]);
    expected.extend(content.lines());
    assert_eq!(lines(dir.path()).await.unwrap(), expected);
}

#[tokio::test]
async fn a_line_longer_than_the_buffer() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(3_000_000);
    let path = file(&dir, "a", format!("a\n{long}\nb\n"));
    assert_eq!(lines(&path).await.unwrap(), ["a", &long, "b"]);
}

#[tokio::test]
async fn a_byte_order_mark_is_no_text() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(lines(&file(&dir, "a", b"\xef\xbb\xbfa\nb")).await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn every_cut_of_a_file_gives_each_line_once() {
    let dir = tempfile::tempdir().unwrap();
    for content in ["ab\ncde\n\nf\ng", "a\r\nbc\n", "\n\n", "abc"] {
        let path = file(&dir, "a", content);
        let (path, len) = (path.to_str().unwrap(), content.len() as u64);
        for (i, j) in (0..=len).flat_map(|i| (i..=len).map(move |j| (i, j))) {
            let part = |start, end| FileSplit {
                start,
                offset: start,
                end: Some(end),
                ..FileSplit::whole(path, len)
            };
            let parts = [part(0, i), part(i, j), part(j, len)]
                .map(|p| FileSplit { done: p.start == p.end.unwrap(), ..p });
            let (read, ends) = read(&text(path), parts.to_vec(), str::to_owned).await.unwrap();
            assert_eq!(read, content.lines().collect::<Vec<_>>(), "{content:?} cut at {i} and {j}");
            assert!(ends.iter().all(|end| end.done));
        }
    }
}

#[tokio::test]
async fn every_position_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let content = many_lines();
    file(&dir, "a.txt", &content);
    file(&dir, "b.txt.gz", gzip(content.as_bytes()));
    file(&dir, "c.txt.zst", zstd::encode_all(content.as_bytes(), 1).unwrap());
    for name in ["a.txt", "b.txt.gz", "c.txt.zst"] {
        let source = text(dir.path().join(name).to_str().unwrap());
        let splits = source.discover(false).await.unwrap();
        let mut reader = source.open(cx(), splits).await.unwrap();
        let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
        let (mut before, mut restored) = (Vec::new(), 0);
        while reader.fetch(&mut fetched).await.unwrap() == Progress::More {
            before.extend(fetched.batch.records().map(str::to_owned));
            let position = serde_json::to_string(&fetched.advanced.drain(..).next_back().unwrap()).unwrap();
            let position: FileSplit = serde_json::from_str(&position).unwrap();
            assert_eq!(position.line, Some(before.len() as u64 + 1));
            let (after, _) = read(&source, vec![position], str::to_owned).await.unwrap();
            assert!(before.iter().chain(&after).map(String::as_str).eq(content.lines()), "{name}");
            restored += 1;
        }
        assert!(restored > 2, "{name}");
    }
}

#[tokio::test]
async fn a_dropped_fetch_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let content = many_lines();
    let source = text(file(&dir, "a", &content).to_str().unwrap());
    let mut reader = source.open(cx(), source.discover(false).await.unwrap()).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    let (mut read, mut dropped) = (Vec::new(), 0);
    loop {
        let progress = tokio::select! {
            biased;
            progress = reader.fetch(&mut fetched) => progress.unwrap(),
            () = std::future::ready(()) => {
                dropped += 1;
                tokio::task::yield_now().await;
                continue;
            }
        };
        read.extend(fetched.batch.records().map(str::to_owned));
        if progress == Progress::Finished {
            break;
        }
    }
    assert!(read.iter().map(String::as_str).eq(content.lines()));
    assert!(dropped > 0);
}

#[tokio::test]
async fn new_files_are_added_while_watching() {
    let dir = tempfile::tempdir().unwrap();
    let source =
        text(format!("{}/*.txt", dir.path().display())).discover_every(std::time::Duration::from_secs(1));
    assert!(source.discovery_interval().is_some());
    assert_eq!(source.discover(false).await.unwrap(), []);
    let mut reader = source.open(cx(), Vec::new()).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    for name in ["a.txt", "b.txt"] {
        tokio::select! {
            biased;
            _ = reader.fetch(&mut fetched) => panic!("there is nothing to read"),
            () = tokio::time::sleep(std::time::Duration::from_millis(1)) => {}
        }
        file(&dir, name, name);
        let found = source.discover(false).await.unwrap();
        reader
            .add_splits(found.into_iter().filter(|split| split.path().ends_with(name)).collect())
            .await
            .unwrap();
        assert_eq!(reader.fetch(&mut fetched).await.unwrap(), Progress::More);
        assert_eq!(fetched.batch.records().collect::<Vec<_>>(), [name]);
    }
}

#[tokio::test]
async fn what_is_appended_later_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "a", "a\nb\n");
    let source = text(path.to_str().unwrap());
    let splits = source.discover(false).await.unwrap();
    fs::write(&path, "a\nb\nc\n").unwrap();
    assert_eq!(read(&source, splits, str::to_owned).await.unwrap().0, ["a", "b"]);
}

#[tokio::test]
async fn errors_say_where_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "a", "a\nb\n");
    let source = text(path.to_str().unwrap());
    let splits = source.discover(false).await.unwrap();
    fs::write(&path, "a\n").unwrap();
    let error = read(&source, splits.clone(), str::to_owned).await.unwrap_err();
    assert!(error.to_string().contains("has 2 bytes, but had 4"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = read(&source, splits.clone(), str::to_owned).await.unwrap_err();
    assert!(error.to_string().contains("no longer exists, but was read only up to line 1"), "{error}");
    let error = source.discover(false).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(FileError::NothingMatches { .. })), "{error}");
    // A file that was read to its end may go.
    assert!(source.discover(true).await.unwrap().is_empty());
    let done = splits.into_iter().map(|split| FileSplit { done: true, ..split }).collect();
    assert!(read(&source, done, str::to_owned).await.unwrap().0.is_empty());
    let error = lines(&file(&dir, "b", b"a\n\xff\n")).await.unwrap_err();
    assert!(error.to_string().contains("b` is not valid UTF-8 (at byte 2)"), "{error}");
    let error = lines(&file(&dir, "c.gz", &gzip(b"abc\n")[..15])).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot read"), "{error}");
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Order {
    id: u64,
    item: String,
}

fn order(id: u64, item: &str) -> Order {
    Order { id, item: item.to_owned() }
}

#[tokio::test]
async fn csv_with_quotes_and_line_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "a.csv", "item,id\r\n\"a\r\nb\",1\r\n5\" disk,2\r\n\"c \"\"d\"\"\",3");
    let expected = [order(1, "a\r\nb"), order(2, "5\" disk"), order(3, "c \"d\"")];
    assert_eq!(records(&csv::<Order>(path.to_str().unwrap())).await.unwrap(), expected);
    let path = file(&dir, "b.csv", "a;1\n\nb;2\n");
    let pairs = csv::<(String, u64)>(path.to_str().unwrap()).header(false).delimiter(b';');
    assert_eq!(records(&pairs).await.unwrap(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
}

#[tokio::test]
async fn csv_positions_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    for ending in ["\n", "\r\n"] {
        let rows: Vec<Order> = (0..10_000).map(|i| order(i, &format!("a\n{i}"))).collect();
        let mut content = format!("id,item{ending}");
        content.extend(rows.iter().map(|row| format!("{},\"{}\"{ending}", row.id, row.item)));
        file(&dir, "a.csv", &content);
        file(&dir, "a.csv.gz", gzip(content.as_bytes()));
        for name in ["a.csv", "a.csv.gz"] {
            let source = csv::<Order>(dir.path().join(name).to_str().unwrap());
            let mut reader = source.open(cx(), source.discover(false).await.unwrap()).await.unwrap();
            let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
            assert_eq!(reader.fetch(&mut fetched).await.unwrap(), Progress::More);
            let mut read_before: Vec<Order> = fetched.batch.records().collect();
            assert!(read_before.len() < rows.len());
            let last = read_before.len() as u64 - 1;
            assert_eq!(
                fetched.batch.describe(last).unwrap(),
                format!("line {} of `{}`", 2 + 2 * last, source_path(&dir, name))
            );
            let (after, ends) = read(&source, fetched.advanced, |row| row).await.unwrap();
            read_before.extend(after);
            assert_eq!(read_before, rows);
            assert!(ends[0].done);
        }
    }
}

fn source_path(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

#[tokio::test]
async fn csv_rows_that_do_not_parse() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "a.csv", "id,item\n1,a\nx,b\n3\n4,d\n");
    let error = records(&csv::<Order>(path.to_str().unwrap())).await.unwrap_err().to_string();
    assert!(error.starts_with("line 3 of `") && error.contains("field `id`: invalid digit"), "{error}");
    assert!(error.contains("`.skip_invalid()`"), "{error}");
    let source = csv::<Order>(path.to_str().unwrap()).skip_invalid();
    let skipped = source.skipped();
    assert_eq!(records(&source).await.unwrap(), [order(1, "a"), order(4, "d")]);
    assert_eq!(skipped.count(), 2);
}

#[tokio::test]
async fn json_lines_that_do_not_parse() {
    let dir = tempfile::tempdir().unwrap();
    let content = b"{\"id\":1,\"item\":\"a\"}\n\n{\"id\":2}\r\n\xff\n{\"id\":3,\"item\":\"c\"}";
    let path = file(&dir, "a.jsonl", content);
    let error = records(&json_lines::<Order>(path.to_str().unwrap())).await.unwrap_err().to_string();
    assert!(
        error.starts_with("line 3 of `") && error.contains("missing field `item` at column 8"),
        "{error}"
    );
    let source = json_lines::<Order>(path.to_str().unwrap()).skip_invalid();
    let skipped = source.skipped();
    let mut reader = source.open(cx(), source.discover(false).await.unwrap()).await.unwrap();
    let mut fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    assert_eq!(reader.fetch(&mut fetched).await.unwrap(), Progress::Finished);
    assert_eq!(fetched.batch.records().collect::<Vec<_>>(), [order(1, "a"), order(3, "c")]);
    assert_eq!(skipped.count(), 2);
    assert!(fetched.batch.describe(1).unwrap().starts_with("line 5 of"));
}
