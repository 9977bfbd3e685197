//! Making and updating statistics: how many rows are looked at, how what is made is called, and when by itself.
//!
//! ```text
//! compilation wants a column, or meets stale statistics ─► Interpreter::refresh_statistics ─► compiled again
//! CREATE, UPDATE STATISTICS                             ─► make
//! ```
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
use thawdb_catalog::{IndexDef, ObjectId, Statistics, StatisticsOrigin, TableDef};
use thawdb_query::statistics::{SampleSize, can_be_counted, gather};
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

/// The next number for statistics that are no index's: numbers of indexes are left free.
pub(crate) fn next_id(open: &OpenDatabase, table: &TableDef) -> i32 {
    let known = open.statistics.of(table);
    let own = known.iter().flat_map(|known| &known.list).map(|one| one.id);
    own.chain(table.every_index().map(|index| index.id.0)).max().unwrap_or(0).max(1) + 1
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

/// Leaves of a table, about.
fn leaf_count(session: &SessionState, open: &OpenDatabase, table: &TableDef) -> Result<u64, SqlError> {
    open.storage.tree_page_count(table.rows().tree).map_err(|error| session.storage_failure(open.id, error))
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

/// Looks at the rows and keeps what they tell.
pub(crate) fn make(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    mut one: Statistics,
    share: Share,
) -> Result<(), SqlError> {
    let position = |id: &i32| table.columns.iter().position(|column| column.id.0 == *id);
    let columns: Vec<usize> = one.columns.iter().filter_map(position).collect();
    let leaves = leaf_count(session, open, table)?;
    let size = match (share, one.sample_percent) {
        (Share::Full, _) => SampleSize::All,
        (Share::Percent(percent), _) | (Share::Default, Some(percent)) if percent < 100.0 => {
            SampleSize::Leaves(((leaves as f64 * percent / 100.0).ceil() as usize).max(1))
        }
        (Share::Default, None) if leaves > WHOLE_LEAVES => SampleSize::Leaves(LEAVES_MAX),
        _ => SampleSize::All,
    };
    let own = session.transactions.existing(open.id.0);
    let view = open.storage.read_view(own.map(|part| &part.txn));
    let now = session.engine.now_datetime();
    one.data = Some(gather(table, &columns, (size, leaves), (view, now), session)?);
    open.statistics.put(open, table, one);
    Ok(())
}

impl Interpreter<'_, '_> {
    /// Makes and updates what a compilation has asked for; whether another compilation would know more.
    pub(crate) fn refresh_statistics(&mut self, wanted: &[(Arc<TableDef>, usize)], stale: &[(Arc<TableDef>, i32)]) -> bool {
        let mut any = false;
        for (table, column) in wanted {
            let Ok(open) = self.session.storage_of(table.database) else { continue };
            if is_on(&open, "AUTO_CREATE_STATISTICS") {
                any |= create_for(self.session, &open, table, *column);
            }
        }
        for (table, id) in stale {
            let Ok(open) = self.session.storage_of(table.database) else { continue };
            let Some(one) = all_of(&open, table).into_iter().find(|one| one.id == *id) else { continue };
            if is_on(&open, "AUTO_UPDATE_STATISTICS") {
                any |= make(self.session, &open, table, one, Share::Default).is_ok();
            }
        }
        any
    }
}

fn is_on(open: &OpenDatabase, option: &str) -> bool {
    open.record().properties.get(option).is_none_or(|value| value == "ON")
}

/// Statistics that begin with a column: an index's, or some of their own under the name SQL Server gives them.
fn create_for(session: &mut SessionState, open: &Arc<OpenDatabase>, table: &Arc<TableDef>, column: usize) -> bool {
    let id = table.columns[column].id.0;
    let of_indexes = table.indexes.iter().filter_map(|index| of_index(table, index)).find(|one| one.columns.first() == Some(&id));
    let one = of_indexes.unwrap_or_else(|| Statistics {
        id: next_id(open, table),
        name: format!("_WA_Sys_{id:08X}_{:08X}", table.id.0),
        columns: vec![id],
        origin: StatisticsOrigin::Automatic,
        no_recompute: false,
        sample_percent: None,
        data: None,
    });
    make(session, open, table, one, Share::Default).is_ok()
}
