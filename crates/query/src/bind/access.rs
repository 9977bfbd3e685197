//! Notes what a statement needs to be allowed, while names are resolved. See [`crate::access`].
//!
//! 1. A column counts as used at the depth of views where it was named ([`Binder::use_column`]), so that what a view's text
//!    names is no use by who reads the view.
//! 2. The target of a change is read only if one of its columns is named ([`Binder::target_rows`]).

use super::Binder;
use crate::access::{AccessAction, AccessNeed, Place};
use crate::algebra::ColumnRef;
use thawdb_catalog::TableDef;

/// A need whose columns are not all known yet.
#[derive(Debug)]
pub(crate) struct OpenNeed {
    need: AccessNeed,
    /// Columns of the reference and their numbers.
    columns: Vec<(ColumnRef, i32)>,
    depth: u32,
    /// Whether it falls away if no column is used.
    optional: bool,
}

/// Tables of the session alone need no permission.
fn is_private(table: &TableDef) -> bool {
    table.id.0 < 0 || table.database.0 < 0 || table.name.starts_with('#')
}

impl Binder<'_> {
    /// Something is done to an object.
    pub(crate) fn need(&mut self, action: AccessAction, object: Place, columns: Vec<i32>) {
        let need = AccessNeed { action, object, columns, parent: self.parents.last().copied(), synonym: self.synonym.take() };
        self.needs.push(OpenNeed { need, columns: Vec::new(), depth: self.views_deep, optional: false });
    }

    /// Rows of a table are read, by a reference with these columns.
    pub(crate) fn need_rows(&mut self, table: &TableDef, columns: impl Iterator<Item = ColumnRef>) {
        if !is_private(table) {
            self.need(AccessAction::Select, (table.database, table.id), Vec::new());
            let numbered = columns.zip(&table.columns).map(|(column, definition)| (column, definition.id.0)).collect();
            self.needs.last_mut().expect("pushed above").columns = numbered;
        }
    }

    /// Rows of a view are read; its columns count from 1.
    pub(crate) fn need_view(&mut self, view: Place, columns: impl Iterator<Item = ColumnRef>) {
        self.need(AccessAction::Select, view, Vec::new());
        self.needs.last_mut().expect("pushed above").columns = columns.zip(1..).collect();
    }

    /// Columns of changed rows may be named in OUTPUT.
    pub(crate) fn need_output(&mut self, table: &TableDef, columns: &[ColumnRef]) {
        let before = self.needs.len();
        self.need_rows(table, columns.iter().copied());
        self.needs[before..].iter_mut().for_each(|need| need.optional = true);
    }

    /// Rows of a table are changed, by position of the columns set.
    pub(crate) fn need_change(&mut self, action: AccessAction, table: &TableDef, columns: &[usize]) {
        if is_private(table) {
            return;
        }
        let (place, through) = ((table.database, table.id), self.target_view);
        // The reference to the target has found the synonym it was named by.
        let target = through.unwrap_or(place);
        let named = self.needs.iter().find(|open| open.need.object == target).and_then(|open| open.need.synonym);
        self.synonym = self.synonym.or(named);
        if let Some(view) = through {
            self.need(action, view, Vec::new());
            if view == place {
                return;
            }
            self.parents.push(view);
        }
        let columns = columns.iter().map(|at| table.columns[*at].id.0).collect();
        self.need(action, place, columns);
        if through.is_some() {
            self.parents.pop();
        }
    }

    /// What was noted since `first` is about the target of a change: it is read only where a column is named.
    pub(crate) fn target_rows(&mut self, table: &TableDef) {
        let view = self.target_view;
        let about = |need: &AccessNeed| need.object == (table.database, table.id) || Some(need.object) == view;
        self.needs.iter_mut().filter(|open| about(&open.need)).for_each(|open| open.optional = true);
    }

    /// A column is named.
    pub(crate) fn use_column(&self, column: ColumnRef) {
        if self.definitions_deep == 0 {
            self.used.borrow_mut().insert((column, self.views_deep));
        }
    }

    /// The needs of everything bound so far.
    pub(crate) fn take_needs(&mut self) -> Vec<AccessNeed> {
        let used = self.used.take();
        let mut needs: Vec<AccessNeed> = Vec::new();
        for open in std::mem::take(&mut self.needs) {
            let named = open.columns.iter().filter(|(column, _)| used.contains(&(*column, open.depth)));
            let mut columns: Vec<i32> = named.map(|(_, number)| *number).chain(open.need.columns.iter().copied()).collect();
            columns.sort_unstable();
            columns.dedup();
            let need = AccessNeed { columns, ..open.need };
            if !(open.optional && need.columns.is_empty()) && !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }
}
