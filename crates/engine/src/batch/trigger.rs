//! Triggers: AFTER a statement has changed rows, or INSTEAD OF it with the rows it would change; once a statement,
//! however many rows.
//!
//! ```text
//! changed rows ─► Frame { inserted, deleted, updated columns } ─► run_module ─► transaction still open? no: 3609
//! ```
//!
//! 1. A trigger runs inside the statement's transaction (`Interpreter::within_transaction`) with XACT_ABORT ON.
//! 2. An AFTER trigger does not fire itself again unless RECURSIVE_TRIGGERS is ON, an INSTEAD OF trigger never; others
//!    nest as procedures do, to 32 (217).
//! 3. AFTER triggers fire in the order sp_settriggerorder gave, then by their numbers.

use crate::batch::compile_cx::fires_on;
use crate::batch::failure::{Failure, Fate};
use crate::batch::interpreter::Interpreter;
use crate::batch::module::{FoundModule, Module, run_module, statements_of};
use crate::messages::message;
use crate::session::changes::Watch;
use crate::session::frame::Frame;
use crate::session::rowset::Rowset;
use std::sync::Arc;
use thawdb_catalog::{ObjectDef, TableDef};
use thawdb_query::compile::ChangeAction;

/// What a statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Insert,
    Update,
    Delete,
}

impl ChangeKind {
    /// All of them, in the order in which MERGE's triggers fire.
    pub(crate) const ALL: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    /// The statement it is.
    pub(crate) fn action(self) -> ChangeAction {
        match self {
            Self::Insert => ChangeAction::Insert,
            Self::Update => ChangeAction::Update,
            Self::Delete => ChangeAction::Delete,
        }
    }
}

/// COLUMNS_UPDATED(): a bit for each column by its number, eight a byte, the first column the lowest bit of the first byte.
fn mask_of(table: &TableDef, updated: &[usize]) -> Vec<u8> {
    let number = |at: usize| usize::try_from(table.columns[at].id.0 - 1).unwrap_or(0);
    let last = (0..table.columns.len()).map(number).max().unwrap_or(0);
    let mut mask = vec![0u8; last / 8 + 1];
    for at in updated {
        mask[number(*at) / 8] |= 1 << (number(*at) % 8);
    }
    mask
}

impl Interpreter<'_, '_> {
    /// Fires the AFTER triggers of a changed table.
    pub(crate) fn fire_triggers(&mut self, kind: ChangeKind, watch: &mut Watch, updated: &[usize], count: u64) -> Result<(), Failure> {
        let running = self.session.frames.iter().rev().find(|frame| frame.is_trigger).map(|frame| frame.module);
        let recursive = self.session.storage_of(watch.table.database)?.is_on("RECURSIVE_TRIGGERS");
        let fires = |object: &&Arc<ObjectDef>| {
            let trigger = object.trigger.expect("related as a trigger");
            !trigger.instead_of && fires_on(&trigger, kind.action()) && (recursive || running != Some(object.id.0))
        };
        let mut triggers: Vec<_> = watch.related.triggers.iter().filter(fires).cloned().collect();
        triggers.sort_by_key(|object| object.trigger.map_or(1, |trigger| trigger.place(kind as usize)));
        self.fire_all(&triggers, kind, watch, updated, count)
    }

    /// Runs the trigger that takes a statement's rows.
    pub(crate) fn fire_instead(&mut self, action: ChangeAction, watch: &mut Watch, updated: &[usize], count: u64) -> Result<(), Failure> {
        let Some(catalog) = self.session.definitions(watch.table.database) else { return Ok(()) };
        let fires = |object: &&Arc<ObjectDef>| {
            object.trigger.is_some_and(|trigger| trigger.instead_of && !trigger.disabled && fires_on(&trigger, action))
        };
        let triggers: Vec<_> = catalog.triggers_of(watch.table.id).filter(fires).cloned().collect();
        let kind = match action {
            ChangeAction::Insert => ChangeKind::Insert,
            ChangeAction::Update => ChangeKind::Update,
            ChangeAction::Delete => ChangeKind::Delete,
        };
        self.fire_all(&triggers, kind, watch, updated, count)
    }

    fn fire_all(
        &mut self,
        triggers: &[Arc<ObjectDef>],
        kind: ChangeKind,
        watch: &mut Watch,
        updated: &[usize],
        count: u64,
    ) -> Result<(), Failure> {
        if triggers.is_empty() {
            return Ok(());
        }
        let changed = watch.take_changed(kind);
        let (inserted, deleted) = (Arc::new(changed.new), Arc::new(changed.old));
        let all = || (0..watch.table.columns.len()).collect::<Vec<_>>();
        let positions = match kind {
            ChangeKind::Delete => Vec::new(),
            ChangeKind::Insert => all(),
            ChangeKind::Update => updated.to_vec(),
        };
        for object in triggers {
            self.fire(object, watch, (&inserted, &deleted), &positions, count)?;
        }
        Ok(())
    }

    fn fire(
        &mut self,
        object: &Arc<ObjectDef>,
        watch: &Watch,
        (inserted, deleted): (&Arc<Rowset>, &Arc<Rowset>),
        updated: &[usize],
        count: u64,
    ) -> Result<(), Failure> {
        let module = Module::of(object);
        let mut frame = Frame {
            guarded: self.guarded,
            procedure: Some(object.name.clone()),
            module: object.id.0,
            is_trigger: true,
            rowset_table: Some(watch.table.clone()),
            updated: updated.iter().map(|at| watch.table.columns[*at].name.clone()).collect(),
            updated_mask: mask_of(&watch.table, updated),
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
