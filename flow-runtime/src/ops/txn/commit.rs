//! `txn commit`.

use std::fmt::Write;

use super::doubts::{Doubts, Found, SinkDoubts};
use crate::{
    error::Error,
    ops::show::Answer,
    sink::{Desk, InDoubt, Settlement},
};

/// Commits what was asked for, in the order of the checkpoints.
pub(super) async fn commit(doubts: &Doubts, ids: &[String], all: bool) -> Result<Answer, Error> {
    // Everything is found before anything is done.
    let mut wanted: Vec<Vec<usize>> = doubts.sinks.iter().map(|_| Vec::new()).collect();
    let mut at_servers: Vec<(&str, &dyn Desk, InDoubt)> = Vec::new();
    for id in ids {
        match doubts.get(id).await? {
            Found::AtServer(desk, held) => at_servers.push((id, desk, held)),
            Found::Carried(sink, which) => {
                let (subtask, ..) = sink.carried[which];
                let before = (0..=which).filter(|other| sink.carried[*other].0 == subtask);
                let at = doubts.sinks.iter().position(|other| std::ptr::eq(other, sink));
                wanted[at.unwrap_or_default()].extend(before);
            }
        }
    }
    let (mut text, mut good) = (String::new(), true);
    for (sink, wanted) in doubts.sinks.iter().zip(&mut wanted) {
        if all {
            *wanted = (0..sink.carried.len()).collect();
        }
        wanted.sort_unstable();
        wanted.dedup();
        good &= commit_of(sink, wanted, &mut text).await;
    }
    for (id, desk, held) in at_servers {
        let _ = match desk.settle(&held, Settlement::Commit).await {
            Ok(()) => writeln!(text, "{id}: committed"),
            Err(error) => {
                good = false;
                writeln!(text, "{id}: NOT committed: {error}")
            }
        };
    }
    if text.is_empty() {
        text.push_str("there is nothing to commit\n");
    }
    Ok(Answer { text, good })
}

/// Of one sink; stops at the first that fails in a subtask, since those after it have to wait for it.
async fn commit_of(sink: &SinkDoubts, wanted: &[usize], text: &mut String) -> bool {
    let mut failed = Vec::new();
    for which in wanted {
        let (subtask, ..) = sink.carried[*which];
        let outcome = match &sink.desk {
            _ if failed.contains(&subtask) => Err("one before it was not".into()),
            None => Err("this pipeline has no such sink any more; use the program that wrote it".into()),
            Some(desk) => desk.commit(&sink.carried, *which).await,
        };
        let id = sink.id(*which);
        let _ = match outcome {
            Ok(committed) => writeln!(text, "{id}: {committed}"),
            Err(error) => {
                failed.push(subtask);
                writeln!(text, "{id}: NOT committed: {error}")
            }
        };
    }
    failed.is_empty()
}
