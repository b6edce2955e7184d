//! A server that comes and goes.

use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::*;
use crate::source::Batch;

async fn open<M: OnClose>(source: &SocketText<M>) -> (SocketReader, Fetched<TextBatch, SocketSplit>) {
    let cx = SourceContext { job: "job".into(), operator: "lines".into(), subtask: 0, parallelism: 1 };
    let reader = source.open(cx, source.discover(false).await.unwrap()).await.unwrap();
    let fetched = Fetched { batch: reader.batch(), advanced: Vec::new() };
    (reader, fetched)
}

async fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

async fn lines(
    reader: &mut SocketReader,
    fetched: &mut Fetched<TextBatch, SocketSplit>,
    n: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < n {
        assert_eq!(reader.fetch(fetched).await.unwrap(), Progress::More);
        lines.extend(fetched.batch.records().map(str::to_owned));
    }
    lines
}

#[tokio::test]
async fn a_closed_connection_is_made_again() {
    let (listener, address) = server().await;
    let serving = tokio::spawn(async move {
        for part in ["a\r\nb", "c\n"] {
            let (mut client, _) = listener.accept().await.unwrap();
            client.write_all(part.as_bytes()).await.unwrap();
        }
        listener
    });
    let (mut reader, mut fetched) = open(&socket_text(address)).await;
    assert_eq!(lines(&mut reader, &mut fetched, 3).await, ["a", "b", "c"]);
    assert_eq!(fetched.batch.describe(0).unwrap(), format!("line 3 of `{}`", reader.name));
    drop(serving.await);
}

#[tokio::test]
async fn a_closed_connection_is_the_end() {
    let (listener, address) = server().await;
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.write_all(b"a\nlast").await.unwrap();
    });
    let (mut reader, mut fetched) = open(&socket_text(address).until_closed()).await;
    let mut all = Vec::new();
    loop {
        let progress = reader.fetch(&mut fetched).await.unwrap();
        all.extend(fetched.batch.records().map(str::to_owned));
        if progress == Progress::Finished {
            break;
        }
    }
    serving.await.unwrap();
    assert_eq!(all, ["a", "last"]);
    assert_eq!(reader.fetch(&mut fetched).await.unwrap(), Progress::Finished);
    assert_eq!(fetched.batch.records().next(), None);
}

#[tokio::test]
async fn a_dropped_fetch_loses_nothing() {
    let (listener, address) = server().await;
    let text: String = (0..50_000).map(|i| format!("line {i}\n")).collect();
    let sent = text.clone();
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        for part in sent.as_bytes().chunks(10_007) {
            client.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        client
    });
    let (mut reader, mut fetched) = open(&socket_text(address)).await;
    let mut all = String::new();
    while all.len() < text.len() {
        tokio::select! {
            biased;
            progress = reader.fetch(&mut fetched) => {
                assert_eq!(progress.unwrap(), Progress::More);
                fetched.batch.records().for_each(|line| all.extend([line, "\n"]));
            }
            () = tokio::task::yield_now() => {}
        }
    }
    assert!(all == text);
    drop(serving.await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away() {
    let (listener, address) = server().await;
    drop(listener);
    let (mut reader, mut fetched) = open(&socket_text(address).max_retries(8)).await;
    let began = Instant::now();
    let error = reader.fetch(&mut fetched).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read from `127.0.0.1:") && error.contains("after 9 attempts"),
        "{error}"
    );
    // 100 ms, 200 ms, .. 6.4 s, and 10 s.
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(22_700) && waited < Duration::from_secs(24), "{waited:?}");
}

#[tokio::test]
async fn invalid_text() {
    let (listener, address) = server().await;
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.write_all(b"ok\n\xff\n").await.unwrap();
        client
    });
    let (mut reader, mut fetched) = open(&socket_text(address)).await;
    let error = loop {
        if let Err(error) = reader.fetch(&mut fetched).await {
            break error.to_string();
        }
    };
    assert!(error.starts_with("line 2 of `127.0.0.1:") && error.contains("is not valid UTF-8"), "{error}");
    drop(serving.await);
}
