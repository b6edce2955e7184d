//! Case 21: evictors.

use super::{super::*, *};
use crate::window::{evict, trigger};

/// What `process` makes of the records that are left: all of them.
fn all<E: Evictor<i64, GlobalWindow>>(evictor: E) -> impl Drive<Vec<i64>> {
    let every = windows(global()).trigger(trigger::count(1)).evictor(evictor);
    operator(every.process(|_, _, records| [records.copied().collect()]))
}

fn fired(w: &dyn Drive<Vec<i64>>, records: &[(i64, i64)]) -> Vec<Vec<i64>> {
    records.iter().flat_map(|(time, n)| w.put(*time, *n)).map(|(_, _, records)| records).collect()
}

#[test]
fn evict_before_hides_records_from_the_function() {
    let w = all(evict::count(2));
    assert_eq!(fired(&w, &[(0, 1), (0, 2), (0, 3)]), [vec![1], vec![1, 2], vec![2, 3]]);
}

#[test]
fn evict_after_counts_for_the_next_firing() {
    let w = all(evict::count(2).after());
    assert_eq!(
        fired(&w, &[(0, 1), (0, 2), (0, 3), (0, 4)]),
        [vec![1], vec![1, 2], vec![1, 2, 3], vec![2, 3, 4]]
    );
}

#[test]
fn a_time_evictor_goes_by_the_newest_record_in_the_window() {
    let w = all(evict::time(ms(10)));
    assert_eq!(
        fired(&w, &[(20, 1), (11, 2), (10, 3), (21, 4)]),
        [vec![1], vec![2, 1], vec![2, 1], vec![1, 4]]
    );
}

#[test]
fn a_delta_evictor_removes_from_its_threshold_on() {
    let w = all(evict::delta(10.0, |then: &i64, now: &i64| (now - then) as f64));
    assert_eq!(
        fired(&w, &[(0, 0), (1, 9), (2, 10), (3, 19)]),
        [vec![0], vec![0, 9], vec![9, 10], vec![10, 19]]
    );
}

#[test]
fn with_an_evictor_aggregates_are_made_of_what_is_left() {
    let w = operator(windows(tumbling(ms(10))).evictor(evict::count(2)).aggregate(SUM));
    [1, 10, 100].into_iter().for_each(|n| assert_eq!(w.put(n % 10, n), []));
    assert_eq!(w.watermark_at(9), [(0, 10, 110)]);
    // Sliding windows, too, hold each their own.
    let w = operator(windows(sliding(ms(10), ms(5))).evictor(evict::count(1)).aggregate(SUM));
    [(1, 1), (6, 10)].into_iter().for_each(|(time, n)| assert_eq!(w.put(time, n), []));
    assert_eq!(w.watermark_at(END), [(-5, 5, 1), (0, 10, 10), (5, 15, 10)]);
    // When none is left there is no result.
    struct All;
    impl<W> Evictor<i64, W> for All {
        fn evict_before(&self, elements: &mut Vec<evict::Element<i64>>, _: &W) {
            elements.clear();
        }
    }
    let w = operator(windows(tumbling(ms(10))).evictor(All).aggregate(SUM));
    w.put(1, 1);
    assert_eq!(w.watermark_at(END), []);
}
