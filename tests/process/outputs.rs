//! Several outputs of an operator.

use flow::{
    Error, Split2, Split3, Split4,
    collection::{collection, range},
    file, pipeline,
    testing::{Harness, Output},
    time::Timestamp,
    watermark::monotonous,
    window::tumbling,
};

use crate::common::sorted;

#[pipeline]
fn by_size(large: Output<u64>, tiny: Output<String>) {
    let (above, below, none) = source(range(0..1000)).split(|n| match n {
        0 => Split3::Third(()),
        n if n >= 100 => Split3::First(n),
        n => Split3::Second(n.to_string()),
    });
    above.rebalance().map(|n| n * 2).sink(large);
    below.sink(tiny.clone());
    none.map(|()| String::from("nothing")).sink(tiny);
}

#[test]
fn each_record_takes_one_output_and_outputs_have_types_of_their_own() -> Result<(), Error> {
    for parallelism in [1, 3] {
        let mut test = Harness::new();
        let (large, tiny) = (test.output(), test.output());
        test.parallelism(parallelism).start(by_size(large.clone(), tiny.clone()))?;
        test.finish()?;
        assert_eq!(large.take_sorted(), (100..1000).map(|n| n * 2).collect::<Vec<u64>>());
        let texts = (1..100).map(|n: u64| n.to_string()).chain([String::from("nothing")]);
        assert_eq!(tiny.take_sorted(), sorted(texts));
    }
    Ok(())
}

#[pipeline]
fn borrowed(path: &str, words: Output<String>, numbers: Output<(String, u64)>) {
    let (word, number, _) = source(file::text(path)).split(|line| match line.split_once('=') {
        Some((name, value)) => match value.parse::<u64>() {
            Ok(value) => Split3::Second((name, value)),
            Err(_) => Split3::First(name),
        },
        None => Split3::Third(line),
    });
    word.map(|name| name.to_owned()).sink(words);
    number.key_by(|(name, _)| *name).sum(|(_, n)| *n).map(|(name, n)| (name.to_owned(), n)).sink(numbers);
}

#[test]
fn records_of_an_output_may_borrow_and_an_output_may_be_dropped() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("in");
    std::fs::write(&path, "a=1\nb=x\nnothing\na=2\nb=5\n").expect("written");
    for parallelism in [1, 2] {
        let mut test = Harness::new();
        let (words, numbers) = (test.output(), test.output());
        test.parallelism(parallelism).start(borrowed(
            path.to_str().expect("text"),
            words.clone(),
            numbers.clone(),
        ))?;
        test.finish()?;
        assert_eq!(words.take_sorted(), ["b"]);
        assert_eq!(numbers.take_sorted(), [("a".to_owned(), 1), ("a".to_owned(), 3), ("b".to_owned(), 5)]);
    }
    Ok(())
}

#[pipeline]
fn timed(even: Output<(u64, u64)>, odd: Output<(u64, u64)>) {
    let numbers = source(range(0..100)).parallelism(1);
    let (evens, odds) =
        numbers.watermarks(monotonous(), |n| Timestamp::from_millis(*n as i64)).split(|n| match n % 2 {
            0 => Split2::First(n),
            _ => Split2::Second(n),
        });
    evens.key_by(|n| n % 4).window(tumbling("10ms")).count().sink(even);
    evens.union(odds).key_by(|n| n % 4).window(tumbling("50ms")).sum(|n| *n).sink(odd);
}

#[test]
fn event_time_goes_on_in_every_output() -> Result<(), Error> {
    let windows = |size: u64, of: fn(u64) -> bool, value: fn(u64) -> u64| {
        let mut all = std::collections::BTreeMap::new();
        for n in (0..100).filter(|n| of(*n)) {
            *all.entry((n % 4, n / size)).or_insert(0) += value(n);
        }
        sorted(all.into_iter().map(|((key, _), value)| (key, value)))
    };
    for parallelism in [1, 4] {
        let mut test = Harness::new();
        let (even, both) = (test.output(), test.output());
        test.parallelism(parallelism).start(timed(even.clone(), both.clone()))?;
        test.finish()?;
        assert_eq!(even.take_sorted(), windows(10, |n| n % 2 == 0, |_| 1));
        assert_eq!(both.take_sorted(), windows(50, |_| true, |n| n));
    }
    Ok(())
}

#[pipeline]
fn fallible(first: Output<u64>, rest: Output<u64>) {
    let numbers = source(collection(["1", "x", "22", "333", "", "4444", "55"].map(String::from)));
    let (one, two, three, four) = numbers
        .split(|text| {
            let n: u64 = text.parse()?;
            Ok(match text.len() {
                1 => Split4::First(n),
                2 => Split4::Second(n),
                3 => Split4::Third(n),
                _ => Split4::Fourth(n),
            })
        })
        .on_error(skip);
    one.sink(first);
    two.union(three, four).sink(rest);
}

#[test]
fn a_record_whose_closure_fails_takes_no_output() -> Result<(), Error> {
    let mut test = Harness::new();
    let (first, rest) = (test.output(), test.output());
    test.start(fallible(first.clone(), rest.clone()))?;
    let summary = test.finish()?;
    assert_eq!((first.take_sorted(), rest.take_sorted()), (vec![1], vec![22, 55, 333, 4444]));
    assert_eq!(summary.skipped.values().sum::<u64>(), 2);
    Ok(())
}

#[test]
fn the_plan_shows_each_output() -> Result<(), Error> {
    let mut test = Harness::new();
    let plan = fallible(test.output(), test.output()).plan();
    let uids: Vec<_> = plan.operators.iter().map(|operator| (operator.uid, operator.kind)).collect();
    assert_eq!(
        uids[1..4],
        [("numbers.split", "split"), ("numbers.split.one", "branch"), ("numbers.split.two", "branch")]
    );
    Ok(())
}
