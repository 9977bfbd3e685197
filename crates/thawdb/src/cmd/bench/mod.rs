//! `thawdb bench`: measurements of this machine, as a table and as tab-separated lines.
//!
//! | what | measures |
//! |---|---|
//! | [`oltp`] | point look-ups and small transactions: over the wire beside pgbench, in process beside SQLite |
//! | [`scan`] | whole-table queries over Votes |
//! | [`index`] | building indexes on Votes |
//! | [`analytic`] | four analytic queries over Votes, warm and with data four times the memory; beside PostgreSQL if asked |
//! | [`recovery`] | the first answers after kill -9 beside a huge transaction, and others beside its rollback |
//! | [`language`] | loops, procedures of point statements, point queries as text; beside PL/pgSQL if asked |
//! | [`tpch`] | the 22 queries of TPC-H, with one thread and with two; beside PostgreSQL if asked |
//! | [`load_votes`] | BULK INSERT of Votes from CSV and its index, with peak memory; beside PostgreSQL if asked |
//!
//! Each runs on an instance of its own in a folder of its own, with nothing else on the machine if the figures are to
//! mean something. What they do not do: warm up beyond one run, or look at the spread between runs.

pub mod analytic;
pub mod index;
pub mod language;
pub mod load_votes;
pub mod oltp;
pub mod postgres;
pub mod recovery;
pub mod scan;
pub mod tpch;

use crate::args::{Bench, BenchArguments};
use crate::cmd::figures::{Figures, Progress};
use crate::cmd::workspace::Workspace;
use crate::cmd::{Failure, load};
use crate::embed::{self, Instance, Options};
use crate::votes::Votes;
use std::path::Path;
use std::process::ExitCode;

/// Database of the benchmarks.
pub(crate) const DATABASE: &str = "ThawBench";

/// Runs the command.
pub fn run(arguments: &BenchArguments) -> Result<ExitCode, Failure> {
    let mut figures = Figures::default();
    let all = [Bench::Oltp, Bench::Scan, Bench::Index, Bench::Load, Bench::Analytic, Bench::Recovery, Bench::Language, Bench::Tpch];
    for what in all.into_iter().filter(|what| arguments.what.is_none_or(|wanted| wanted == *what)) {
        let (name, measure): (&str, Measure) = match what {
            Bench::Oltp => ("oltp", oltp::measure),
            Bench::Scan => ("scan", scan::measure),
            Bench::Index => ("index", index::measure),
            Bench::Load => ("load", load_votes::measure),
            Bench::Analytic => ("analytic", analytic::measure),
            Bench::Recovery => ("recovery", recovery::measure),
            Bench::Language => ("language", language::measure),
            Bench::Tpch => ("tpch", tpch::measure),
        };
        let folder = arguments.data.as_ref().map(|folder| folder.join(name));
        let workspace = Workspace::new(folder.as_deref(), &format!("bench-{name}"), arguments.keep)?;
        figures.extend(measure(arguments, workspace.path())?);
    }
    println!("\n{}\n\n{}", figures.table(), figures.lines());
    Ok(ExitCode::SUCCESS)
}

type Measure = fn(&BenchArguments, &Path) -> Result<Figures, Failure>;

pub(crate) fn open(arguments: &BenchArguments, folder: &Path) -> Result<Instance, Failure> {
    Ok(embed::open(folder, Options { memory_bytes_max: arguments.memory, ..Options::default() })?)
}

/// An instance with all of Votes in [`DATABASE`].
pub(crate) fn with_votes(arguments: &BenchArguments, folder: &Path) -> Result<Instance, Failure> {
    let instance = open(arguments, folder)?;
    let mut session = instance.session();
    load::create(&mut session, DATABASE)?;
    let votes = Votes::new(arguments.rows);
    let mut progress = Progress::start("loading Votes", votes.rows());
    load::bulk(&mut session, votes, |rows| progress.at(rows))?;
    Ok(instance)
}

/// The middle one of an odd number of measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
