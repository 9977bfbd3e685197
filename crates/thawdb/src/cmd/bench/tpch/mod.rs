//! TPC-H: the 22 queries of the specification's validation run, beside PostgreSQL if asked.
//!
//! ```text
//! tpchgen ─► one file a table ─► BULK INSERT, indexes ─► 1 thread, 2 threads: each query once unmeasured, its answer compared,
//!                            └─► COPY, indexes, ANALYZE ─►                    then the measured rounds, both sides in turn
//! ```
//! Both have the tables of `tables.sql` (primary keys) and an index on every foreign key (`indexes.sql`). A query is the
//! same text for both but for TOP and YEAR ([`postgres_text`]). Both answers must agree: numbers to six digits after the
//! point or six significant ones, since an average has other digits here than there, rows in any order among equals.
//! With `--keep` the tables' files, our data and our answers (`answers/q01.txt`, tab-separated) stay, for others to be
//! compared with (`clients/tpch/duckdb_answers.py`).
//!
//! What it is not: a result of the benchmark as its publisher defines one (no refresh functions, no streams, fixed parameters).

mod answer;
mod tables;

use crate::args::BenchArguments;
use crate::cmd::Failure;
use crate::cmd::bench::{DATABASE, median, open, postgres};
use crate::cmd::figures::{Figures, Stopwatch, cpu_seconds, peak_memory_bytes};
use crate::embed::{Instance, Session};
use answer::Answer;
use std::path::Path;

const AREA: &str = "tpch";
/// Threads a query may use, in turn.
const THREADS: [usize; 2] = [1, 2];

macro_rules! queries {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("queries/", $name, ".sql")))),*] };
}

/// Name and text of each query, with the validation run's parameters.
pub const QUERIES: [(&str, &str); 22] = queries!(
    "q01" "q02" "q03" "q04" "q05" "q06" "q07" "q08" "q09" "q10" "q11" "q12" "q13" "q14" "q15" "q16" "q17" "q18" "q19" "q20" "q21" "q22"
);

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let files = folder.join("tables");
    tables::generate(arguments.factor, &files)?;
    let instance = loaded(arguments, &folder.join("data"), &files, &mut figures)?;
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    let rival = arguments.postgres.then(|| rival(&folder.join("postgres"), &files, &mut figures)).transpose()?;
    let answers = folder.join("answers");
    std::fs::create_dir_all(&answers)?;
    let wanted = |name: &str| arguments.kind.as_deref().is_none_or(|kinds| kinds.split(',').any(|kind| kind == name));
    for threads in THREADS {
        let (mut ours, mut theirs) = (Taken::default(), Taken::default());
        for (name, text) in QUERIES.into_iter().filter(|(name, _)| wanted(name)) {
            let taken = one(arguments, (&mut session, rival.as_ref()), (name, text, threads), &answers, &mut figures)?;
            ours.add(&taken.0);
            theirs.add(&taken.1);
        }
        figures.note(AREA, format!("total, {threads} threads"), ours.seconds, "s", format!("processor {:.2} s", ours.cpu_seconds));
        if rival.is_some() {
            // Of its processes the first alone tells what it took.
            let cpu = if threads == 1 { format!("processor {:.2} s", theirs.cpu_seconds) } else { String::new() };
            figures.note(AREA, format!("total, {threads} threads, PostgreSQL"), theirs.seconds, "s", cpu);
            figures.add(AREA, format!("PostgreSQL's total / ours, {threads} threads"), theirs.seconds / ours.seconds, "x");
        }
    }
    figures.note(AREA, "peak memory", peak_memory_bytes() as f64, "bytes", format!("memory setting {}", arguments.memory));
    drop(session);
    instance.close()?;
    if !arguments.keep {
        std::fs::remove_dir_all(&files)?;
    }
    Ok(figures)
}

/// What a query took.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    seconds: f64,
    cpu_seconds: f64,
}

impl Taken {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
    }

    /// The medians of several runs.
    fn median(runs: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| median(runs.iter().map(value).collect());
        Self { seconds: of(|run| run.seconds), cpu_seconds: of(|run| run.cpu_seconds) }
    }
}

/// An instance with the tables, from an earlier run if that was kept.
fn loaded(arguments: &BenchArguments, data: &Path, files: &Path, figures: &mut Figures) -> Result<Instance, Failure> {
    let is_there = data.exists();
    let instance = open(arguments, data)?;
    let mut session = instance.session();
    let kept = is_there && session.execute(&format!("SELECT COUNT(*) FROM [{DATABASE}].dbo.lineitem")).is_ok();
    if !kept {
        let watch = Stopwatch::start();
        tables::load(&mut session, DATABASE, files)?;
        figures.add(AREA, "load and indexes", watch.seconds(), "s");
    }
    Ok(instance)
}

fn rival(folder: &Path, files: &Path, figures: &mut Figures) -> Result<postgres::Cluster, Failure> {
    let cluster = postgres::Cluster::start(folder)?;
    let watch = Stopwatch::start();
    cluster.query(tables::CREATE, None)?;
    for table in tables::TABLES {
        let file = tables::file(files, table);
        cluster.query(&format!("COPY {table} FROM STDIN (DELIMITER '|')"), Some(&file))?;
    }
    cluster.query(tables::INDEXES, None)?;
    cluster.query("VACUUM (FREEZE, ANALYZE)", None)?;
    cluster.query("CHECKPOINT", None)?;
    figures.add(AREA, "load and indexes, PostgreSQL", watch.seconds(), "s");
    Ok(cluster)
}

/// One query with so many threads: what it took us, and the rival.
fn one(
    arguments: &BenchArguments,
    (session, rival): (&mut Session, Option<&postgres::Cluster>),
    (name, text, threads): (&str, &str, usize),
    answers: &Path,
    figures: &mut Figures,
) -> Result<(Taken, Taken), Failure> {
    let own = format!("{text} OPTION (MAXDOP {threads})");
    let setting = format!("SET max_parallel_workers_per_gather = {}", threads - 1);
    let their_text = postgres_text(text);
    let answer = Answer::of(&session.execute(&own)?);
    std::fs::write(answers.join(format!("{name}.txt")), answer.text())?;
    if let Some(cluster) = rival {
        let theirs = Answer::parse(&cluster.timed(&setting, &their_text)?.answer);
        answer.agrees(&theirs).map_err(|why| Failure(format!("{name}, {threads} threads: {why}")))?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let (watch, before) = (Stopwatch::start(), cpu_seconds());
        session.execute(&own)?;
        ours.push(Taken { seconds: watch.seconds(), cpu_seconds: cpu_seconds() - before });
        if let Some(cluster) = rival {
            let timed = cluster.timed(&setting, &their_text)?;
            theirs.push(Taken { seconds: timed.seconds, cpu_seconds: timed.cpu_seconds });
        }
    }
    let ours = Taken::median(&ours);
    let shown = format!("{name}, {threads} threads: {:.3} s, processor {:.3} s", ours.seconds, ours.cpu_seconds);
    figures.note(AREA, format!("{name}, {threads} threads"), ours.seconds, "s", format!("processor {:.3} s", ours.cpu_seconds));
    if theirs.is_empty() {
        println!("{shown}, {} rows", answer.row_count());
        return Ok((ours, Taken::default()));
    }
    let theirs = Taken::median(&theirs);
    figures.add(AREA, format!("{name}, {threads} threads, PostgreSQL"), theirs.seconds, "s");
    println!("{shown}; PostgreSQL {:.3} s; {:.2} x; {} rows", theirs.seconds, theirs.seconds / ours.seconds, answer.row_count());
    Ok((ours, theirs))
}

/// The query as PostgreSQL and DuckDB say it: LIMIT for TOP, EXTRACT for YEAR.
pub fn postgres_text(text: &str) -> String {
    let text = text.replace("YEAR(", "EXTRACT(year FROM ");
    let Some((head, rest)) = text.split_once("TOP (") else { return text };
    let (count, rest) = rest.split_once(')').expect("TOP's number is in parentheses");
    format!("{head}{} LIMIT {count}", rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::{self, Options};

    macro_rules! expected {
        ($($name:literal)*) => { [$(include_str!(concat!("expected/", $name, ".txt"))),*] };
    }

    /// What DuckDB answers to the queries at scale 0.01, tab-separated.
    const EXPECTED: [&str; 22] = expected!(
        "q01" "q02" "q03" "q04" "q05" "q06" "q07" "q08" "q09" "q10" "q11" "q12" "q13" "q14" "q15" "q16" "q17" "q18" "q19" "q20" "q21" "q22"
    );

    #[test]
    fn the_answers_are_duckdbs() {
        let folder = std::env::temp_dir().join(format!("thawdb-tpch-answers-{}", std::process::id()));
        tables::generate(0.01, &folder).unwrap();
        let instance = embed::open(folder.join("data"), Options::default()).unwrap();
        let mut session = instance.session();
        tables::load(&mut session, DATABASE, &folder).unwrap();
        // So that small tables are divided among threads too.
        let set = |option: &str, value: u32| format!("EXEC sp_configure '{option}', {value} RECONFIGURE ");
        session.execute(&(set("show advanced options", 1) + &set("cost threshold for parallelism", 0))).unwrap();
        for ((name, text), expected) in QUERIES.into_iter().zip(EXPECTED) {
            for threads in THREADS {
                let answer = Answer::of(&session.execute(&format!("{text} OPTION (MAXDOP {threads})")).unwrap());
                let expected = Answer::parse(&expected.replace('|', "/").replace('\t', "|"));
                answer.agrees(&expected).unwrap_or_else(|why| panic!("{name} by {threads} threads: {why}"));
            }
        }
        drop(session);
        instance.close().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_rivals_text_differs_in_top_and_year() {
        assert_eq!(postgres_text("SELECT TOP (10) a FROM t ORDER BY a\n"), "SELECT a FROM t ORDER BY a LIMIT 10");
        assert_eq!(postgres_text("SELECT YEAR(d) FROM t"), "SELECT EXTRACT(year FROM d) FROM t");
    }
}
