//! The cursors of a session: what is declared, which names and variables mean it, and where each stands.
//!
//! ```text
//! GLOBAL name ─► Cursors::globals ─┐
//! LOCAL name  ─► Frame::cursors ───┼─► CursorId ─► Cursor { definition, open: rows and position }
//! @variable   ─► Frame::cursors ───┘
//! ```
//!
//! 1. A cursor lives as long as a name or variable means it: whatever takes one away calls
//!    [`SessionState::forget_unnamed_cursors`].
//! 2. An open cursor holds its rows in memory, no more than a statement's grant (701), and no lock or view: closing it is
//!    forgetting them.
//! 3. A position is 0 before the first row, 1 to n on one, n + 1 behind the last.

use crate::messages::message;
use crate::session::state::SessionState;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_query::compile::{CursorRow, CursorTable};
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::{CursorName, Query};
use thawdb_types::{Batch, Scalar, SqlError, SqlType, scalar_at};

/// A cursor of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CursorId(pub(crate) u64);

/// How a cursor sees its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorKind {
    Static,
    Keyset,
    Dynamic,
    FastForward,
}

/// What a cursor was declared as.
#[derive(Debug)]
pub(crate) struct CursorDeclaration {
    pub(crate) kind: CursorKind,
    pub(crate) scrolls: bool,
    pub(crate) read_only: bool,
    pub(crate) query: Arc<Query>,
    pub(crate) line: u32,
    /// Variables of the declaring scope, with the values they had.
    pub(crate) variables: Vec<crate::session::frame::Variable>,
    pub(crate) table_variables: BTreeMap<String, Arc<TableDef>>,
}

/// Rows of an open cursor.
#[derive(Debug)]
pub(crate) struct OpenCursor {
    /// Those of the select list.
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) tables: Vec<CursorTable>,
    pub(crate) batches: Vec<Batch>,
    pub(crate) count: u64,
    pub(crate) position: u64,
}

impl OpenCursor {
    /// The row at a position, as a batch of one.
    pub(crate) fn row(&self, position: u64) -> Option<Batch> {
        let mut at = usize::try_from(position.checked_sub(1)?).ok()?;
        for batch in &self.batches {
            if at < batch.rows {
                return Some(batch.slice(at, 1));
            }
            at -= batch.rows;
        }
        None
    }
}

/// A cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) declaration: Arc<CursorDeclaration>,
    pub(crate) open: Option<OpenCursor>,
}

/// All cursors of a session.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    pub(crate) all: BTreeMap<CursorId, Cursor>,
    /// By lower-case name.
    pub(crate) globals: BTreeMap<String, CursorId>,
    next: u64,
    /// The first number of the present batch.
    batch_start: u64,
    /// `@@FETCH_STATUS`.
    pub(crate) fetch_status: i32,
    /// What `@@CURSOR_ROWS` tells of.
    pub(crate) last_opened: Option<CursorId>,
}

impl Cursors {
    /// Takes in a cursor that nothing means yet.
    pub(crate) fn add(&mut self, declaration: CursorDeclaration) -> CursorId {
        let id = CursorId(self.next);
        self.next += 1;
        self.all.insert(id, Cursor { declaration: Arc::new(declaration), open: None });
        id
    }

    /// A batch of the client begins.
    pub(crate) fn begin_batch(&mut self) {
        self.batch_start = self.next;
    }

    /// ROLLBACK closes all but static cursors, as documented for CURSOR_CLOSE_ON_COMMIT OFF.
    pub(crate) fn rolled_back(&mut self) {
        for cursor in self.all.values_mut().filter(|cursor| cursor.declaration.kind != CursorKind::Static) {
            cursor.open = None;
        }
    }

    /// An error that ends batch and transaction takes along what the batch declared.
    pub(crate) fn batch_aborted(&mut self) {
        let start = self.batch_start;
        self.all.retain(|id, _| id.0 < start);
        self.globals.retain(|_, id| id.0 < start);
        self.rolled_back();
    }

    /// `@@CURSOR_ROWS`.
    pub(crate) fn rows_of_last(&self) -> i32 {
        let Some(cursor) = self.last_opened.and_then(|id| self.all.get(&id)) else { return 0 };
        match &cursor.open {
            None => 0,
            Some(_) if matches!(cursor.declaration.kind, CursorKind::Dynamic | CursorKind::FastForward) => -1,
            Some(open) => i32::try_from(open.count).unwrap_or(i32::MAX),
        }
    }
}

impl SessionState {
    /// The cursor a name means: the scope's own before the session's. 16916; 16950 and 16948 for variables.
    pub(crate) fn cursor_named(&self, name: &CursorName) -> Result<CursorId, SqlError> {
        match name {
            CursorName::Variable(variable) => {
                let shown = &variable.name;
                match self.frame().cursors.get(&shown.to_lowercase()) {
                    Some(Some(id)) if self.cursors.all.contains_key(id) => Ok(*id),
                    Some(_) => Err(message(16_950, &[shown])),
                    None if self.frame().position(shown).is_some() => Err(message(16_948, &[shown])),
                    None => Err(message(137, &[shown])),
                }
            }
            CursorName::Name { name, global } => {
                let key = name.text.to_lowercase();
                let own = self.frame().cursors.get(&key).copied().flatten().filter(|_| !*global);
                let found = own.or_else(|| self.cursors.globals.get(&key).copied());
                found.filter(|id| self.cursors.all.contains_key(id)).ok_or_else(|| message(16_916, &[&name.text]))
            }
        }
    }

    /// Lets go of cursors that neither a name nor a variable means any more.
    pub(crate) fn forget_unnamed_cursors(&mut self) {
        if self.cursors.all.is_empty() {
            return;
        }
        let (frames, globals) = (&self.frames, &self.cursors.globals);
        let named = |id: &CursorId| {
            globals.values().any(|known| known == id) || frames.iter().flat_map(|frame| frame.cursors.values()).any(|c| *c == Some(*id))
        };
        self.cursors.all.retain(|id, _| named(id));
    }

    /// The row of `table` that a cursor stands on: 16929, 16931, 16933 where there is none to change.
    pub(crate) fn cursor_row(&self, name: &CursorName, table: &TableDef) -> Result<CursorRow, SqlError> {
        let cursor = &self.cursors.all[&self.cursor_named(name)?];
        let open = cursor.open.as_ref().ok_or_else(|| message(16_917, &[]))?;
        if cursor.declaration.read_only || open.tables.is_empty() {
            return Err(message(16_929, &[]));
        }
        let mut own = open.tables.iter().filter(|t| t.table == table.id && t.database == table.database);
        let (Some(own), None) = (own.next(), own.next()) else { return Err(message(16_933, &[])) };
        let row = open.row(open.position).ok_or_else(|| message(16_931, &[]))?;
        let locator = SqlType::varbinary(1700);
        let Scalar::Binary(locator) = scalar_at(row.columns[own.locator].as_ref(), 0, &locator) else {
            return Err(message(16_931, &[]));
        };
        let value = |(at, column): &(usize, usize)| (*at, scalar_at(row.columns[*column].as_ref(), 0, &table.columns[*at].sql_type));
        Ok(CursorRow { locator, keys: own.keys.iter().map(value).collect() })
    }

    /// CURSOR_STATUS.
    pub(crate) fn cursor_status(&self, scope: &str, name: &str) -> Option<i16> {
        let key = name.to_lowercase();
        let own = self.frames.last().and_then(|frame| frame.cursors.get(&key).copied());
        let found = match scope.to_ascii_lowercase().as_str() {
            "local" => own.flatten(),
            "global" => self.cursors.globals.get(&key).copied(),
            "variable" => match own? {
                None => return Some(-2),
                id => id,
            },
            _ => return None,
        };
        let Some(cursor) = found.and_then(|id| self.cursors.all.get(&id)) else { return Some(-3) };
        Some(match &cursor.open {
            None => -1,
            Some(open) if open.count == 0 && cursor.declaration.kind != CursorKind::Dynamic => 0,
            Some(_) => 1,
        })
    }
}
