//! Point look-ups and small durable transactions: over the wire beside pgbench, in process beside SQLite.
//!
//! ```text
//!   this process: load generator ── TDS ──► child: thawdb serve          pgbench ── TCP ──► postgres
//!   this process: sessions of an embedded instance                      sqlite.c: connections in one process
//! ```
//!
//! Each kind of work of [`workload`] runs with each number of connections, rounds of ours and of the rival's in turn, so
//! that a machine that drifts meets both. At the end the sums that the TPC-B-like transaction must keep are checked, and
//! the rows of the journal against the inserts acknowledged.

pub(crate) mod local;
pub(crate) mod measured;
mod pgbench;
mod server;
mod sqlite;
mod wire;
pub(crate) mod workload;

use crate::args::BenchArguments;
use crate::cmd::Failure;
use crate::cmd::bench::open;
use crate::cmd::figures::Figures;
use measured::{Measured, report};
use pgbench::PgBench;
use server::OwnServer;
use sqlite::Sqlite;
use std::path::Path;
use std::time::Duration;
use thawdb_types::Scalar;
use workload::Kind;

const AREA: &str = "oltp";
/// Database of the benchmark.
const DATABASE: &str = "ThawBench";
/// Connections at once.
const CONNECTIONS: [usize; 3] = [1, 8, 32];
/// Time of one turn of a spinlock's loop, in nanoseconds: a PAUSE takes 40 to 140 cycles.
const SPIN_NS: f64 = 40.0;
/// Reads every account: PostgreSQL's and SQLite's rows are in memory from their making, ours are on the disk after a start.
const WARM: &str = "SELECT SUM(CAST(abalance AS bigint)) FROM dbo.pgbench_accounts";

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let data = folder.join("thawdb");
    let instance = open(arguments, &data)?;
    workload::create(&mut instance.session(), DATABASE, arguments.scale)?;
    instance.close()?;
    drop(instance);
    over_the_wire(arguments, folder, &data, &mut figures)?;
    in_process(arguments, folder, &data, &mut figures)?;
    Ok(figures)
}

fn kinds(arguments: &BenchArguments) -> impl Iterator<Item = Kind> + '_ {
    Kind::ALL.into_iter().filter(|kind| arguments.kind.as_deref().is_none_or(|wanted| wanted == kind.name()))
}

fn over_the_wire(arguments: &BenchArguments, folder: &Path, data: &Path, figures: &mut Figures) -> Result<(), Failure> {
    let password = password();
    let server = OwnServer::start(data, arguments.memory, &password, DATABASE)?;
    let rival = arguments.postgres.then(|| PgBench::start(&folder.join("postgres"), arguments.scale)).transpose()?;
    let time = Duration::from_secs(arguments.seconds);
    server.query(WARM)?;
    let mut inserted = 0;
    for kind in kinds(arguments) {
        for connections in CONNECTIONS {
            let (mut ours, mut theirs) = (Measured::default(), Measured::default());
            for _ in 0..arguments.rounds {
                ours.merge(server.run(kind, arguments.scale, connections, time)?);
                if let Some(rival) = &rival {
                    theirs.merge(rival.run(kind, connections, arguments.seconds)?);
                }
            }
            inserted += if kind == Kind::Insert { ours.latencies.len() } else { 0 };
            let name = format!("{}, wire, {connections} connections", kind.name());
            report(figures, &name, &mut ours, rival.is_some().then_some(("pgbench", &mut theirs)));
        }
    }
    spinlocks(&server, figures)?;
    check(&server, inserted)
}

fn in_process(arguments: &BenchArguments, folder: &Path, data: &Path, figures: &mut Figures) -> Result<(), Failure> {
    let instance = open(arguments, data)?;
    let rival = arguments.sqlite.then(|| Sqlite::create(&folder.join("sqlite"), arguments.scale)).transpose()?;
    let time = Duration::from_secs(arguments.seconds);
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    session.execute(WARM)?;
    drop(session);
    for kind in kinds(arguments).filter(|kind| *kind != Kind::Tpcb) {
        for connections in CONNECTIONS {
            let (mut ours, mut theirs) = (Measured::default(), Measured::default());
            let rival = rival.as_ref().filter(|_| kind != Kind::Update);
            for _ in 0..arguments.rounds {
                ours.merge(local::run(&instance, kind, arguments.scale, connections, time)?);
                if let Some(rival) = rival {
                    theirs.merge(rival.run(kind, connections, arguments.seconds)?);
                }
            }
            let name = format!("{}, in process, {connections} sessions", kind.name());
            report(figures, &name, &mut ours, rival.is_some().then_some(("SQLite", &mut theirs)));
        }
    }
    Ok(instance.close()?)
}

/// What part of the server's processor time its named spinlocks took at most.
fn spinlocks(server: &OwnServer, figures: &mut Figures) -> Result<(), Failure> {
    let cpu_ns = server.cpu_seconds()? * 1e9;
    let mut worst = ("none".to_owned(), 0.0);
    for row in server.query("SELECT name, spins FROM sys.dm_os_spinlock_stats")? {
        if let [Scalar::Text(name), spins] = &row[..] {
            let share = spins.as_i64().unwrap_or(0) as f64 * SPIN_NS / cpu_ns * 100.0;
            if share >= worst.1 {
                worst = (name.clone(), share);
            }
        }
    }
    figures.note(AREA, "greatest share of a spinlock in the server's CPU", worst.1, "%", worst.0);
    Ok(())
}

/// What every history must add up to.
fn check(server: &OwnServer, inserted: usize) -> Result<(), Failure> {
    let number = |text: &str| -> Result<i64, Failure> {
        let rows = server.query(text)?;
        let value = rows.first().and_then(|row| row.first()).map(|value| value.as_i64().unwrap_or(0));
        value.ok_or_else(|| Failure(format!("no answer: {text}")))
    };
    let tellers = number("SELECT SUM(CAST(tbalance AS bigint)) FROM dbo.pgbench_tellers")?;
    let branches = number("SELECT SUM(CAST(bbalance AS bigint)) FROM dbo.pgbench_branches")?;
    let history = number("SELECT SUM(CAST(delta AS bigint)) FROM dbo.pgbench_history")?;
    if (tellers, branches) != (history, history) {
        return Err(Failure(format!("transactions were torn: tellers {tellers}, branches {branches}, history {history}")));
    }
    let journal = number("SELECT COUNT_BIG(*) FROM dbo.journal")?;
    if journal != i64::try_from(inserted).unwrap_or(i64::MAX) {
        return Err(Failure(format!("{inserted} rows were acknowledged, the journal has {journal}")));
    }
    Ok(())
}

/// A password that lives as long as this process.
fn password() -> String {
    let mut bytes = [0; 16];
    thawdb_device::os::env().random.fill(&mut bytes);
    format!("Aa1!{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
