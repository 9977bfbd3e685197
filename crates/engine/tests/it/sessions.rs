//! Scripts over several sessions, told step by step, without clocks.
//!
//! ```text
//! 1 update test set value = 11 where id = 1 | ok
//! 2 update test set value = 12 where id = 1 | waits       the lock table shows session 2 waiting
//! 1 commit | ok
//! 2 | ok                                                  what session 2 was waiting in has ended so
//! ```
//! Outcomes: `ok`; rows as `1=10 2=20` (`none`); a message's number; `waits`, or `waits KEY X` naming resource and mode. A
//! step that expects an end waits for it, one that expects a wait fails if the batch ends instead.

use crate::script::said;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use thawdb_engine::{Engine, Session};

struct Worker {
    id: i16,
    batches: Option<Sender<String>>,
    outcomes: Receiver<String>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
}

/// Sessions by the names a script gives them, each on a thread of its own.
pub struct Sessions {
    engine: Arc<Engine>,
    watcher: Session,
    workers: BTreeMap<String, Worker>,
}

/// What a batch said, shortened.
fn outcome(lines: &[String]) -> String {
    if let Some(message) = lines.iter().find_map(|line| line.strip_prefix("Msg ")) {
        return message.split(',').next().unwrap_or_default().to_owned();
    }
    let Some(start) = lines.iter().position(|line| line.starts_with('[')) else { return "ok".to_owned() };
    let rows: Vec<String> =
        lines[start + 1..].iter().take_while(|line| !line.starts_with("done")).map(|row| row.replace(" | ", "=")).collect();
    if rows.is_empty() { "none".to_owned() } else { rows.join(" ") }
}

impl Sessions {
    pub fn new(engine: &Arc<Engine>) -> Self {
        Self { engine: engine.clone(), watcher: engine.internal_session(), workers: BTreeMap::new() }
    }

    fn worker(&mut self, name: &str, database: &str) -> &mut Worker {
        let engine = &self.engine;
        self.workers.entry(name.to_owned()).or_insert_with(|| {
            let mut session = engine.internal_session();
            said(&mut session, &format!("USE {database}"));
            let id = session.id();
            let (batches, received) = channel::<String>();
            let (tell, outcomes) = channel();
            let thread = std::thread::spawn(move || {
                for batch in received {
                    if tell.send(outcome(&said(&mut session, &batch))).is_err() {
                        return;
                    }
                }
            });
            Worker { id, batches: Some(batches), outcomes, thread: Some(thread), busy: false }
        })
    }

    /// What session `id` waits for, by the lock table.
    fn waits_for(&mut self, id: i16) -> Option<String> {
        let text = format!(
            "SELECT resource_type, request_mode FROM sys.dm_tran_locks WHERE request_session_id = {id} AND request_status <> 'GRANT'"
        );
        said(&mut self.watcher, &text).get(1).filter(|line| !line.starts_with("done")).map(|line| line.replace(" | ", " "))
    }

    /// Runs a script in `database`; every step must end as it says.
    pub fn run(&mut self, database: &str, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (step, expected) = line.rsplit_once('|').unwrap_or_else(|| panic!("a step says how it ends: {line}"));
            let (name, batch) = step.trim().split_once(' ').unwrap_or((step.trim(), ""));
            let worker = self.worker(name, database);
            assert!(worker.busy == batch.is_empty(), "{line}: a session runs one batch at a time");
            if !batch.is_empty() {
                worker.batches.as_ref().expect("open").send(batch.trim().to_owned()).expect("the thread lives");
                worker.busy = true;
            }
            let found = self.settle(name, expected.trim());
            assert_eq!(found, expected.trim(), "{line}\n\nof\n{script}");
        }
        self.end();
    }

    fn settle(&mut self, name: &str, expected: &str) -> String {
        let id = self.workers[name].id;
        if !expected.starts_with("waits") {
            let worker = self.workers.get_mut(name).expect("begun above");
            worker.busy = false;
            return worker.outcomes.recv().expect("the thread tells");
        }
        loop {
            if let Some(lock) = self.waits_for(id) {
                return if expected == "waits" { expected.to_owned() } else { format!("waits {lock}") };
            }
            if let Ok(outcome) = self.workers[name].outcomes.try_recv() {
                return format!("{outcome} without waiting");
            }
            std::thread::yield_now();
        }
    }

    /// Ends all sessions; what is open is rolled back.
    fn end(&mut self) {
        let mut workers = std::mem::take(&mut self.workers);
        workers.values_mut().for_each(|worker| worker.batches = None);
        for worker in workers.values_mut() {
            let outcome = worker.thread.take().map(JoinHandle::join);
            assert!(!std::thread::panicking() && outcome.is_none_or(|joined| joined.is_ok()), "a session panicked");
        }
    }
}
