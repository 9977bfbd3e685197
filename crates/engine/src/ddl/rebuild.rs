//! New trees for a table's indexes, filled from its rows and swapped in, by the transaction that has the table to itself.
//!
//! ```text
//! definition to be ─► a tree for each index at the positions ─► rows first, then the others from them ─► catalog, old trees go
//! ```
//! CREATE and DROP CLUSTERED INDEX, REBUILD, DROP_EXISTING and ALTER TABLE REBUILD are this with different definitions.
//!
//! 1. Entries of the other indexes end in the row's key: where that changes they are all filled anew ([`moves_locators`]).
//!    Rows of heaps and of clustered indexes that are not unique are numbered anew, so theirs always changes.
//! 2. Nothing of the old is written: a rollback or crash leaves it.
//!
//! Locks: the caller's Sch-M. Failure: 1505; storage's.

use crate::ddl::index::fill_by;
use crate::ddl::{plain_error, put_table};
use crate::instance::database::OpenDatabase;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{IndexDef, IndexId, TableDef};
use thawdb_storage::{TreeId, TreeSpec};
use thawdb_types::SqlError;

/// Whether rows of this table carry numbers.
fn is_numbered(table: &TableDef) -> bool {
    table.rows().keys.is_empty() || !table.rows().unique
}

/// Whether the rows' keys change when they move from one definition to the other.
pub(crate) fn moves_locators(table: &TableDef, altered: &TableDef) -> bool {
    is_numbered(table) || is_numbered(altered) || table.rows().keys != altered.rows().keys
}

/// The filegroup of an index; of one without a tree that of the rows.
pub(crate) fn filegroup_of(open: &OpenDatabase, table: &TableDef, index: &IndexDef) -> Result<u16, SqlError> {
    let tree = if index.tree == IndexDef::NO_TREE { table.rows().tree } else { index.tree };
    open.storage.filegroup_of(tree).map_err(plain_error(open))
}

/// Puts the definitions of disabled indexes back among those in use; they have no tree until they are filled.
pub(crate) fn enable(altered: &mut TableDef, chosen: impl Fn(&IndexDef) -> bool) {
    let (back, out) = std::mem::take(&mut altered.disabled).into_iter().partition(|index| chosen(index));
    altered.disabled = out;
    altered.indexes.extend::<Vec<_>>(back);
}

/// Gives the indexes of `altered` with the numbers in `ids` new trees filled from `table`'s rows, and those of every other
/// index too where rows move; `filegroup` says where those go that are to lie elsewhere than they do.
pub(crate) fn refill(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    mut altered: TableDef,
    (ids, filegroup, max_dop): (&[IndexId], Option<u16>, i16),
) -> Result<Arc<TableDef>, SqlError> {
    let moves_rows = ids.contains(&altered.rows().id);
    let moves_all = moves_rows && moves_locators(table, &altered);
    let positions: Vec<usize> = (0..altered.indexes.len()).filter(|at| moves_all || ids.contains(&altered.indexes[*at].id)).collect();
    for at in &positions {
        let index = &altered.indexes[*at];
        let chosen = filegroup.filter(|_| ids.contains(&index.id));
        let filegroup = chosen.map_or_else(|| filegroup_of(open, table, index), Ok)?;
        let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: index.id.0.cast_unsigned(), filegroup };
        altered.indexes[*at].tree =
            session.part(open.id)?.txn.create_tree_of(spec, index.options.compression.packs_leaves()).map_err(plain_error(open))?;
    }
    altered.modified = session.engine.now_datetime();
    let altered = Arc::new(altered);
    for at in &positions {
        // The rows come first: the others' entries end in their keys.
        let source = if *at > 0 && moves_rows { &altered } else { table };
        let rows = fill_by(session, open, source, &altered, *at, max_dop)?;
        if *at == 0 && is_numbered(&altered) {
            let raised = open.counters.raise_row_number(open, table.id, rows + 1);
            raised.map_err(|error| session.storage_failure(open.id, error))?;
        }
    }
    let is_kept = |tree: TreeId| altered.indexes.iter().any(|index| index.tree == tree);
    let gone: Vec<TreeId> = table.indexes.iter().map(|index| index.tree).filter(|tree| !is_kept(*tree)).collect();
    put_table(session, open, (*altered).clone(), &gone)?;
    Ok(altered)
}
