//! The demo's story: the same index built offline, online, resumably, and resumably through a log that is always full.
//!
//! ```text
//! offline ─► online ─► resumable ─► log cut to a fourteenth of what that took, growth off
//!   ─► [child: 9002 ─► BACKUP LOG ─► RESUME ─► 9002 ... ─ SIGKILL at 60 %] ─► [child: RESUME ... done]
//! ```
//!
//! Invariants: B1 the time of a build is what its statements take: log backups and restarts lie between them and are told
//! apart. B2 a build that a full log stops shows a higher percentage at each stop than at the one before; otherwise the
//! demo ends with an error.
//!
//! Log bytes are those written to the log file (`sys.dm_io_virtual_file_stats`).

use crate::cmd::Failure;
use crate::cmd::demo::DATABASE;
use crate::cmd::demo::builder::{CREATE_RESUMABLE, Event};
use crate::cmd::demo::chart::Line;
use crate::cmd::figures::{Progress, Stopwatch, grouped};
use crate::embed::{Instance, Session};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use thawdb_types::{Scalar, SqlError};

/// Between two looks at how far a build is.
const SAMPLE: Duration = Duration::from_millis(20);
/// The child is killed once it is so far.
const KILL_PERCENT: f64 = 60.0;
/// A log of this part of what the build logs is full some sixteen times.
const LOG_SHARE: u64 = 14;
/// Smallest log that the demo makes.
const LOG_MEGABYTES_MIN: u64 = 2;
/// From so many rows on the small log must have stopped the build [`STOPS_MIN`] times.
const ROWS_TO_STOP: u64 = 5_000_000;
const STOPS_MIN: usize = 10;

/// The builds within this process: name, options, and what the progress bar says.
const KINDS: [(&str, &str, &str); 3] = [
    ("offline", "", "offline build"),
    ("online", " WITH (ONLINE = ON)", "online build"),
    ("resumable", " WITH (ONLINE = ON, RESUMABLE = ON)", "resumable build"),
];

/// A build that was done.
#[derive(Debug, Default)]
pub(crate) struct Build {
    pub(crate) name: String,
    /// Time of its statements.
    pub(crate) seconds: f64,
    pub(crate) log_bytes: u64,
    /// Percentages at which a full log stopped it.
    pub(crate) stops: Vec<f64>,
    /// Seconds since its start, and per cent done.
    pub(crate) samples: Vec<(f64, f64)>,
}

impl Build {
    /// Its line in the picture.
    pub(crate) fn line(&self, rows: u64) -> Line {
        let points = self.samples.iter().map(|(seconds, percent)| (*seconds, percent / 100.0 * rows as f64)).collect();
        Line { name: self.name.clone(), points, seconds: self.seconds }
    }

    /// Its row in the table.
    pub(crate) fn row(&self, rows: u64) -> String {
        let rate = grouped((rows as f64 / self.seconds.max(1e-9)).round());
        let log = format!("{:.1} MB", self.log_bytes as f64 / 1e6);
        format!("{:<36} {:>8.2} s {rate:>12} rows/s {log:>10} of log {:>3} stops", self.name, self.seconds, self.stops.len())
    }
}

/// Runs a statement on a thread of its own; `sample` hears the seconds it has run and the per cent done.
pub(crate) fn watched(
    instance: &Instance,
    session: &mut Session,
    statement: &str,
    mut sample: impl FnMut(f64, f64),
) -> Result<f64, SqlError> {
    let question = format!("SELECT percent_complete FROM sys.dm_exec_requests WHERE session_id = {}", session.id());
    let mut observer = instance.session();
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        let work = scope.spawn(|| session.execute(statement).map(|_| watch.seconds()));
        while !work.is_finished() {
            thread::sleep(SAMPLE);
            let percent = observer.execute(&question).ok().and_then(|results| number(&results.scalar()?));
            if let Some(percent) = percent.filter(|percent| *percent > 0.0) {
                sample(watch.seconds(), percent);
            }
        }
        work.join().expect("a session's own panics are its errors")
    })
}

/// A real or float as a number.
pub(crate) fn number(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Real(number) => Some(f64::from(*number)),
        Scalar::Float(number) => Some(*number),
        _ => None,
    }
}

/// Bytes written to the log file of the session's database since it was opened.
pub(crate) fn log_bytes(session: &mut Session) -> Result<u64, SqlError> {
    let results = session.execute("SELECT num_of_bytes_written FROM sys.dm_io_virtual_file_stats(DB_ID(), 2)")?;
    Ok(results.scalar().and_then(|bytes| bytes.as_i64()).unwrap_or(0).cast_unsigned())
}

/// Builds the index three ways, one after another; the last one is dropped too.
pub(crate) fn uninterrupted(instance: &Instance, session: &mut Session) -> Result<Vec<Build>, Failure> {
    session.execute(&format!("ALTER DATABASE [{DATABASE}] SET RECOVERY FULL"))?;
    session.execute(&format!("BACKUP DATABASE [{DATABASE}] TO DISK = 'NUL'"))?;
    let mut builds = Vec::new();
    for (name, options, what) in KINDS {
        session.execute(&format!("BACKUP LOG [{DATABASE}] TO DISK = 'NUL'"))?;
        let before = log_bytes(session)?;
        let mut build = Build { name: name.to_owned(), ..Build::default() };
        let mut progress = Progress::start(what, 100);
        let statement = format!("CREATE INDEX IX_Votes_PostId ON dbo.Votes (PostId){options}");
        build.seconds = watched(instance, session, &statement, |seconds, percent| {
            progress.at(percent as u64);
            build.samples.push((seconds, percent));
        })?;
        drop(progress);
        build.samples.push((build.seconds, 100.0));
        build.log_bytes = log_bytes(session)? - before;
        println!("built the index {name} in {:.2} s", build.seconds);
        session.execute("DROP INDEX IX_Votes_PostId ON dbo.Votes")?;
        builds.push(build);
    }
    Ok(builds)
}

/// Cuts the log to a part of what `uninterrupted` took, so that it runs full again and again; tells its megabytes.
pub(crate) fn cut_log(session: &mut Session, uninterrupted: &Build) -> Result<u64, Failure> {
    let megabytes = (uninterrupted.log_bytes / LOG_SHARE).div_ceil(1 << 20).max(LOG_MEGABYTES_MIN);
    let name = session.execute("SELECT name FROM sys.database_files WHERE type = 1")?.scalar();
    let name = name.as_ref().and_then(|name| name.as_text()).unwrap_or_default().replace(']', "]]");
    session.execute(&format!("ALTER DATABASE [{DATABASE}] MODIFY FILE (NAME = [{name}], FILEGROWTH = 0KB)"))?;
    for _ in 0..2 {
        session.execute(&format!("BACKUP LOG [{DATABASE}] TO DISK = 'NUL'"))?;
        session.execute(&format!("DBCC SHRINKFILE ([{name}], {megabytes}) WITH NO_INFOMSGS"))?;
    }
    let size = session.execute("SELECT size / 128 FROM sys.database_files WHERE type = 1")?.scalar().and_then(|size| size.as_i64());
    match size {
        // A file ends where one of its parts does.
        Some(size) if size.cast_unsigned() <= 2 * megabytes => Ok(size.cast_unsigned()),
        size => Err(Failure(format!("the log has {size:?} MB after it was shrunk to {megabytes}"))),
    }
}

/// Builds the index in child processes through the small log, the first of them killed.
pub(crate) fn stopped(folder: &Path, memory: u64, log_megabytes: u64, rows: u64) -> Result<Build, Failure> {
    println!("building resumably through a log of {log_megabytes} MB: {CREATE_RESUMABLE}");
    let mut build = Build { name: format!("resumable, log of {log_megabytes} MB, SIGKILL"), ..Build::default() };
    let mut progress = Progress::start("build through a small log", 100);
    let mut killed_at = None;
    for kill in [true, false] {
        let mut child = start(folder, memory)?;
        let followed = follow(&mut child, &mut build, kill, &mut progress);
        // Whatever happened while reading, the child does not outlive us.
        let _ = child.kill();
        let status = child.wait()?;
        let done = followed?;
        match (kill, done) {
            (true, false) => killed_at = build.samples.last().map(|sample| sample.1),
            (true, true) if rows >= ROWS_TO_STOP => return Err(Failure("the build was done before it could be killed".into())),
            (_, true) => break,
            (false, false) => return Err(Failure(format!("the build ended with {status}"))),
        }
    }
    drop(progress);
    let stops = build.stops.iter().map(|percent| format!("{percent:.0}")).collect::<Vec<_>>().join(", ");
    let killed = killed_at.map_or(String::new(), |percent| format!("; killed at {percent:.0} %"));
    println!("built the index in {:.2} s; the log was full {} times, at {stops} %{killed}", build.seconds, build.stops.len());
    if !build.stops.is_sorted_by(|before, after| before < after) {
        return Err(Failure(format!("the build went back between stops: {stops}")));
    }
    if rows >= ROWS_TO_STOP && build.stops.len() < STOPS_MIN {
        return Err(Failure(format!("the log was full only {} times", build.stops.len())));
    }
    Ok(build)
}

fn start(folder: &Path, memory: u64) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("demo-builder").arg("--data").arg(folder).args(["--database", DATABASE, "--memory", &memory.to_string()]);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?)
}

/// Hears what the child says until it is done or killed; whether it was done. Its seconds and bytes go on from what the
/// build has.
fn follow(child: &mut Child, build: &mut Build, kill: bool, progress: &mut Progress) -> Result<bool, Failure> {
    let output = child.stdout.take().expect("standard output is a pipe");
    let (seconds_before, log_before) = (build.seconds, build.log_bytes);
    for line in BufReader::new(output).lines() {
        // A line cut by the kill says nothing.
        let Some(event) = Event::parse(&line?) else { break };
        build.seconds = seconds_before + event.seconds();
        match event {
            Event::At { percent, log_bytes, .. } => {
                build.log_bytes = log_before + log_bytes;
                build.samples.push((build.seconds, percent));
                progress.at(percent as u64);
                if kill && percent >= KILL_PERCENT {
                    child.kill()?;
                    return Ok(false);
                }
            }
            Event::Full { percent, .. } => build.stops.push(percent),
            Event::Done { log_bytes, .. } => {
                build.log_bytes = log_before + log_bytes;
                build.samples.push((build.seconds, 100.0));
                return Ok(true);
            }
        }
    }
    Ok(false)
}
