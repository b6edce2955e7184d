//! A record of a known key in an open window needs no memory, whatever the windows are.

use std::{alloc::System, time::Duration};

use flow_runtime::{
    time::{Timestamp, Watermark},
    window::{
        Definition, Windows,
        aggregate::{Itself, count, each, max, sum},
        global, session, sliding, trigger, tumbling, windows,
    },
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// Records over half a minute, each later than the one before.
fn needs_no_memory<S: Definition<u64, (u64, u64)>>(name: &str, spec: S) {
    let windows = Windows::detached(spec).unwrap();
    let w = &mut windows.borrow_mut();
    let run = |w: &mut flow_runtime::window::WindowsMut<'_, _, _, _>| {
        for millis in 0..30_000 {
            w.add(&(millis % 100), Timestamp::from_millis(millis as i64), (millis, 1)).unwrap();
        }
        w.advance(Watermark::new(Timestamp::from_millis(1))).unwrap();
    };
    run(w);
    let region = Region::new(ALLOCATOR);
    run(w);
    assert_eq!(region.change().allocations, 0, "{name}");
}

// One test, since allocations of another one would be counted here.
#[test]
fn a_known_key_in_an_open_window_needs_no_memory() {
    let aggregates = || each((sum(Itself), (count(), max(Itself))));
    needs_no_memory("tumbling", windows(tumbling(HOUR)).aggregate(aggregates()));
    needs_no_memory("slices", windows(sliding(HOUR, MINUTE)).aggregate(aggregates()));
    let counting = windows(sliding(HOUR, MINUTE)).trigger(trigger::count(1_000_000));
    needs_no_memory("each sliding window for itself", counting.aggregate(aggregates()));
    needs_no_memory("session", windows(session(HOUR)).aggregate(aggregates()));
    let counting = windows(global()).trigger(trigger::count(1_000_000));
    needs_no_memory("global", counting.aggregate(aggregates()));
}
