//! `thawdb demo`: everything at once, on your machine, with its figures.
//!
//! ```text
//! create ─► load Votes ─► four questions ─► index on PostId: offline, online, resumable
//!        ─► [children: the same through a log that is always full ─ SIGKILL]     builds, builder
//!        ─► [child: small transactions ─ SIGKILL] ─► reopen                       crash, writer
//!        ─► every acknowledged row is there, no half transaction ─► DBCC CHECKDB ─► figures and a picture
//! ```
//!
//! Every answer is checked against the generator's own; a wrong one ends the demo with an error. Figures go to
//! standard output; so does progress where standard error is no terminal.

pub mod builder;
mod builds;
mod chart;
mod crash;
pub mod writer;

use crate::args::DemoArguments;
use crate::cmd::figures::{Figures, Progress, Stopwatch, folder_bytes, grouped, peak_memory_bytes};
use crate::cmd::workspace::Workspace;
use crate::cmd::{Failure, load};
use crate::embed::{self, Instance, Options, Session};
use crate::votes::Votes;
use std::path::Path;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

/// Rows unless told otherwise: all ends in well under two minutes on two cores.
pub const ROWS_DEFAULT: u64 = 10_000_000;
/// The demo's database.
const DATABASE: &str = "ThawDemo";
/// Area of the demo's figures.
const AREA: &str = "demo";

/// Runs the command.
pub fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let whole = Stopwatch::start();
    let workspace = Workspace::new(arguments.data.as_deref(), "demo", arguments.keep)?;
    println!("ThawDB demo: {} rows of Votes in {}", grouped(arguments.rows as f64), workspace.path().display());
    let votes = Votes::new(arguments.rows);
    let mut figures = Figures::default();
    let mut stage = Stage { arguments, workspace: &workspace, figures: &mut figures };
    let instance = stage.open("start on an empty folder")?;
    stage.load_and_ask(&instance, votes)?;
    let mut builds = builds::uninterrupted(&instance, &mut session_in(&instance)?)?;
    let log_megabytes = builds::cut_log(&mut session_in(&instance)?, &builds[builds.len() - 1])?;
    instance.close()?;
    drop(instance);
    builds.push(builds::stopped(workspace.path(), arguments.memory, log_megabytes, votes.rows())?);
    let instance = stage.open("reopen after the builds")?;
    crash::prepare(&mut session_in(&instance)?)?;
    instance.close()?;
    drop(instance);
    let acknowledged = crash::write_and_kill(arguments, workspace.path())?;
    let instance = stage.open("reopen after SIGKILL")?;
    stage.verify(&instance, votes, acknowledged)?;
    if !workspace.is_temporary() && !arguments.keep {
        instance.session().execute(&format!("DROP DATABASE [{DATABASE}]"))?;
    }
    instance.close()?;
    figures.add(AREA, "all of it", whole.seconds(), "s");
    println!("\n{}\n", figures.table());
    builds.iter().for_each(|build| println!("{}", build.row(votes.rows())));
    draw(&arguments.svg, &builds, votes.rows())?;
    if arguments.keep || !workspace.is_temporary() {
        println!("\nthe data is in {}; look at it with: thawdb sql --data {0}", workspace.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws the builds' speed over time.
fn draw(path: &Path, builds: &[builds::Build], rows: u64) -> Result<(), Failure> {
    let lines: Vec<_> = builds.iter().map(|build| build.line(rows)).collect();
    let picture = chart::svg(&format!("CREATE INDEX on {} rows of Votes", grouped(rows as f64)), &lines);
    std::fs::write(path, picture).map_err(|error| Failure::of(path.display(), error))?;
    println!("rows a second over time: {}", path.display());
    Ok(())
}

/// A session in the demo's database.
fn session_in(instance: &Instance) -> Result<Session, Failure> {
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    Ok(session)
}

struct Stage<'a> {
    arguments: &'a DemoArguments,
    workspace: &'a Workspace,
    figures: &'a mut Figures,
}

impl Stage<'_> {
    fn open(&mut self, what: &str) -> Result<Instance, Failure> {
        let watch = Stopwatch::start();
        let instance = embed::open(self.workspace.path(), Options { memory_bytes_max: self.arguments.memory, ..Options::default() })?;
        self.figures.add(AREA, what, watch.seconds(), "s");
        Ok(instance)
    }

    fn load_and_ask(&mut self, instance: &Instance, votes: Votes) -> Result<(), Failure> {
        // Worked out beside the load; joined before anything is compared.
        let mut session = instance.session();
        load::create(&mut session, DATABASE)?;
        let watch = Stopwatch::start();
        let mut progress = Progress::start("loading Votes", votes.rows());
        let loaded = load::bulk(&mut session, votes, |rows| progress.at(rows))?;
        drop(progress);
        self.figures.rate(AREA, "load", loaded, watch.seconds());
        println!("loaded {} rows in {:.1} s", grouped(loaded as f64), watch.seconds());
        let answers = in_background(votes);
        self.ask(&mut session, answers)?;
        self.figures.add(AREA, "peak memory", peak_memory_bytes() as f64, "bytes");
        let bytes = folder_bytes(self.workspace.path());
        self.figures.note(AREA, "files", bytes as f64, "bytes", format!("{:.1} a row", bytes as f64 / votes.rows() as f64));
        Ok(())
    }

    fn ask(&mut self, session: &mut Session, answers: JoinHandle<load::Answers>) -> Result<(), Failure> {
        let mut given = Vec::new();
        for (name, question) in load::QUESTIONS {
            let watch = Stopwatch::start();
            let results = session.execute(question)?;
            self.figures.add(AREA, name, watch.seconds(), "s");
            given.push(results);
        }
        let answers = answers.join().map_err(|_| Failure("the answers could not be worked out".into()))?;
        for (at, ((name, _), results)) in load::QUESTIONS.iter().zip(&given).enumerate() {
            let rows: Vec<_> = results.sets.first().map(|set| set.rows().collect()).unwrap_or_default();
            if !load::is_right(at, &rows, &answers) {
                return Err(Failure(format!("wrong answer to {name}: {rows:?} where {answers:?} was expected")));
            }
        }
        println!("asked four questions; every answer is right");
        Ok(())
    }

    fn verify(&mut self, instance: &Instance, votes: Votes, acknowledged: u64) -> Result<(), Failure> {
        let mut session = session_in(instance)?;
        let found = crash::verify(&mut session, acknowledged)?;
        println!("killed the writer after {acknowledged} acknowledged rows; all are there ({found} rows, no half transaction)");
        let count = session.execute(load::QUESTIONS[0].1)?.scalar().and_then(|value| value.as_i64());
        if count != Some(votes.rows().cast_signed()) {
            return Err(Failure(format!("Votes has {count:?} rows after the crash, not {}", votes.rows())));
        }
        let watch = Stopwatch::start();
        let results = session.execute(&format!("DBCC CHECKDB (N'{DATABASE}')"))?;
        self.figures.add(AREA, "acknowledged rows found", found as f64, "rows");
        self.figures.add(AREA, "DBCC CHECKDB", watch.seconds(), "s");
        let verdict = results.messages.iter().rev().find(|message| message.text.contains("CHECKDB")).map(|m| m.text.as_str());
        println!("DBCC CHECKDB: {}", verdict.unwrap_or("no errors"));
        Ok(())
    }
}

fn in_background(votes: Votes) -> JoinHandle<load::Answers> {
    thread::spawn(move || load::Answers::of(votes))
}
