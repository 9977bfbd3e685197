//! Random concurrent histories at every isolation level, checked by `testkit::history`.
//!
//! Lists are rows `(id, v)`, an append is `UPDATE ... SET v += ',7'` (or, where the row is not there, INSERT), a read is a
//! SELECT of one id or of a range. Sessions run freely on threads; a seed determines their programs. `THAWDB_HISTORIES`
//! sets how many histories a level gets (100), `THAWDB_HISTORY_SEED` where they begin (1).
//!
//! At SERIALIZABLE and SNAPSHOT half of the rows are not there when a history begins: whoever reads their absence is part
//! of the cycles too, so SERIALIZABLE is checked for phantoms.

use crate::script::{fresh_engine, said};
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_engine::{Engine, Session};
use thawdb_testkit::history::{History, Level, Step, Transaction, check, programs};

const SESSIONS: usize = 3;
const TRANSACTIONS: usize = 4;
const LISTS: u64 = 6;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

struct Run {
    words: &'static str,
    hint: &'static str,
    level: Level,
    /// Lists whose rows are there from the start.
    present: u64,
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().expect("a number")).collect()
}

/// The lists `first..=last` of a history whose ids begin at `base`; those that are not there are empty.
fn lists(lines: &[String], base: u64, first: u64, last: u64) -> BTreeMap<u64, Vec<u64>> {
    let mut found: BTreeMap<u64, Vec<u64>> = (first..=last).map(|list| (list, Vec::new())).collect();
    for line in lines {
        if let Some((id, value)) = line.split_once(" | ") {
            found.insert(id.parse::<u64>().expect("an id") - base, numbers(value));
        }
    }
    found
}

/// The outcome of a batch: true, or false if it cost the transaction.
fn lives(lines: &[String], batch: &str) -> bool {
    let Some(failure) = lines.iter().find(|line| line.starts_with("Msg ")) else { return true };
    // A key that somebody else put in meanwhile is a duplicate: the statement fails, and this gives up.
    let expected = ["Msg 1205", "Msg 3960", "Msg 2627"].iter().any(|message| failure.starts_with(message));
    assert!(expected, "{batch}: {failure}");
    false
}

fn execute(session: &mut Session, run: &Run, base: u64, steps: &[Step], gives_up: bool) -> Transaction {
    let mut done = Transaction::default();
    said(session, &format!("SET TRANSACTION ISOLATION LEVEL {} BEGIN TRAN", run.words));
    for step in steps {
        let batch = match step {
            Step::Append(list, number) => {
                let id = base + list;
                let update = format!("UPDATE lists SET v = v + ',{number}' WHERE id = {id}");
                format!("SET NOCOUNT ON {update} IF @@ROWCOUNT = 0 INSERT lists VALUES ({id}, ',{number}')")
            }
            Step::Read(first, last) if first == last => format!("SELECT id, v FROM lists {} WHERE id = {}", run.hint, base + first),
            Step::Read(first, last) => {
                format!("SELECT id, v FROM lists {} WHERE id BETWEEN {} AND {}", run.hint, base + first, base + last)
            }
        };
        let lines = said(session, &batch);
        if !lives(&lines, &batch) {
            said(session, "IF @@TRANCOUNT > 0 ROLLBACK");
            return done;
        }
        match step {
            Step::Append(list, number) => done.appends.push((*list, *number)),
            Step::Read(first, last) => {
                let before = done.appends.len();
                done.reads.extend(lists(&lines, base, *first, *last).into_iter().map(|(list, numbers)| (list, numbers, before)));
            }
        }
    }
    done.committed = !gives_up;
    let end = if gives_up { "ROLLBACK" } else { "COMMIT" };
    assert!(lives(&said(session, end), end), "an end that fails");
    done
}

fn one(engine: &Arc<Engine>, sessions: &mut Vec<Session>, run: &Run, seed: u64, base: u64) {
    let mut own = engine.internal_session();
    said(&mut own, "USE histories");
    let rows: Vec<String> = (0..run.present).map(|list| format!("({}, '')", base + list)).collect();
    said(&mut own, &format!("INSERT lists VALUES {}", rows.join(", ")));
    let programs = programs(seed, SESSIONS, TRANSACTIONS, LISTS);
    let done: Vec<Vec<Transaction>> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .zip(&programs.0)
            .map(|(session, program)| {
                scope.spawn(move || program.iter().map(|(steps, gives_up)| execute(session, run, base, steps, *gives_up)).collect())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let lines = said(&mut own, &format!("SELECT id, v FROM lists WHERE id BETWEEN {base} AND {}", base + LISTS));
    let history = History { sessions: done, lists: lists(&lines, base, 0, LISTS - 1) };
    if let Err(violation) = check(run.level, &history) {
        panic!("{} {}, seed {seed}: {violation}\n{history:#?}", run.words, run.hint);
    }
}

fn all(name: &str, options: &str, run: &Run) {
    let (engine, _) = fresh_engine(name);
    let mut session = engine.internal_session();
    said(&mut session, "CREATE DATABASE histories");
    said(&mut session, &format!("ALTER DATABASE histories SET {options}"));
    said(&mut session, "USE histories");
    said(&mut session, "CREATE TABLE lists (id int PRIMARY KEY, v varchar(200) NOT NULL)");
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| engine.internal_session()).collect();
    sessions.iter_mut().for_each(|session| drop(said(session, "USE histories")));
    let first = setting("THAWDB_HISTORY_SEED", 1);
    for seed in first..first + setting("THAWDB_HISTORIES", 100) {
        one(&engine, &mut sessions, run, seed, (seed - first) * (LISTS + 2));
    }
}

#[test]
fn read_uncommitted() {
    let run = Run { words: "READ UNCOMMITTED", hint: "", level: Level::ReadUncommitted, present: LISTS };
    all("history-ru", "READ_COMMITTED_SNAPSHOT OFF", &run);
}

#[test]
fn read_committed_by_locks() {
    let run = Run { words: "READ COMMITTED", hint: "", level: Level::ReadCommitted, present: LISTS };
    all("history-rc", "READ_COMMITTED_SNAPSHOT OFF", &run);
}

#[test]
fn read_committed_by_versions() {
    let run = Run { words: "READ COMMITTED", hint: "", level: Level::ReadCommitted, present: LISTS };
    all("history-rcsi", "READ_COMMITTED_SNAPSHOT ON", &run);
}

#[test]
fn repeatable_read() {
    let run = Run { words: "REPEATABLE READ", hint: "", level: Level::RepeatableRead, present: LISTS };
    all("history-rr", "READ_COMMITTED_SNAPSHOT ON", &run);
}

#[test]
fn snapshot() {
    let run = Run { words: "SNAPSHOT", hint: "", level: Level::Snapshot, present: LISTS / 2 };
    all("history-snapshot", "ALLOW_SNAPSHOT_ISOLATION ON", &run);
}

#[test]
fn serializable() {
    let run = Run { words: "SERIALIZABLE", hint: "", level: Level::Serializable, present: LISTS / 2 };
    all("history-serializable", "READ_COMMITTED_SNAPSHOT ON", &run);
}

#[test]
fn serializable_by_hints() {
    // Reads say HOLDLOCK with UPDLOCK, changes are at REPEATABLE READ: rows that are there cannot be read stale.
    let run = Run { words: "REPEATABLE READ", hint: "WITH (UPDLOCK, HOLDLOCK)", level: Level::Serializable, present: LISTS };
    all("history-hints", "READ_COMMITTED_SNAPSHOT ON", &run);
}
