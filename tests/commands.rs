//! `checkpoints` and `txn`, as an operator uses them on the examples, and on a job that dies.

#[path = "../examples/two_phase_sink/spool.rs"]
mod spool;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use flow::{
    BoxError, TwoPhaseCommit, collection, pipeline,
    sink::{CommitError, Committed, SinkContext, Standing, Transaction},
    sql,
};
use serde_json::Value;
use spool::{Prepared, Spool};
use tempfile::TempDir;

/// Cargo builds examples before tests, next to them.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test's own path");
    let path: PathBuf =
        test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST").join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo builds it with the tests of the whole package",
        path.display()
    );
    Command::new(path)
}

/// What a command prints, and its exit code.
#[track_caller]
fn run(command: &mut Command) -> (String, i32) {
    let output = command.output().expect("the example starts");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).expect("text"), output.status.code().expect("no signal"))
}

/// What a command that has to end well prints as JSON.
#[track_caller]
fn json(command: &mut Command) -> Value {
    let output = command.args(["--format", "json"]).output().expect("the example starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).expect("JSON")
}

/// A job that has run, with its checkpoints.
struct Ran {
    dir: TempDir,
    name: &'static str,
    arguments: Vec<String>,
}

impl Ran {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn job(&self) -> Command {
        let mut job = example(self.name);
        job.args(&self.arguments).arg("--checkpoint-dir").arg(self.path("checkpoints"));
        job
    }

    #[track_caller]
    fn run(&self) {
        let (text, code) = run(&mut self.job());
        assert_eq!(code, 0, "{text}");
    }

    fn checkpoints(&self, command: &str) -> Command {
        let mut job = example(self.name);
        job.args(["checkpoints", command, "--checkpoint-dir"]).arg(self.path("checkpoints"));
        job
    }

    /// With arguments before those of the job.
    fn txn(&self, arguments: &[&str]) -> Command {
        let mut job = example(self.name);
        job.arg("txn").args(arguments).arg("--checkpoint-dir").arg(self.path("checkpoints"));
        job.arg("--").args(&self.arguments);
        job
    }

    #[track_caller]
    fn transactions(&self) -> Vec<Value> {
        let mut job = example(self.name);
        job.args(["txn", "list", "--format", "json", "--"]).args(&self.arguments);
        // Here it is among the job's arguments.
        let (text, code) = run(job.arg("--checkpoint-dir").arg(self.path("checkpoints")));
        assert_eq!(code, 0, "{text}");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        list["transactions"].as_array().expect("a list").clone()
    }

    fn newest(&self) -> u64 {
        json(&mut self.checkpoints("list"))[0]["id"].as_u64().expect("a number")
    }

    fn part(&self, kind: &str) -> PathBuf {
        let folder = self.path("checkpoints").join(format!("chk-{:010}", self.newest()));
        let files = fs::read_dir(folder).expect("the checkpoint is there").map(|file| file.unwrap().path());
        files.into_iter().find(|file| file.to_str().unwrap().contains(kind)).expect("such a file")
    }
}

fn word_count() -> Ran {
    let dir = tempfile::tempdir().expect("a directory");
    let input = dir.path().join("in.txt");
    fs::write(&input, "to be or not to be\n").expect("the input");
    let path = |path: PathBuf| path.to_str().expect("a plain path").to_owned();
    let arguments =
        vec!["--input".to_owned(), path(input), "--output".to_owned(), path(dir.path().join("out"))];
    let ran = Ran { name: "word_count", arguments, dir };
    ran.run();
    ran
}

fn spool() -> Ran {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = dir.path().join("spool").to_str().expect("a plain path").to_owned();
    let arguments = ["--spool", &spool, "--orders", "5000"].map(str::to_owned).to_vec();
    let ran = Ran { name: "two_phase_sink", arguments, dir };
    ran.run();
    ran
}

fn visible(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        !name.starts_with('.') && !name.ends_with(".open")
    });
    files.sort();
    files
}

#[test]
fn checkpoints_are_listed_and_shown() {
    let ran = word_count();
    let (text, code) = run(&mut ran.checkpoints("list"));
    assert_eq!(code, 0);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("ID  CREATED") && lines[1].ends_with("yes       complete"), "{text}");
    fs::create_dir(ran.path("checkpoints").join("chk-0000000099")).unwrap();
    let list = json(&mut ran.checkpoints("list"));
    assert_eq!((&list[0]["id"], &list[0]["state"]), (&Value::from(99), &Value::from("incomplete")));
    assert_eq!((&list[1]["state"], &list[1]["finished"]), (&Value::from("complete"), &Value::from(true)));

    let (text, code) = run(&mut ran.checkpoints("inspect"));
    assert_eq!(code, 0);
    for words in [
        "of job `word_count`",
        "this program can go on from here",
        "split `",
        " (sum x",
        "state ",
        "transaction of checkpoint ",
        ".tsv",
    ] {
        assert!(text.contains(words), "{words} in: {text}");
    }
    let shown = json(ran.checkpoints("inspect").arg("1"));
    assert_eq!((&shown["id"], &shown["fits"]), (&Value::from(1), &Value::from(true)));
    let (text, code) = run(ran.checkpoints("inspect").arg("7"));
    assert_eq!(code, 1);
    assert!(text.contains("there is no checkpoint 7"), "{text}");

    // Another program reads it all the same, and says that it is not its own.
    let mut other = example("two_phase_sink");
    let (text, code) =
        run(other.args(["checkpoints", "inspect", "--checkpoint-dir"]).arg(ran.path("checkpoints")));
    assert_eq!(code, 0);
    assert!(text.contains("cannot go on from here: checkpoint 1 belongs to job `word_count`"), "{text}");

    let (text, code) =
        run(example("word_count").args(["checkpoints", "list", "--checkpoint-dir", "/nowhere"]));
    assert_eq!(code, 1);
    assert!(text.contains("there is no checkpoint in `/nowhere`"), "{text}");
}

#[test]
fn damage_is_found_and_named() {
    for kind in ["-state", "-txn"] {
        let ran = word_count();
        let (text, code) = run(&mut ran.checkpoints("verify"));
        assert_eq!(code, 0, "{text}");
        assert!(text.starts_with("checkpoint 1: good, "), "{text}");

        let file = ran.part(kind);
        let name = file.file_name().unwrap().to_str().unwrap();
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        fs::write(&file, &bad).unwrap();
        let (text, code) = run(&mut ran.checkpoints("verify"));
        assert_eq!(code, 1);
        assert!(text.contains("checkpoint 1: DAMAGED") && text.contains(name), "{text}");
        assert!(text.contains("its checksum does not match"), "{text}");

        fs::remove_file(&file).unwrap();
        let output = ran.checkpoints("verify").args(["newest", "--format", "json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &report["good"]), (Some(1), &Value::from(false)));
        let damage = report["checkpoints"][0]["damages"][0].as_str().unwrap();
        assert!(damage.contains(name) && damage.contains("is missing"), "{damage}");
    }
    let ran = word_count();
    let manifest = ran.part("manifest");
    let mut bad = fs::read(&manifest).unwrap();
    bad[100] ^= 1;
    fs::write(&manifest, bad).unwrap();
    let (text, code) = run(&mut ran.checkpoints("verify"));
    assert_eq!(code, 1);
    assert!(text.contains("/manifest` is damaged"), "{text}");
    let (text, code) = run(&mut ran.checkpoints("list"));
    assert_eq!(code, 0);
    assert!(text.contains("damaged: "), "{text}");
}

/// As if the job had been killed after the manifest and before the commit.
#[test]
fn a_transaction_of_files_is_committed_by_hand() {
    let ran = word_count();
    let done = ran.transactions();
    assert!(!done.is_empty() && done.iter().all(|txn| txn["standing"] == "committed"), "{done:?}");
    let out = ran.path("out");
    let counts = |files: &[PathBuf]| -> String {
        let mut lines: Vec<_> = files
            .iter()
            .flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        lines.sort();
        lines.join(",")
    };
    let files = visible(&out);
    for txn in &done {
        let text = txn["transaction"].as_str().unwrap();
        let word = |prefix: &str| -> String {
            let from = &text[text.find(prefix).unwrap_or_else(|| panic!("{prefix} in {text}"))..];
            from.chars().take_while(|c| c.is_ascii_alphanumeric() || ".~-_".contains(*c)).collect()
        };
        fs::rename(out.join(word("part-")), out.join(word(".flow~"))).unwrap();
    }
    assert!(visible(&out).is_empty());
    let pending = ran.transactions();
    assert!(pending.iter().all(|txn| txn["standing"] == "pending"), "{pending:?}");

    let id = pending[0]["id"].as_str().unwrap();
    let (text, code) = run(&mut ran.txn(&["commit", id]));
    assert_eq!((text.as_str(), code), (format!("{id}: committed\n").as_str(), 0));
    let (text, code) = run(&mut ran.txn(&["commit", "--all"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(&format!("{id}: already committed\n")), "{text}");
    assert_eq!(visible(&out), files);
    assert_eq!(counts(&files), "be\t2,not\t1,or\t1,to\t2");
    ran.run();
    assert_eq!(visible(&out), files, "and the job finds it done");
}

#[test]
fn a_transaction_is_given_up_by_hand() {
    let ran = spool();
    let spool = ran.path("spool");
    let done = ran.transactions();
    let (id, newest) = (done[0]["id"].as_str().unwrap(), ran.newest());
    let name = done[0]["transaction"].as_str().unwrap().strip_prefix("name=").unwrap().trim_matches('"');
    let (open, finished) = (spool.join(format!("{name}.open")), spool.join(name));
    fs::rename(&finished, &open).unwrap();
    let stray = spool.join(format!("{name}9.open"));
    fs::write(&stray, "of an attempt that was killed").unwrap();
    let pending = ran.transactions();
    assert_eq!(pending[0]["standing"], "pending");
    let unknown = pending.iter().find(|txn| txn["carried"] == false).expect("the stray one");
    assert_eq!(pending.len(), done.len() + 1, "one that is carried is listed once");

    let (text, code) = run(&mut ran.txn(&["abort", id]));
    assert_eq!(code, 1);
    for words in ["the outside would never see", "--yes", &format!("chk-{newest}")] {
        assert!(text.contains(words), "{words} in: {text}");
    }
    assert!(open.exists());
    assert_eq!(ran.newest(), newest, "nothing has happened");

    let (text, code) = run(&mut ran.txn(&["abort", id, "--yes"]));
    assert_eq!(code, 0, "{text}");
    assert!(!open.exists() && !finished.exists());
    assert_eq!(ran.newest(), newest + 1);
    assert!(ran.transactions().iter().all(|txn| txn["id"] != id));
    let (text, code) = run(&mut ran.txn(&["abort", id, "--yes"]));
    assert_eq!(code, 1);
    assert!(text.contains(&format!("there is no transaction `{id}`")), "{text}");
    let (text, code) = run(&mut ran.checkpoints("verify"));
    assert_eq!(code, 0, "the new checkpoint is whole: {text}");

    let (text, code) = run(&mut ran.txn(&["abort", unknown["id"].as_str().unwrap(), "--yes"]));
    assert_eq!(code, 0, "{text}");
    assert!(!stray.exists());
    // The job goes on from there, and the records stay away.
    ran.run();
    assert!(!finished.exists());
}

#[test]
fn mistakes_are_told() {
    let ran = word_count();
    let (text, code) = run(example("word_count").args(["txn", "list", "--", "--input", "x"]));
    assert_eq!(code, 2);
    assert!(text.contains("--output"), "{text}");
    let (text, code) = run(example("word_count").args(["txn", "list", "--"]).args(&ran.arguments));
    assert_eq!(code, 1);
    assert!(text.contains("--checkpoint-dir DIR"), "{text}");
    let (text, code) = run(&mut ran.txn(&["commit", "counts.sink/9/9"]));
    assert_eq!(code, 1);
    assert!(text.contains("there is no transaction `counts.sink/9/9`"), "{text}");
    let (text, code) = run(&mut ran.txn(&["commit"]));
    assert_eq!(code, 2, "{text}");
}

#[test]
fn the_command_line_prevails_over_the_pipeline() {
    let (text, code) = run(example("word_count").args(["--restart", "fixed-delay:attempt=3"]));
    assert_eq!(code, 2);
    assert!(text.contains("it takes attempts, delay"), "{text}");
    let ran = word_count();
    let mut job = ran.job();
    job.args(["--checkpoint-max-concurrent", "2", "--checkpoint-min-pause", "1s"]);
    let (text, code) = run(&mut job);
    assert_eq!(code, 1);
    assert!(text.contains("leaves one at a time"), "{text}");
    let mut job = ran.job();
    job.args([
        "--checkpoint-timeout",
        "5m",
        "--checkpoint-tolerable-failures",
        "3",
        "--checkpoint-compression",
        "zstd",
    ]);
    job.args(["--restart", "failure-rate:max=3,per=5m", "--checkpoint-on-success", "delete"]);
    let (text, code) = run(&mut job);
    assert_eq!(code, 0, "{text}");
    let (text, _) = run(&mut ran.checkpoints("list"));
    assert!(text.contains("there are no checkpoints"), "{text}");
}

/// As the spool of the example, but at the first commit the process dies.
#[derive(Clone)]
struct Deadly {
    spool: Spool,
    dies: bool,
}

impl TwoPhaseCommit for Deadly {
    type Record = String;
    type Live = (String, fs::File);
    type Handle = Prepared;

    async fn begin(&self, transaction: &Transaction<'_>) -> Result<Self::Live, BoxError> {
        self.spool.begin(transaction).await
    }

    async fn write(&self, live: &mut Self::Live, records: &[String]) -> Result<(), BoxError> {
        self.spool.write(live, records).await
    }

    async fn pre_commit(&self, live: Self::Live) -> Result<Prepared, BoxError> {
        self.spool.pre_commit(live).await
    }

    async fn commit(&self, handle: &Prepared) -> Result<Committed, CommitError> {
        if self.dies {
            // Nothing is cleaned up.
            std::process::abort();
        }
        self.spool.commit(handle).await
    }

    async fn abort(&self, handle: &Prepared) -> Result<(), BoxError> {
        self.spool.abort(handle).await
    }

    async fn standing(&self, handle: &Prepared) -> Result<Standing, BoxError> {
        TwoPhaseCommit::standing(&self.spool, handle).await
    }

    async fn recover(&self, cx: &SinkContext) -> Result<(), BoxError> {
        TwoPhaseCommit::recover(&self.spool, cx).await
    }
}

#[derive(Clone, clap::Args)]
struct Arguments {
    #[arg(long)]
    spool: PathBuf,
    #[arg(long)]
    dies: bool,
}

#[pipeline]
fn deadly(args: &Arguments) {
    source(collection::range(0..1000))
        .map(|n| format!("{n}\n"))
        .sink(Deadly { spool: Spool(args.spool.clone()), dies: args.dies });
}

/// The job, when this test binary is started as one.
#[test]
fn as_a_job() {
    let Ok(arguments) = std::env::var("FLOW_TEST_ARGUMENTS") else { return };
    let mut arguments = arguments.split('\n').map(OsString::from).peekable();
    let code = match arguments.peek().and_then(|name| name.to_str()) {
        Some("rows") => flow::run_from(rows, arguments),
        _ => flow::run_from(deadly, arguments),
    };
    // The test's own report must not follow what the job prints.
    std::process::exit(if code == std::process::ExitCode::SUCCESS { 0 } else { 1 });
}

fn as_job(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    let arguments = [&[name], arguments].concat().join("\n");
    command.args(["as_a_job", "--exact", "--nocapture"]).env("FLOW_TEST_ARGUMENTS", arguments);
    command
}

fn deadly_job(arguments: &[&str]) -> Command {
    as_job("deadly", arguments)
}

#[derive(Clone, clap::Args)]
struct Tables {
    #[arg(long, default_value = "orders")]
    first: String,
    #[arg(long, default_value = "totals")]
    second: String,
}

/// Keeps rows of two tables locked from checkpoint to checkpoint.
#[pipeline]
fn rows(args: &Tables) {
    let url = "mysql://user:secret@localhost:1/shop";
    let orders = source(collection::range(0..1000));
    let totals = orders.key_by(|n| n % 10).count();
    orders.map(|n| (n,)).sink(sql::insert(url, &args.first).prepared_transactions());
    totals.sink(sql::insert(url, &args.second).prepared_transactions());
}

/// What a job would warn of depends on the sinks that are made from its arguments, and on its parallelism.
#[test]
fn the_plan_warns_of_rows_that_may_meet() {
    let plan = |arguments: &[&str]| -> (String, Vec<String>) {
        let (text, code) = run(&mut as_job("rows", &[&["plan"], arguments].concat()));
        assert_eq!(code, 0, "{text}");
        let warnings = text.lines().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned);
        (text.clone(), warnings.collect())
    };
    let (text, warnings) = plan(&[]);
    assert!(text.contains("orders.map-1.sink") || text.contains("orders.sink"), "{text}");
    assert_eq!(warnings, Vec::<String>::new(), "nothing is known of the sinks without the job's arguments");
    assert_eq!(plan(&["--", "--parallelism", "1"]).1, Vec::<String>::new());

    let (_, warnings) = plan(&["--", "--parallelism", "2"]);
    let [warning] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    assert!(warning.contains("sink `orders.sink`") && warning.contains("2 subtasks"), "{warning}");
    assert!(warning.contains("mysql://localhost:1/shop") && !warning.contains("secret"), "{warning}");

    let (_, warnings) = plan(&["--", "--parallelism", "1", "--second", "orders"]);
    let [warning] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    assert!(warning.contains("sinks `orders.sink` and `totals.sink`"), "{warning}");

    let output = as_job("rows", &["plan", "--format", "json", "--warnings"]).output().expect("the plan");
    let text = String::from_utf8(output.stdout).expect("text");
    let plan: Value = serde_json::from_str(text[text.find('{').expect("JSON")..].trim()).expect("JSON");
    assert_eq!(plan["name"], "rows");
    assert!(plan["warnings"].is_array(), "{plan}");
    let (text, code) = run(&mut as_job("rows", &["plan", "--", "--third", "x"]));
    assert!(code != 0 && text.contains("--third"), "{text}");
}

#[test]
fn what_a_job_that_died_left_is_listed_and_committed() {
    for parallelism in ["1", "2"] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name).to_str().expect("a plain path").to_owned();
        let (spool, checkpoints) = (path("spool"), path("checkpoints"));
        let arguments = ["--spool", &spool, "--checkpoint-dir", &checkpoints, "--parallelism", parallelism];
        let died = deadly_job(&[&arguments[..], &["--dies"]].concat()).output().expect("the job starts");
        assert_eq!(died.status.code(), None, "a signal ended it");
        assert!(visible(Path::new(&spool)).is_empty());

        let list = || -> Vec<Value> {
            let arguments = [&["txn", "list", "--format", "json", "--"], &arguments[..]].concat();
            let output = deadly_job(&arguments).output().expect("the command starts");
            let text = String::from_utf8(output.stdout).expect("text");
            let list: Value = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON");
            list["transactions"].as_array().expect("a list").clone()
        };
        let standings = |list: &[Value]| -> Vec<String> {
            list.iter().map(|txn| txn["standing"].as_str().unwrap().to_owned()).collect()
        };
        let pending = list();
        assert_eq!(pending.len().to_string(), parallelism);
        assert!(standings(&pending).iter().all(|standing| standing == "pending"), "{pending:?}");
        for outcome in ["committed", "already committed"] {
            let (text, code) =
                run(&mut deadly_job(&[&["txn", "commit", "--all", "--"], &arguments[..]].concat()));
            assert_eq!(code, 0, "{text}");
            for txn in &pending {
                let id = txn["id"].as_str().unwrap();
                assert!(text.contains(&format!("{id}: {outcome}\n")), "{text}");
            }
        }
        let committed = list();
        assert!(standings(&committed).iter().all(|standing| standing == "committed"), "{committed:?}");
        let (text, code) = run(&mut deadly_job(&arguments));
        assert_eq!(code, 0, "{text}");
        let mut numbers: Vec<u32> = visible(Path::new(&spool))
            .iter()
            .flat_map(|file| {
                let text = fs::read_to_string(file).unwrap();
                text.lines().map(|line| line.parse().unwrap()).collect::<Vec<u32>>()
            })
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1000), "every record is there once");
    }
}
