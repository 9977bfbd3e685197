//! What makes a table temporal: its period, the table of its old rows, or that it is such a table itself.
//!
//! ```text
//! period   flag | start column i32, end column i32, start hidden, end hidden
//! history  flag | table i32, retention count i32, unit u8 (0: kept for ever)
//! current  i32: the table whose old rows these are; 0 for none
//! ```
//! Invariants: 1. Who has a history has a period. 2. The history's `current` names the table that names it as its history:
//! `ddl::temporal` changes both in one transaction.

use crate::defs::{ColumnId, ObjectId, TableDef};
use crate::record::{Reader, RecordError, Writer};

/// PERIOD FOR SYSTEM_TIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// GENERATED ALWAYS AS ROW START.
    pub start: ColumnId,
    /// GENERATED ALWAYS AS ROW END.
    pub end: ColumnId,
    /// Whether the one and the other are HIDDEN.
    pub hidden: (bool, bool),
}

/// The unit of HISTORY_RETENTION_PERIOD, by its number in sys.tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is the unit of its name
pub enum RetentionUnit {
    Day = 3,
    Week = 4,
    Month = 5,
    Year = 6,
}

impl RetentionUnit {
    /// Every unit.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Year];

    /// Its name in sys.tables, and as statements write it, with an S or without.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }
}

/// SYSTEM_VERSIONING = ON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versioning {
    /// The table of old rows.
    pub history: ObjectId,
    /// HISTORY_RETENTION_PERIOD; `None` is INFINITE.
    pub retention: Option<(i32, RetentionUnit)>,
}

/// What is temporal about a table: of most nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Temporal {
    /// Its period.
    pub period: Option<Period>,
    /// Where its old rows go.
    pub versioning: Option<Versioning>,
    /// The table whose old rows these are.
    pub history_of: Option<ObjectId>,
}

/// What a column of a period is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodColumn {
    /// The time of the transaction that wrote the row.
    Start,
    /// The end of time.
    End,
}

impl TableDef {
    /// What a column is in the period, by its position; `None` for all others.
    pub fn period_column(&self, at: usize) -> Option<PeriodColumn> {
        let period = self.temporal.period?;
        let id = self.columns.get(at)?.id;
        if id == period.start {
            return Some(PeriodColumn::Start);
        }
        (id == period.end).then_some(PeriodColumn::End)
    }

    /// Positions of the period's columns.
    pub fn period_positions(&self) -> Option<(usize, usize)> {
        let period = self.temporal.period?;
        let place = |id: ColumnId| self.columns.iter().position(|column| column.id == id);
        Some((place(period.start)?, place(period.end)?))
    }

    /// Whether `SELECT *` and an INSERT without a list leave the column out.
    pub fn is_hidden(&self, at: usize) -> bool {
        let hidden = self.temporal.period.map_or((false, false), |period| period.hidden);
        match self.period_column(at) {
            Some(PeriodColumn::Start) => hidden.0,
            Some(PeriodColumn::End) => hidden.1,
            None => false,
        }
    }
}

pub(crate) fn write_temporal(w: &mut Writer, temporal: &Temporal) {
    w.flag(temporal.period.is_some());
    if let Some(period) = &temporal.period {
        w.i32(period.start.0).i32(period.end.0).flag(period.hidden.0).flag(period.hidden.1);
    }
    w.flag(temporal.versioning.is_some());
    if let Some(versioning) = &temporal.versioning {
        let (count, unit) = versioning.retention.map_or((0, 0), |(count, unit)| (count, unit as u8));
        w.i32(versioning.history.0).i32(count).u8(unit);
    }
    w.i32(temporal.history_of.map_or(0, |id| id.0));
}

pub(crate) fn read_temporal(r: &mut Reader<'_>) -> Result<Temporal, RecordError> {
    let period = match r.flag()? {
        false => None,
        true => Some(Period { start: ColumnId(r.i32()?), end: ColumnId(r.i32()?), hidden: (r.flag()?, r.flag()?) }),
    };
    let versioning = match r.flag()? {
        false => None,
        true => {
            let (history, count, unit) = (ObjectId(r.i32()?), r.i32()?, r.u8()?);
            let retention = match unit {
                0 => None,
                _ => {
                    let unit = RetentionUnit::ALL.into_iter().find(|known| *known as u8 == unit);
                    Some((count, unit.ok_or_else(|| RecordError("unit of a retention period".into()))?))
                }
            };
            Some(Versioning { history, retention })
        }
    };
    let history_of = Some(r.i32()?).filter(|id| *id != 0).map(ObjectId);
    Ok(Temporal { period, versioning, history_of })
}
