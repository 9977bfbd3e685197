//! FOR JSON AUTO and FOR XML AUTO over several tables: which column stands on which level, and rows put into one another.
//!
//! ```text
//! columns ── levels: a table each, in the order of the select list
//! row ─► its levels' texts, U+001E between them ─► rows joined by U+001D ─► FOR JSON NEST, FOR XML NEST: a level whose text is
//!                                                                         the row's before stays open
//! ```
//! A column that is no table's belongs to the level before it. Neither JSON nor XML text has the two signs in it. No locks,
//! nothing blocks.

use super::OutputName;
use super::for_json::{call, text};
use crate::algebra::BoundExpr;
use crate::bind::scope::same_name;
use thawdb_tsql::ast::{self, QueryBody, TableRef, TableRefKind};

/// Between the texts of a row's levels.
pub(crate) const LEVEL_END: char = '\u{1e}';
/// Between rows.
pub(crate) const ROW_END: &str = "\u{1d}";

/// A table of the select list.
pub(super) struct AutoLevel {
    /// What its elements are called.
    pub name: String,
    /// Positions of its columns among the outputs.
    pub columns: Vec<usize>,
}

/// The levels of a query, none where no column is a table's.
pub(super) fn levels(query: &ast::Query, outputs: &[OutputName]) -> Vec<AutoLevel> {
    let mut written = Vec::new();
    tables_of(query, &mut written);
    let mut levels: Vec<AutoLevel> = Vec::new();
    // Columns of no table in front of the first one that has one.
    let mut ahead = Vec::new();
    let mut last = 0;
    for (at, output) in outputs.iter().enumerate() {
        match &output.table {
            Some(table) => {
                let known = levels.iter().position(|level| same_name(&level.name, table));
                let level = known.unwrap_or_else(|| {
                    levels.push(AutoLevel { name: table.clone(), columns: std::mem::take(&mut ahead) });
                    levels.len() - 1
                });
                levels[level].columns.push(at);
                last = last.max(level);
            }
            None if levels.is_empty() => ahead.push(at),
            None => levels[last].columns.push(at),
        }
    }
    for level in &mut levels {
        if let Some((_, shown)) = written.iter().find(|(name, _)| same_name(name, &level.name)) {
            level.name.clone_from(shown);
        }
    }
    levels
}

/// Exposed names of the tables in FROM, and how they are written.
fn tables_of(query: &ast::Query, found: &mut Vec<(String, String)>) {
    match &query.body {
        QueryBody::Select(select) => select.from.iter().for_each(|table| tables_in(table, found)),
        QueryBody::Paren(inner) => tables_of(inner, found),
        QueryBody::Set { .. } => {}
    }
}

fn tables_in(table: &TableRef, found: &mut Vec<(String, String)>) {
    match &table.kind {
        TableRefKind::Join { left, right, .. } | TableRefKind::Apply { left, right, .. } => {
            tables_in(left, found);
            tables_in(right, found);
        }
        TableRefKind::Table(named) if named.alias.is_none() => {
            let name = &named.name.name.text;
            let shown = named.name.schema.as_ref().map_or_else(|| name.clone(), |schema| format!("{}.{name}", schema.text));
            found.push((name.clone(), shown));
        }
        _ => {}
    }
}

/// A row of several levels.
pub(super) fn row_of(levels: Vec<BoundExpr>) -> BoundExpr {
    let mut parts = Vec::with_capacity(levels.len() * 2);
    for level in levels {
        if !parts.is_empty() {
            parts.push(text(LEVEL_END.to_string()));
        }
        parts.push(level);
    }
    call("CONCAT", parts)
}

/// Puts rows into one another: `open` begins the element of a level that has others inside, `close` ends it; `between` stands
/// between elements of one level.
pub(crate) fn nest(rows: &str, between: &str, open: impl Fn(&mut String, usize, &str), close: impl Fn(&mut String, usize)) -> String {
    let mut out = String::with_capacity(rows.len());
    let mut before: Vec<&str> = Vec::new();
    for row in rows.split(ROW_END) {
        let levels: Vec<&str> = row.split(LEVEL_END).collect();
        let innermost = levels.len() - 1;
        let shared = before.iter().zip(&levels[..innermost]).take_while(|(a, b)| a == b).count();
        if !before.is_empty() {
            (shared..innermost).rev().for_each(|level| close(&mut out, level));
            out.push_str(between);
        }
        (shared..innermost).for_each(|level| open(&mut out, level, levels[level]));
        out.push_str(levels[innermost]);
        before = levels;
    }
    (0..before.len().saturating_sub(1)).rev().for_each(|level| close(&mut out, level));
    out
}
