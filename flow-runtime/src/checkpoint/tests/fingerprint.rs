use crate::checkpoint::{CheckpointError, OperatorStatePart, PartFile, fingerprint::Vanished, tests::*};

/// Lines are split, summed and written; `words.idle` has no state.
fn written() -> Manifest {
    let mut manifest = Manifest::new("job", CheckpointId(4), 128);
    manifest.operators = vec![
        operator("lines", "source"),
        operator("words.sum", "sum"),
        operator("words.idle", "window"),
        operator("rules", "process"),
        operator("out", "sink"),
    ];
    let file = || PartFile { path: "x".into(), bytes: 0, crc: 0 };
    let split = SplitState { id: "a".into(), position: "0".into(), data: vec![] };
    manifest.sources.push(SourcePart { uid: "lines".into(), subtask: 0, splits: vec![split] });
    manifest.states.push(StatePart { uid: "words.sum".into(), subtask: 0, files: vec![file()] });
    let (uid, name) = ("rules".into(), "rules".into());
    manifest.operator_states.push(OperatorStatePart { uid, name, subtask: 0, items: 1, file: file() });
    manifest.sinks.push(SinkPart {
        uid: "out".into(),
        subtask: 0,
        checkpoint: CheckpointId(4),
        file: file(),
    });
    manifest
}

/// The operators of `written`, with `from` renamed.
fn renamed(from: &str, to: &[&str]) -> Vec<OperatorEntry> {
    let mut operators = written().operators;
    let at = operators.iter().position(|o| o.uid == from).unwrap();
    let was = operators.remove(at);
    operators.extend(to.iter().map(|uid| operator(uid, &was.kind)));
    operators
}

#[test]
fn the_same_pipeline_fits_at_any_parallelism() {
    let mut now = written().operators;
    now[1].parallelism = 7;
    written().check("job", &now, 128, false).unwrap();
}

#[test]
fn new_operators_begin_empty() {
    let mut now = written().operators;
    now.push(operator("more.sum", "sum"));
    written().check("job", &now, 128, false).unwrap();
}

#[test]
fn another_job_is_foreign() {
    let error = written().check("other", &written().operators, 128, true).unwrap_err();
    assert!(matches!(&error, CheckpointError::OtherJob { .. }) && !error.restartable());
    let text = error.to_string();
    assert!(text.contains("`job`") && text.contains("`other`") && text.contains("directory"), "{text}");
}

#[test]
fn another_number_of_key_groups_names_the_right_one() {
    let error = written().check("job", &written().operators, 256, true).unwrap_err();
    assert!(matches!(error, CheckpointError::MaxParallelism { was: 128, is: 256, .. }));
    assert!(error.to_string().contains("set it back to 128"), "{error}");
}

#[test]
fn another_kind_is_refused_even_when_state_may_be_dropped() {
    let mut now = written().operators;
    now[1].kind = "fold".into();
    let error = written().check("job", &now, 128, true).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CheckpointError::KindChanged { .. }));
    assert!(text.contains("`words.sum`") && text.contains("`sum`") && text.contains("`fold`"), "{text}");
}

#[test]
fn each_operator_that_remembers_is_missed() {
    for uid in ["lines", "words.sum", "rules", "out"] {
        let now = renamed(uid, &[]);
        match written().check("job", &now, 128, false) {
            Err(CheckpointError::Vanished { vanished, .. }) => assert_eq!(vanished[0].uid, uid),
            other => panic!("{uid}: {other:?}"),
        }
        written().check("job", &now, 128, true).unwrap();
    }
    written().check("job", &renamed("words.idle", &[]), 128, false).unwrap();
}

#[test]
fn a_renamed_operator_is_guessed() {
    let now = renamed("words.sum", &["clicks.count", "word.sum", "zzz"]);
    let error = written().check("job", &now, 128, false).unwrap_err();
    match &error {
        CheckpointError::Vanished { vanished, .. } => {
            let became = Some("word.sum".to_owned());
            assert_eq!(*vanished, [Vanished { uid: "words.sum".into(), kind: "sum".into(), became }]);
        }
        other => panic!("{other:?}"),
    }
    let text = error.to_string();
    assert!(text.contains(r#"`.uid("words.sum")`"#) && text.contains("--allow-dropped-state"), "{text}");
}

#[test]
fn a_guess_is_new_and_of_the_same_kind() {
    let mut now = renamed("words.sum", &[]);
    now.push(operator("words.sums", "fold"));
    match written().check("job", &now, 128, false) {
        Err(CheckpointError::Vanished { vanished, .. }) => assert_eq!(vanished[0].became, None),
        other => panic!("{other:?}"),
    }
}
