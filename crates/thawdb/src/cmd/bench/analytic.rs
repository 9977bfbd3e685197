//! Four analytic queries over Votes with an index on PostId: warm, and cold with data four times the memory.
//!
//! ```text
//! load, index ─► warm: each query once unmeasured, then three times by one thread, the median; then as it is planned
//!             ─► cold: the instance opened anew with a quarter of the data file as memory, each query three times;
//!                disk, query, disk, query, ... disk: the median time, and the median share of the disk's speed
//! ```
//! Every answer is compared with what the generator says, and PostgreSQL's with ours. Beside the time by the clock stands
//! that of the processor, which other work on the machine changes less. PostgreSQL runs without parallel workers; its
//! cold figures are taken after a restart with the system's cache dropped, where the user may do that.
//!
//! The disk's own speed is taken right before and right after each cold query, since others may use the disk too: the data
//! file read through the same device, with as much asked for at once as a scan does. With `--data` and `--keep` the rows of an earlier run are used again.

use crate::args::BenchArguments;
use crate::cmd::bench::{DATABASE, median, open, postgres, with_votes};
use crate::cmd::figures::{Figures, Stopwatch, cpu_seconds, peak_memory_bytes, read_bytes};
use crate::cmd::{Failure, load};
use crate::embed::{Instance, Session};
use crate::votes::Votes;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use thawdb_device::{AlignedBuf, OpenMode, OwnedRequest, Ticket};
use thawdb_types::Scalar;

const AREA: &str = "analytic";
/// Runs counted.
const RUN_COUNT: usize = 3;
/// What PostgreSQL is asked, in the order of [`load::QUESTIONS`].
const POSTGRES: [&str; 4] = [
    "SELECT COUNT(*) FROM votes",
    "SELECT VoteTypeId, COUNT(*) FROM votes GROUP BY VoteTypeId ORDER BY VoteTypeId",
    "SELECT PostId, COUNT(*) AS c FROM votes GROUP BY PostId ORDER BY c DESC, PostId LIMIT 10",
    "SELECT SUM(BountyAmount) FROM votes WHERE CreationDate >= '2012-01-01' AND CreationDate < '2013-01-01'",
];
const ONE_THREAD: &str = "SET max_parallel_workers_per_gather = 0";
const INDEX: &str = "CREATE INDEX IX_Votes_PostId ON dbo.Votes (PostId)";
/// The data is this many times the memory in the cold runs.
const DATA_PER_MEMORY: u64 = 4;

/// What one query took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    seconds: f64,
    cpu_seconds: f64,
}

/// Warm and cold times of the four queries.
struct Times {
    warm: Vec<Taken>,
    cold: Vec<Taken>,
}

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let data = folder.join("data");
    let ours = thawdb(arguments, &data, &mut figures)?;
    if arguments.postgres {
        let csv = folder.join("votes.csv");
        load::write_csv(Votes::new(arguments.rows), &csv, |_| ())?;
        let theirs = postgres_times(arguments, &folder.join("postgres"), &csv, &mut figures)?;
        std::fs::remove_file(&csv)?;
        for (how, ours, theirs) in [("warm", &ours.warm, &theirs.warm), ("cold", &ours.cold, &theirs.cold)] {
            for ((name, _), (ours, theirs)) in load::QUESTIONS.iter().zip(ours.iter().zip(theirs)) {
                figures.add(AREA, format!("PostgreSQL's time / ours, {how}, {name}"), theirs.seconds / ours.seconds, "x");
                figures.add(AREA, format!("PostgreSQL's processor / ours, {how}, {name}"), theirs.cpu_seconds / ours.cpu_seconds, "x");
            }
        }
    }
    Ok(figures)
}

fn add(figures: &mut Figures, whose: &str, name: &str, taken: Taken) {
    figures.note(AREA, format!("{whose}, {name}"), taken.seconds, "s", format!("processor {:.3} s", taken.cpu_seconds));
    println!("{whose}, {name}: {:.3} s, processor {:.3} s", taken.seconds, taken.cpu_seconds);
}

fn thawdb(arguments: &BenchArguments, data: &Path, figures: &mut Figures) -> Result<Times, Failure> {
    let answers = load::Answers::of(Votes::new(arguments.rows));
    let instance = loaded(arguments, data)?;
    let mut session = in_database(&instance)?;
    let mut warm = Vec::new();
    for (at, (name, question)) in load::QUESTIONS.into_iter().enumerate() {
        let mut times = |question: &str| -> Result<Taken, Failure> {
            ask(&mut session, at, question, &answers)?;
            let runs = (0..RUN_COUNT).map(|_| ask(&mut session, at, question, &answers)).collect::<Result<Vec<_>, _>>()?;
            Ok(middle(&runs))
        };
        let taken = times(&format!("{question} OPTION (MAXDOP 1)"))?;
        add(figures, "warm", name, taken);
        let together = times(question)?;
        add(figures, "warm, parallel", name, together);
        figures.add(AREA, format!("one thread's time / parallel, {name}"), taken.seconds / together.seconds, "x");
        warm.push(taken);
    }
    drop(session);
    instance.close()?;
    // With all its memory: what follows is to have a quarter of the data.
    drop(instance);
    let file = largest_file(data)?;
    let memory = std::fs::metadata(&file)?.len() / DATA_PER_MEMORY;
    let arguments = BenchArguments { memory, ..arguments.clone() };
    let mut disk = vec![sequential_read(&file)?];
    let mut cold = Vec::new();
    for (at, (name, question)) in load::QUESTIONS.into_iter().enumerate() {
        let (mut runs, mut rates, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUN_COUNT {
            let (taken, rate) = ask_cold(&arguments, data, at, question, &answers)?;
            disk.push(sequential_read(&file)?);
            let around = disk.iter().rev().take(2).sum::<f64>() / 2.0;
            runs.push(taken);
            rates.push(rate / 1e6);
            shares.push(100.0 * rate / around);
            println!("cold, {name}: {:.0} MB/s beside the disk's {:.0}", rate / 1e6, around / 1e6);
        }
        let taken = middle(&runs);
        add(figures, "cold", name, taken);
        figures.add(AREA, format!("cold, {name}, read"), median(rates), "MB/s");
        figures.add(AREA, format!("cold, {name}, of the disk's speed"), median(shares), "%");
        cold.push(taken);
    }
    // An odd number of them: before the first query, and after each run.
    figures.note(AREA, "disk, sequential read", median(disk) / 1e6, "MB/s", "2 MiB x 8");
    figures.note(AREA, "cold, memory setting", memory as f64, "bytes", "a quarter of the data file");
    figures.note(AREA, "peak memory", peak_memory_bytes() as f64, "bytes", "warm and cold");
    Ok(Times { warm, cold })
}

/// One query on an instance that was just opened; also how many bytes a second were read for it.
fn ask_cold(arguments: &BenchArguments, data: &Path, at: usize, question: &str, answers: &load::Answers) -> Result<(Taken, f64), Failure> {
    let instance = open(arguments, data)?;
    let mut session = in_database(&instance)?;
    let before = read_bytes();
    let taken = ask(&mut session, at, question, answers)?;
    let rate = (read_bytes() - before) as f64 / taken.seconds;
    drop(session);
    instance.close()?;
    Ok((taken, rate))
}

/// An instance with Votes and its index, from an earlier run if that left the same rows.
fn loaded(arguments: &BenchArguments, data: &Path) -> Result<Instance, Failure> {
    if arguments.keep && data.exists() {
        let instance = open(arguments, data)?;
        let mut session = instance.session();
        let count = session.execute(&format!("SELECT COUNT(*) FROM [{DATABASE}].dbo.Votes"));
        let rows = count.ok().and_then(|found| found.scalar()?.as_i64());
        drop(session);
        if rows == Some(arguments.rows.cast_signed()) {
            return Ok(instance);
        }
        instance.close()?;
    }
    let instance = with_votes(arguments, data)?;
    in_database(&instance)?.execute(INDEX)?;
    Ok(instance)
}

fn in_database(instance: &Instance) -> Result<Session, Failure> {
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    Ok(session)
}

/// Asks question `at`; a wrong answer is a failure.
fn ask(session: &mut Session, at: usize, question: &str, answers: &load::Answers) -> Result<Taken, Failure> {
    let (watch, cpu) = (Stopwatch::start(), cpu_seconds());
    let results = session.execute(question)?;
    let taken = Taken { seconds: watch.seconds(), cpu_seconds: cpu_seconds() - cpu };
    let rows: Vec<Vec<Scalar>> = results.sets.first().map(|set| set.rows().collect()).unwrap_or_default();
    if load::is_right(at, &rows, answers) { Ok(taken) } else { Err(Failure(format!("the answer to {question} is wrong: {rows:?}"))) }
}

fn middle(runs: &[Taken]) -> Taken {
    Taken {
        seconds: median(runs.iter().map(|run| run.seconds).collect()),
        cpu_seconds: median(runs.iter().map(|run| run.cpu_seconds).collect()),
    }
}

fn largest_file(folder: &Path) -> Result<PathBuf, Failure> {
    let mut folders = vec![folder.to_owned()];
    let mut largest = (0, None);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.len() > largest.0 && entry.path().extension().is_some_and(|e| e == "mdf") {
                largest = (metadata.len(), Some(entry.path()));
            }
        }
    }
    largest.1.ok_or_else(|| Failure(format!("there is no data file under {}", folder.display())))
}

/// Bytes a second of a plain sequential read of `path` through the device, with as much under way as a scan has.
fn sequential_read(path: &Path) -> Result<f64, Failure> {
    const BATCH_BYTES: u64 = 2 << 20;
    const AT_ONCE: usize = 8;
    let failed = |error: thawdb_device::DeviceError| Failure(error.to_string());
    let file = thawdb_device::os::env().device.open(path, OpenMode::Existing).map_err(failed)?;
    let batches = file.len_bytes().map_err(failed)? / BATCH_BYTES;
    let mut spare: Vec<AlignedBuf> = (0..AT_ONCE).map(|_| AlignedBuf::zeroed(BATCH_BYTES as usize)).collect();
    let mut under_way = VecDeque::new();
    let (watch, before) = (Stopwatch::start(), read_bytes());
    for batch in 0..batches {
        if spare.is_empty() {
            spare.push(finished(under_way.pop_front())?);
        }
        let buffer = spare.pop().expect("one was put there");
        under_way.push_back(file.start_read(vec![OwnedRequest::new(batch * BATCH_BYTES, buffer)]));
    }
    while !under_way.is_empty() {
        finished(under_way.pop_front())?;
    }
    // As the system counts it: what was reserved and never written costs no read.
    Ok((read_bytes() - before) as f64 / watch.seconds().max(1e-9))
}

/// The buffer of a read that is waited for.
fn finished(ticket: Option<Ticket>) -> Result<AlignedBuf, Failure> {
    let (mut requests, result) = ticket.expect("a buffer that is not spare is under way").wait();
    result.map_err(|error| Failure(error.to_string()))?;
    Ok(requests.remove(0).into_aligned())
}

fn postgres_times(arguments: &BenchArguments, folder: &Path, csv: &Path, figures: &mut Figures) -> Result<Times, Failure> {
    let cluster = postgres::Cluster::start(folder)?;
    cluster.query(postgres::CREATE, None)?;
    cluster.query("COPY votes FROM STDIN (FORMAT csv)", Some(csv))?;
    cluster.query("CREATE INDEX votes_postid ON votes (PostId)", None)?;
    cluster.query("VACUUM (ANALYZE) votes", None)?;
    cluster.query("CHECKPOINT", None)?;
    let answers = load::Answers::of(Votes::new(arguments.rows));
    let one = |at: usize| -> Result<Taken, Failure> {
        let timed = cluster.timed(ONE_THREAD, POSTGRES[at])?;
        let number = |word: &str| word.trim().parse::<i64>().map(Scalar::BigInt).unwrap_or(Scalar::Null);
        let rows: Vec<Vec<Scalar>> = timed.answer.lines().map(|line| line.split('|').map(number).collect()).collect();
        if !load::is_right(at, &rows, &answers) {
            return Err(Failure(format!("PostgreSQL's answer to {} is {rows:?}", POSTGRES[at])));
        }
        Ok(Taken { seconds: timed.seconds, cpu_seconds: timed.cpu_seconds })
    };
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for (at, (name, _)) in load::QUESTIONS.iter().enumerate() {
        one(at)?;
        let runs = (0..RUN_COUNT).map(|_| one(at)).collect::<Result<Vec<_>, _>>()?;
        warm.push(middle(&runs));
        add(figures, "PostgreSQL, warm", name, warm[at]);
    }
    for (at, (name, _)) in load::QUESTIONS.iter().enumerate() {
        cluster.restart()?;
        // Only root may; without it the figure is one of a warm system cache.
        let dropped = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        cold.push(one(at)?);
        add(figures, if dropped { "PostgreSQL, cold" } else { "PostgreSQL, restarted" }, name, cold[at]);
    }
    Ok(Times { warm, cold })
}
