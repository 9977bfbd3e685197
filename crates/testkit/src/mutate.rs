//! Damage on purpose: pages, log blocks and whole files of one database changed on a prepared disk, and what comes of it.
//!
//! ```text
//! prepared disk (closed, or stopped dead with log to redo) ─fork─► mutation of `victim` ─► start ─► victim: each table
//!                    equal or an error; CHECKDB tells if anything was wrong                  other: equal, writable, clean
//! ```
//!
//! 1. A mutation is a function of its seed; the checker does not know which one it was, but for the log ([`Place`]).
//! 2. Detected means: the database does not open, or a read fails, or CHECKDB finds something. Harmless means: every table
//!    equal and the check clean (the place was unused, or was repaired). There is nothing between.
//! 3. A log block that recovery needs has no copy, and the last ones cannot be told from a torn write: what is left must
//!    be a state that was committed ([`Prepared::states`]), never a mixture.

use crate::simulate::client::Client;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use thawdb_device::sim::{SimOptions, Simulation};
use thawdb_engine::{Engine, EngineConfig};
use thawdb_observe::seeded::SeededRandom;
use thawdb_types::Scalar;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Some bytes of a page of the data file.
    Page,
    /// Some bytes of a sector of the log.
    Log,
    /// The data file or the log as a whole: cut, zeroed, another's.
    File,
}

/// What came of a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It was seen.
    Detected,
    /// It changed nothing anyone can ask for.
    Harmless,
    /// The end of the log was lost, and what is left is an earlier committed state.
    Shortened,
}

type Content = Vec<Vec<Vec<Scalar>>>;

/// A disk, and what its databases hold.
struct Prepared {
    sim: Simulation,
    /// The victim's committed states, oldest first; the last is what an undamaged disk holds.
    states: Vec<Content>,
}

const TABLES: [&str; 3] = ["plain", "indexed", "heap"];
/// Transactions whose states are remembered.
const ROUNDS: usize = 12;

fn config(sim: &Simulation) -> EngineConfig {
    EngineConfig {
        env: sim.env(),
        data_folder: "/data".into(),
        memory_bytes_max: 4 << 20,
        sa_password: None,
        server_name: "MUTATED".into(),
    }
}

fn done(client: &mut Client, text: &str) {
    let answer = client.ask(text);
    assert!(answer.errors.is_empty(), "{text}: {}", answer.told());
}

/// All rows of all tables in a comparable order, or the first error's number.
fn content(client: &mut Client) -> Result<Content, i32> {
    let read = |table: &&str| {
        let answer = client.ask(&format!("SELECT * FROM {table}"));
        let mut rows = answer.rows;
        rows.sort_by_key(|row| row[0].as_i64());
        if answer.errors.is_empty() { Ok(rows) } else { Err(answer.errors[0].number) }
    };
    TABLES.iter().map(read).collect()
}

fn fill(client: &mut Client) {
    done(client, "CREATE TABLE plain (id int PRIMARY KEY, name nvarchar(200) NULL)");
    done(
        client,
        "CREATE TABLE indexed (id int NOT NULL PRIMARY KEY, a int NULL, long nvarchar(max) NULL); CREATE INDEX ix ON indexed (a) INCLUDE (id)",
    );
    done(client, "CREATE TABLE heap (id int NULL, data varbinary(300) NULL)");
}

fn change(client: &mut Client, round: usize) {
    let first = round * 40;
    let rows = |row: &dyn Fn(usize) -> String| (first..first + 40).map(row).collect::<Vec<_>>().join(", ");
    let text = format!(
        "BEGIN TRAN; INSERT plain VALUES {}; INSERT indexed VALUES {}; INSERT heap VALUES {}; DELETE plain WHERE id % 17 = {}; \
         UPDATE indexed SET a = a + 1 WHERE id % 5 = {}; COMMIT",
        rows(&|id| format!("({id}, REPLICATE(N'name ', {}))", id % 30)),
        rows(&|id| format!("({id}, {}, REPLICATE(CONVERT(nvarchar(max), N'x'), {}))", id % 13, if id % 20 == 0 { 9_000 } else { 10 })),
        rows(&|id| format!("({id}, 0x{})", "AB".repeat(id % 200))),
        round % 17,
        round % 5,
    );
    done(client, &text);
}

impl Prepared {
    /// Makes the disk; `is_closed` says whether the instance was closed or stopped dead.
    fn make(is_closed: bool) -> Self {
        let sim = Simulation::new(SimOptions::new(7));
        let engine = Engine::open(config(&sim)).expect("an empty disk takes an instance");
        let mut states = Vec::new();
        for name in ["other", "victim"] {
            let file = |kind: &str| format!("NAME = {name}{kind}, FILENAME = '/data/{name}.{kind}', SIZE = 1MB, FILEGROWTH = 1MB");
            let mut client = Client::new(&engine, "master").expect("master is open");
            done(&mut client, &format!("CREATE DATABASE {name} ON ({}) LOG ON ({})", file("mdf"), file("ldf")));
            let mut client = Client::new(&engine, name).expect("it was made");
            fill(&mut client);
            states.clear();
            states.push(content(&mut client).expect("readable"));
            for round in 0..ROUNDS {
                change(&mut client, round);
                states.push(content(&mut client).expect("readable"));
                if round == ROUNDS / 2 {
                    done(&mut client, "CHECKPOINT");
                }
            }
        }
        if is_closed {
            engine.close().expect("nothing is wrong with the disk");
        }
        drop(engine);
        Self { sim, states }
    }

    fn of(is_closed: bool) -> &'static Self {
        static CLOSED: OnceLock<Prepared> = OnceLock::new();
        static DEAD: OnceLock<Prepared> = OnceLock::new();
        if is_closed { CLOSED.get_or_init(|| Self::make(true)) } else { DEAD.get_or_init(|| Self::make(false)) }
    }
}

/// Changes up to sixteen bytes within `range` of `length` bytes from `start`.
fn scribble(bytes: &mut [u8], start: usize, length: usize, random: &mut SeededRandom) {
    for _ in 0..1 + random.below(16) {
        let at = start + random.below(length as u64) as usize;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 + random.below(255) as u8;
        }
    }
}

fn mutate(sim: &Simulation, place: Place, random: &mut SeededRandom) -> String {
    let path = match place {
        Place::Page => "/data/victim.mdf",
        Place::Log => "/data/victim.ldf",
        Place::File if random.chance(1, 2) => "/data/victim.mdf",
        Place::File => "/data/victim.ldf",
    };
    let written = sim.written(Path::new(path));
    let mut bytes = sim.bytes_of(Path::new(path));
    let sector = written[random.below(written.len() as u64) as usize] as usize;
    let told = match place {
        Place::Page => {
            let page = sector / 8192 * 8192;
            scribble(&mut bytes, page, 8192, random);
            format!("bytes of page {}", page / 8192)
        }
        Place::Log => {
            scribble(&mut bytes, sector, 4096, random);
            format!("bytes of the log's sector at {sector:#x}")
        }
        Place::File => match random.below(4) {
            0 => {
                bytes.truncate(random.below(bytes.len() as u64 / 4096) as usize * 4096);
                format!("{path} cut to {} bytes", bytes.len())
            }
            1 => {
                bytes[sector..].fill(0);
                format!("{path} zeroed from {sector:#x}")
            }
            2 => {
                random.fill(&mut bytes[sector..]);
                format!("{path} random from {sector:#x}")
            }
            _ => {
                bytes = sim.bytes_of(Path::new(&path.replace("victim", "other")));
                format!("{path} is another database's")
            }
        },
    };
    sim.put_foreign(Path::new(path), &bytes);
    told
}

/// Does the mutation of a seed.
///
/// # Errors
/// What was served though wrong, or whom else it hurt.
pub fn run(seed: u64) -> Result<(Place, Fate), String> {
    let mut random = SeededRandom::new(seed);
    let is_closed = random.chance(1, 2);
    let prepared = Prepared::of(is_closed);
    let sim = prepared.sim.fork(SimOptions::new(seed));
    let place = [Place::Page, Place::Page, Place::Log, Place::File][random.below(4) as usize];
    let told = mutate(&sim, place, &mut random);
    let wrong = |what: String| format!("mutation {seed} ({told}, {}): {what}", if is_closed { "closed" } else { "stopped dead" });
    let engine = Engine::open(config(&sim)).map_err(|error| wrong(format!("the instance does not open: {error}")))?;
    let fate = victim(&engine, prepared, told.contains(".ldf") || place == Place::Log).map_err(wrong)?;
    other(&engine, prepared).map_err(wrong)?;
    // A database that is damaged may not close cleanly; the others must not suffer from it.
    let _ = engine.close();
    Ok((place, fate))
}

fn victim(engine: &Arc<Engine>, prepared: &Prepared, is_log: bool) -> Result<Fate, String> {
    let Ok(mut client) = Client::new(engine, "victim") else { return Ok(Fate::Detected) };
    let panicked = |number: i32| number == -1 || number == 3624;
    let mut is_detected = false;
    let mut found = content(&mut client);
    if let Err(number) = found {
        if panicked(number) {
            return Err(format!("a panic or a broken assertion ({number})"));
        }
        is_detected = true;
    }
    let Ok(mut client) = Client::new(engine, "victim") else { return Ok(Fate::Detected) };
    let check = client.ask("DBCC CHECKDB ('victim') WITH NO_INFOMSGS");
    if check.errors.iter().any(|error| panicked(error.number)) {
        return Err(format!("CHECKDB: {}", check.told()));
    }
    is_detected |= !check.errors.is_empty();
    let is_equal = |state: &Content| found.as_ref().is_ok_and(|found| found == state);
    let newest = prepared.states.last().expect("there are states");
    if found.is_err() || is_equal(newest) {
        return Ok(if is_detected { Fate::Detected } else { Fate::Harmless });
    }
    if is_log && prepared.states.iter().any(is_equal) {
        return Ok(if is_detected { Fate::Detected } else { Fate::Shortened });
    }
    let rows: Vec<_> = found.iter_mut().flatten().map(|rows| rows.len()).collect();
    Err(format!("wrong rows were served ({rows:?} rows), the check said: {}", check.told()))
}

fn other(engine: &Arc<Engine>, prepared: &Prepared) -> Result<(), String> {
    let mut client = Client::new(engine, "other").map_err(|error| format!("another database cannot be used: {error}"))?;
    if content(&mut client).as_ref() != Ok(prepared.states.last().expect("there are states")) {
        return Err("another database lost rows".into());
    }
    let answer = client.ask("INSERT plain VALUES (100000, N'new'); DELETE plain WHERE id = 100000");
    if answer.errors.is_empty() { Ok(()) } else { Err(format!("another database: {}", answer.told())) }
}
