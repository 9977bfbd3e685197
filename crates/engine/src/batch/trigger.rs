//! AFTER triggers: fired when a statement has changed rows, once a statement, however many rows.
//!
//! ```text
//! changed rows ─► Frame { inserted, deleted, updated columns } ─► run_module ─► transaction still open? no: 3609
//! ```
//!
//! 1. A trigger runs inside the statement's transaction (`Interpreter::within_transaction`) with XACT_ABORT ON.
//! 2. A trigger does not fire itself again (RECURSIVE_TRIGGERS OFF); others nest as procedures do, to 32 (217).

use crate::batch::failure::{Failure, Fate};
use crate::batch::interpreter::Interpreter;
use crate::batch::module::{FoundModule, Module, run_module, statements_of};
use crate::messages::message;
use crate::session::changes::Watch;
use crate::session::frame::Frame;
use crate::session::rowset::Rowset;
use std::sync::Arc;
use thawdb_catalog::ObjectDef;

/// What a statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Insert,
    Update,
    Delete,
}

impl ChangeKind {
    /// Its word in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

impl Interpreter<'_, '_> {
    /// Fires the AFTER triggers of a changed table.
    pub(crate) fn fire_triggers(&mut self, kind: ChangeKind, watch: &mut Watch, updated: &[usize], count: u64) -> Result<(), Failure> {
        let fires = |object: &&Arc<ObjectDef>| {
            let trigger = object.trigger.expect("related as a trigger");
            match kind {
                ChangeKind::Insert => trigger.insert,
                ChangeKind::Update => trigger.update,
                ChangeKind::Delete => trigger.delete,
            }
        };
        let running = self.session.frames.iter().rev().find(|frame| frame.is_trigger).map(|frame| frame.module);
        let triggers: Vec<_> = watch.related.triggers.iter().filter(fires).filter(|object| running != Some(object.id.0)).cloned().collect();
        if triggers.is_empty() {
            return Ok(());
        }
        let inserted = Arc::new(std::mem::take(&mut watch.new));
        let deleted = Arc::new(std::mem::take(&mut watch.old));
        let names = match kind {
            ChangeKind::Delete => Vec::new(),
            ChangeKind::Insert => watch.table.columns.iter().map(|column| column.name.clone()).collect(),
            ChangeKind::Update => updated.iter().map(|at| watch.table.columns[*at].name.clone()).collect(),
        };
        for object in triggers {
            self.fire(&object, watch, (&inserted, &deleted), &names, count)?;
        }
        Ok(())
    }

    fn fire(
        &mut self,
        object: &Arc<ObjectDef>,
        watch: &Watch,
        (inserted, deleted): (&Arc<Rowset>, &Arc<Rowset>),
        updated: &[String],
        count: u64,
    ) -> Result<(), Failure> {
        let module = Module::of(object);
        let mut frame = Frame {
            guarded: self.guarded,
            procedure: Some(object.name.clone()),
            module: object.id.0,
            is_trigger: true,
            updated: updated.to_vec(),
            ..Frame::default()
        };
        frame.rowsets.insert("inserted".into(), inserted.clone());
        frame.rowsets.insert("deleted".into(), deleted.clone());
        self.session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
        let found = FoundModule { object: object.clone(), database: self.session.storage_of(watch.table.database)? };
        self.out.depth += 1;
        let outcome = self.within_transaction(|this| {
            let before = this.session.transactions.count;
            let outcome = run_module(this.session, this.out, &found, statements_of(&module.trigger()?.body), frame);
            if this.session.transactions.count == 0 && before > 0 {
                // Whatever else was wrong inside, the batch ends here.
                let ended = outcome.err().filter(|failure| failure.told).unwrap_or_else(|| Failure::ends_batch(message(3609, &[])));
                return Err(ended);
            }
            outcome
        });
        self.out.depth -= 1;
        match outcome {
            Ok(_) => Ok(()),
            // An error told inside ends the statement that fired the trigger, and its batch.
            Err(failure) if failure.told => Err(Failure { fate: Fate::Batch { rollback: true }, ..failure }),
            Err(failure) => Err(failure),
        }
    }
}
