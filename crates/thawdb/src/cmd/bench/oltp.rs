//! Point look-ups and one-row transactions: in process and over the wire, by one session and by eight at once.
//!
//! Each measurement runs for a set time; every request is timed, so that the slowest one in a hundred is known. Keys
//! are drawn from a generator with a fixed seed per session.

use crate::args::BenchArguments;
use crate::cmd::Failure;
use crate::cmd::bench::{DATABASE, with_votes};
use crate::cmd::figures::{Figures, Stopwatch};
use crate::embed::{self, Instance, Options, Session};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use thawdb_engine::{Parameter, Secret};
use thawdb_tds::client::{Client, ConnectOptions};
use thawdb_tds::prelogin::Encryption;
use thawdb_tds::server::{Certificate, Server, ServerConfig};
use thawdb_types::{Scalar, SqlType};

const AREA: &str = "oltp";
/// Sessions at once.
const SESSION_COUNTS: [u64; 2] = [1, 8];
const SELECT: &str = "SELECT PostId, VoteTypeId FROM dbo.Votes WHERE Id = @id";
const INSERT: &str = "INSERT dbo.Journal (Id, Note) VALUES (@id, N'a row of the benchmark')";
const CREATE_JOURNAL: &str = "CREATE TABLE dbo.Journal (Id int NOT NULL PRIMARY KEY, Note nvarchar(50) NOT NULL)";

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let instance = with_votes(arguments, folder)?;
    let (password, instance) = with_password(&instance, arguments, folder)?;
    let server = LocalServer::start(&instance, password)?;
    let mut figures = Figures::default();
    for (name, statement, insert) in [("look-up by key", SELECT, false), ("insert of a row", INSERT, true)] {
        for sessions in SESSION_COUNTS {
            for wire in [false, true] {
                let how = if wire { "over the wire" } else { "in process" };
                let label = format!("{name}, {how}, {sessions} sessions");
                recreate_journal(&instance)?;
                let plan = Plan { statement, insert, rows: arguments.rows, time: Duration::from_secs(arguments.seconds) };
                let latencies =
                    if wire { run(sessions, &plan, |_| server.connect())? } else { run(sessions, &plan, |_| local(&instance))? };
                report(&mut figures, &label, latencies, plan.time);
            }
        }
    }
    server.stop()?;
    instance.close()?;
    Ok(figures)
}

/// The instance again, with a password for sa that lives as long as this process.
fn with_password(instance: &Instance, arguments: &BenchArguments, folder: &Path) -> Result<(String, Instance), Failure> {
    instance.close()?;
    let mut bytes = [0; 16];
    thawdb_device::os::env().random.fill(&mut bytes);
    let password = format!("Aa1!{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let options = Options { memory_bytes_max: arguments.memory, sa_password: Some(Secret::new(password.clone())), ..Options::default() };
    Ok((password, embed::open(folder, options)?))
}

fn recreate_journal(instance: &Instance) -> Result<(), Failure> {
    let mut session = in_database(instance)?;
    session.execute("IF OBJECT_ID(N'dbo.Journal') IS NOT NULL DROP TABLE dbo.Journal")?;
    session.execute(CREATE_JOURNAL)?;
    Ok(())
}

fn in_database(instance: &Instance) -> Result<Session, Failure> {
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    Ok(session)
}

/// What every session does.
struct Plan {
    statement: &'static str,
    insert: bool,
    rows: u64,
    time: Duration,
}

/// One session's way to run a statement with the parameter `@id`.
type Request = Box<dyn FnMut(&str, i32) -> Result<(), Failure>>;

fn local(instance: &Instance) -> Result<Request, Failure> {
    let mut session = in_database(instance)?;
    Ok(Box::new(move |statement, id| {
        session.execute_with(statement, &[Parameter::input("@id", SqlType::Int, Scalar::Int(id))])?;
        Ok(())
    }))
}

/// Runs the plan by so many sessions at once; the latencies of all requests in seconds.
fn run(sessions: u64, plan: &Plan, connect: impl Fn(u64) -> Result<Request, Failure> + Sync) -> Result<Vec<f64>, Failure> {
    let together = Barrier::new(usize::try_from(sessions).expect("few"));
    let one = |number: u64| -> Result<Vec<f64>, Failure> {
        let connected = connect(number);
        together.wait();
        let mut request = connected?;
        let mut latencies = Vec::new();
        let mut draw = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let whole = Stopwatch::start();
        while whole.elapsed() < plan.time {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let next = latencies.len() as u64;
            let id = if plan.insert { next * sessions + number + 1 } else { 1 + (draw >> 33) % plan.rows };
            let watch = Stopwatch::start();
            request(plan.statement, i32::try_from(id).expect("a run has fewer than 2^31 requests"))?;
            latencies.push(watch.seconds());
        }
        Ok(latencies)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..sessions)
            .map(|number| {
                scope.spawn({
                    let one = &one;
                    move || one(number)
                })
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| Failure("a session of the benchmark panicked".into()))??);
        }
        Ok(all)
    })
}

fn report(figures: &mut Figures, label: &str, mut latencies: Vec<f64>, time: Duration) {
    latencies.sort_by(f64::total_cmp);
    let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or(0.0) * 1e6;
    figures.add(AREA, label, latencies.len() as f64 / time.as_secs_f64(), "/s");
    figures.add(AREA, format!("{label}, median"), at(50), "us");
    figures.add(AREA, format!("{label}, 99 %"), at(99), "us");
    println!("{label}: {:.0}/s", latencies.len() as f64 / time.as_secs_f64());
}

/// A server in this process.
struct LocalServer {
    options: ConnectOptions,
    stop: thawdb_tds::server::StopHandle,
    thread: thread::JoinHandle<std::io::Result<()>>,
}

impl LocalServer {
    fn start(instance: &Instance, password: String) -> Result<Self, Failure> {
        let config = ServerConfig {
            server_name: instance.server_name().to_owned(),
            address: ([127, 0, 0, 1], 0).into(),
            certificate: Certificate::SelfSigned { names: vec!["localhost".into()] },
            encryption: Encryption::Off,
            worker_count_max: 64,
        };
        let server = Server::bind(instance.engine().clone(), config)?;
        let options = ConnectOptions {
            port: server.address()?.port(),
            user: "sa".into(),
            password,
            database: DATABASE.into(),
            encryption: Encryption::NotSupported,
            ..ConnectOptions::default()
        };
        let stop = server.stop_handle();
        let thread = thread::Builder::new().name("thawdb-bench-server".into()).spawn(move || server.run())?;
        Ok(Self { options, stop, thread })
    }

    fn connect(&self) -> Result<Request, Failure> {
        let mut client = Client::connect(&self.options)?;
        Ok(Box::new(move |statement, id| {
            client.execute(statement, &[("@id", SqlType::Int, Scalar::Int(id))])?.finish()?;
            Ok(())
        }))
    }

    fn stop(self) -> Result<(), Failure> {
        self.stop.stop();
        self.thread.join().map_err(|_| Failure("the server panicked".into()))??;
        Ok(())
    }
}
