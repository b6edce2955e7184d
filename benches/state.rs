//! A count per key over 10 million keys, of which a share changes from checkpoint to checkpoint: how fast it is with
//! and without checkpoints, for how long the worker is away from records, and what a checkpoint writes. The floor is a
//! loop written by hand over the same map. Rates are by the time of the processor that the loop's thread had, since
//! other work on the machine would otherwise decide; `by the clock` is what was seen.
//!
//! A pause is what lies between two looks at the clock, 64 records apart, when it is more than 200 µs. What the worker
//! then waited for a processor that others used is taken off.

mod common;

use std::{
    fs,
    hint::black_box,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Seen, Tally, size};
use flow::{
    collection, pipeline,
    worker::{Config, Stop, run_until},
};
use hashbrown::HashMap;

#[pipeline]
fn counts(keys: u64, changing: u64, pauses: &Pauses, seen: &Seen) {
    let numbers = source(collection::iterate(move || sequence(keys, changing)));
    let counts = numbers.key_by(|key| *key).count();
    counts.inspect(|_| pauses.record()).sink(Tally(seen.clone()));
}

/// All keys once, and then those that change, for ever.
fn sequence(keys: u64, changing: u64) -> impl Iterator<Item = u64> + Send {
    // A stride without a common factor visits every key, and none near the one before.
    let key = move |n: u64| n.wrapping_mul(7_368_787) % changing;
    (0..keys).chain((0..).map(key)).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Records when the worker is away from records.
#[derive(Clone, Default)]
struct Pauses(Arc<Recorder>);

#[derive(Default)]
struct Recorder {
    records: AtomicU64,
    on: AtomicBool,
    /// Records and the thread's time at the first look, and not long before the last one.
    cpu: Mutex<Option<[(u64, Duration); 2]>>,
    last: Mutex<Option<(Instant, Duration)>>,
    pauses: Mutex<Vec<Duration>>,
}

const LOOK_EVERY: u64 = 64;
const LEAST: Duration = Duration::from_micros(200);

impl Pauses {
    #[inline]
    fn record(&self) {
        // One worker records.
        let records = self.0.records.load(Relaxed) + 1;
        self.0.records.store(records, Relaxed);
        if records.is_multiple_of(LOOK_EVERY) && self.0.on.load(Relaxed) {
            self.look();
            if records.is_multiple_of(1 << 16) {
                let now = (records, processor_time()[0]);
                let mut cpu = self.0.cpu.lock().unwrap();
                *cpu = Some([cpu.map_or(now, |cpu| cpu[0]), now]);
            }
        }
    }

    /// Records per second of the worker's processor time.
    fn rate(&self) -> f64 {
        let cpu = *self.0.cpu.lock().unwrap();
        cpu.map_or(0.0, |[from, to]| (to.0 - from.0) as f64 / (to.1 - from.1).as_secs_f64())
    }

    fn look(&self) {
        let mut last = self.0.last.lock().unwrap();
        let now = Instant::now();
        let (before, mut waited) = last.unwrap_or_else(|| (now, processor_time()[1]));
        let gap = now - before;
        if gap > LEAST {
            let until_now = processor_time()[1];
            let own = gap.saturating_sub(until_now - waited);
            waited = until_now;
            if own > LEAST {
                self.0.pauses.lock().unwrap().push(own);
            }
        }
        *last = Some((Instant::now(), waited));
    }
}

/// How long this thread has been running, and how long it has been ready to run without running.
fn processor_time() -> [Duration; 2] {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let mut nanos = stat.split_ascii_whitespace().map(|n| Duration::from_nanos(n.parse().unwrap()));
    [(); 2].map(|()| nanos.next().expect("two times"))
}

/// Lets the job fill its state and complete its first checkpoints, and then measures it.
///
/// Returns the records per second of the worker's processor time, and by the clock.
fn measure(name: &str, keys: u64, changing: u64, interval: Option<Duration>, seconds: u64) -> [f64; 2] {
    let (pauses, seen, stop) = (Pauses::default(), Seen::default(), Stop::default());
    let job = counts(keys, changing, &pauses, &seen);
    let mut config = Config::with_parallelism(job.plan(), 1);
    config.checkpoint_interval = interval.or(Some(Duration::from_secs(3600)));
    config.retain = 10_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    config.checkpoint_dir = Some(directory.path().display().to_string());
    let time = size("FLOW_BENCH_SECONDS", seconds);
    let recorder = Arc::clone(&pauses.0);
    let (signal, path) = (stop.clone(), directory.path().to_owned());
    let watch = thread::spawn(move || {
        let pause = Duration::from_millis(100);
        while recorder.records.load(Relaxed) < keys {
            thread::sleep(pause);
        }
        // The second checkpoint from here on holds all keys, and those after it what has changed.
        let enough = interval.map_or(0, |_| complete(&path) + 2);
        while complete(&path) < enough {
            thread::sleep(pause);
        }
        let (records, began) = (recorder.records.load(Relaxed), Instant::now());
        recorder.on.store(true, Relaxed);
        thread::sleep(Duration::from_secs(time));
        recorder.on.store(false, Relaxed);
        let rate = (recorder.records.load(Relaxed) - records) as f64 / began.elapsed().as_secs_f64();
        signal.request();
        rate
    });
    run_until(&job, &config, &stop).expect("the job runs");
    let by_the_clock = watch.join().expect("the watch does not panic");
    let rate = pauses.rate();
    let mut pauses = pauses.0.pauses.lock().unwrap().clone();
    pauses.sort_unstable();
    let at =
        |share: f64| pauses.get(((pauses.len() as f64 * share) as usize).min(pauses.len().saturating_sub(1)));
    let millis = |pause: Option<&Duration>| pause.map_or(0.0, |pause| pause.as_secs_f64() * 1e3);
    println!(
        "  {name:44} {:6.2} M/s ({:.2} by the clock)  {:5} pauses, p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        rate / 1e6,
        by_the_clock / 1e6,
        pauses.len(),
        millis(at(0.5)),
        millis(at(0.99)),
        millis(pauses.last()),
    );
    if interval.is_some() {
        report_written(directory.path());
    }
    [rate, by_the_clock]
}

/// How many checkpoints are complete.
fn complete(directory: &Path) -> usize {
    let folders = fs::read_dir(directory).expect("the checkpoints").filter_map(Result::ok);
    folders.filter(|folder| folder.path().join("manifest").exists()).count()
}

/// What the checkpoints have written, in the order of their numbers.
fn report_written(directory: &Path) {
    let mut written = [(); 2].map(|()| Vec::new());
    // Beside the checkpoints is the lock of the directory, a file.
    let entries = fs::read_dir(directory).expect("the checkpoints").map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    for file in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let (file, kinds) = (file.unwrap(), ["-state.", "-changes."]);
        let name = file.file_name().into_string().unwrap();
        if let Some(kind) = kinds.iter().position(|kind| name.contains(kind)) {
            written[kind].push(file.metadata().unwrap().len());
        }
    }
    let median = |sizes: &mut Vec<u64>| {
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or(0) as f64 / 1e6
    };
    let [whole, changes] = &mut written;
    println!(
        "    {} checkpoints; {} times all of the state, {:.1} MB, and {} times what had changed, {:.2} MB",
        folders.len(),
        whole.len(),
        median(whole),
        changes.len(),
        median(changes),
    );
}

fn floor(keys: u64, changing: u64) -> f64 {
    let mut map = HashMap::<u64, u64, foldhash::fast::FixedState>::default();
    let mut numbers = sequence(keys, changing);
    numbers.by_ref().take(keys as usize).for_each(|key| {
        map.insert(key, 1);
    });
    let (records, mut sum, began) = (20_000_000, 0u64, processor_time()[0]);
    for key in numbers.take(records) {
        let count = map.entry(key).or_insert(0);
        *count += 1;
        sum = sum.wrapping_add(*count);
    }
    black_box(sum);
    records as f64 / (processor_time()[0] - began).as_secs_f64()
}

fn main() {
    let keys = size("FLOW_BENCH_KEYS", 10_000_000);
    println!("{keys} keys");
    let cases = [("0.1 %", keys / 1000, 1), ("10 %", keys / 10, 1), ("all", keys, 5)];
    let only = size("FLOW_BENCH_CASE", u64::MAX) as usize;
    for (_, (share, changing, seconds)) in
        cases.into_iter().enumerate().filter(|(case, _)| only == *case || only > cases.len())
    {
        let rate = floor(keys, changing);
        println!("  {:44} {:6.2} M/s", format!("floor, {share} of the keys change"), rate / 1e6);
        let without = measure(&format!("flow, {share}, without checkpoints"), keys, changing, None, 15);
        let every = Some(Duration::from_secs(seconds));
        let with =
            measure(&format!("flow, {share}, a checkpoint every {seconds} s"), keys, changing, every, 15);
        println!("    checkpoints cost {:.1} %", (1.0 - with[0] / without[0]) * 100.0);
    }
    if only >= cases.len() {
        hot(size("FLOW_BENCH_HOT_KEYS", 1_000_000));
    }
}

/// A checkpoint each second where every key changes between two of them, so that each holds all: in turns with the same
/// job without checkpoints. Many short rounds, for the machine's speed changes from one to the next.
fn hot(keys: u64) {
    let (rounds, second) = (size("FLOW_BENCH_ROUNDS", 9), Duration::from_secs(1));
    let mut costs = [const { Vec::new() }; 3];
    for round in 0..rounds {
        let run = |every: Option<Duration>| {
            let with = if every.is_some() { "a checkpoint every second" } else { "without checkpoints" };
            measure(&format!("flow, {keys} hot keys, {with}"), keys, keys, every, 5)
        };
        // Neither is always the first.
        let (without, with) = if round % 2 == 0 {
            let without = run(None);
            (without, run(Some(second)))
        } else {
            let with = run(Some(second));
            (run(None), with)
        };
        // The records between two checkpoints took so much longer. Where other work has the processor for most of the
        // second, few of them share the cost of a checkpoint; then this is what says how large it is.
        let checkpoint = (1.0 / with[0] - 1.0 / without[0]) * with[1] * second.as_secs_f64();
        let [of_worker, by_the_clock] = [0, 1].map(|i| 1.0 - with[i] / without[i]);
        let found = [of_worker, by_the_clock, checkpoint / second.as_secs_f64()];
        costs.iter_mut().zip(found).for_each(|(costs, found)| costs.push(found * 100.0));
    }
    println!("    checkpoints of {keys} hot keys, {rounds} rounds, cost");
    let names =
        ["of the worker's processor time", "by the clock", "of a processor, one checkpoint each second"];
    for (name, mut costs) in names.into_iter().zip(costs) {
        costs.sort_by(f64::total_cmp);
        let at = |quarter: usize| costs[(costs.len() * quarter / 4).min(costs.len() - 1)];
        println!("      {name}: median {:.1} %, half of them {:.1} to {:.1} %", at(2), at(1), at(3));
    }
}
