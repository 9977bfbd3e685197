//! Layouts of tables' trees, made once a definition and thread instead of once a statement.
//!
//! ```text
//! Arc<TableDef> ─ same definition as one of the thread's last? ─ yes ─► its layouts
//!                                                               └ no ──► TreeLayout::new for each index, kept
//! ```
//! Invariant: layouts given out are those of this very definition. A definition is known by its address, which a weak
//! reference keeps from being used for another, and whose value nobody can change in place while there is one
//! (`Arc::make_mut` moves it away, `Arc::get_mut` refuses). Bounded: [`TABLES_MAX`] a thread. No lock, no failure.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use thawdb_catalog::{TableDef, TreeLayout};

/// Tables whose layouts a thread keeps: those of a few statements run in turn.
const TABLES_MAX: usize = 32;

thread_local! {
    static KEPT: RefCell<Vec<(Weak<TableDef>, Arc<[TreeLayout]>)>> = const { RefCell::new(Vec::new()) };
}

/// The layout of one tree of a table.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    all: Arc<[TreeLayout]>,
    index: usize,
}

impl Deref for Layout {
    type Target = TreeLayout;

    #[inline]
    fn deref(&self) -> &TreeLayout {
        &self.all[self.index]
    }
}

/// The layout of index `index` of `table`.
pub(crate) fn layout_of(table: &Arc<TableDef>, index: usize) -> Layout {
    Layout { all: layouts_of(table), index }
}

/// The layouts of all indexes of `table`.
pub(crate) fn layouts_of(table: &Arc<TableDef>) -> Arc<[TreeLayout]> {
    KEPT.with_borrow_mut(|kept| {
        let known = kept.iter().position(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(table)));
        if let Some(at) = known {
            return kept[at].1.clone();
        }
        let made: Arc<[TreeLayout]> = (0..table.indexes.len()).map(|index| TreeLayout::new(table, index)).collect();
        if kept.len() >= TABLES_MAX {
            kept.retain(|(of, _)| of.strong_count() > 0);
            kept.truncate(TABLES_MAX - 1);
        }
        kept.push((Arc::downgrade(table), made.clone()));
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::table;
    use thawdb_types::SqlType;

    #[test]
    fn a_definition_changed_has_layouts_of_its_own() {
        let mut table = Arc::new(table("t", &[("a", SqlType::Int, false), ("b", SqlType::Int, true)]));
        let first = layouts_of(&table);
        assert!(Arc::ptr_eq(&first, &layouts_of(&table)), "made once");
        let columns = first[0].row_columns.len();
        // In place, though nobody else has it: the weak reference makes it another definition.
        Arc::make_mut(&mut table).columns.pop();
        assert_eq!(layouts_of(&table)[0].row_columns.len(), columns - 1);
        for _ in 0..3 * TABLES_MAX {
            assert_eq!(layouts_of(&Arc::new((*table).clone())).len(), table.indexes.len());
        }
        assert_eq!(layout_of(&table, 0).row_columns.len(), columns - 1);
    }
}
