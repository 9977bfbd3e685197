//! Votes from a CSV file through BULK INSERT, then the index on PostId; in the same run PostgreSQL's COPY and index.
//!
//! The file is written first and its making not counted. The instance is closed within the measured time of "durable",
//! so that a load whose pages are still in memory is not called done.

use crate::args::BenchArguments;
use crate::cmd::bench::{DATABASE, open, postgres};
use crate::cmd::figures::{Figures, Progress, Stopwatch, folder_bytes, peak_memory_bytes};
use crate::cmd::{Failure, load};
use crate::votes::Votes;
use std::path::Path;

const AREA: &str = "load";

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let votes = Votes::new(arguments.rows);
    let csv = folder.join("votes.csv");
    let mut progress = Progress::start("writing the CSV file", votes.rows());
    let csv_bytes = load::write_csv(votes, &csv, |rows| progress.at(rows))?;
    drop(progress);
    let mut figures = Figures::default();
    figures.add(AREA, "CSV file", csv_bytes as f64, "bytes");
    let data = folder.join("data");
    let ours = thawdb(arguments, &data, &csv, &mut figures)?;
    if arguments.postgres {
        let theirs = postgres::measure(&folder.join("postgres"), &csv, votes.rows(), &mut figures)?;
        figures.add(AREA, "PostgreSQL's load time / ours", theirs.load / ours.load, "x");
        figures.add(AREA, "PostgreSQL's index time / ours", theirs.index / ours.index, "x");
    }
    if !arguments.keep {
        std::fs::remove_file(&csv)?;
    }
    Ok(figures)
}

/// Seconds of the two parts.
pub(crate) struct Seconds {
    pub(crate) load: f64,
    pub(crate) index: f64,
}

fn thawdb(arguments: &BenchArguments, data: &Path, csv: &Path, figures: &mut Figures) -> Result<Seconds, Failure> {
    let csv = std::path::absolute(csv)?;
    let instance = open(arguments, data)?;
    let mut session = instance.session();
    load::create(&mut session, DATABASE)?;
    let whole = Stopwatch::start();
    let watch = Stopwatch::start();
    session.execute(&load::bulk_insert_statement(&csv))?;
    let load_seconds = watch.seconds();
    figures.rate(AREA, "BULK INSERT", arguments.rows, load_seconds);
    println!("BULK INSERT took {load_seconds:.1} s");
    let watch = Stopwatch::start();
    session.execute("CREATE INDEX IX_Votes_PostId ON dbo.Votes (PostId)")?;
    let index_seconds = watch.seconds();
    figures.rate(AREA, "CREATE INDEX", arguments.rows, index_seconds);
    println!("CREATE INDEX took {index_seconds:.1} s");
    let count = session.execute("SELECT COUNT(*) FROM dbo.Votes")?.scalar().and_then(|value| value.as_i64());
    if count != Some(arguments.rows.cast_signed()) {
        return Err(Failure(format!("the table has {count:?} rows, the file {}", arguments.rows)));
    }
    drop(session);
    instance.close()?;
    figures.add(AREA, "load, index and close", whole.seconds(), "s");
    let bytes = folder_bytes(data);
    figures.note(AREA, "files", bytes as f64, "bytes", format!("{:.1} a row", bytes as f64 / arguments.rows as f64));
    let memory = peak_memory_bytes();
    figures.note(AREA, "peak memory", memory as f64, "bytes", format!("memory setting {}", arguments.memory));
    Ok(Seconds { load: load_seconds, index: index_seconds })
}
