//! Windows in processing time: by a clock that the test moves, against the evaluation that keeps all records.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    super::*,
    oracle::{Aligned, All, Content, Naive, Sessions, every, fired, kept, restarted},
    restore::owner,
    *,
};

#[derive(Clone, Debug)]
enum Step {
    Record { key: u32 },
    Clock { forward: i64 },
    Restart { parallelism: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u32..4).prop_map(|key| Step::Record { key }),
        6 => (0i64..8).prop_map(|forward| Step::Clock { forward }),
        1 => (1u32..=4).prop_map(|parallelism| Step::Restart { parallelism }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A record that comes at a time is one of that time, and the moments before are over.
fn check<S>(spec: &dyn Fn() -> S, mut naive: impl Naive, steps: &[Step])
where
    S: Definition<u32, i64, Window = Window, Output = Content>,
{
    let mut subtasks = vec![Windows::detached(spec()).unwrap()];
    let mut now = 0;
    for (number, step) in (0..).zip(steps.iter().chain(&[Step::Clock { forward: 1000 }])) {
        match *step {
            Step::Record { key } => {
                let subtask = &subtasks[owner(key, subtasks.len() as u32)];
                subtask.set_processing_time(at(now));
                let mut w = subtask.borrow_mut();
                // What the record itself says of time does not matter.
                assert!(w.add(&key, at(-7), number).unwrap().is_none(), "nothing is late");
                assert_eq!((false, fired(&mut w)), naive.record(key, now, number));
            }
            Step::Clock { forward } => {
                now += forward;
                let mut actual = Vec::new();
                for subtask in &subtasks {
                    let mut turn = Turn::new(Some(Watermark::MAX), at(now));
                    let mut w = subtask.borrow_mut();
                    while w.turn(&mut turn).unwrap() {
                        actual.extend(fired(&mut w));
                    }
                    drop(w);
                    let next = subtask.next_processing_timer();
                    assert!(next.is_none_or(|next| next >= at(now)), "what is due has fired");
                }
                let mut expected = naive.watermark(now - 1);
                actual.sort();
                expected.sort();
                assert_eq!(actual, expected, "at {now}");
            }
            Step::Restart { parallelism } => subtasks = restarted(&subtasks, spec, parallelism),
        }
    }
    assert!(subtasks.iter().all(is_empty), "nothing is left behind");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tumbling_windows(steps in steps(), size in 1u64..12) {
        let naive = Aligned::new(0, every(size as i64, size as i64, 0));
        check(&|| windows(tumbling(ms(size)).processing_time()).aggregate(All), naive, &steps);
    }

    #[test]
    fn sliding_windows(steps in steps(), size in 1u64..16, slide in 1u64..12) {
        let naive = || Aligned::new(0, every(size as i64, slide as i64, 0));
        let sliding = || sliding(ms(size), ms(slide)).processing_time();
        check(&|| windows(sliding()).aggregate(All), naive(), &steps);
        check(&|| windows(sliding()).process(kept), naive(), &steps);
    }

    #[test]
    fn sessions(steps in steps(), gap in 1u64..12) {
        let naive = Sessions { gap: gap as i64, lateness: 0, watermark: i64::MIN, open: BTreeMap::new() };
        check(&|| windows(session(ms(gap)).processing_time()).aggregate(All), naive, &steps);
    }

    /// The trigger of processing time does by timers what the default does.
    #[test]
    fn by_a_trigger(steps in steps(), size in 1u64..12) {
        let naive = Aligned::new(0, every(size as i64, size as i64, 0));
        let spec = || windows(tumbling(ms(size)).processing_time()).trigger(trigger::processing_time());
        check(&|| spec().aggregate(All), naive, &steps);
    }
}

#[test]
fn a_continuous_trigger_fires_early_and_at_the_end_by_the_clock() {
    let w = operator(
        windows(tumbling(ms(100)).processing_time())
            .trigger(trigger::continuous_processing_time(ms(40)))
            .aggregate(SUM),
    );
    assert_eq!(w.clock(0), []);
    assert_eq!(w.put(0, 1), []);
    assert_eq!(w.clock(40), []);
    assert_eq!(w.clock(41), [(0, 100, 1)]);
    assert_eq!(w.put(0, 2), []);
    // Once for all that has passed meanwhile.
    assert_eq!(w.clock(99), [(0, 100, 3)]);
    assert_eq!(w.clock(100), [(0, 100, 3)]);
    assert!(is_empty(&w));
}

#[test]
fn a_clock_that_goes_back_stands() {
    let w = operator(windows(tumbling(ms(10)).processing_time()).aggregate(SUM));
    assert_eq!(w.clock(25), []);
    assert_eq!(w.put(0, 1), []);
    assert_eq!(w.clock(3), []);
    assert_eq!(w.put(0, 2), []);
    assert_eq!(w.clock(30), [(20, 30, 3)]);
}

#[test]
fn what_cannot_be_is_refused() {
    let lateness = windows(tumbling(ms(10)).processing_time()).allowed_lateness(ms(1)).aggregate(SUM);
    assert!(Windows::<u32, i64, _>::detached(lateness).is_err());
    let fold = windows(session(ms(10))).fold(0, |sum: &mut i64, n: i64| *sum += n);
    assert!(Windows::<u32, i64, _>::detached(fold).is_err());
    let fold = windows(tumbling(ms(10))).fold(0, |sum: &mut i64, n: i64| *sum += n);
    let w = operator(fold);
    assert_eq!(w.put(1, 5), []);
    assert_eq!(w.put(2, 6), []);
    assert_eq!(w.watermark_at(9), [(0, 10, 11)]);
}
