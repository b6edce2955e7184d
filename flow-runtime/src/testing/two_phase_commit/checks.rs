//! The checks: each a story with a job of its own.

use super::{SinkUnderTest, subtask::Range};
use crate::{error::BoxError, sink::Committed};

type Outcome = Result<(), BoxError>;

fn require(holds: bool, otherwise: &str) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

pub(super) async fn nothing_is_visible_before_the_commit(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    range.expect(0..0, "before the barrier").await?;
    let carried = subtask.prepare(1).await?;
    range.expect(0..0, "after pre_commit").await?;
    subtask.commit(&carried).await?;
    range.expect(0..10, "after the commit").await
}

pub(super) async fn a_commit_makes_everything_visible_once(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..3000).await?;
    range.write(&mut subtask, 3000..5000).await?;
    let carried = subtask.prepare(1).await?;
    let outcome = subtask.commit(&carried).await?;
    require(outcome == Committed::Now, "the first commit did not say `Committed::Now`")?;
    range.expect(0..5000, "after the commit").await
}

pub(super) async fn committing_again_changes_nothing(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    subtask.commit(&carried).await?;
    let outcome = subtask.commit(&carried).await?;
    require(outcome == Committed::Already, "the second commit did not say `Committed::Already`")?;
    range.expect(0..10, "after two commits").await
}

pub(super) async fn a_handle_commits_from_another_process(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    // The end of the process.
    drop(subtask);
    range.recover(2, 1, Some(1), &[carried]).await?;
    range.expect(0..10, "after recovery").await
}

pub(super) async fn recovering_again_changes_nothing(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    subtask.commit(&carried).await?;
    drop(subtask);
    // The commit was not confirmed in any checkpoint.
    for attempt in 2..4 {
        range.recover(attempt, 1, Some(1), std::slice::from_ref(&carried)).await?;
    }
    range.expect(0..10, "after a commit and two recoveries").await
}

pub(super) async fn what_was_not_pre_committed_never_appears(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    drop(subtask);
    range.recover(2, 1, None, &[]).await?;
    range.expect(0..0, "after a crash before the barrier").await
}

pub(super) async fn what_no_checkpoint_names_never_appears(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    subtask.prepare(1).await?;
    // Killed before the manifest was written. The records come again, and are written again.
    drop(subtask);
    range.recover(2, 1, None, &[]).await?;
    range.expect(0..0, "after a crash before the manifest").await?;
    let mut subtask = range.open(2, 0, 1, None).await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(2).await?;
    subtask.commit(&carried).await?;
    range.expect(0..10, "after the records were written again").await
}

pub(super) async fn an_epoch_without_records_commits_nothing(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    let mut subtask = range.start().await?;
    let none = subtask.pre_commit(1).await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(2).await?;
    let after = subtask.pre_commit(3).await?;
    for carried in [none, Some(carried), after].iter().flatten() {
        subtask.commit(carried).await?;
    }
    range.expect(0..10, "after an epoch with records between two without").await
}

pub(super) async fn a_commit_does_not_wait_for_the_next_transaction(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let first = subtask.prepare(1).await?;
    range.write_while_committing(&mut subtask, 10..20, &first).await?;
    range.expect(0..10, "with the next transaction open").await?;
    let second = subtask.prepare(2).await?;
    range.write(&mut subtask, 20..30).await?;
    subtask.commit(&second).await?;
    range.expect(0..20, "with a third transaction open").await
}

pub(super) async fn epochs_commit_in_order_after_several_were_pre_committed(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    let mut subtask = range.start().await?;
    let mut prepared = Vec::new();
    for checkpoint in 1..=4 {
        range.write(&mut subtask, (checkpoint - 1) * 10..checkpoint * 10).await?;
        prepared.push(subtask.prepare(checkpoint).await?);
    }
    range.expect(0..0, "with four transactions pre-committed").await?;
    for carried in &prepared[..2] {
        subtask.commit(carried).await?;
    }
    range.expect(0..20, "after two of four commits").await?;
    drop(subtask);
    // All of them are carried, for the commits of the first two were not confirmed.
    range.recover(2, 1, Some(4), &prepared).await?;
    range.expect(0..40, "after recovery").await
}

pub(super) async fn subtasks_do_not_disturb_each_other(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    range.recover(1, 2, None, &[]).await?;
    let (mut first, mut second) = (range.open(1, 0, 2, None).await?, range.open(1, 1, 2, None).await?);
    range.write(&mut first, 0..10).await?;
    range.write(&mut second, 10..20).await?;
    let (a, b) = (first.prepare(1).await?, second.prepare(1).await?);
    first.commit(&a).await?;
    range.expect(0..10, "after one subtask's commit").await?;
    second.commit(&b).await?;
    range.expect(0..20, "after both commits").await
}

pub(super) async fn handles_of_subtasks_that_are_gone_are_committed(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    range.recover(1, 4, None, &[]).await?;
    let mut carried = Vec::new();
    for subtask in 0..4 {
        let mut open = range.open(1, subtask, 4, None).await?;
        let first = subtask as u64 * 10;
        range.write(&mut open, first..first + 10).await?;
        carried.push(open.prepare(1).await?);
    }
    range.recover(2, 1, Some(1), &carried).await?;
    range.expect(0..40, "after recovery at parallelism 1 instead of 4").await
}

pub(super) async fn recovery_leaves_other_jobs_alone(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    range.other_job().recover(1, 1, None, &[]).await?;
    subtask.commit(&carried).await?;
    range.expect(0..10, "after another job's recovery").await
}

pub(super) async fn an_attempt_that_was_replaced_adds_nothing(
    range: &Range<'_, impl SinkUnderTest>,
) -> Outcome {
    let mut zombie = range.start().await?;
    range.write(&mut zombie, 0..10).await?;
    let carried = zombie.prepare(1).await?;
    range.write(&mut zombie, 10..20).await?;
    // Believed dead, it still runs while the next attempt begins.
    range.recover(2, 1, Some(1), std::slice::from_ref(&carried)).await?;
    let mut subtask = range.open(2, 0, 1, Some(1)).await?;
    // Both may be refused; neither may change what is visible.
    let _ = zombie.commit(&carried).await;
    let _ = zombie.pre_commit(2).await;
    range.expect(0..10, "after the zombie went on").await?;
    range.write(&mut subtask, 10..20).await?;
    let carried = subtask.prepare(2).await?;
    subtask.commit(&carried).await?;
    range.expect(0..20, "after the new attempt's commit").await
}

pub(super) async fn a_job_goes_on_after_recovery(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    let mut carried = Vec::new();
    for round in 0..4u64 {
        let checkpoint = round + 1;
        range.write(&mut subtask, round * 10..checkpoint * 10).await?;
        carried = vec![subtask.prepare(checkpoint).await?];
        // Committed in every other round, and killed in each.
        if round % 2 == 0 {
            subtask.commit(&carried[0]).await?;
        }
        drop(subtask);
        range.recover(round + 2, 1, Some(checkpoint), &carried).await?;
        range.expect(0..checkpoint * 10, "after a round").await?;
        subtask = range.open(round + 2, 0, 1, Some(checkpoint)).await?;
    }
    drop(carried);
    Ok(())
}

pub(super) async fn an_aborted_transaction_never_appears(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    subtask.abort(&carried).await?;
    // Once more: the first answer may have been lost.
    subtask.abort(&carried).await?;
    drop(subtask);
    range.recover(2, 1, Some(1), &[]).await?;
    range.expect(0..0, "after an abort").await
}

pub(super) async fn a_commit_does_not_claim_what_is_gone(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let mut subtask = range.start().await?;
    range.write(&mut subtask, 0..10).await?;
    let carried = subtask.prepare(1).await?;
    subtask.abort(&carried).await?;
    // A sink whose handle holds the records can commit them even now.
    match subtask.commit(&carried).await {
        Ok(_) => range.expect(0..10, "after a commit that succeeded").await,
        Err(_) => range.expect(0..0, "after an abort").await,
    }
}

pub(super) async fn recovery_leaves_nothing_behind(range: &Range<'_, impl SinkUnderTest>) -> Outcome {
    let before = range.in_doubt().await?;
    range.recover(1, 2, None, &[]).await?;
    let (mut first, mut second) = (range.open(1, 0, 2, None).await?, range.open(1, 1, 2, None).await?);
    range.write(&mut first, 0..10).await?;
    range.write(&mut second, 10..20).await?;
    let carried = first.prepare(1).await?;
    second.prepare(1).await?;
    range.write(&mut first, 20..30).await?;
    drop((first, second));
    // Of three transactions, one open, the checkpoint names one.
    range.recover(2, 1, Some(1), &[carried]).await?;
    range.expect(0..10, "after recovery").await?;
    let after = range.in_doubt().await?;
    require(before == after, &format!("{before:?} transactions were in doubt before, and {after:?} are now"))
}
