//! How soon an instance answers after kill -9 with a huge transaction open, and what a huge rollback does to others.
//!
//! ```text
//! child   load Votes ─► baseline ─► BEGIN TRAN, UPDATE of every row ─► a commit beside it ─► "OPEN" ─► waits to be killed
//! parent  kill -9 ─► open ─► first SELECT, first UPDATE ─► throughput second by second until it is back at 90 %
//! parent  BEGIN TRAN, UPDATE of every row ─► ROLLBACK, beside a session that commits: its longest wait before and during
//! ```
//! TARGET_RECOVERY_TIME = 0 keeps the pages of the open transaction from being written for recovery's sake, so that what it
//! logged is there to be redone; `log MiB` says how much that was. `--log` asks for so much at the least: every row is changed
//! and committed again and again before the transaction begins, as long as that makes the log longer: pages are written back
//! once an eighth of the pool is dirty, so that 1 GB to redo takes a pool of about 10 GB. Throughput is a point SELECT and a durable UPDATE of a
//! random row in turn, in one session. Failure: a row with another's value ends the command.

use crate::args::{BenchArguments, BenchRecoveryWriterArguments};
use crate::cmd::bench::{DATABASE, open};
use crate::cmd::figures::{Figures, Progress, Stopwatch};
use crate::cmd::{Failure, load};
use crate::embed::{self, Instance, Options, Session};
use crate::votes::Votes;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thawdb_observe::wait;

/// Seconds of the baseline, and longest wait for the throughput to come back.
const BASELINE_SECONDS: u64 = 3;
const BACK_SECONDS_MAX: u64 = 120;
/// Parts of the table changed one after another to fill the log.
const FILL_PARTS: u64 = 16;
/// Part of the baseline at which throughput counts as back.
const BACK_PART: f64 = 0.9;
/// What every row says before the open transaction changes it, and what that makes of it.
const BEFORE: i64 = 2;
const CHANGED: i64 = 77;
/// Ids of rows that the measuring session changes: far from each other, so that each is another page.
const STRIDE: u64 = 7919;

const BESIDE: &str = "CREATE TABLE dbo.Beside (Id int NOT NULL PRIMARY KEY, N int NOT NULL) INSERT dbo.Beside VALUES (1, 0)";
const COMMIT: &str = "UPDATE dbo.Beside SET N = N + 1 WHERE Id = 1";

fn number(session: &mut Session, sql: &str) -> Result<i64, Failure> {
    let value = session.execute(sql)?.scalar().and_then(|value| value.as_i64());
    value.ok_or_else(|| Failure(format!("{sql}: no number")))
}

/// Pairs of a point SELECT and an UPDATE of another row in about a second; every row must be as the open transaction found
/// it, or as this session has left it.
fn pairs(session: &mut Session, rows: u64, draw: &mut u64) -> Result<f64, Failure> {
    let watch = Stopwatch::start();
    let mut done = 0;
    while watch.seconds() < 1.0 {
        *draw = (*draw + STRIDE) % rows;
        let id = 1 + *draw;
        let value = number(session, &format!("SELECT VoteTypeId FROM dbo.Votes WHERE Id = {id}"))?;
        if value == CHANGED {
            return Err(Failure(format!("row {id} shows what was not committed")));
        }
        session.execute(&format!("UPDATE dbo.Votes SET VoteTypeId = {BEFORE} WHERE Id = {id}"))?;
        done += 1;
    }
    Ok(f64::from(done) / watch.seconds())
}

fn change_all(session: &mut Session) -> Result<(), Failure> {
    session.execute("BEGIN TRANSACTION")?;
    session.execute(&format!("UPDATE dbo.Votes SET VoteTypeId = {CHANGED}"))?;
    Ok(())
}

fn log_mib(session: &mut Session) -> Result<i64, Failure> {
    number(session, "SELECT CONVERT(bigint, used_log_space_in_bytes) / 1048576 FROM sys.dm_db_log_space_usage")
}

/// Changes rows, and commits, until the log is as much longer than it was as makes `bytes` with what the open transaction
/// will write, going by what the first rows' took.
fn fill_log(session: &mut Session, rows: u64, before_mib: i64, bytes: u64) -> Result<(), Failure> {
    let wanted = i64::try_from(bytes >> 20).unwrap_or(i64::MAX);
    let mut change = |part: u64| -> Result<i64, Failure> {
        let first = part % FILL_PARTS * rows / FILL_PARTS;
        session.execute(&format!(
            "UPDATE dbo.Votes SET VoteTypeId = VoteTypeId % 15 + 1 WHERE Id > {first} AND Id <= {}",
            first + rows.div_ceil(FILL_PARTS)
        ))?;
        Ok(log_mib(session)? - before_mib)
    };
    let mut logged = change(0)?;
    let one = logged * FILL_PARTS.cast_signed();
    for part in 1.. {
        let before = logged;
        if logged + one >= wanted {
            break;
        }
        logged = change(part)?;
        // What is freed meanwhile is as much as what comes.
        if (logged - before) * (4 * FILL_PARTS.cast_signed()) < one {
            break;
        }
    }
    Ok(())
}

/// The child: everything up to the crash.
pub fn write(arguments: &BenchRecoveryWriterArguments) -> Result<ExitCode, Failure> {
    let options = Options { memory_bytes_max: arguments.memory, ..Options::default() };
    let instance = embed::open(&arguments.data, options)?;
    let mut session = instance.session();
    load::create(&mut session, DATABASE)?;
    for setting in ["TARGET_RECOVERY_TIME = 0 SECONDS", "RECOVERY SIMPLE"] {
        session.execute(&format!("ALTER DATABASE [{DATABASE}] SET {setting}"))?;
    }
    // Redo begins in the log's file at the latest third: what is asked for must be less.
    let log_mb = 512 + arguments.rows / 2000 + 4 * (arguments.log.unwrap_or(0) >> 20);
    session.execute(&format!("ALTER DATABASE [{DATABASE}] MODIFY FILE (NAME = {DATABASE}_log, SIZE = {log_mb}MB, FILEGROWTH = 512MB)"))?;
    load::bulk(&mut session, Votes::new(arguments.rows), |_| {})?;
    session.execute(BESIDE)?;
    session.execute(&format!("UPDATE dbo.Votes SET VoteTypeId = {BEFORE} WHERE VoteTypeId = {CHANGED}"))?;
    session.execute("CHECKPOINT")?;
    let (mut draw, mut baseline) = (0, 0.0_f64);
    for _ in 0..BASELINE_SECONDS {
        baseline = baseline.max(pairs(&mut session, arguments.rows, &mut draw)?);
    }
    let before = log_mib(&mut session)?;
    if let Some(bytes) = arguments.log {
        fill_log(&mut session, arguments.rows, before, bytes)?;
    }
    let watch = Stopwatch::start();
    change_all(&mut session)?;
    let seconds = watch.seconds();
    // Its commit makes the log durable up to here.
    let mut other = instance.session();
    other.execute(&format!("USE [{DATABASE}]"))?;
    other.execute(COMMIT)?;
    let logged = log_mib(&mut other)? - before;
    let mut output = std::io::stdout().lock();
    writeln!(output, "OPEN {baseline} {seconds} {logged}")?;
    output.flush()?;
    // Waits to be killed; a parent that is gone closes the pipe.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    Ok(ExitCode::FAILURE)
}

/// Runs the child to the point at which everything is open, and kills it there: baseline, seconds, log.
fn crash(arguments: &BenchArguments, folder: &Path) -> Result<[f64; 3], Failure> {
    let log = arguments.log.map(|bytes| ["--log".to_owned(), bytes.to_string()]);
    let mut child = Command::new(std::env::current_exe()?)
        .arg("bench-recovery-writer")
        .arg("--data")
        .arg(folder)
        .args(["--rows", &arguments.rows.to_string(), "--memory", &arguments.memory.to_string()])
        .args(log.iter().flatten())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    // Whatever was read, the child does not outlive this.
    let _ = child.kill();
    child.wait()?;
    read.transpose()?;
    let told: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    told.try_into().map_err(|_| Failure(format!("the writer ended before its transaction was open: {line:?}")))
}

/// Measures all of it.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let progress = Progress::start("loading Votes, changing every row, kill -9", 1);
    let [baseline, seconds, logged] = crash(arguments, folder)?;
    drop(progress);
    figures.note("recovery", "rows changed, transaction open", arguments.rows as f64, "rows", format!("in {seconds:.1} s"));
    figures.add("recovery", "log to redo", logged, "MiB");
    figures.add("recovery", "pairs of SELECT and UPDATE before", baseline, "1/s");
    let watch = Stopwatch::start();
    let instance = open(arguments, folder)?;
    let opened = watch.elapsed();
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    let value = number(&mut session, "SELECT VoteTypeId FROM dbo.Votes WHERE Id = 1")?;
    let selected = watch.elapsed();
    session.execute(&format!("UPDATE dbo.Votes SET VoteTypeId = {BEFORE} WHERE Id = {}", arguments.rows / 2))?;
    let updated = watch.elapsed();
    if value == CHANGED {
        return Err(Failure("the first row shows what was not committed".into()));
    }
    for (what, time) in [("open", opened), ("first SELECT answered", selected), ("first UPDATE committed", updated)] {
        figures.add("recovery", format!("{what} after the start"), time.as_secs_f64() * 1000.0, "ms");
    }
    back_to_speed(arguments, &mut session, baseline, watch, &mut figures)?;
    roll_back_beside(&instance, &mut session, &mut figures)?;
    instance.close()?;
    Ok(figures)
}

/// Throughput second by second until it is back.
fn back_to_speed(
    arguments: &BenchArguments,
    session: &mut Session,
    baseline: f64,
    watch: Stopwatch,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let mut draw = 0;
    let mut lines = Vec::new();
    loop {
        let rate = pairs(session, arguments.rows, &mut draw)?;
        lines.push(format!("{:.0} s: {rate:.0}/s", watch.seconds()));
        let is_back = rate >= BACK_PART * baseline;
        if is_back || watch.elapsed() > Duration::from_secs(BACK_SECONDS_MAX) {
            let shown = lines.iter().step_by(lines.len().div_ceil(12)).cloned().collect::<Vec<_>>().join(", ");
            let name = if is_back { "throughput back at 90 %" } else { "throughput not back at 90 %" };
            figures.note("recovery", name, watch.seconds(), "s", shown);
            return Ok(());
        }
    }
}

/// The longest of the other session's commits until it is told to stop, in milliseconds, and how many there were.
fn commit_beside(session: &mut Session, stop: &AtomicBool) -> Result<(f64, u64), Failure> {
    let (mut longest, mut count) = (0.0_f64, 0);
    // Relaxed: a commit more or less is none the worse.
    while !stop.load(Ordering::Relaxed) {
        let watch = Stopwatch::start();
        session.execute(COMMIT)?;
        longest = longest.max(watch.seconds() * 1000.0);
        count += 1;
    }
    Ok((longest, count))
}

/// What commits beside something came to.
struct Beside {
    longest_ms: f64,
    count: u64,
    seconds: f64,
    /// The longest waits of all threads meanwhile.
    waits: String,
}

/// Kinds of waits of threads that have something to do begin so.
const WAITS: [&str; 7] = ["WRITELOG", "PAGE", "LATCH", "LCK", "LOG", "IO_", "CHECKPOINT"];

/// The longest waits since they were cleared.
fn longest_waits() -> String {
    let mut waits = wait::stats();
    waits.retain(|stats| stats.wait_ns_max > 0 && WAITS.iter().any(|name| stats.kind.name().starts_with(name)));
    waits.sort_by_key(|stats| std::cmp::Reverse(stats.wait_ns_max));
    let shown = waits.iter().take(3).map(|stats| format!("{} {} ms", stats.kind.name(), stats.wait_ns_max / 1_000_000));
    shown.collect::<Vec<_>>().join(", ")
}

/// Commits beside whatever `work` does, and how long that takes.
fn beside<R>(instance: &Instance, work: impl FnOnce() -> Result<R, Failure>) -> Result<Beside, Failure> {
    let stop = AtomicBool::new(false);
    let mut other = instance.session();
    other.execute(&format!("USE [{DATABASE}]"))?;
    wait::clear();
    let (longest_ms, count, seconds) = std::thread::scope(|scope| -> Result<_, Failure> {
        let committer = scope.spawn(|| commit_beside(&mut other, &stop));
        let watch = Stopwatch::start();
        let outcome = work();
        let seconds = watch.seconds();
        stop.store(true, Ordering::Relaxed);
        let (longest, count) = committer.join().map_err(|_| Failure("the committer panicked".into()))??;
        outcome.map(|_| (longest, count, seconds))
    })?;
    let waits = longest_waits();
    Ok(Beside { longest_ms, count, seconds, waits })
}

/// The same transaction rolled back at run time, while another session commits.
fn roll_back_beside(instance: &Instance, session: &mut Session, figures: &mut Figures) -> Result<(), Failure> {
    let quiet = beside(instance, || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    })?;
    let changing = beside(instance, || change_all(session))?;
    let rolling = beside(instance, || session.execute("ROLLBACK").map_err(Failure::from))?;
    // What the background still gives back must be in nobody's way either.
    let after = beside(instance, || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    })?;
    let parts = [("alone", quiet), ("beside the UPDATE", changing), ("beside the ROLLBACK", rolling), ("after the ROLLBACK", after)];
    let answered = parts[2].1.seconds;
    for (what, Beside { longest_ms, count, seconds, waits }) in parts {
        let note = format!("{count} commits in {seconds:.1} s; longest waits: {waits}");
        figures.note("rollback", format!("longest commit of another session {what}"), longest_ms, "ms", note);
    }
    figures.add("rollback", "ROLLBACK answered", answered * 1000.0, "ms");
    let left = number(session, &format!("SELECT COUNT(*) FROM dbo.Votes WHERE VoteTypeId = {CHANGED}"))?;
    if left == 0 { Ok(()) } else { Err(Failure(format!("{left} rows show what was rolled back"))) }
}
