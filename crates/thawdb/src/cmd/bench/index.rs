//! Building indexes on Votes: the narrow one on PostId offline, beside the table's use, resumably and by two threads; two
//! wider ones; with the contents left out of the log; with 64 MB to sort in. Beside PostgreSQL, if asked: plain, with 64 MB, and
//! CONCURRENTLY, from the same rows.
//!
//! Each build has its seconds, the seconds of processor of this process meanwhile, what the log file was written, the
//! index's pages, and the largest memory of the process, which is set back before each. The first build warms nothing for the
//! others that they would not have from each other: one is made and dropped before, unmeasured.

use crate::args::BenchArguments;
use crate::cmd::bench::postgres::{CREATE, Cluster};
use crate::cmd::bench::{DATABASE, with_votes};
use crate::cmd::figures::{Figures, Stopwatch, cpu_seconds, peak_memory_bytes, reset_peak_memory};
use crate::cmd::{Failure, load};
use crate::embed::Session;
use crate::votes::Votes;
use std::path::Path;

const AREA: &str = "index";

/// Name, columns, options, recovery model.
const INDEXES: [(&str, &str, &str, &str); 9] = [
    ("PostId, offline", "PostId", "MAXDOP = 1", "FULL"),
    ("PostId, online", "PostId", "ONLINE = ON, MAXDOP = 1", "FULL"),
    ("PostId, resumable", "PostId", "ONLINE = ON, RESUMABLE = ON, MAXDOP = 1", "FULL"),
    ("PostId, MAXDOP 2", "PostId", "MAXDOP = 2", "FULL"),
    ("PostId, online, MAXDOP 2", "PostId", "ONLINE = ON, MAXDOP = 2", "FULL"),
    ("PostId, resumable, MAXDOP 2", "PostId", "ONLINE = ON, RESUMABLE = ON, MAXDOP = 2", "FULL"),
    ("PostId, offline, SIMPLE", "PostId", "MAXDOP = 1", "SIMPLE"),
    ("VoteTypeId, CreationDate", "VoteTypeId, CreationDate", "MAXDOP = 1", "FULL"),
    ("UserId, including PostId", "UserId) INCLUDE (PostId", "MAXDOP = 1", "FULL"),
];

/// The name of the build with little memory, and the setting of it, in KB.
const LIMITED: &str = "PostId, offline, 64 MB";
const LIMITED_KB: u32 = 64 << 10;

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let seconds = thawdb(arguments, &folder.join("data"), &mut figures)?;
    if arguments.postgres {
        let theirs = postgres(arguments, folder, &mut figures)?;
        for (rival, name, ours, theirs) in [
            ("CREATE INDEX", "offline", seconds[0], theirs.plain),
            ("CREATE INDEX, 64 MB", "offline, 64 MB", seconds[INDEXES.len()], theirs.limited),
            ("CONCURRENTLY", "online", seconds[1], theirs.beside),
            ("CONCURRENTLY", "resumable", seconds[2], theirs.beside),
        ] {
            figures.add(AREA, format!("PostgreSQL's {rival} / ours {name}"), theirs / ours, "x");
        }
    }
    figures.add(AREA, "offline, 64 MB / offline", seconds[INDEXES.len()] / seconds[0], "x");
    figures.add(AREA, "online / offline", seconds[1] / seconds[0], "x");
    figures.add(AREA, "resumable / online", seconds[2] / seconds[1], "x");
    for (at, name) in ["offline", "online", "resumable"].into_iter().enumerate() {
        figures.add(AREA, format!("{name} / MAXDOP 2"), seconds[at] / seconds[at + 3], "x");
    }
    Ok(figures)
}

fn thawdb(arguments: &BenchArguments, folder: &Path, figures: &mut Figures) -> Result<Vec<f64>, Failure> {
    let instance = with_votes(arguments, folder)?;
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    session.execute("CREATE INDEX warm ON dbo.Votes (PostId); DROP INDEX warm ON dbo.Votes")?;
    let mut all = Vec::new();
    for (name, columns, options, model) in INDEXES {
        session.execute(&format!("ALTER DATABASE [{DATABASE}] SET RECOVERY {model}; CHECKPOINT"))?;
        all.push(build(arguments, &mut session, (name, columns, options), figures)?);
    }
    session.execute(&format!("ALTER DATABASE [{DATABASE}] SET RECOVERY FULL; CHECKPOINT"))?;
    session.execute("EXEC sp_configure 'show advanced options', 1; RECONFIGURE")?;
    session.execute(&format!("EXEC sp_configure 'index create memory', {LIMITED_KB}; RECONFIGURE"))?;
    all.push(build(arguments, &mut session, (LIMITED, "PostId", "MAXDOP = 1"), figures)?);
    drop(session);
    instance.close()?;
    Ok(all)
}

/// Builds one index and drops it; the seconds it took.
fn build(
    arguments: &BenchArguments,
    session: &mut Session,
    (name, columns, options): (&str, &str, &str),
    figures: &mut Figures,
) -> Result<f64, Failure> {
    let logged = number(session, LOG_WRITTEN)?;
    reset_peak_memory();
    let (watch, processor) = (Stopwatch::start(), cpu_seconds());
    session.execute(&format!("CREATE INDEX measured ON dbo.Votes ({columns}) WITH ({options})"))?;
    let (seconds, processor) = (watch.seconds(), cpu_seconds() - processor);
    let logged = number(session, LOG_WRITTEN)? - logged;
    let index_bytes = pages(session)? * 8192;
    figures.rate(AREA, name, arguments.rows, seconds);
    figures.add(AREA, format!("{name}, processor"), processor, "s");
    let share = format!("{:.3} of the index", logged as f64 / index_bytes as f64);
    figures.note(AREA, format!("{name}, log"), logged as f64, "bytes", share);
    figures.add(AREA, format!("{name}, pages"), index_bytes as f64, "bytes");
    figures.add(AREA, format!("{name}, peak memory"), peak_memory_bytes() as f64, "bytes");
    println!("{name}: {seconds:.2} s, {processor:.2} s of processor, {logged} bytes of log");
    session.execute("DROP INDEX measured ON dbo.Votes")?;
    Ok(seconds)
}

const LOG_WRITTEN: &str = "SELECT num_of_bytes_written FROM sys.dm_io_virtual_file_stats(DB_ID(), 2)";
const INDEX_ID: &str = "SELECT CAST(index_id AS bigint) FROM sys.indexes WHERE name = 'measured'";

/// Pages of the index.
fn pages(session: &mut Session) -> Result<usize, Failure> {
    let index = number(session, INDEX_ID)?;
    let listed = session.execute(&format!("DBCC IND ('{DATABASE}', 'dbo.Votes', {index})"))?;
    Ok(listed.sets.first().map_or(0, |set| set.row_count()))
}

fn number(session: &mut Session, query: &str) -> Result<i64, Failure> {
    let value = session.execute(query)?.scalar().and_then(|value| value.as_i64());
    value.ok_or_else(|| Failure(format!("no number from {query}")))
}

/// Seconds of PostgreSQL's builds without helpers.
struct Theirs {
    plain: f64,
    /// With 64 MB to sort in.
    limited: f64,
    /// Beside the table's use.
    beside: f64,
}

fn postgres(arguments: &BenchArguments, folder: &Path, figures: &mut Figures) -> Result<Theirs, Failure> {
    let csv = folder.join("votes.csv");
    load::write_csv(Votes::new(arguments.rows), &csv, |_| {})?;
    let cluster = Cluster::start(&folder.join("postgres"))?;
    cluster.query(CREATE, None)?;
    cluster.query("COPY votes FROM STDIN (FORMAT csv)", Some(&csv))?;
    std::fs::remove_file(&csv)?;
    cluster.query("VACUUM ANALYZE votes", None)?;
    let mut build = |name: &str, statement: &str, setting: &str| -> Result<f64, Failure> {
        cluster.query("CHECKPOINT", None)?;
        let before = cluster.query("SELECT pg_current_wal_insert_lsn()", None)?;
        let timed = cluster.timed(setting, statement)?;
        let wal = cluster.query(&format!("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{}')", before.trim()), None)?;
        figures.rate(AREA, name, arguments.rows, timed.seconds);
        figures.add(AREA, format!("{name}, WAL"), wal.trim().parse().unwrap_or(0.0), "bytes");
        println!("{name}: {:.2} s", timed.seconds);
        cluster.query("DROP INDEX measured", None)?;
        Ok(timed.seconds)
    };
    let alone = "SET max_parallel_maintenance_workers = 0";
    let plain = build("PostgreSQL CREATE INDEX", "CREATE INDEX measured ON votes (PostId)", alone)?;
    let limited = build(
        "PostgreSQL CREATE INDEX, 64 MB",
        "CREATE INDEX measured ON votes (PostId)",
        &format!("{alone}; SET maintenance_work_mem = '64MB'"),
    )?;
    build("PostgreSQL CREATE INDEX, its workers", "CREATE INDEX measured ON votes (PostId)", "SELECT 1")?;
    let beside = build("PostgreSQL CREATE INDEX CONCURRENTLY", "CREATE INDEX CONCURRENTLY measured ON votes (PostId)", alone)?;
    Ok(Theirs { plain, limited, beside })
}
