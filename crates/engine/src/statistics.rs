//! Making and updating statistics: how many rows are looked at, how what is made is called, and when by itself.
//!
//! ```text
//! compilation wants a column, or meets stale statistics ─► Interpreter::refresh_statistics ─► compiled again
//! CREATE, UPDATE STATISTICS                             ─► make
//! ```
//! Rows are read under a view, without locks on them, while the table's definition is held (Sch-S). What is made by itself does
//! not wait for that: while somebody changes a definition there is nothing to learn of it.
//!
//! Whose rows take up to 8 MB is read whole, as SQL Server does; of larger tables some leaves are read ([`LEAVES_MAX`]),
//! so that what a compilation waits for does not grow with the table.
//!
//! Statistics of temporary tables and table variables are not made. What fails here by itself (a full disk for the sort)
//! leaves a plan without them: an automatic update never fails a statement.

use crate::batch::interpreter::Interpreter;
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{IndexDef, ObjectId, Statistics, StatisticsData, StatisticsOrigin, TableDef};
use thawdb_query::statistics::{SampleSize, can_be_counted, gather};
use thawdb_storage::locks::LockMode;
use thawdb_types::SqlError;

/// Leaves of a table that is read whole: 8 MB.
const WHOLE_LEAVES: u64 = 1024;
/// Leaves of a larger table that are read: with 200 steps some ten leaves a step, enough for histograms of this size
/// (Chaudhuri, Motwani and Narasayya, SIGMOD 1998, ask for about 4 k ln n / f^2 rows).
const LEAVES_MAX: usize = 2048;

/// Whether tables of this number and database can have statistics.
pub(crate) fn can_have(table: &TableDef) -> bool {
    table.id > ObjectId(0) && table.database.0 > 0 && table.database != TEMPDB_ID
}

/// The statistics an index comes with, as far as they can be made.
pub(crate) fn of_index(table: &TableDef, index: &IndexDef) -> Option<Statistics> {
    let positions = index.keys.iter().map(|key| key.column_index);
    let columns: Vec<i32> = positions.take_while(|at| can_be_counted(table, *at)).map(|at| table.columns[at].id.0).collect();
    let is_whole = index.filter.is_none() && !columns.is_empty() && index.id.0 > 0;
    is_whole.then(|| Statistics {
        id: index.id.0,
        name: index.name.clone().unwrap_or_default(),
        columns,
        origin: StatisticsOrigin::Index,
        no_recompute: false,
        sample_percent: None,
        data: None,
    })
}

/// Every statistics of a table: those of its indexes, made or not, and the others.
pub(crate) fn all_of(open: &OpenDatabase, table: &TableDef) -> Vec<Statistics> {
    let known = open.statistics.of(table);
    let mut all: Vec<Statistics> = Vec::new();
    for index in table.every_index() {
        let made = known.as_ref().and_then(|known| known.list.iter().find(|one| one.id == index.id.0));
        let present = of_index(table, index);
        // What was made of an index that has other columns now is no longer about it.
        let kept = made.filter(|made| present.as_ref().is_some_and(|present| present.columns == made.columns));
        all.extend(kept.map(|made| Statistics { name: index.name.clone().unwrap_or_default(), ..made.clone() }).or(present));
    }
    let others = known.iter().flat_map(|known| &known.list).filter(|one| one.origin != StatisticsOrigin::Index);
    all.extend(others.filter(|one| is_present(table, one)).cloned());
    all.sort_by_key(|one| one.id);
    all
}

/// Whether the table still has the columns.
fn is_present(table: &TableDef, one: &Statistics) -> bool {
    one.columns.iter().all(|id| table.columns.iter().any(|column| column.id.0 == *id))
}

/// How much of the rows is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Share {
    /// As the size of the table makes it.
    Default,
    /// Every row.
    Full,
    /// So many percent.
    Percent(f64),
}

/// Looks at the rows and tells what they are. The caller holds the table's definition.
fn look(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    one: &Statistics,
    share: Share,
) -> Result<StatisticsData, SqlError> {
    let position = |id: &i32| table.columns.iter().position(|column| column.id.0 == *id);
    let columns: Vec<usize> = one.columns.iter().filter_map(position).collect();
    let own = session.transactions.existing(open.id.0);
    let view = open.storage.read_view(own.map(|part| &part.txn));
    let leaves = view.leaf_count(table.rows().tree).map_err(|error| session.storage_failure(open.id, error))?;
    let size = match (share, one.sample_percent) {
        (Share::Full, _) => SampleSize::All,
        (Share::Percent(percent), _) | (Share::Default, Some(percent)) if percent < 100.0 => {
            SampleSize::Leaves(((leaves as f64 * percent / 100.0).ceil() as usize).max(1))
        }
        (Share::Default, None) if leaves > WHOLE_LEAVES => SampleSize::Leaves(LEAVES_MAX),
        _ => SampleSize::All,
    };
    let now = session.engine.now_datetime();
    gather(table, &columns, (size, leaves), (view, now), session)
}

/// Makes what a statement asks for and keeps it for good. The caller holds the table's definition.
pub(crate) fn make(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    mut one: Statistics,
    share: Share,
) -> Result<(), SqlError> {
    one.data = Some(look(session, open, table, &one, share)?);
    open.statistics.put(open, table, one, true)
}

/// Makes what no statement has asked for, unless somebody else does so or the table's definition is being changed; whether
/// it was made.
fn make_by_itself(
    session: &mut SessionState,
    table: &TableDef,
    choose: impl FnOnce(&OpenDatabase, &TableDef) -> Option<Statistics>,
) -> bool {
    let Ok(open) = session.storage_of(table.database) else { return false };
    let Some(_making) = open.statistics.begin_making(table) else { return false };
    let resource = open.object_resource(table.id);
    let made = session.with_lock_at_once(resource, LockMode::SchS, |session| {
        // What was compiled under may be of the past by now.
        let table = session.table(table.database, table.id).filter(|now| now.created == table.created && !now.rows_disabled)?;
        let mut one = choose(&open, &table)?;
        one.data = Some(look(session, &open, &table, &one, Share::Default).ok()?);
        open.statistics.put(&open, &table, one, false).ok()
    });
    made.flatten().is_some()
}

impl Interpreter<'_, '_> {
    /// Makes and updates what a compilation has asked for; whether another compilation would know more.
    pub(crate) fn refresh_statistics(&mut self, wanted: &[(Arc<TableDef>, usize)], stale: &[(Arc<TableDef>, i32)]) -> bool {
        let mut any = false;
        for (table, column) in wanted {
            any |= self.allows(table, "AUTO_CREATE_STATISTICS")
                && make_by_itself(self.session, table, |open, now| {
                    let id = table.columns.get(*column)?.id.0;
                    let position = now.columns.iter().position(|column| column.id.0 == id)?;
                    can_be_counted(now, position).then(|| wanted_of(open, now, id))
                });
        }
        for (table, id) in stale {
            let find = |open: &OpenDatabase, now: &TableDef| all_of(open, now).into_iter().find(|one| one.id == *id);
            any |= self.allows(table, "AUTO_UPDATE_STATISTICS") && make_by_itself(self.session, table, find);
        }
        any
    }

    /// Whether a database of these is still redoing what a crash left: looking at rows would have the statement wait for all
    /// their pages. Its plan is made of what is known, and made again the next time.
    pub(crate) fn is_recovering(&self, wanted: &[(Arc<TableDef>, usize)], stale: &[(Arc<TableDef>, i32)]) -> bool {
        let mut tables = wanted.iter().map(|(table, _)| table).chain(stale.iter().map(|(table, _)| table));
        tables.any(|table| self.session.storage_of(table.database).is_ok_and(|open| open.storage.store().pending_pages() > 0))
    }

    fn allows(&self, table: &TableDef, option: &str) -> bool {
        self.session.storage_of(table.database).is_ok_and(|open| open.record().properties.get(option).is_none_or(|value| value == "ON"))
    }
}

/// Statistics that begin with a column: an index's, or some of their own under the name SQL Server gives them.
fn wanted_of(open: &OpenDatabase, table: &TableDef, column: i32) -> Statistics {
    let begins = |one: &Statistics| one.columns.first() == Some(&column);
    let of_index = table.indexes.iter().filter_map(|index| of_index(table, index)).find(begins);
    // What is about the column as it was is made again as it is.
    let of_before = || all_of(open, table).into_iter().find(|one| begins(one) && one.origin == StatisticsOrigin::Automatic);
    of_index.or_else(of_before).unwrap_or_else(|| Statistics {
        id: 0,
        name: format!("_WA_Sys_{column:08X}_{:08X}", table.id.0),
        columns: vec![column],
        origin: StatisticsOrigin::Automatic,
        no_recompute: false,
        sample_percent: None,
        data: None,
    })
}
