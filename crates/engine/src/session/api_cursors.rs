//! Cursors that drivers open by call (sp_cursoropen and its kin), by handle.
//!
//! ```text
//! handle ─► ApiCursor { options, buffer } ─► Cursors::all by its id: declaration, rows, position
//! prepared handle ─► text and parameters
//! ```
//!
//! 1. Each is also a global cursor of a name of its own, so that `WHERE CURRENT OF` finds it.
//! 2. The buffer is what the last fetch gave: rows `buffer_start ..` of the set, counted from 1; a start of 0 is before the
//!    first row, one beyond the count behind the last, both with no row.

use crate::session::cursors::CursorId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thawdb_query::phys::OutputColumn;

/// The first handle: drivers see numbers like SQL Server's.
const FIRST_HANDLE: i32 = 180_150_001;
/// The first handle of a prepared cursor; apart from sp_prepare's.
const FIRST_PREPARED: i32 = 0x4000_0001;
/// Prepared and open cursors a session may have, each: a driver that forgets to close gets 701.
const CURSORS_MAX: usize = 10_000;

/// Where a column of a cursor comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnOrigin {
    /// Which of the cursor's tables, from 1; 0 for an expression.
    pub(crate) table: u8,
    /// Its name in that table.
    pub(crate) column: String,
    /// Whether it is part of the table's key.
    pub(crate) key: bool,
}

/// An open cursor.
#[derive(Debug)]
pub(crate) struct ApiCursor {
    pub(crate) id: CursorId,
    /// Name under which statements know it.
    pub(crate) name: String,
    /// SCROLLOPT and CCOPT as they turned out.
    pub(crate) scroll: i32,
    pub(crate) concurrency: i32,
    /// It closes when its last row is fetched.
    pub(crate) closes: bool,
    /// Columns as they are sent, ROWSTAT last.
    pub(crate) columns: Arc<Vec<OutputColumn>>,
    /// Tables that can be changed through it: database, schema, name.
    pub(crate) tables: Vec<[String; 3]>,
    pub(crate) origins: Vec<ColumnOrigin>,
    pub(crate) buffer_start: u64,
    pub(crate) buffer_rows: u64,
    /// Rows were changed through it since they were read.
    pub(crate) stale: bool,
    /// Positions of rows that are there no more.
    pub(crate) missing: BTreeSet<u64>,
}

/// A statement prepared for cursors.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCursor {
    pub(crate) declarations: String,
    pub(crate) text: String,
}

/// Those of a session.
#[derive(Debug, Default)]
pub(crate) struct ApiCursors {
    pub(crate) open: BTreeMap<i32, ApiCursor>,
    pub(crate) prepared: BTreeMap<i32, PreparedCursor>,
    opened: i32,
    prepared_count: i32,
}

impl ApiCursors {
    /// The handle of the next cursor; `None` if there are too many.
    pub(crate) fn next_handle(&mut self) -> Option<i32> {
        if self.open.len() >= CURSORS_MAX {
            return None;
        }
        let handle = FIRST_HANDLE.wrapping_add(self.opened);
        self.opened = self.opened.wrapping_add(2);
        Some(handle)
    }

    /// Keeps a statement; its handle. `None` if there are too many.
    pub(crate) fn prepare(&mut self, prepared: PreparedCursor) -> Option<i32> {
        if self.prepared.len() >= CURSORS_MAX {
            return None;
        }
        let handle = FIRST_PREPARED.wrapping_add(self.prepared_count);
        self.prepared_count = self.prepared_count.wrapping_add(1);
        self.prepared.insert(handle, prepared);
        Some(handle)
    }
}
