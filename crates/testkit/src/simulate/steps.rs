//! What a session does in its turn, and what its answers mean for the ledger.
//!
//! 1. A statement's changes reach the ledger when it was acknowledged outside a transaction, or with its COMMIT.
//! 2. An error that the trouble does not explain is a violation; so is success where an error is due.

use super::client::{Answer, Client};
use super::driver::{Driver, create_database, cut};
use super::judge::{Verdict, tells_damage, verdict};
use super::model::{Change, DatabaseModel, difference};
use super::plan::Trouble;
use super::player::Isolation;
use super::workload::{Expect, Scope, Statement};
use std::path::Path;
use thawdb_types::Scalar;

/// What a statement is told whose snapshot is older than its table: definitions have no versions. A column is gone or
/// another is there (207, 213), the table is gone (208), an index that was named is gone (308).
const CHANGED_DEFINITIONS: &[i32] = &[207, 208, 213, 308];

impl Driver {
    /// A database that may be asked, for a session without a transaction.
    fn usable(&mut self) -> Option<String> {
        let names: Vec<_> = self.committed.keys().filter(|name| !self.frozen.contains(*name)).cloned().collect();
        if names.is_empty() { None } else { Some(names[self.workload.below(names.len().min(self.plan.databases))].clone()) }
    }

    fn rivals(&self, at: usize) -> bool {
        self.players.iter().enumerate().any(|(other, player)| other != at && player.is_in_transaction)
    }

    /// Gives the player a session in a database that can be asked; false if there is none.
    fn seat(&mut self, at: usize) -> Result<bool, String> {
        let player = &self.players[at];
        let moves = !player.is_in_transaction && self.random.chance(1, 10);
        let is_seated = player.client.is_some() && self.committed.contains_key(&player.database) && !self.frozen.contains(&player.database);
        if is_seated && !moves {
            return Ok(true);
        }
        self.players[at].end_session();
        let Some(database) = self.usable() else { return Ok(false) };
        match Client::new(self.engine(), &database) {
            Ok(client) => {
                self.players[at].client = Some(client);
                self.players[at].database = database;
                Ok(true)
            }
            Err(error) => {
                let explained = verdict(&error, self.plan.trouble, false, true, self.was_lost) != Verdict::Unexplained
                    || (self.damaged.contains(&database) && self.plan.trouble.damages());
                if explained || self.is_crashed() { Ok(false) } else { Err(format!("no session in {database}: {error}")) }
            }
        }
    }

    fn ask(&mut self, at: usize, text: &str) -> Answer {
        let player = &mut self.players[at];
        let database = player.database.clone();
        let answer = player.client.as_mut().expect("the player has a seat").ask(text);
        self.statements += 1;
        let said = if answer.errors.is_empty() {
            answer.counted.map_or_else(|| "done".to_owned(), |count| format!("{count} rows"))
        } else {
            answer.told()
        };
        self.note(format!("{at} {database}: {} -> {said}", cut(text)));
        if self.players[at].client.as_ref().is_some_and(Client::is_ended) {
            self.players[at].end_session();
        }
        answer
    }

    /// One step of a session.
    pub(super) fn step(&mut self, at: usize) -> Result<(), String> {
        if !self.seat(at)? {
            return Ok(());
        }
        let is_open = self.players[at].is_in_transaction;
        match (self.random.below(100), is_open) {
            (0..12, true) => self.commit(at),
            (0..12, false) => self.begin(at),
            (12..16, true) => self.roll_back(at),
            (16..21, true) => self.save(at),
            (21..25, true) => self.roll_back_to_savepoint(at),
            (12..15, false) => self.plain(at, "CHECKPOINT", &[]),
            (15..17, false) if !self.rivals(at) => self.check_now(at),
            (17..21, false) => self.keep_up(at),
            (25..50, _) => self.read(at),
            _ => self.write(at),
        }
    }

    /// A statement that changes nothing the ledger knows.
    fn plain(&mut self, at: usize, text: &str, allowed: &[i32]) -> Result<(), String> {
        let answer = self.ask(at, text);
        self.explain(at, &answer, false, allowed).map(drop)
    }

    fn keep_up(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let upkeep = match self.plan.trouble {
            // The log is what there is little of: it must stay as it was made, and be backed up.
            Trouble::SmallLog if database == "user0" => self.workload.backup_log(&database),
            _ => self.workload.upkeep(&database),
        };
        self.plain(at, &upkeep.text, upkeep.allowed)
    }

    fn check_now(&mut self, at: usize) -> Result<(), String> {
        if !matches!(self.plan.trouble, Trouble::Calm | Trouble::Crash | Trouble::SmallLog) {
            return self.plain(at, "CHECKPOINT", &[]);
        }
        let text = format!("DBCC CHECKDB ('{}') WITH NO_INFOMSGS", self.players[at].database);
        self.plain(at, &text, &[])
    }

    /// What a failed answer means. `Ok(None)` is success; an error nothing explains is a violation. Errors that the
    /// statement may answer with in any case are `allowed`.
    fn explain(&mut self, at: usize, answer: &Answer, is_commit: bool, allowed: &[i32]) -> Result<Option<Verdict>, String> {
        if answer.number() == -1 || answer.number() == 3624 {
            return Err(format!("a panic or a broken assertion: {}", answer.told()));
        }
        let Some(error) = answer.errors.first() else { return Ok(None) };
        if self.is_crashed() {
            self.failures += 1;
            return Ok(Some(Verdict::Doubt));
        }
        if allowed.contains(&error.number) {
            return Ok(Some(Verdict::Expected));
        }
        let verdict = verdict(error, self.plan.trouble, is_commit, self.rivals(at), self.was_lost);
        match verdict {
            // Of a database that is older than its ledger, its catalog perhaps too, anything may be said but a panic.
            Verdict::Unexplained if self.was_lost && self.players[at].database == "user0" => {
                self.stale.insert("user0".into());
                self.frozen.insert("user0".into());
                return Ok(Some(Verdict::Doubt));
            }
            Verdict::Unexplained => return Err(format!("nothing explains {}", answer.told())),
            Verdict::Conflict if self.players[at].snapshot.is_none() => return Err(format!("no snapshot explains {}", answer.told())),
            Verdict::Locked | Verdict::Duplicate | Verdict::Conflict | Verdict::Expected => {}
            Verdict::Nothing | Verdict::Doubt => {
                self.failures += 1;
                if tells_damage(answer.number(), self.plan.trouble, self.was_lost) {
                    self.damaged.insert(self.players[at].database.clone());
                }
            }
        }
        Ok(Some(verdict))
    }

    fn acknowledge(&mut self, database: &str, changes: &[Change]) {
        self.commits += 1;
        let ledger = self.committed.get_mut(database).expect("a session's database is known");
        changes.iter().for_each(|change| ledger.apply(change));
    }

    fn doubt(&mut self, database: &str, changes: Vec<Change>) {
        self.doubt_count += 1;
        self.frozen.insert(database.to_owned());
        let earlier = self.doubts.insert(database.to_owned(), changes);
        assert!(earlier.is_none(), "a database in doubt is not asked");
    }

    /// After a failure within a transaction: it is taken back, as a careful client does.
    fn give_up(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        self.players[at].end_transaction();
        if self.players[at].client.is_none() || self.is_crashed() {
            return Ok(());
        }
        let answer = self.ask(at, "IF @@TRANCOUNT > 0 ROLLBACK");
        if self.explain(at, &answer, false, &[])?.is_some() {
            self.players[at].end_session();
            self.frozen.insert(database);
        }
        Ok(())
    }

    /// What a player may do, and whether it does it to its temporary tables.
    fn scope(&mut self, at: usize) -> Scope {
        let player = &self.players[at];
        if self.random.chance(1, 8) {
            return Scope::Temporary;
        }
        match (player.is_in_transaction, player.isolation) {
            (true, Isolation::Snapshot) => Scope::Snapshot,
            (true, _) => Scope::Transaction,
            (false, _) => Scope::Open,
        }
    }

    /// What a player sees of its database, or of its temporary tables.
    fn view(&mut self, at: usize, scope: Scope) -> DatabaseModel {
        let player = &mut self.players[at];
        if scope == Scope::Temporary { player.temporary_view() } else { player.view(&self.committed[&player.database]) }
    }

    /// Whether the player's snapshot is older than what is committed.
    fn is_behind(&self, at: usize) -> bool {
        let player = &self.players[at];
        player.snapshot.as_ref().is_some_and(|snapshot| *snapshot != self.committed[&player.database])
    }

    fn write(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let scope = self.scope(at);
        let view = self.view(at, scope);
        let Some(statement) = self.workload.write(&view, scope) else { return Ok(()) };
        if let Some((path, bytes)) = self.workload.file.take() {
            self.put_foreign(Path::new(&path), &bytes);
        }
        let is_open = self.players[at].is_in_transaction;
        let is_behind = self.is_behind(at);
        let has_rivals = self.rivals(at);
        let allowed: &[i32] = match (statement.expect, &statement.job) {
            (Expect::Unique(_), Some(_)) => &[596, 1505, 3643],
            (Expect::Unique(_), None) => &[1505],
            (Expect::Refused(_), _) => &[10637],
            _ if is_behind => CHANGED_DEFINITIONS,
            _ => &[],
        };
        let answer = self.ask(at, &statement.text);
        let verdict = self.explain(at, &answer, false, allowed)?;
        if verdict.is_some() && statement.job.is_some() {
            self.look_at_job(&database, &statement, verdict == Some(Verdict::Doubt))?;
        }
        match verdict {
            None => self.written(at, scope, &database, statement, &answer),
            Some(Verdict::Duplicate) if statement.expect == Expect::Duplicate || is_behind => Ok(()),
            Some(Verdict::Duplicate) => Err(format!("no such row was there: {}", answer.told())),
            Some(Verdict::Expected) if answer.number() == 1505 && statement.expect == Expect::Unique(false) && !has_rivals => {
                Err(format!("no two rows share a key: {}", answer.told()))
            }
            Some(Verdict::Locked | Verdict::Expected) => Ok(()),
            Some(Verdict::Conflict) if !is_behind => Err(format!("nothing was changed: {}", answer.told())),
            Some(_) if is_open => self.give_up(at),
            Some(Verdict::Doubt) if scope == Scope::Temporary => {
                self.players[at].end_session();
                Ok(())
            }
            Some(Verdict::Doubt) if !matches!(statement.expect, Expect::Duplicate | Expect::Refused(_) | Expect::Unique(true)) => {
                self.doubt(&database, statement.changes);
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    /// What a failed statement has left of its operation: a resumable one is there or not, and both are right.
    fn look_at_job(&mut self, database: &str, statement: &Statement, is_doubtful: bool) -> Result<(), String> {
        let Some((table, index)) = &statement.job else { return Ok(()) };
        if self.is_crashed() {
            self.job_doubts.insert(database.to_owned(), (table.clone(), index.clone()));
            return Ok(());
        }
        if is_doubtful {
            // A commit whose record may not be on the disk is taken back now, and may be there after a restart.
            return self.leave_job_open(database, table, index);
        }
        let mut client = match Client::new(self.engine(), database) {
            Ok(client) => client,
            Err(_) => return self.leave_job_open(database, table, index),
        };
        let Ok(found) = jobs_at(&mut client, table) else { return self.leave_job_open(database, table, index) };
        self.note(format!("  operations at {table}: {found:?}"));
        let ledger = self.committed.get_mut(database).expect("a session's database is known");
        match found.as_slice() {
            [] => ledger.apply(&Change::EndJob(table.clone())),
            [name] if *name == index.name => ledger.apply(&Change::BeginJob(table.clone(), index.clone())),
            _ => return Err(format!("{table} has the operations {found:?} after one of {}", index.name)),
        }
        Ok(())
    }

    fn leave_job_open(&mut self, database: &str, table: &str, index: &super::model::IndexModel) -> Result<(), String> {
        self.job_doubts.insert(database.to_owned(), (table.to_owned(), index.clone()));
        self.frozen.insert(database.to_owned());
        Ok(())
    }

    fn written(&mut self, at: usize, scope: Scope, database: &str, statement: Statement, answer: &Answer) -> Result<(), String> {
        match statement.expect {
            // A row that the snapshot does not show may have gone meanwhile: then there is room, or a conflict.
            Expect::Duplicate => return Err("a second row of the same key was taken".into()),
            Expect::Unique(true) => return Err("a unique index was made over rows that share a key".into()),
            Expect::Refused(number) => return Err(format!("it had to fail with {number}")),
            Expect::Rows(expected) if answer.counted != Some(expected) && !(self.was_lost && database == "user0") => {
                return Err(format!("{expected} rows had to be counted, not {:?}", answer.counted));
            }
            Expect::Rows(_) | Expect::Done | Expect::Unique(false) => {}
        }
        let player = &mut self.players[at];
        match (scope, player.is_in_transaction) {
            (Scope::Temporary, true) => player.temporary_changes.extend(statement.changes),
            (Scope::Temporary, false) => statement.changes.iter().for_each(|change| player.temporary.apply(change)),
            (_, true) => player.changes.extend(statement.changes),
            (_, false) => self.acknowledge(database, &statement.changes),
        }
        Ok(())
    }

    fn read(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let scope = self.scope(at);
        let view = self.view(at, scope);
        let Some(question) = self.workload.read(&view) else { return Ok(()) };
        let is_open = self.players[at].is_in_transaction;
        let is_behind = self.is_behind(at);
        let answer = self.ask(at, &question.text);
        let allowed = if is_behind { CHANGED_DEFINITIONS } else { &[] };
        match self.explain(at, &answer, false, allowed)? {
            None => {}
            Some(Verdict::Locked | Verdict::Expected) => return Ok(()),
            Some(Verdict::Conflict) if !is_behind => return Err(format!("nothing was changed: {}", answer.told())),
            Some(_) if is_open => return self.give_up(at),
            Some(_) => return Ok(()),
        }
        let found = if question.counts {
            let count = answer.rows.first().and_then(|row| row.first()).and_then(Scalar::as_i64);
            let expected = question.expected.len();
            (count != i64::try_from(expected).ok()).then(|| format!("{expected} rows are counted as {count:?}"))
        } else {
            difference(&question.expected, &answer.rows)
        };
        match found {
            None => Ok(()),
            // A write was lost before the last restart: a page is what it was before, whole, and nothing on it tells.
            Some(why) if self.was_lost && database == "user0" && scope != Scope::Temporary => {
                self.note(format!("stale: {why}"));
                self.damaged.insert(database.clone());
                self.frozen.insert(database);
                Ok(())
            }
            Some(why) => Err(format!("a read is wrong: {why}")),
        }
    }

    fn begin(&mut self, at: usize) -> Result<(), String> {
        let all = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable, Isolation::Snapshot];
        // The databases of the prepared disk allow snapshots, others do not.
        let all = if self.plan.from_nothing || !self.players[at].database.starts_with("user") { &all[..3] } else { &all[..] };
        let isolation = if self.random.chance(1, 2) { all[0] } else { all[self.workload.below(all.len())] };
        let answer = self.ask(at, &format!("SET TRANSACTION ISOLATION LEVEL {} BEGIN TRANSACTION", isolation.name()));
        if self.explain(at, &answer, false, &[])?.is_none() {
            self.players[at].is_in_transaction = true;
            self.players[at].isolation = isolation;
        }
        Ok(())
    }

    fn commit(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let temporary = std::mem::take(&mut self.players[at].temporary_changes);
        // Before it is asked: an error may end the session.
        let changes = self.players[at].end_transaction();
        // Its isolation stays with the session: statements on their own go by the default one.
        let answer = self.ask(at, "COMMIT SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        match self.explain(at, &answer, true, &[])? {
            None => {
                self.players[at].temporary_changes = temporary;
                self.players[at].keep_temporary();
                self.acknowledge(&database, &changes);
            }
            Some(_) => {
                self.players[at].end_session();
                self.doubt(&database, changes);
            }
        }
        Ok(())
    }

    fn roll_back(&mut self, at: usize) -> Result<(), String> {
        let answer = self.ask(at, "ROLLBACK");
        let explained = self.explain(at, &answer, false, &[])?;
        self.players[at].end_transaction();
        if explained.is_some() {
            let database = self.players[at].database.clone();
            self.players[at].end_session();
            self.frozen.insert(database);
        }
        Ok(())
    }

    fn save(&mut self, at: usize) -> Result<(), String> {
        let answer = self.ask(at, "SAVE TRANSACTION s");
        match self.explain(at, &answer, false, &[])? {
            None => {
                let player = &mut self.players[at];
                player.savepoint = Some((player.changes.len(), player.temporary_changes.len()));
            }
            Some(_) => self.give_up(at)?,
        }
        Ok(())
    }

    fn roll_back_to_savepoint(&mut self, at: usize) -> Result<(), String> {
        let Some(savepoint) = self.players[at].savepoint else { return self.save(at) };
        let answer = self.ask(at, "ROLLBACK TRANSACTION s");
        match self.explain(at, &answer, false, &[])? {
            None => {
                self.players[at].changes.truncate(savepoint.0);
                self.players[at].temporary_changes.truncate(savepoint.1);
                Ok(())
            }
            Some(_) => self.give_up(at),
        }
    }

    /// Makes a database, or drops one that nobody is in.
    pub(super) fn make_or_drop_database(&mut self, at: usize) -> Result<(), String> {
        if self.players[at].is_in_transaction || self.committed.len() > 3 && self.random.chance(1, 2) {
            return Ok(());
        }
        let extra = self.committed.keys().find(|name| name.starts_with("extra")).cloned();
        let (name, text) = match (extra, self.committed.contains_key("user0")) {
            (_, false) => ("user0".to_owned(), create_database("user0")),
            (Some(name), _) if self.players.iter().all(|player| player.database != name) => {
                let text = format!("DROP DATABASE {name}");
                (name, text)
            }
            (Some(_), _) => return Ok(()),
            (None, _) => {
                let name = format!("extra{}", self.statements);
                let text = create_database(&name);
                (name, text)
            }
        };
        self.players[at].end_session();
        let Ok(client) = Client::new(self.engine(), "master") else { return Ok(()) };
        self.players[at].client = Some(client);
        self.players[at].database = "master".into();
        let answer = self.ask(at, &text);
        let explained = self.explain(at, &answer, true, &[])?;
        self.players[at].end_session();
        match explained {
            None if text.starts_with("DROP") => drop(self.committed.remove(&name)),
            None => drop(self.committed.insert(name, DatabaseModel::default())),
            Some(_) => {
                self.frozen.insert(name.clone());
                self.database_doubts.insert(name, ());
            }
        }
        Ok(())
    }
}

/// Names of the resumable operations at a table, or why that cannot be told.
pub(super) fn jobs_at(client: &mut Client, table: &str) -> Result<Vec<String>, String> {
    let text = format!("SELECT name FROM sys.index_resumable_operations WHERE object_id = OBJECT_ID('{table}')");
    let answer = client.ask(&text);
    let name = |row: &Vec<Scalar>| row.first().and_then(Scalar::as_text).map(str::to_owned);
    if answer.errors.is_empty() { Ok(answer.rows.iter().filter_map(name).collect()) } else { Err(answer.told()) }
}
