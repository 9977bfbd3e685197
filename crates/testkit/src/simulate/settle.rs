//! After a restart: is what is there what was acknowledged? And is it sound and of use?

use super::client::{Answer, Client};
use super::driver::Driver;
use super::judge::tells_damage;
use super::model::{Change, DatabaseModel, TableModel, difference};
use super::steps::jobs_at;
use super::workload::all_of;
use std::collections::BTreeSet;
use thawdb_types::Scalar;

/// Turns in which the background of small databases comes to rest.
const TURNS_MAX: usize = 10_000;

/// What comparing a database with its ledger gave.
enum Compared {
    Equal,
    Different(String),
    /// Parts of it cannot be read, which the trouble explains; the others are equal.
    Damaged,
}

/// How the columns and indexes of a table differ from the model's: a table without rows does not show them.
fn definitions(client: &mut Client, table: &str, model: &TableModel) -> Option<String> {
    let columns: BTreeSet<String> = model.columns.iter().map(|column| column.name.clone()).collect();
    let indexes: BTreeSet<String> = model.indexes.iter().map(|index| index.name.clone()).collect();
    let questions = [("columns", "LIKE '%'", columns), ("indexes", "LIKE 'ix%'", indexes)];
    questions.into_iter().find_map(|(what, which, expected)| {
        let text = format!("SELECT name FROM sys.{what} WHERE object_id = OBJECT_ID('{table}') AND name {which}");
        let found = names(&client.ask(&text));
        (found != expected).then(|| format!("{table} has {what} {found:?}, {expected:?} expected"))
    })
}

fn names(answer: &Answer) -> BTreeSet<String> {
    answer.rows.iter().filter_map(|row| row.first().and_then(Scalar::as_text).map(str::to_owned)).collect()
}

impl Driver {
    /// Compares every database with its ledger; a commit in doubt is decided by what is there.
    pub fn settle(&mut self) -> Result<(), String> {
        let mut client = Client::new(self.engine(), "master").map_err(|error| format!("no session after a restart: {error}"))?;
        let listed = self.answer(&mut client, "SELECT name FROM sys.databases WHERE database_id > 4")?;
        let listed = names(&listed);
        self.decide_databases(&listed)?;
        for name in self.committed.keys().cloned().collect::<Vec<_>>() {
            self.settle_database(&name)?;
        }
        self.doubts.clear();
        self.job_doubts.clear();
        self.frozen = self.stale.clone();
        Ok(())
    }

    /// Whether databases are there that must be, and none else.
    fn decide_databases(&mut self, listed: &BTreeSet<String>) -> Result<(), String> {
        for (name, doubt) in std::mem::take(&mut self.database_doubts) {
            match (doubt, listed.contains(&name)) {
                (_, true) => drop(self.committed.entry(name).or_default()),
                (_, false) => drop(self.committed.remove(&name)),
            }
        }
        let known: BTreeSet<String> = self.committed.keys().cloned().collect();
        if known == *listed { Ok(()) } else { Err(format!("databases {known:?} were made, {listed:?} are there")) }
    }

    fn settle_database(&mut self, name: &str) -> Result<(), String> {
        if self.stale.contains(name) {
            return Ok(());
        }
        let mut client = match Client::new(self.engine(), name) {
            Ok(client) => client,
            Err(error) if self.plan.trouble.damages() && name == "user0" => {
                self.note(format!("{name} cannot be used: {error}"));
                self.damaged.insert(name.to_owned());
                return Ok(());
            }
            Err(error) => return Err(format!("{name} cannot be used after a restart: {error}")),
        };
        let committed = self.committed[name].clone();
        let first = match self.compare(&mut client, name, &committed)? {
            Compared::Different(why) => why,
            Compared::Equal => return self.settle_jobs(&mut client, name),
            Compared::Damaged => {
                self.damaged.insert(name.to_owned());
                return Ok(());
            }
        };
        let mut told = format!("{name} lost what was acknowledged, or has what was not: {first}");
        if let Some(changes) = self.doubts.get(name).cloned() {
            let with_doubt = committed.with(&changes);
            match self.compare(&mut client, name, &with_doubt)? {
                Compared::Different(why) => told.push_str(&format!("; with the commit in doubt: {why}")),
                Compared::Equal | Compared::Damaged => {
                    self.committed.insert(name.to_owned(), with_doubt);
                    return self.settle_jobs(&mut client, name);
                }
            }
        }
        if self.plan.trouble.damages() && name == "user0" {
            return self.expect_findings(&mut client, name, &told);
        }
        Err(told)
    }

    /// Resumable operations outlive a crash: each is there, or where there was a doubt it may be.
    fn settle_jobs(&mut self, client: &mut Client, name: &str) -> Result<(), String> {
        if self.plan.trouble.damages() && name == "user0" {
            return Ok(());
        }
        let doubt = self.job_doubts.get(name).cloned();
        let tables: Vec<_> = self.committed[name].tables.iter().map(|(table, model)| (table.clone(), model.job.clone())).collect();
        for (table, job) in tables {
            let found = jobs_at(client, &table).map_err(|why| format!("{name}: the operations at {table}: {why}"))?;
            let doubtful = doubt.as_ref().filter(|(of, _)| *of == table).map(|(_, index)| index);
            let ledger = self.committed.get_mut(name).expect("the database is known");
            match (found.as_slice(), job, doubtful) {
                ([], None, _) => {}
                ([], Some(_), Some(_)) => ledger.apply(&Change::EndJob(table)),
                ([found], Some(job), _) if *found == job.name => {}
                ([found], None, Some(index)) if *found == index.name => ledger.apply(&Change::BeginJob(table, index.clone())),
                (found, job, _) => {
                    let expected = job.map(|job| job.name);
                    return Err(format!("{name}.{table} has the operations {found:?}, {expected:?} expected"));
                }
            }
        }
        Ok(())
    }

    /// Rot is always seen, at the latest by the check. A page that is what it was before a lost write is whole, and where
    /// no other page rests on what it lacks, nothing tells.
    fn expect_findings(&mut self, client: &mut Client, name: &str, told: &str) -> Result<(), String> {
        let answer = client.ask(&format!("DBCC CHECKDB ('{name}') WITH NO_INFOMSGS"));
        if (answer.errors.is_empty() && !self.was_lost) || answer.number() == -1 {
            return Err(format!("{told}; and CHECKDB says nothing of it"));
        }
        self.note(format!("{told}; CHECKDB: {}", answer.told()));
        self.damaged.insert(name.to_owned());
        self.stale.insert(name.to_owned());
        Ok(())
    }

    /// Tables, indexes and rows of a database against a model.
    fn compare(&mut self, client: &mut Client, name: &str, model: &DatabaseModel) -> Result<Compared, String> {
        let may_fail = self.plan.trouble.damages() && name == "user0";
        let mut is_damaged = false;
        let tables = client.ask("SELECT name FROM sys.tables");
        if !tables.errors.is_empty() {
            return if may_fail && tells_damage(tables.number(), self.plan.trouble, self.was_lost) {
                Ok(Compared::Damaged)
            } else {
                Err(tables.told())
            };
        }
        let (expected, found) = (model.tables.keys().cloned().collect::<BTreeSet<_>>(), names(&tables));
        if expected != found {
            return Ok(Compared::Different(format!("tables {expected:?} expected, {found:?} found")));
        }
        for (table, rows) in &model.tables {
            let question = all_of(table, rows);
            if client.is_ended() {
                *client = Client::new(self.engine(), name).map_err(|error| error.to_string())?;
            }
            let answer = client.ask(&question.text);
            match answer.number() {
                0 => {}
                number if may_fail && tells_damage(number, self.plan.trouble, self.was_lost) => {
                    is_damaged = true;
                    continue;
                }
                _ => return Err(format!("{name}.{table}: {}", answer.told())),
            }
            if let Some(why) = difference(&question.expected, &answer.rows) {
                return Ok(Compared::Different(format!("{table}: {why}")));
            }
            if let Some(why) = definitions(client, table, rows) {
                return Ok(Compared::Different(why));
            }
        }
        Ok(if is_damaged { Compared::Damaged } else { Compared::Equal })
    }

    /// Every page of every database, and whether each can still be worked with.
    pub fn check(&mut self) -> Result<(), String> {
        // What transactions left that a crash ended is given back by the background: nothing may be left after it.
        let turns = (0..TURNS_MAX).take_while(|_| self.engine().background_turn()).count();
        if turns == TURNS_MAX {
            return Err("the background never comes to rest".into());
        }
        for name in self.committed.keys().cloned().collect::<Vec<_>>() {
            if self.plan.trouble.damages() && name == "user0" {
                continue;
            }
            let mut client = Client::new(self.engine(), &name).map_err(|error| format!("{name} cannot be used: {error}"))?;
            self.check_database(&mut client, &name)?;
        }
        Ok(())
    }

    /// CHECKDB of one database, which must find nothing.
    pub fn check_database(&mut self, client: &mut Client, name: &str) -> Result<(), String> {
        let answer = client.ask(&format!("DBCC CHECKDB ('{name}') WITH NO_INFOMSGS"));
        if answer.errors.is_empty() { Ok(()) } else { Err(format!("CHECKDB ({name}): {}", answer.told())) }
    }

    /// Each database takes a table with rows and gives them back.
    pub fn use_all(&mut self) -> Result<(), String> {
        for name in self.committed.keys().cloned().collect::<Vec<_>>() {
            if self.plan.trouble.damages() && name == "user0" {
                continue;
            }
            let mut client = Client::new(self.engine(), &name).map_err(|error| format!("{name} cannot be used: {error}"))?;
            self.answer(&mut client, "CREATE TABLE probe (a int PRIMARY KEY, b nvarchar(max))")?;
            self.answer(&mut client, "INSERT probe VALUES (1, N'one'), (2, REPLICATE(CONVERT(nvarchar(max), N'x'), 20000))")?;
            let answer = self.answer(&mut client, "SELECT a, LEN(b) FROM probe ORDER BY a")?;
            let expected = [[1, 3], [2, 20_000]];
            let found: Vec<_> = answer.rows.iter().map(|row| [0, 1].map(|at| row[at].as_i64().unwrap_or(-1))).collect();
            if found != expected {
                return Err(format!("{name} gives back {found:?}"));
            }
            self.answer(&mut client, "DROP TABLE probe")?;
            self.check_database(&mut client, &name)?;
        }
        Ok(())
    }

    /// A statement that must succeed.
    pub fn answer(&mut self, client: &mut Client, text: &str) -> Result<Answer, String> {
        let answer = client.ask(text);
        if answer.errors.is_empty() { Ok(answer) } else { Err(format!("{text}: {}", answer.told())) }
    }
}
