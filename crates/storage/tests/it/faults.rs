//! The whole fault model of docs/FAULTS.md, drawn from a seed: crashes at any change of the disk and at syncs, writes torn at
//! 4 KiB or 512 bytes, lost unsynced writes, errors of reads, writes, syncs and growth, a full disk, bits that rot, writes
//! that are lost or land elsewhere. No acknowledged commit is lost, no wrong row is ever read, and after everything but
//! damage that is told the database works and its check is clean.
//!
//! `THAWDB_SEED` runs one seed, `THAWDB_SEEDS` that many.

use crate::crash::{Run, seeds, storage};
use std::sync::Arc;
use thawdb_device::DeviceErrorKind;
use thawdb_device::sim::{CrashPoint, Fault, FaultRule, Operation, SimOptions, Simulation};
use thawdb_storage::{Database, FileKind, FileSpec, Storage, StorageError};

/// What happens to one life of the database.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Crash,
    CrashAtSync,
    Error,
    Full,
    Astray,
}

/// How a run may end early: the damage was told.
struct Told;

struct Faulty {
    run: Run,
    /// A bit has rotted: damage may be told from now on.
    rotten: bool,
}

/// What a full disk is told as: for rows, for log, and for a file that is being made.
fn says_full(error: &StorageError) -> bool {
    match error {
        StorageError::FileFull { .. } | StorageError::LogFull { .. } => true,
        StorageError::Io(error) => error.kind == DeviceErrorKind::Full,
        _ => false,
    }
}

impl Faulty {
    /// Damage that may be there ends the run; any other error is a failure.
    fn told<T>(&self, outcome: Result<T, StorageError>, may_be_damaged: bool) -> Result<T, Told> {
        match outcome {
            Ok(value) => Ok(value),
            Err(StorageError::Damage { .. }) if may_be_damaged || self.rotten => Err(Told),
            Err(error) => panic!("{error}"),
        }
    }

    fn order(&mut self) -> Trouble {
        let counts = self.run.simulation.counts();
        let dice = &mut self.run.dice;
        let simulation = &self.run.simulation;
        match dice.below(5) {
            0 => {
                simulation.crash_at(Some(CrashPoint::Mutation(counts.mutations() + 1 + dice.below(300))));
                Trouble::Crash
            }
            1 => {
                simulation.crash_at(Some(CrashPoint::Operation(Operation::Sync, counts.syncs + 1 + dice.below(80))));
                Trouble::CrashAtSync
            }
            2 => {
                let operation = [Operation::Read, Operation::Write, Operation::Sync, Operation::SetLen][dice.below(4) as usize];
                let within = if operation == Operation::SetLen { 3 } else { 120 };
                let rule = FaultRule::nth(operation, 1 + dice.below(within), Fault::IoError);
                simulation.add_fault(rule.on(["data", "log"][dice.below(2) as usize]));
                Trouble::Error
            }
            3 => {
                let operation = Operation::SetLen;
                simulation.add_fault(FaultRule { times: 1 + dice.below(3), ..FaultRule::nth(operation, 1 + dice.below(3), Fault::Full) });
                Trouble::Full
            }
            _ => {
                let fault = [Fault::Lose, Fault::Misdirect][dice.below(2) as usize];
                simulation.add_fault(FaultRule::nth(Operation::Write, 1 + dice.below(100), fault).on("data"));
                Trouble::Astray
            }
        }
    }

    fn live(&mut self, storage: &Arc<Storage>, database: &Arc<Database>) -> Result<(), Told> {
        let settled = self.run.settle(database);
        self.told(settled, false)?;
        database.set_eager_rollback_rows([0, 5, 1000][self.run.dice.below(3) as usize]);
        self.clean_check(database, false)?;
        let trouble = self.order();
        let outcome = self.run.work(database, 30);
        self.run.simulation.clear_faults();
        self.run.simulation.crash_at(None);
        if self.run.simulation.is_crashed() {
            return Ok(());
        }
        match (trouble, outcome) {
            (_, Ok(())) | (Trouble::Error, Err(StorageError::Io(_) | StorageError::Poisoned)) => {}
            (Trouble::Full, Err(error)) if says_full(&error) => {
                // Nothing else is wrong: it goes on where it is.
                let outcome = self.run.settle(database).and_then(|()| self.run.work(database, 10));
                self.told(outcome, false)?;
            }
            (trouble, Err(error)) => self.told(Err(error), trouble == Trouble::Astray)?,
        }
        if trouble == Trouble::Astray {
            // Found as long as the database is open: every page that something leads to is read anew. What lies on others
            // (the boot page, say) is told at the next open.
            self.rotten = true;
            let written = database.store().write_all();
            self.told(written, true)?;
            storage.drop_clean_pages();
            let settled = self.run.settle(database);
            self.told(settled, true)?;
            self.clean_check(database, true)?;
            let written = database.store().write_all();
            self.told(written, true)?;
        }
        Ok(())
    }

    fn clean_check(&self, database: &Arc<Database>, may_be_damaged: bool) -> Result<(), Told> {
        self.told(database.clean(), may_be_damaged)?;
        let findings = self.told(database.check(), may_be_damaged)?;
        if !findings.is_empty() && (may_be_damaged || self.rotten) {
            return Err(Told);
        }
        assert!(findings.is_empty(), "{findings:#?}");
        Ok(())
    }

    fn lives(&mut self) -> Result<(), Told> {
        for _ in 0..4 {
            let storage = storage(&self.run.simulation);
            let database = self.told(storage.open_database("/data".as_ref()), false)?;
            let lived = self.live(&storage, &database);
            self.run.simulation.crash();
            drop(database);
            drop(storage);
            self.run.simulation.restart();
            lived?;
            if self.run.dice.below(4) == 0 {
                let offset = self.run.dice.below(1 << 21);
                self.run.simulation.flip_bit("/data".as_ref(), offset, 5).unwrap();
                self.rotten = true;
            }
        }
        let storage = storage(&self.run.simulation);
        let database = self.told(storage.open_database("/data".as_ref()), false)?;
        let settled = self.run.settle(&database);
        self.told(settled, false)?;
        self.clean_check(&database, false)
    }
}

#[test]
fn every_fault_is_survived_or_told() {
    seeds(1, 40, |seed| {
        let tear_bytes = if seed % 2 == 0 { 4096 } else { 512 };
        let simulation = Simulation::new(SimOptions { tear_bytes, ..SimOptions::new(seed) });
        let run = Run::start(&simulation, seed);
        let mut faulty = Faulty { run, rotten: false };
        // A run that ends early has told of damage that was there.
        let _ = faulty.lives();
    });
}

/// The log write of a new file's place in the table fails and has arrived all the same: the file must be there at the next
/// start, for the table names it. It was removed once, and the database did not open again.
#[test]
fn a_file_whose_listing_is_in_doubt_stays() {
    for seed in 0..40 {
        let simulation = Simulation::new(SimOptions::new(seed));
        let database = crate::crash::storage(&simulation).create_database(&crate::crash::spec()).unwrap();
        simulation.add_fault(FaultRule::nth(Operation::Write, 1, Fault::IoError).on("/log"));
        let kind = FileKind::Rows { filegroup: 1 };
        let file =
            FileSpec { name: "more".into(), path: "/more".into(), kind, size_bytes: 1 << 20, size_bytes_max: None, growth_bytes: 1 << 20 };
        assert!(database.store().add_data_file(&file).is_err(), "seed {seed}");
        simulation.crash();
        drop(database);
        simulation.clear_faults();
        simulation.restart();
        let database = crate::crash::storage(&simulation).open_database("/data".as_ref()).expect("opens, with the file or without");
        assert_eq!(database.check().unwrap(), [], "seed {seed}");
    }
}
