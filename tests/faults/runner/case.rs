//! One job, from its start to its end, with all that befalls it.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    damage::{self, Damaged},
    disk::{ReadOnly, SmallDisk},
    fault::Fault,
    job::{Process, program},
    random::Random,
    report::Report,
    target::{Kind, Target, address},
};

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) parallelism: usize,
    pub(crate) faults: Vec<Fault>,
}

/// Records per start, and per second: a start without a fault takes about half a second.
const RECORDS: u64 = 8000;
const RATE: u64 = 15_000;

/// Nothing takes as long unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// What is there while a case runs.
struct Run<'c> {
    case: &'c Case,
    /// Before the directory, in which it is mounted.
    disk: Option<SmallDisk>,
    directory: tempfile::TempDir,
    target: Target,
    records: u64,
    starts: u64,
}

/// How a fault left the job.
enum Left {
    /// To be started again.
    Down,
    /// It got to its end before the fault struck.
    Finished,
}

impl Case {
    /// Runs it, and counts what came out. Returns how many of the faults struck before the job was done.
    pub(crate) fn run(&self, random: &mut Random, report: &mut Report) -> Result<usize, String> {
        let mut run = Run::new(self, random)?;
        let outcome = run.all(random, report);
        let outcome = outcome.and_then(|struck| Ok((struck, run.target.count(run.records)?)));
        let context = |what: String, run: Run<'_>| {
            let kept = run.directory.keep();
            format!("{what}\nin {self:?}\nits files are in {}", kept.display())
        };
        match outcome {
            Err(error) => Err(context(error, run)),
            Ok((struck, count)) => {
                report.case(self.kind, run.starts, count);
                if count.lost > 0 || count.duplicated > 0 {
                    println!("{}", context(format!("WRONG: {count:?} of {} records", run.records), run));
                    return Ok(struck);
                }
                run.target.drop()?;
                Ok(struck)
            }
        }
    }
}

impl<'c> Run<'c> {
    fn new(case: &'c Case, random: &mut Random) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("flow-chaos-")
            .tempdir()
            .map_err(|e| format!("no directory for temporary files: {e}"))?;
        let checkpoints = directory.path().join("checkpoints");
        fs::create_dir(&checkpoints).map_err(|e| e.to_string())?;
        let full = case.faults.iter().any(|fault| matches!(fault, Fault::FullDisk));
        let disk = if full { Some(SmallDisk::new(&checkpoints)?) } else { None };
        let target = Target::new(case.kind, directory.path(), &format!("flow_chaos_{:016x}", random.next()))?;
        let records = RECORDS * (case.faults.len() as u64 + 1);
        Ok(Run { case, directory, disk, target, records, starts: 0 })
    }

    fn all(&mut self, random: &mut Random, report: &mut Report) -> Result<usize, String> {
        for (struck, fault) in self.case.faults.iter().enumerate() {
            match self.befall(fault, random)? {
                Left::Down => report.fault(fault.title(), self.case.kind),
                Left::Finished => return Ok(struck),
            }
        }
        let mut job = self.start(None, random)?;
        match job.ends_within(LIMIT) {
            Some(status) if status.success() => Ok(self.case.faults.len()),
            Some(status) => Err(format!("the last start ended with {status}:\n{}", job.log())),
            None => Err(format!("the last start did not end:\n{}", job.log())),
        }
    }

    fn befall(&mut self, fault: &Fault, random: &mut Random) -> Result<Left, String> {
        match fault {
            Fault::Die { .. } => {
                let mut job = self.start(fault.failpoint(), random)?;
                match job.ends_within(LIMIT) {
                    Some(status) if status.success() => Ok(Left::Finished),
                    // SIGABRT, as the failpoint does it.
                    Some(status) if status.signal() == Some(6) => Ok(Left::Down),
                    Some(status) => Err(format!("the job ended with {status}:\n{}", job.log())),
                    None => Err(format!("the job hangs:\n{}", job.log())),
                }
            }
            Fault::Fail { .. } => {
                let mut job = self.start(fault.failpoint(), random)?;
                self.completes_one(&mut job)?;
                self.runs(&mut job, 200 + random.below(300))
            }
            Fault::Kill => {
                let mut job = self.start(None, random)?;
                // Some die while they start; the others get somewhere first.
                if random.below(3) > 0 {
                    self.completes_one(&mut job)?;
                }
                self.runs(&mut job, random.below(200))
            }
            Fault::Truncate | Fault::FlipBit => self.damage(matches!(fault, Fault::Truncate), random),
            Fault::SecondCopy => {
                let mut job = self.start(None, random)?;
                self.holds_the_lock(&mut job)?;
                let mut second = self.start(None, random)?;
                let status = second.ends_within(LIMIT);
                let log = second.log();
                if status.is_none_or(|status| status.success()) || !log.contains("runs with the checkpoints")
                {
                    // The first may just have come to its end.
                    if job.ended().is_some_and(|status| status.success()) {
                        return Ok(Left::Finished);
                    }
                    return Err(format!("the second copy ended with {status:?}:\n{log}"));
                }
                self.runs(&mut job, random.below(200))
            }
            Fault::KillServer => {
                let mut job = self.start(None, random)?;
                self.completes_one(&mut job)?;
                std::thread::sleep(Duration::from_millis(random.below(100)));
                let server = self.case.kind.server().unwrap_or_default();
                control(server, "kill")?;
                std::thread::sleep(Duration::from_millis(random.below(300)));
                control(server, "start")?;
                self.runs(&mut job, 300)
            }
            Fault::FullDisk => {
                let mut job = self.start(None, random)?;
                self.completes_one(&mut job)?;
                std::thread::sleep(Duration::from_millis(random.below(100)));
                let disk = self.disk.as_ref().ok_or("no small disk")?;
                disk.fill()?;
                std::thread::sleep(Duration::from_millis(100 + random.below(300)));
                disk.empty()?;
                self.runs(&mut job, 300)
            }
            Fault::ReadOnly => {
                let mut job = self.start(None, random)?;
                self.completes_one(&mut job)?;
                std::thread::sleep(Duration::from_millis(random.below(100)));
                let read_only = ReadOnly::new(&self.checkpoints())?;
                std::thread::sleep(Duration::from_millis(100 + random.below(300)));
                drop(read_only);
                self.runs(&mut job, 300)
            }
            Fault::ClockJump { seconds } => {
                let clock = self.directory.path().join("clock");
                let set =
                    |offset: i64| fs::write(&clock, format!("{offset:+}s\n")).map_err(|e| e.to_string());
                set(0)?;
                let mut command = self.command(None, random)?;
                command
                    .env("LD_PRELOAD", address("FLOW_CHAOS_FAKETIME")?)
                    .env("FAKETIME_TIMESTAMP_FILE", &clock)
                    .envs([("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
                let mut job = self.spawn(&mut command)?;
                self.completes_one(&mut job)?;
                set(*seconds)?;
                self.runs(&mut job, 200)
            }
        }
    }

    /// Lets the job run for a while, and kills it.
    fn runs(&self, job: &mut Process, milliseconds: u64) -> Result<Left, String> {
        match job.ends_within(Duration::from_millis(milliseconds)) {
            Some(status) if status.success() => Ok(Left::Finished),
            Some(status) => Err(format!("the job ended with {status}:\n{}", job.log())),
            None => {
                job.kill();
                Ok(Left::Down)
            }
        }
    }

    /// A damaged checkpoint is named, and nothing is done with it.
    fn damage(&mut self, cut: bool, random: &mut Random) -> Result<Left, String> {
        let damaged = loop {
            if let Some(damaged) = Damaged::any(&self.checkpoints(), cut, random)? {
                break damaged;
            }
            let mut job = self.start(None, random)?;
            self.completes_one(&mut job)?;
            if let Left::Finished = self.runs(&mut job, 50)? {
                return Ok(Left::Finished);
            }
        };
        let mut job = self.start(None, random)?;
        let name =
            damaged.path.strip_prefix(self.checkpoints()).unwrap_or(&damaged.path).display().to_string();
        match job.ends_within(LIMIT) {
            Some(status) if status.success() => {
                return Err(format!("the job took `{name}`, which is damaged, as good:\n{}", job.log()));
            }
            Some(_) if job.log().contains(&name) => {}
            status => return Err(format!("the job ({status:?}) does not name `{name}`:\n{}", job.log())),
        }
        damaged.mend()?;
        Ok(Left::Down)
    }

    fn holds_the_lock(&self, job: &mut Process) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        let lock = self.checkpoints().join("lock");
        let own = job.id().to_string();
        while !fs::read_to_string(&lock).is_ok_and(|text| text.trim() == own) {
            if job.ended().is_some() || Instant::now() > deadline {
                return Err(format!("the job does not run:\n{}", job.log()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits until the job has completed another checkpoint, or has ended.
    fn completes_one(&self, job: &mut Process) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        let before = damage::newest(&self.checkpoints());
        while damage::newest(&self.checkpoints()) == before && job.ended().is_none() {
            if Instant::now() > deadline {
                return Err(format!("the job completes no checkpoint:\n{}", job.log()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn checkpoints(&self) -> PathBuf {
        self.directory.path().join("checkpoints")
    }

    fn start(&mut self, failpoint: Option<String>, random: &mut Random) -> Result<Process, String> {
        let mut command = self.command(failpoint, random)?;
        self.spawn(&mut command)
    }

    fn spawn(&mut self, command: &mut Command) -> Result<Process, String> {
        self.starts += 1;
        Process::start(command, &self.directory.path().join(format!("log-{}", self.starts)))
    }

    fn command(&self, failpoint: Option<String>, random: &mut Random) -> Result<Command, String> {
        // Mostly the case's own; else the state is dealt out anew.
        let parallelism =
            if random.below(3) == 0 { 1 + random.below(3) as usize } else { self.case.parallelism };
        let mut command = Command::new(program()?);
        command
            .args(["--records", &self.records.to_string(), "--rate", &RATE.to_string()])
            .args(self.target.arguments()?)
            .args(["--parallelism", &parallelism.to_string()])
            .arg("--checkpoint-dir")
            .arg(self.checkpoints())
            .args(["--checkpoint-interval", "30ms"])
            .env("FLOW_CHAOS_SINK", self.case.kind.pipeline())
            .env("FLOW_FAILPOINTS", failpoint.unwrap_or_default());
        Ok(command)
    }
}

/// `kill` or `start` a server.
fn control(server: &str, action: &str) -> Result<(), String> {
    let ctl = PathBuf::from(address("FLOW_TEST_SERVICES")?).join("ctl");
    let output = Command::new(ctl).args([server, action]).output().map_err(|e| format!("{server}: {e}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{server} {action}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
