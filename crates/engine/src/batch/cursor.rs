//! Statements of cursors: DECLARE, SET @c = CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE.
//!
//! ```text
//! DECLARE ─ options agree? (1048) query compiles? ─► declaration with the variables' values ─► a name means it
//! OPEN ─ a frame of those values ─► compile, lock, run to the end ─► rows kept ─► FETCH moves, FETCH INTO assigns
//! ```
//!
//! 1. Values of variables in the query are those at DECLARE, as documented.
//! 2. Rows are those at OPEN whatever the cursor's kind; the kinds differ in what is allowed and told (16911, 16925, 16929,
//!    @@CURSOR_ROWS), not in what is seen.
//!
//! Failure: an OPEN that fails leaves the cursor closed; a FETCH that fails has not moved it.

use crate::api::sink::StatementKind;
use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::message;
use crate::rows;
use crate::session::cursors::{CursorDeclaration, CursorId, CursorKind, OpenCursor};
use crate::session::frame::Frame;
use crate::session::temporary::VARIABLES_ID;
use std::sync::Arc;
use thawdb_query::compile::{Compiled, CursorTable, compile_cursor};
use thawdb_query::exec::{self, Rows};
use thawdb_tsql::ast::{
    CursorDefinition, CursorName, DeclareCursor, Expr, ExprKind, Fetch, FetchDirection, ForClause, SetCursor, StmtKind, Variable,
};
use thawdb_types::convert::{CastRule, implicit_cast};
use thawdb_types::{SqlError, scalar_at};

/// Definitions may change while OPEN waits for a lock; after so many compilations it goes on with the last.
const COMPILES_MAX: usize = 20;

/// Options that exclude each other.
const CONFLICTS: &[(&str, &str)] = &[
    ("LOCAL", "GLOBAL"),
    ("FORWARD_ONLY", "SCROLL"),
    ("STATIC", "KEYSET"),
    ("STATIC", "DYNAMIC"),
    ("STATIC", "FAST_FORWARD"),
    ("KEYSET", "DYNAMIC"),
    ("KEYSET", "FAST_FORWARD"),
    ("DYNAMIC", "FAST_FORWARD"),
    ("FAST_FORWARD", "SCROLL"),
    ("FAST_FORWARD", "SCROLL_LOCKS"),
    ("FAST_FORWARD", "OPTIMISTIC"),
    ("STATIC", "SCROLL_LOCKS"),
    ("READ_ONLY", "SCROLL_LOCKS"),
    ("READ_ONLY", "OPTIMISTIC"),
    ("SCROLL_LOCKS", "OPTIMISTIC"),
];

impl Interpreter<'_, '_> {
    /// Runs a statement of cursors.
    pub(crate) fn cursor_statement(&mut self, kind: &StmtKind) -> Result<(), Failure> {
        match kind {
            StmtKind::DeclareCursor(node) => self.declare_cursor(node)?,
            StmtKind::SetCursor(node) => self.set_cursor(node)?,
            StmtKind::OpenCursor(name) => self.open_cursor(name)?,
            StmtKind::CloseCursor(name) => {
                let id = self.session.cursor_named(name)?;
                let cursor = self.session.cursors.all.get_mut(&id).expect("a name means a cursor that is there");
                cursor.open.take().ok_or_else(|| message(16_917, &[]))?;
            }
            StmtKind::DeallocateCursor(name) => self.deallocate_cursor(name)?,
            StmtKind::Fetch(node) => return self.fetch(node),
            other => unreachable!("{other:?} is no statement of cursors"),
        }
        self.session.row_count = 0;
        self.session.last_error = 0;
        Ok(())
    }

    fn declare_cursor(&mut self, node: &DeclareCursor) -> Result<(), Failure> {
        let declaration = self.declaration(&node.cursor, node.name.span.line)?;
        let key = node.name.text.to_lowercase();
        let local = node.cursor.options.iter().any(|option| option == "LOCAL");
        let session = &mut *self.session;
        let names = if local { session.frame().cursors.contains_key(&key) } else { session.cursors.globals.contains_key(&key) };
        if names {
            return Err(message(16_915, &[&node.name.text]).into());
        }
        let id = session.cursors.add(declaration);
        if local {
            session.frame_mut().cursors.insert(key, Some(id));
        } else {
            session.cursors.globals.insert(key, id);
        }
        Ok(())
    }

    fn set_cursor(&mut self, node: &SetCursor) -> Result<(), Failure> {
        self.cursor_variable(&node.variable)?;
        let declaration = self.declaration(&node.cursor, node.variable.span.line)?;
        let id = self.session.cursors.add(declaration);
        self.point_variable(&node.variable, Some(id));
        Ok(())
    }

    /// SET @c = name, SET @c = @other; false if `@c` is no cursor variable.
    pub(crate) fn set_cursor_variable(&mut self, variable: &Variable, value: &Expr) -> Result<bool, Failure> {
        if !self.session.frame().cursors.contains_key(&variable.name.to_lowercase()) {
            return Ok(false);
        }
        let named = match &value.kind {
            ExprKind::Column(column) if column.table.is_none() => CursorName::Name { name: column.column.clone(), global: false },
            ExprKind::Variable(other) => CursorName::Variable(other.clone()),
            _ => return Err(message(16_950, &[&variable.name]).into()),
        };
        let id = self.session.cursor_named(&named)?;
        self.point_variable(variable, Some(id));
        Ok(true)
    }

    fn cursor_variable(&self, variable: &Variable) -> Result<(), SqlError> {
        let frame = self.session.frame();
        match frame.cursors.contains_key(&variable.name.to_lowercase()) {
            true => Ok(()),
            false if frame.position(&variable.name).is_some() => Err(message(16_948, &[&variable.name])),
            false => Err(message(137, &[&variable.name])),
        }
    }

    fn point_variable(&mut self, variable: &Variable, id: Option<CursorId>) {
        self.session.frame_mut().cursors.insert(variable.name.to_lowercase(), id);
        self.session.forget_unnamed_cursors();
    }

    /// What a cursor is declared as; its query is compiled to tell what is wrong with it.
    fn declaration(&mut self, definition: &CursorDefinition, line: u32) -> Result<CursorDeclaration, Failure> {
        let has = |option: &str| definition.options.iter().any(|given| given == option);
        for (one, other) in CONFLICTS.iter().filter(|(one, other)| has(one) && has(other)) {
            return Err(Failure::compile(message(1048, &[one, other])));
        }
        let for_update = matches!(definition.for_clause, Some(ForClause::Update(_)));
        let fixed = ["STATIC", "INSENSITIVE", "FAST_FORWARD", "READ_ONLY"].into_iter().find(|option| has(option));
        if let Some(option) = fixed.filter(|_| for_update) {
            return Err(Failure::compile(message(1048, &[&option, &"FOR UPDATE"])));
        }
        let kind = match () {
            () if has("STATIC") || has("INSENSITIVE") => CursorKind::Static,
            () if has("KEYSET") || (has("SCROLL") && !has("DYNAMIC")) => CursorKind::Keyset,
            () if has("FAST_FORWARD") => CursorKind::FastForward,
            () => CursorKind::Dynamic,
        };
        let scrolls = has("SCROLL") || (!has("FORWARD_ONLY") && ["STATIC", "KEYSET", "DYNAMIC"].into_iter().any(has));
        let read_only = fixed.is_some() || matches!(definition.for_clause, Some(ForClause::ReadOnly));
        let cx = CompileCx::new(self.session, self.at);
        let (plan, _) = compile_cursor(&definition.query, !read_only, line, &cx).map_err(Failure::compile)?;
        self.session.may_run(&plan)?;
        let frame = self.session.frame();
        let mut variables: Vec<_> = frame.variables.iter().filter(|variable| variable.declared_at <= self.at).cloned().collect();
        variables.iter_mut().for_each(|variable| variable.declared_at = 0);
        let table_variables = frame.table_variables.clone();
        let query = Arc::new((*definition.query).clone());
        Ok(CursorDeclaration { kind, scrolls, read_only, query, line, variables, table_variables })
    }

    fn open_cursor(&mut self, name: &CursorName) -> Result<(), Failure> {
        let id = self.session.cursor_named(name)?;
        let cursor = &self.session.cursors.all[&id];
        if cursor.open.is_some() {
            return Err(message(16_905, &[]).into());
        }
        let declaration = cursor.declaration.clone();
        let opened = self.open_rows(&declaration)?;
        if let Some(cursor) = self.session.cursors.all.get_mut(&id) {
            cursor.open = Some(opened);
        }
        self.session.cursors.last_opened = Some(id);
        Ok(())
    }

    /// The rows of a cursor as they are now, read in a frame of its declaration's values.
    pub(crate) fn open_rows(&mut self, declaration: &CursorDeclaration) -> Result<OpenCursor, Failure> {
        let around = self.session.frame();
        let mut frame = Frame {
            variables: declaration.variables.clone(),
            guarded: self.guarded,
            chain: around.chain,
            schema: around.schema.clone(),
            contexts: around.contexts,
            ..Frame::default()
        };
        let there = |table: &thawdb_catalog::TableDef| self.session.table(VARIABLES_ID, table.id).is_some();
        frame.table_variables =
            declaration.table_variables.iter().filter(|(_, table)| there(table)).map(|(n, t)| (n.clone(), t.clone())).collect();
        frame.rowsets.clone_from(&self.session.frame().rowsets);
        self.session.frames.push(frame);
        let opened = self.transactional(|this| this.rows_of_cursor(declaration));
        self.session.frames.pop();
        opened
    }

    fn rows_of_cursor(&mut self, declaration: &CursorDeclaration) -> Result<OpenCursor, Failure> {
        let (plan, tables) = self.cursor_plan(declaration)?;
        let grant = thawdb_query::context::StatementHost::memory_grant_bytes(self.session);
        let mut execution = exec::run(&plan.node, self.session)?;
        let (mut batches, mut count, mut bytes) = (Vec::new(), 0, 0);
        while let Some(batch) = execution.next(self.session)? {
            count += batch.rows as u64;
            bytes += batch.memory_bytes();
            if bytes > grant {
                return Err(message(701, &[&"default"]).into());
            }
            batches.push(batch);
        }
        let mut columns = plan.columns.clone();
        columns.truncate(tables.first().map_or(columns.len(), |table| table.locator));
        Ok(OpenCursor { columns, tables, batches, count, position: 0 })
    }

    fn cursor_plan(&mut self, declaration: &CursorDeclaration) -> Result<(Compiled, Vec<CursorTable>), Failure> {
        let mut tried = 0;
        loop {
            let cx = CompileCx::new(self.session, usize::MAX);
            let made = compile_cursor(&declaration.query, !declaration.read_only, declaration.line, &cx);
            let (plan, tables) = made.map_err(Failure::compile)?;
            self.session.may_run(&plan)?;
            self.lock_tables(&plan.dependencies)?;
            let session = &self.session;
            let same = plan.dependencies.iter().all(|d| session.tables(d.database).map(|t| t.version) == Some(d.catalog_version));
            tried += 1;
            if same || tried >= COMPILES_MAX {
                return Ok((plan, tables));
            }
        }
    }

    fn deallocate_cursor(&mut self, name: &CursorName) -> Result<(), Failure> {
        self.session.cursor_named(name)?;
        match name {
            CursorName::Variable(variable) => self.point_variable(variable, None),
            CursorName::Name { name, global } => {
                let key = name.text.to_lowercase();
                if *global || self.session.frame_mut().cursors.remove(&key).is_none() {
                    self.session.cursors.globals.remove(&key);
                }
                self.session.forget_unnamed_cursors();
            }
        }
        Ok(())
    }

    fn fetch(&mut self, node: &Fetch) -> Result<(), Failure> {
        let id = self.session.cursor_named(&node.cursor)?;
        let declaration = self.session.cursors.all[&id].declaration.clone();
        let (word, by) = match &node.direction {
            FetchDirection::Next => ("next", None),
            FetchDirection::Prior => ("prior", None),
            FetchDirection::First => ("first", None),
            FetchDirection::Last => ("last", None),
            FetchDirection::Absolute(by) => ("absolute", Some(by)),
            FetchDirection::Relative(by) => ("relative", Some(by)),
        };
        if !declaration.scrolls && word != "next" {
            return Err(message(16_911, &[&"fetch", &word]).into());
        }
        if declaration.kind == CursorKind::Dynamic && word == "absolute" {
            return Err(message(16_925, &[&word]).into());
        }
        let by = match by {
            Some(by) => self.int_value(by)?.ok_or_else(|| message(16_902, &[&"FETCH", &"@fetch"]))?,
            None => 0,
        };
        let open = self.session.cursors.all[&id].open.as_ref().ok_or_else(|| message(16_917, &[]))?;
        let position = moved(open.position, open.count, word, by);
        let row = open.row(position);
        if node.into.is_empty() {
            let columns = open.columns.clone();
            self.out.columns(&columns)?;
            if let Some(mut row) = row.clone() {
                row.columns.truncate(columns.len());
                self.out.rows(&row.into())?;
            }
        } else {
            self.fetch_into(id, &node.into, row.as_ref())?;
        }
        let found = row.is_some();
        let open = self.session.cursors.all.get_mut(&id).and_then(|cursor| cursor.open.as_mut());
        open.expect("a fetch closes no cursor").position = position;
        self.session.cursors.fetch_status = if found { 0 } else { -1 };
        self.counted(u64::from(found));
        if node.into.is_empty() {
            self.out.done(StatementKind::Select, self.shown_count(u64::from(found)), false);
        }
        Ok(())
    }

    /// Puts a row into variables: 16924 where their number is another, 16922 where a value does not convert by itself.
    fn fetch_into(&mut self, id: CursorId, into: &[Variable], row: Option<&thawdb_types::Batch>) -> Result<(), Failure> {
        let columns = &self.session.cursors.all[&id].open.as_ref().expect("seen by the caller").columns;
        if columns.len() != into.len() {
            return Err(message(16_924, &[]).into());
        }
        let mut values = Vec::with_capacity(into.len());
        for (at, (variable, column)) in into.iter().zip(columns).enumerate() {
            let frame = self.session.frame();
            let place = frame.position(&variable.name).ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
            let to = frame.variables[place].sql_type;
            if implicit_cast(&column.sql_type, &to) != CastRule::Allowed {
                return Err(message(16_922, &[&column.sql_type.message_name(), &to.message_name()]).into());
            }
            if let Some(row) = row {
                let value = scalar_at(row.columns[at].as_ref(), 0, &column.sql_type);
                values.push((place, rows::convert(&value, &column.sql_type, &to)?));
            }
        }
        for (place, value) in values {
            self.session.frame_mut().variables[place].value = value;
        }
        Ok(())
    }
}

/// Where a fetch from `position` of `count` rows leads.
fn moved(position: u64, count: u64, word: &str, by: i64) -> u64 {
    let (from, rows) = (i128::from(position), i128::from(count));
    let to = match word {
        "next" => from + 1,
        "prior" => from - 1,
        "first" => 1,
        "last" if rows == 0 => 1,
        "last" => rows,
        "absolute" if by < 0 => rows + 1 + i128::from(by),
        "absolute" => i128::from(by),
        _ => from + i128::from(by),
    };
    u64::try_from(to.clamp(0, rows + 1)).expect("clamped")
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn fetches_stay_between_before_the_first_and_behind_the_last() {
        for (from, word, by, to) in [
            (0, "next", 0, 1),
            (3, "next", 0, 4),
            (4, "next", 0, 4),
            (1, "prior", 0, 0),
            (0, "prior", 0, 0),
            (4, "prior", 0, 3),
            (2, "last", 0, 3),
            (2, "absolute", -1, 3),
            (2, "absolute", -9, 0),
            (2, "absolute", 9, 4),
            (2, "relative", -1, 1),
            (2, "relative", i64::MIN, 0),
        ] {
            assert_eq!(moved(from, 3, word, by), to, "{word} {by} from {from}");
        }
        assert_eq!(moved(0, 0, "last", 0), 1);
    }
}
