//! Operator state from one run to the next, in a job that is wired by hand.

use std::sync::{Arc, Mutex};

use crate::{
    checkpoint::Store,
    connectors::collection,
    job::{Definition, Job},
    plan::{CheckpointPlan, Guarantee, Mode, OperatorPlan, Plan},
    source::Batch,
    state::Redistribution,
    worker::{Config, Stop, run_on},
};

/// What each subtask has found when it was wired.
type Found = Arc<Mutex<Vec<Vec<u64>>>>;

enum Numbers {}

impl Definition for Numbers {
    const PLAN: &'static Plan = &Plan {
        name: "numbers",
        guarantee: Guarantee::ExactlyOnce,
        mode: Mode::Streaming,
        checkpoint: CheckpointPlan::new(),
        restart: None,
        parallelism: None,
        max_parallelism: None,
        operators: &[
            OperatorPlan::new("numbers", "source", 0),
            OperatorPlan::new("own", "inspect", 0).operator_state(),
            OperatorPlan::new("all", "inspect", 0).operator_state(),
        ],
        edges: &[],
    };
}

/// Each subtask notes the numbers that it reads, and, once there are any, that there are some.
fn numbers(redistribution: Redistribution, found: &Found) -> Job<Numbers> {
    let found = Arc::clone(found);
    Job::new(move |wiring| {
        let (worker, parallelism) = (wiring.worker, wiring.environment.parallelism);
        let mut chain = wiring.chain(&[0, 1, 2], None);
        let own = chain.operator_state::<Vec<u64>>(1, "numbers", redistribution);
        let all = chain.operator_state::<Vec<u64>>(2, "same", Redistribution::Broadcast);
        {
            let mut found = found.lock().unwrap();
            let subtasks = parallelism.max(found.len());
            found.resize(subtasks, Vec::new());
            found[worker].clone_from(&own.borrow());
            assert!(all.borrow().is_empty() || *all.borrow() == [7, 8], "{:?}", all.borrow());
        }
        chain.rewindable_source(0, collection::range(0..1000), move |batch| {
            let (mut own, mut all) = (own.borrow_mut(), all.borrow_mut());
            if all.is_empty() {
                all.extend([7, 8]);
            }
            own.extend(batch.records());
            Ok(())
        });
    })
}

fn run(redistribution: Redistribution, parallelism: usize, store: &Store) -> Vec<Vec<u64>> {
    let found = Found::default();
    let config = Config::with_parallelism(Numbers::PLAN, parallelism);
    run_on(&numbers(redistribution, &found), &config, store, &Stop::default()).expect("it ends well");
    std::mem::take(&mut *found.lock().unwrap())
}

fn sorted(parts: &[Vec<u64>]) -> Vec<u64> {
    let mut all = parts.concat();
    all.sort_unstable();
    all
}

#[test]
fn equal_shares_are_exact_at_any_parallelism() {
    let store = Store::in_memory();
    assert!(run(Redistribution::Even, 2, &store).concat().is_empty(), "a first start");
    let first = run(Redistribution::Even, 2, &store);
    assert_eq!(sorted(&first), (0..1000).collect::<Vec<_>>());
    assert_eq!(run(Redistribution::Even, 2, &store), first, "each its own");
    for parallelism in [3, 1, 4] {
        let parts = run(Redistribution::Even, parallelism, &store);
        assert_eq!(parts.concat(), first.concat(), "in order");
        assert!(parts.iter().all(|part| part.len().abs_diff(1000 / parallelism) <= 1));
    }
}

#[test]
fn of_a_union_everybody_gets_everything() {
    let store = Store::in_memory();
    run(Redistribution::Union, 2, &store);
    let parts = run(Redistribution::Union, 3, &store);
    assert_eq!(sorted(&parts[..1]), (0..1000).collect::<Vec<_>>());
    assert!(parts.iter().all(|part| *part == parts[0]));
}
