//! `txn abort`.
//!
//! What a checkpoint carries is committed when the job starts, so a transaction that was merely rolled back would be
//! committed again, or be missed and stop the job. Therefore the next checkpoint is written first, as the newest one is
//! but without the transaction: from then on the decision stands, whatever fails. Then it is rolled back at its server;
//! should that fail, the start of the job does so, as with everything that no checkpoint knows.

use super::doubts::{Doubts, Found, SinkDoubts};
use crate::{checkpoint::Store, error::Error, ops::show::Answer, sink::Settlement};

/// Gives up a transaction, or says what that would mean.
pub(super) async fn abort(doubts: &Doubts, store: &Store, id: &str, yes: bool) -> Result<Answer, Error> {
    match doubts.get(id).await? {
        Found::AtServer(_, held) if !yes => Ok(Answer {
            text: format!(
                "`{id}` would be rolled back ({}). No checkpoint of this job knows of it, so its records come again when the job runs. Add --yes to do it\n",
                held.detail
            ),
            good: false,
        }),
        Found::AtServer(desk, held) => match desk.settle(&held, Settlement::Abort).await {
            Ok(()) => Ok(Answer { text: format!("{id}: rolled back\n"), good: true }),
            Err(error) => Ok(Answer { text: format!("{id}: NOT rolled back: {error}\n"), good: false }),
        },
        Found::Carried(sink, which) => {
            in_order(sink, which)?;
            let id = sink.id(which);
            if yes {
                give_up(doubts, store, sink, which).await
            } else {
                Ok(warning(doubts, store, sink, which, &id))
            }
        }
    }
}

/// A sink may count on its transactions following each other without a gap.
fn in_order(sink: &SinkDoubts, which: usize) -> Result<(), Error> {
    let (subtask, ..) = sink.carried[which];
    match (which + 1..sink.carried.len()).rev().find(|later| sink.carried[*later].0 == subtask) {
        None => Ok(()),
        Some(later) => Err(Error::Config(format!(
            "`{}` is followed by `{}`: give up the later one first",
            sink.id(which),
            sink.id(later)
        ))),
    }
}

fn warning(doubts: &Doubts, store: &Store, sink: &SinkDoubts, which: usize, id: &str) -> Answer {
    let (newest, next) = (doubts.manifest.id, doubts.manifest.id.next());
    let text = format!(
        "`{id}` would be given up: {}\n\
         Checkpoint {newest} counts its records as written, so they would not come again: the outside would never see \
         them. If it is committed already, nothing is taken back.\n\
         A checkpoint {next} without it would be written, from which the job goes on. Checkpoint {newest} would still \
         carry it: `--from {}/chk-{newest}` commits it after all.\n\
         Add --yes to do it\n",
        sink.describe(which),
        store.location(),
    );
    Answer { text, good: false }
}

async fn give_up(doubts: &Doubts, store: &Store, sink: &SinkDoubts, which: usize) -> Result<Answer, Error> {
    let ((subtask, checkpoint, _), id) = (&sink.carried[which], sink.id(which));
    let next = doubts
        .manifest
        .without(|part| part.uid == sink.uid && part.subtask == *subtask && part.checkpoint == *checkpoint);
    store.put_manifest(&next).await?;
    let given_up = format!("{id}: given up; checkpoint {} no longer carries it", next.id);
    let Some(desk) = &sink.desk else {
        let text = format!("{given_up}; this pipeline has no such sink any more to roll it back\n");
        return Ok(Answer { text, good: false });
    };
    Ok(match desk.abort(&sink.carried, which).await {
        Ok(()) => Answer { text: format!("{given_up}\n"), good: true },
        Err(error) => Answer {
            text: format!(
                "{given_up}, but it is NOT rolled back at its server: {error}; the start of the job does so\n"
            ),
            good: false,
        },
    })
}
