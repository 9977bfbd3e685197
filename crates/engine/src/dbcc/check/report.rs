//! What a check says: messages as they come, or rows at the end (TABLERESULTS), and how many errors an object had.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::dbcc::send_rows;
use crate::views::{Column, big, col, int, null, text};
use thawdb_storage::PageId;
use thawdb_tsql::ast::Dbcc;
use thawdb_types::SqlType::{BigInt, Int, SmallInt};
use thawdb_types::{Scalar, SqlError, SqlType};

/// The columns of TABLERESULTS, SQL Server's.
const COLUMNS: &[Column] = &[
    col("Error", Int),
    col("Level", Int),
    col("State", Int),
    col("MessageText", SqlType::nvarchar(4000)),
    null("RepairLevel", SqlType::nvarchar(22)),
    col("Status", Int),
    col("DbId", SmallInt),
    col("DbFragId", SmallInt),
    col("ObjectId", Int),
    col("IndexId", Int),
    col("PartitionId", BigInt),
    col("AllocUnitId", BigInt),
    col("RidDbId", SmallInt),
    col("RidPruId", SmallInt),
    col("File", SmallInt),
    col("Page", Int),
    col("Slot", Int),
    col("RefDbId", SmallInt),
    col("RefPruId", SmallInt),
    col("RefFile", SmallInt),
    col("RefPage", Int),
    col("RefSlot", Int),
    col("Allocation", SmallInt),
];

/// Errors found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) allocation: u64,
    pub(super) consistency: u64,
}

impl Tally {
    pub(super) fn is_any(self) -> bool {
        self.allocation + self.consistency > 0
    }
}

/// Where something is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) object: i32,
    pub(super) index: i32,
    pub(super) tree: u64,
    pub(super) page: PageId,
    pub(super) slot: u16,
    /// Whether it counts as an error of allocation.
    pub(super) is_allocation: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self { object: 0, index: 0, tree: 0, page: PageId::NONE, slot: 0, is_allocation: false }
    }
}

/// A check's answer in the making.
pub(super) struct Report {
    database: i32,
    quiet: bool,
    /// With TABLERESULTS.
    rows: Option<Vec<Vec<Scalar>>>,
    object: Tally,
}

impl Report {
    pub(super) fn new(node: &Dbcc, database: i32) -> Self {
        let has = |name: &str| node.options.iter().any(|option| option.name == name);
        let rows = has("TABLERESULTS").then(Vec::new);
        Self { database, quiet: has("NO_INFOMSGS"), rows, object: Tally::default() }
    }

    fn put(&mut self, interpreter: &mut Interpreter<'_, '_>, message: SqlError, place: Place) {
        let Some(rows) = &mut self.rows else { return interpreter.out.message(&message) };
        let database = Scalar::SmallInt(i16::try_from(self.database).unwrap_or(0));
        let small = |value: u16| Scalar::SmallInt(i16::try_from(value).unwrap_or(i16::MAX));
        let none = Scalar::SmallInt(0);
        rows.push(vec![
            int(message.number),
            int(i32::from(message.severity)),
            int(i32::from(message.state)),
            text(message.text),
            Scalar::Null,
            int(0),
            database.clone(),
            none.clone(),
            int(place.object),
            int(place.index),
            big(place.tree),
            big(place.tree),
            database.clone(),
            none.clone(),
            small(place.page.file),
            int(i32::try_from(place.page.page).unwrap_or(i32::MAX)),
            int(i32::from(place.slot)),
            database,
            none.clone(),
            none.clone(),
            int(0),
            int(0),
            Scalar::SmallInt(i16::from(place.is_allocation)),
        ]);
    }

    /// What is said when nothing is wrong too.
    pub(super) fn inform(&mut self, interpreter: &mut Interpreter<'_, '_>, message: SqlError) {
        if !self.quiet {
            self.put(interpreter, message, Place::default());
        }
    }

    /// An error, counted.
    pub(super) fn error(&mut self, interpreter: &mut Interpreter<'_, '_>, message: SqlError, place: Place) {
        match place.is_allocation {
            true => self.object.allocation += 1,
            false => self.object.consistency += 1,
        }
        self.put(interpreter, message, place);
    }

    /// More about the error before it; no error of its own.
    pub(super) fn detail(&mut self, interpreter: &mut Interpreter<'_, '_>, message: SqlError, place: Place) {
        self.put(interpreter, message, place);
    }

    /// Errors that are counted and not shown one by one.
    pub(super) fn count_unshown(&mut self, errors: u64) {
        self.object.consistency += errors;
    }

    /// A sum of errors, which NO_INFOMSGS does not leave out.
    pub(super) fn summarize(&mut self, interpreter: &mut Interpreter<'_, '_>, message: SqlError, place: Place) {
        self.put(interpreter, message, place);
    }

    /// Ends an object: its errors, added to `all`.
    pub(super) fn end_object(&mut self, all: &mut Tally) -> Tally {
        let own = std::mem::take(&mut self.object);
        all.allocation += own.allocation;
        all.consistency += own.consistency;
        own
    }

    /// The rows, if rows were asked for.
    pub(super) fn finish(self, interpreter: &mut Interpreter<'_, '_>) -> Result<(), Failure> {
        self.rows.map_or(Ok(()), |rows| send_rows(interpreter, COLUMNS, &rows))
    }
}
