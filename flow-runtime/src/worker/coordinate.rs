//! Carries out what the coordinator of checkpoints decides.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{Control, control::Event};
use crate::{
    checkpoint::{CheckpointError, CheckpointId, Coordinator, Decision, Timing},
    error::Error,
};

/// Asks for a checkpoint whenever one is due, gives up those that take too long, and the attempt when too many have
/// failed. Runs as long as the attempt.
pub(super) async fn coordinate(
    control: Arc<Control>,
    mut events: mpsc::UnboundedReceiver<Event>,
    last: CheckpointId,
    timing: Timing,
) {
    let began = Instant::now();
    let mut coordinator = Coordinator::new(timing, last, Duration::ZERO);
    let mut cause = String::new();
    let mut decision = coordinator.on_timer(Duration::ZERO);
    loop {
        let now = began.elapsed();
        decision = match decision {
            Decision::Trigger(checkpoint) => {
                control.request(checkpoint, coordinator.is_final(checkpoint));
                coordinator.on_timer(now)
            }
            Decision::GiveUp(id) => {
                let (failures, tolerable) = (coordinator.failures(), timing.tolerable_failures);
                let error = CheckpointError::Failed { id, failures, tolerable, cause };
                return control.fail(Error::Checkpoint(error));
            }
            Decision::WaitUntil(_) | Decision::Wait => {
                if let (Some(overdue), Some(timeout)) = (coordinator.overdue(now), timing.timeout) {
                    // Unless it has just completed; the event tells which it was.
                    let timeout = humantime::format_duration(timeout);
                    control.checkpoint_failed(overdue, format!("it was not complete after {timeout}"));
                }
                let pause = match decision {
                    Decision::WaitUntil(due) => Some(due.saturating_sub(now)),
                    _ => None,
                };
                let event = tokio::select! {
                    // First, so that what completes just in time has not failed.
                    biased;
                    event = events.recv() => event,
                    () = sleep(pause) => {
                        decision = coordinator.on_timer(began.elapsed());
                        continue;
                    }
                };
                let now = began.elapsed();
                match event {
                    None => return,
                    Some(Event::Ending) => coordinator.on_final(now),
                    Some(Event::Asked) => coordinator.on_request(now),
                    Some(Event::Completed(id)) => coordinator.on_completed(id, now),
                    Some(Event::Failed(id, why)) => {
                        let decision = coordinator.on_failed(id, now);
                        tracing::warn!(
                            checkpoint = %id,
                            in_a_row = coordinator.failures(),
                            tolerable = timing.tolerable_failures,
                            "the checkpoint failed: {why}"
                        );
                        cause = why;
                        decision
                    }
                }
            }
        };
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::CheckpointCounts;

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Every 10 s after checkpoint 4, at most 3 s long; one may fail.
    fn start(max_concurrent: usize) -> Arc<Control> {
        let timing = Timing {
            interval: Some(s(10)),
            min_pause: Duration::ZERO,
            timeout: Some(s(3)),
            max_concurrent,
            tolerable_failures: 1,
        };
        let (control, events) = Control::new(CheckpointId(4));
        let control = Arc::new(control);
        tokio::spawn(coordinate(Arc::clone(&control), events, CheckpointId(4), timing));
        control
    }

    /// Lets the time pass, and says which checkpoint was asked for last.
    async fn after(control: &Control, pause: Duration) -> u64 {
        tokio::time::sleep(pause + Duration::from_millis(1)).await;
        control.requested().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_checkpoint_that_takes_too_long_fails_once_and_the_next_one_follows() {
        let control = start(1);
        assert_eq!(after(&control, s(9)).await, 4);
        assert_eq!(after(&control, s(1)).await, 5);
        assert!(!control.is_failed(CheckpointId(5)));
        assert_eq!(after(&control, s(3)).await, 5);
        assert!(control.is_failed(CheckpointId(5)));
        assert!(!control.completed(CheckpointId(5)), "too late");
        assert_eq!(after(&control, s(7)).await, 6);
        assert!(control.completed(CheckpointId(6)));
        assert_eq!(after(&control, s(10)).await, 7);
        assert_eq!(after(&control, s(3)).await, 7);
        assert!(!control.has_failed(), "one in a row may fail");
        assert_eq!(control.checkpoint_counts(), CheckpointCounts { completed: 1, failed: 2 });
    }

    #[tokio::test(start_paused = true)]
    async fn one_failure_too_many_ends_the_attempt_and_says_why() {
        let control = start(1);
        for checkpoint in [5, 6] {
            assert_eq!(after(&control, s(10)).await, checkpoint);
            assert!(!control.has_failed());
            control.checkpoint_failed(CheckpointId(checkpoint), "the disk is full".to_owned());
            control.checkpoint_failed(CheckpointId(checkpoint), "and still full".to_owned());
        }
        after(&control, s(0)).await;
        let error = control.take_error().expect("it has given up");
        assert!(error.restartable());
        assert_eq!(
            error.to_string(),
            "checkpoint: checkpoint 6 failed, number 2 in a row where 1 may: the disk is full; once the cause is mended the job goes on from its last complete checkpoint; to bear more failures, raise --checkpoint-tolerable-failures"
        );
        assert_eq!(control.checkpoint_counts().failed, 2);
        assert_eq!(after(&control, s(60)).await, 6, "and nothing more is asked for");
    }

    #[tokio::test(start_paused = true)]
    async fn several_may_be_in_flight() {
        let control = start(2);
        assert_eq!(after(&control, s(10)).await, 5);
        assert!(control.completed(CheckpointId(5)));
        assert_eq!(after(&control, s(10)).await, 6);
        control.stop();
        assert!(control.ending());
        assert_eq!(after(&control, s(0)).await, 6);
        assert_eq!(control.last().map(|last| last.checkpoint.0), Some(7), "beside the one in flight");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_one_waits_for_room_and_must_not_fail() {
        let control = start(1);
        assert_eq!(after(&control, s(10)).await, 5);
        control.stop();
        after(&control, s(0)).await;
        assert!(control.last().is_none());
        assert!(control.completed(CheckpointId(5)));
        after(&control, s(0)).await;
        assert_eq!(control.last().map(|last| last.checkpoint.0), Some(6));
        after(&control, s(3)).await;
        assert!(control.has_failed(), "though one failure would be tolerable");
    }
}
