//! Sinks that keep rows locked between checkpoints, and whether two subtasks may meet in one of them.
//!
//! What a sink locks it knows only when it is made, so this is told when a job starts and not by its plan.

use std::rc::Rc;

use crate::{
    plan::{Plan, Ship},
    sink::HeldRows,
};

/// An operator: that of the plan which comes last. The others are the calls of helper functions that lead to it.
pub(super) type Path = Vec<(&'static Plan, usize)>;

/// Whether all records that enter an operator come, as they are or changed, from an exchange by key.
pub(super) fn is_keyed(path: &[(&'static Plan, usize)]) -> bool {
    let Some(((plan, operator), callers)) = path.split_last() else { return false };
    let mut inputs = plan.edges.iter().filter(|edge| edge.to == *operator).peekable();
    if inputs.peek().is_none() {
        // What enters a helper function enters its call.
        return plan.operators[*operator].kind != "source" && is_keyed(callers);
    }
    inputs.all(|edge| match edge.ship {
        Ship::KeyGroup => true,
        Ship::Forward => {
            let mut sender = [callers, &[(*plan, edge.from)]].concat();
            if let Some(part) = plan.operators[edge.from].part {
                sender.push((part, output(part)));
            }
            is_keyed(&sender)
        }
        _ => false,
    })
}

/// The operator of a helper function whose records leave it.
fn output(part: &Plan) -> usize {
    let sends = |operator| part.edges.iter().any(|edge| edge.from == operator);
    let ends = |operator: &usize| !sends(*operator) && part.operators[*operator].kind != "sink";
    (0..part.operators.len()).rfind(ends).unwrap_or_default()
}

/// Why subtasks of a sink may wait for each other, or for those of `others`, if they may.
pub(super) fn warnings(
    uid: &str,
    held: &HeldRows,
    parallelism: usize,
    path: &[(&'static Plan, usize)],
    others: &[(Rc<str>, HeldRows)],
) -> Vec<String> {
    let mut warnings = Vec::new();
    if parallelism > 1 && !is_keyed(path) {
        warnings.push(format!(
            "sink `{uid}` keeps rows of {held} locked until a checkpoint is complete, and its {parallelism} subtasks get records that are not partitioned by key: if two of them write the same row they wait for each other, and the job fails. put `.key_by(..)` by the row's key before it, or take the ledger, unless rows are only inserted"
        ));
    }
    for (other, _) in others.iter().filter(|(_, other)| other.may_meet(held)) {
        warnings.push(format!(
            "sinks `{other}` and `{uid}` both keep rows of {held} locked until a checkpoint is complete: if they write the same row they wait for each other, and the job fails. take the ledger for one of them, unless their rows are different ones"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CheckpointPlan, EdgePlan, Guarantee, Mode, OperatorPlan};

    const fn plan(operators: &'static [OperatorPlan], edges: &'static [EdgePlan]) -> Plan {
        Plan {
            name: "test",
            guarantee: Guarantee::ExactlyOnce,
            mode: Mode::Streaming,
            checkpoint: CheckpointPlan::new(),
            restart: None,
            parallelism: None,
            max_parallelism: None,
            operators,
            edges,
        }
    }

    /// source, key_by, sum, [filter by `.2`], sink.
    static KEYED: Plan = plan(
        &[
            OperatorPlan::new("lines", "source", 0),
            OperatorPlan::new("counts.key_by", "key_by", 0),
            OperatorPlan::new("counts.sum", "sum", 1),
            OperatorPlan::new("counts.filter", "filter", 1),
            OperatorPlan::new("counts.sink", "sink", 1),
            OperatorPlan::new("lines.sink", "sink", 0),
            OperatorPlan::new("dealt.sink", "sink", 2),
        ],
        &[
            EdgePlan::new(0, 1, Ship::Forward),
            EdgePlan::new(1, 2, Ship::KeyGroup),
            EdgePlan::new(2, 3, Ship::Forward),
            EdgePlan::new(3, 4, Ship::Forward),
            EdgePlan::new(0, 5, Ship::Forward),
            EdgePlan::new(3, 6, Ship::Rebalance),
        ],
    );

    #[test]
    fn a_key_before_the_sink_is_seen() {
        assert!(is_keyed(&[(&KEYED, 4)]));
        assert!(!is_keyed(&[(&KEYED, 5)]));
        assert!(!is_keyed(&[(&KEYED, 6)]));
    }

    /// A helper function: key_by, sum.
    static HELPER: Plan = plan(
        &[OperatorPlan::new("a.key_by", "key_by", 0), OperatorPlan::new("a.sum", "sum", 1)],
        &[EdgePlan::new(0, 1, Ship::KeyGroup)],
    );
    /// A helper function: map.
    static PLAIN: Plan = plan(&[OperatorPlan::new("a.map", "map", 0)], &[]);
    static CALLS: Plan = plan(
        &[
            OperatorPlan::new("lines", "source", 0),
            OperatorPlan::new("counts", "call", 1).part(&HELPER),
            OperatorPlan::new("counts.sink", "sink", 2),
            OperatorPlan::new("changed", "call", 3).part(&PLAIN),
            OperatorPlan::new("changed.sink", "sink", 4),
            OperatorPlan::new("changed_twice", "call", 5).part(&PLAIN),
            OperatorPlan::new("changed_twice.sink", "sink", 6),
        ],
        &[
            EdgePlan::new(0, 1, Ship::Forward),
            EdgePlan::new(1, 2, Ship::Forward),
            EdgePlan::new(0, 3, Ship::Forward),
            EdgePlan::new(3, 4, Ship::Forward),
            EdgePlan::new(1, 5, Ship::Forward),
            EdgePlan::new(5, 6, Ship::Forward),
        ],
    );

    #[test]
    fn helper_functions_are_looked_through() {
        assert!(is_keyed(&[(&CALLS, 2)]));
        assert!(!is_keyed(&[(&CALLS, 4)]));
        assert!(is_keyed(&[(&CALLS, 6)]));
    }

    #[test]
    fn rows_that_may_be_shared_are_warned_of() {
        let held = |table: Option<&str>| HeldRows {
            database: "mysql://h:3306/d".into(),
            table: table.map(str::to_owned),
        };
        let warn = |parallelism, operator, others: &[(Rc<str>, HeldRows)]| {
            warnings("counts.sink", &held(Some("t")), parallelism, &[(&KEYED, operator)], others)
        };
        assert_eq!(warn(2, 4, &[]), Vec::<String>::new());
        assert_eq!(warn(1, 5, &[]), Vec::<String>::new());
        let why = warn(2, 5, &[]);
        assert!(why.len() == 1 && why[0].contains("not partitioned by key"), "{why:?}");
        let others = [("same".into(), held(Some("t"))), ("other".into(), held(Some("u")))];
        let why = warn(2, 4, &others);
        assert!(why.len() == 1 && why[0].contains("`same` and `counts.sink`"), "{why:?}");
        assert_eq!(warn(2, 4, &[("any".into(), held(None))]).len(), 1);
    }
}
