//! Event time from the source to the windows.

mod common;

use common::{Collected, Gate, Script, Scripted, often, run, run_with, start};
use flow::{
    pipeline,
    time::Timestamp,
    watermark::{WatermarkStrategy, bounded, monotonous},
    window::{aggregate, session, sliding, tumbling},
};

/// A reading: when, whose, how much.
type Reading = (i64, u64, u64);

#[pipeline]
fn tumbled(input: Scripted<Reading>, out: Collected<(u64, i64, u64)>) {
    let readings = source(input).watermarks(bounded("2s"), |(time, _, _)| *time);
    let counts = readings
        .key_by(|(_, sensor, _)| *sensor)
        .window(tumbling("5s"))
        .count()
        .with(|sensor, window, count| (sensor, window.start.as_millis(), count));
    counts.sink(out.transactional());
}

#[test]
fn counts_in_tumbling_windows() {
    for parallelism in [1, 2] {
        let out = Collected::new();
        let input = Scripted::new([Script::new().records([(1_000, 1, 0), (4_999, 1, 0), (5_000, 1, 0), (3_000, 2, 0)])]);
        run(tumbled(input, out.clone()), parallelism);
        assert_eq!(out.sorted(), [(1, 0, 2), (1, 5_000, 1), (2, 0, 1)]);
    }
}
