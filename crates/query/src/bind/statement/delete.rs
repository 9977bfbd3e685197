//! DELETE: the rows of [`super::target`].

use super::output::InputColumns;
use super::{BoundDelete, BoundInstead, BoundStmt};
use crate::access::AccessAction;
use crate::algebra::{ColumnRef, Rel};
use crate::bind::{Binder, Level};
use crate::compile::ChangeAction;
use thawdb_tsql::ast;
use thawdb_types::SqlError;

impl Binder<'_> {
    /// Binds a DELETE statement.
    pub(crate) fn bind_delete(&mut self, delete: &ast::Delete) -> Result<BoundStmt, SqlError> {
        if let Some(with) = &delete.with {
            self.push_ctes(with)?;
        }
        self.levels.push(Level::new());
        let bound = self.bind_delete_level(delete);
        self.levels.pop();
        bound
    }

    fn bind_delete_level(&mut self, delete: &ast::Delete) -> Result<BoundStmt, SqlError> {
        let view = self.instead_view(&delete.target, &delete.from, ChangeAction::Delete)?;
        let of_view = view.is_some();
        let target = match view {
            Some(view) => self.instead_target(view, delete.where_.as_ref())?,
            None => self.bind_target(&delete.target, &delete.from, delete.where_.as_ref())?,
        };
        self.refuse_history(&target.table, Some(ChangeAction::Delete), delete.target.span)?;
        self.check_output(&delete.output, &target.table, &[ChangeAction::Delete])?;
        let input = InputColumns { deleted: target.columns.clone(), target: target.position, merge: false };
        self.target_rows(&target.table);
        self.need_change(AccessAction::Delete, &target.table, &[]);
        let output = self.bind_output(&delete.output, &target.table, Some(&input))?.map(|mut o| {
            o.inserted.clear();
            o
        });
        let mut rel = self.target_top(target.rel, delete.top.as_ref())?;
        if target.joined {
            let extra = output.iter().flat_map(|o| &o.items).flat_map(|(_, e)| e.free_columns());
            let have = rel.columns();
            let mut wanted: Vec<ColumnRef> = vec![target.locator];
            for column in target.columns.iter().copied().chain(extra) {
                if have.contains(&column) && !wanted.contains(&column) {
                    wanted.push(column);
                }
            }
            let exprs = wanted.into_iter().map(|c| (c, self.column_expr(c))).collect();
            rel = self.once(Rel::Project { input: Box::new(rel), exprs }, target.locator);
        }
        if of_view || self.is_instead(&target.table, ChangeAction::Delete) {
            return Ok(BoundStmt::Instead(Box::new(BoundInstead {
                table: target.table,
                action: ChangeAction::Delete,
                input: rel,
                old: target.columns,
                new: Vec::new(),
                updated: Vec::new(),
                output,
            })));
        }
        Ok(BoundStmt::Delete(Box::new(BoundDelete {
            table: target.table,
            input: rel,
            locator: target.locator,
            old: target.columns,
            output,
        })))
    }
}
