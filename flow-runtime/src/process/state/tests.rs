//! States: what they hold, what vanishes when, and what a later version of a struct finds.

use flow_macros::State;
use proptest::prelude::*;

use super::{AggregatingState, ListState, MapState, Reducer, ReducingState, State, ValueState, ttl::set_now};
use crate::{
    time::Timestamp,
    window::aggregate::{Itself, Mean},
};

struct Adds;

impl Reducer<u64> for Adds {
    fn reduce(held: u64, next: u64) -> u64 {
        held + next
    }
}

#[derive(State)]
struct All {
    value: ValueState<Option<u64>>,
    list: ListState<String>,
    map: MapState<(u8, String), u64>,
    sum: ReducingState<u64, Adds>,
    mean: AggregatingState<f64, Mean<Itself>>,
    nested: Nested,
}

#[derive(State)]
struct Nested {
    inner: ValueState<u8>,
}

fn again<S: State>(state: &S) -> S {
    S::decode(&state.encode().expect("it can be written"), None).expect("it can be read")
}

#[test]
fn everything_comes_back() {
    let mut all = All::empty(None);
    assert!(all.holds_nothing() && again(&all).holds_nothing());
    assert!(all.encode().expect("it can be written").len() < 3);
    all.value.set(None);
    all.list.extend(["a".to_owned(), "b".to_owned()]);
    assert_eq!(all.map.insert((1, "x".to_owned()), 5), None);
    *all.map.get_or_insert_with((0, "y".to_owned()), || 6) += 1;
    all.sum.add(2);
    all.sum.add(3);
    all.mean.add(&1.0).expect("it fits");
    all.mean.add(&2.0).expect("it fits");
    all.nested.inner.set(9);
    for all in [again(&all), all.copy(), again(&all.copy())] {
        assert_eq!(all.value.get(), Some(&None));
        assert_eq!(all.list.iter().collect::<Vec<_>>(), ["a", "b"]);
        let keys: Vec<_> = all.map.iter().map(|(key, value)| (key.0, *value)).collect();
        assert_eq!(keys, [(0, 7), (1, 5)]);
        assert_eq!((all.sum.get(), all.mean.get(), all.nested.inner.get()), (Some(&5), Some(1.5), Some(&9)));
        assert!(!all.holds_nothing());
    }
}

#[test]
fn a_struct_may_gain_and_lose_fields() {
    #[derive(State)]
    struct Before {
        kept: ValueState<u64>,
        lost: ListState<u64>,
    }
    #[derive(State)]
    struct After {
        gained: MapState<u8, u8>,
        kept: ValueState<u64>,
    }
    #[derive(State)]
    struct Other {
        kept: ValueState<String>,
    }
    let mut before = Before::empty(None);
    before.kept.set(7);
    before.lost.push(1);
    let bytes = before.encode().expect("it can be written");
    let after = After::decode(&bytes, None).expect("it can be read");
    assert_eq!((after.kept.get(), after.gained.is_empty()), (Some(&7), true));
    let error = Other::decode(&bytes, None).err().expect("a number is no text").to_string();
    assert!(error.contains("field `kept`"), "{error}");
}

#[derive(State)]
struct Short {
    #[state(ttl = "10ms")]
    value: ValueState<u64>,
    #[state(ttl = "10ms")]
    list: ListState<u64>,
    #[state(ttl = "10ms")]
    map: MapState<u64, u64>,
    #[state(ttl = "10ms", update = on_read_and_write)]
    read: MapState<u64, u64>,
    #[state(ttl = "10ms", visibility = return_expired_if_not_cleaned_up)]
    seen: ValueState<u64>,
    ever: ValueState<u64>,
}

#[derive(Clone, Debug)]
enum Step {
    Value(u64),
    Push(u64),
    Insert(u64, u64),
    InsertRead(u64, u64),
    Read(u64),
    Seen(u64),
    Pass(i64),
    Clean,
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..9).prop_map(Step::Value),
        (0u64..9).prop_map(Step::Push),
        (0u64..4, 0u64..9).prop_map(|(key, value)| Step::Insert(key, value)),
        (0u64..4, 0u64..9).prop_map(|(key, value)| Step::InsertRead(key, value)),
        (0u64..4).prop_map(Step::Read),
        (0u64..9).prop_map(Step::Seen),
        (0i64..7).prop_map(Step::Pass),
        (0i64..7).prop_map(Step::Pass),
        Just(Step::Clean),
        Just(Step::Restore),
    ]
}

proptest! {
    #[test]
    fn what_is_not_used_for_its_time_vanishes(steps in prop::collection::vec(step(), 0..60)) {
        let at = Timestamp::from_millis;
        let mut now = 1_000;
        let mut state = Short::empty(None);
        // With the time of the last use.
        let mut value: Option<(u64, i64)> = None;
        let mut seen: Option<(u64, i64)> = None;
        let mut list: Vec<(u64, i64)> = Vec::new();
        let (mut map, mut read) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        for step in steps {
            set_now(at(now));
            match step {
                Step::Value(n) => { state.value.set(n); value = Some((n, now)); }
                Step::Push(n) => { state.list.push(n); list.push((n, now)); }
                Step::Insert(key, n) => { state.map.insert(key, n); map.insert(key, (n, now)); }
                Step::InsertRead(key, n) => { state.read.insert(key, n); read.insert(key, (n, now)); }
                Step::Read(key) => {
                    let expected = read.get_mut(&key).filter(|(_, used)| now < *used + 10).map(|entry| {
                        entry.1 = now;
                        entry.0
                    });
                    prop_assert_eq!(state.read.get(&key).copied(), expected);
                }
                Step::Seen(n) => { state.seen.set(n); seen = Some((n, now)); }
                Step::Pass(by) => now += by,
                Step::Clean => {
                    state.clean(at(now));
                    seen = seen.filter(|(_, used)| now < used + 10);
                }
                Step::Restore => state = again(&state),
            }
            set_now(at(now));
            let alive = |used: i64| now < used + 10;
            prop_assert_eq!(state.value.get().copied(), value.filter(|v| alive(v.1)).map(|v| v.0));
            let left: Vec<u64> = list.iter().filter(|v| alive(v.1)).map(|v| v.0).collect();
            prop_assert_eq!(state.list.iter().copied().collect::<Vec<_>>(), left);
            let left: Vec<(u64, u64)> = map.iter().filter(|(_, v): &(&u64, &(u64, i64))| alive(v.1)).map(|(k, v)| (*k, v.0)).collect();
            prop_assert_eq!(state.map.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), left);
            prop_assert_eq!(state.seen.get().copied(), seen.map(|v| v.0));
            // The clock leads here in time: never later than when something vanishes.
            let all = value.iter().chain(&seen).chain(&list).chain(map.values()).chain(read.values());
            if let Some(first) = all.map(|v| v.1 + 10).filter(|end| *end > now).min() {
                prop_assert!(state.ends().is_some_and(|ends| ends <= at(first)));
            }
        }
        set_now(at(now + 10));
        state.clean(at(now + 10));
        prop_assert!(state.holds_nothing());
        prop_assert_eq!(state.ends(), None);
    }
}

#[test]
fn a_field_that_gets_a_time_to_live_later_lives_from_its_restore() {
    #[derive(State)]
    struct Before {
        value: ValueState<u64>,
        list: ListState<u64>,
        map: MapState<u64, u64>,
    }
    #[derive(State)]
    struct After {
        #[state(ttl = "10ms")]
        value: ValueState<u64>,
        #[state(ttl = "10ms")]
        list: ListState<u64>,
        #[state(ttl = "10ms")]
        map: MapState<u64, u64>,
    }
    let mut before = Before::empty(None);
    before.value.set(1);
    before.list.push(2);
    before.map.insert(3, 4);
    let mut after = After::decode(&before.encode().expect("written"), None).expect("read");
    // It has to be looked at, so that its time begins.
    assert_eq!(after.ends(), Some(Timestamp::MIN));
    let at = Timestamp::from_millis;
    after.clean(at(100));
    set_now(at(109));
    assert_eq!((after.value.get(), after.list.len(), after.map.len()), (Some(&1), 1, 1));
    assert_eq!(after.ends(), Some(at(110)));
    after.clean(at(110));
    assert!(after.holds_nothing());
}
