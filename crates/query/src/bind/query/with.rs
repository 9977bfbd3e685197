//! Common table expressions, recursive ones included.
//!
//! ```text
//! reference ─► bind the text anew ─► Rel
//! recursive: anchor UNION ALL member that names itself ─► Rel::Recursive { anchor, recursive over WorkTable }
//! ```

use super::{BoundQuery, OutputName, QueryUse, Tail};
use crate::algebra::{BoundExpr, BoundExprKind, Rel};
use crate::bind::error::error;
use crate::bind::scope::same_name;
use crate::bind::{Binder, CteInReach};
use crate::phys::JoinKind;
use std::sync::Arc;
use thawdb_tsql::ast::{self, QueryBody, SetOp, TableRef, TableRefKind};
use thawdb_types::{SqlError, SqlType};

impl Binder<'_> {
    pub(crate) fn push_ctes(&mut self, with: &ast::With) -> Result<(), SqlError> {
        for (uri, prefix) in &with.xml_namespaces {
            self.xml_namespaces.push((prefix.as_ref().map_or_else(String::new, |prefix| prefix.text.clone()), uri.clone()));
        }
        for (index, cte) in with.ctes.iter().enumerate() {
            if with.ctes[..index].iter().any(|other| same_name(&other.name.text, &cte.name.text)) {
                return Err(error(239, &[&cte.name.text], cte.span));
            }
            self.ctes.push(CteInReach { cte: Arc::new(cte.clone()), recursion: None });
        }
        Ok(())
    }

    /// Position of the common table expression called `name`.
    pub(crate) fn find_cte(&self, name: &ast::ObjectName) -> Option<usize> {
        name.is_simple().then(|| self.ctes.iter().rposition(|c| same_name(&c.cte.name.text, &name.name.text))).flatten()
    }

    /// Binds a reference to the common table expression at `index`.
    pub(crate) fn bind_cte(&mut self, index: usize) -> Result<BoundQuery, SqlError> {
        let entry = self.ctes[index].clone();
        if let Some((work_table, shape)) = entry.recursion {
            return Ok(self.work_table_reference(work_table, &shape));
        }
        let (name, columns) = (entry.cte.name.text.clone(), entry.cte.columns.clone());
        // What it sees: itself and the ones before it, and nothing of the query that uses it.
        let levels = std::mem::take(&mut self.levels);
        let later = self.ctes.split_off(index + 1);
        let bound = if mentions_body(&entry.cte.query.body, &name) {
            self.bind_recursive(index, &entry.cte)
        } else {
            let own = self.ctes.pop();
            let bound = self.bind_query(&entry.cte.query, QueryUse::Derived);
            self.ctes.extend(own);
            bound
        };
        self.ctes.extend(later);
        self.levels = levels;
        let mut bound = bound?;
        rename_outputs(&mut bound.outputs, &columns, &name, entry.cte.span)?;
        Ok(bound)
    }

    fn work_table_reference(&mut self, work_table: u32, shape: &[(String, SqlType)]) -> BoundQuery {
        let outputs: Vec<OutputName> = shape
            .iter()
            .map(|(name, t)| OutputName { name: name.clone(), column: self.columns.add(name, *t, true), table: None })
            .collect();
        let columns = outputs.iter().map(|o| o.column).collect();
        BoundQuery { rel: Rel::WorkTable { work_table, columns }, outputs, assignments: Vec::new() }
    }

    fn bind_recursive(&mut self, index: usize, cte: &ast::Cte) -> Result<BoundQuery, SqlError> {
        let name = &cte.name.text;
        let QueryBody::Set { op: SetOp::UnionAll, operands, span } = &cte.query.body else {
            return Err(error(252, &[name], cte.span));
        };
        let first = operands.iter().position(|o| mentions_body(o, name)).unwrap_or(operands.len());
        if first == 0 {
            return Err(error(246, &[name], cte.span));
        }
        let tail = Tail { order_by: &[], offset: None, usage: QueryUse::Derived };
        let anchors = &operands[..first];
        let mut anchor = if let [one] = anchors { self.bind_body(one, tail)? } else { self.bind_set(SetOp::UnionAll, anchors, *span)? };
        rename_outputs(&mut anchor.outputs, &cte.columns, name, cte.span)?;
        let shape: Vec<(String, SqlType)> = anchor.outputs.iter().map(|o| (o.name.clone(), self.columns.info(o.column).sql_type)).collect();
        self.work_tables += 1;
        let work_table = self.work_tables;
        self.ctes[index].recursion = Some((work_table, shape.clone()));
        let members = &operands[first..];
        let member = if let [one] = members { self.bind_body(one, tail) } else { self.bind_set(SetOp::UnionAll, members, *span) };
        self.ctes[index].recursion = None;
        let member = member?;
        if let Some(number) = refused_in_recursion(&member.rel, work_table) {
            return Err(error(number, &[name], *span));
        }
        if member.outputs.len() != shape.len() {
            return Err(error(205, &[], *span));
        }
        for (output, (column_name, sql_type)) in member.outputs.iter().zip(&shape) {
            let have = self.columns.info(output.column).sql_type;
            if have != *sql_type {
                return Err(error(240, &[column_name, name], *span));
            }
        }
        let outputs: Vec<OutputName> =
            shape.iter().map(|(n, t)| OutputName { name: n.clone(), column: self.columns.add(n, *t, true), table: None }).collect();
        let pick = |q: BoundQuery| Box::new((q.rel, q.outputs.iter().map(|o| o.column).collect::<Vec<_>>()));
        let rel = Rel::Recursive {
            anchor: pick(anchor),
            recursive: pick(member),
            columns: outputs.iter().map(|o| o.column).collect(),
            work_table,
            depth_max: self.recursion_max,
        };
        Ok(BoundQuery { rel, outputs, assignments: Vec::new() })
    }
}

/// What a recursive member may not do with the rows before: 460 DISTINCT, 461 TOP, 462 outer joins, 467 aggregates, 253 two
/// references.
fn refused_in_recursion(rel: &Rel, work_table: u32) -> Option<i32> {
    let references = references(rel, work_table);
    if references == 0 {
        return None;
    }
    let own = match rel {
        Rel::Distinct { .. } => Some(460),
        Rel::Limit { .. } => Some(461),
        Rel::Join { kind: JoinKind::LeftOuter | JoinKind::RightOuter | JoinKind::FullOuter, .. } => Some(462),
        Rel::Apply { kind: JoinKind::LeftOuter, .. } => Some(462),
        Rel::Aggregate { .. } => Some(467),
        Rel::UnionAll { .. } | Rel::WorkTable { .. } => None,
        _ if references > 1 => Some(253),
        _ => None,
    };
    own.or_else(|| rel.inputs().into_iter().find_map(|input| refused_in_recursion(input, work_table)))
}

/// How often the rows before are read.
fn references(rel: &Rel, work_table: u32) -> usize {
    let own = matches!(rel, Rel::WorkTable { work_table: named, .. } if *named == work_table);
    usize::from(own) + rel.inputs().into_iter().map(|input| references(input, work_table)).sum::<usize>()
}

/// Gives a derived table's columns the names of its column list; 8155, 8156, 8158, 8159 for lists that do not do.
pub(crate) fn rename_outputs(outputs: &mut [OutputName], names: &[ast::Ident], table: &str, span: ast::Span) -> Result<(), SqlError> {
    if !names.is_empty() {
        if names.len() < outputs.len() {
            return Err(error(8158, &[&table], span));
        }
        if names.len() > outputs.len() {
            return Err(error(8159, &[&table], span));
        }
        for (output, name) in outputs.iter_mut().zip(names) {
            output.name.clone_from(&name.text);
        }
    }
    for (index, output) in outputs.iter().enumerate() {
        if output.name.is_empty() {
            return Err(error(8155, &[&(index + 1), &table], span));
        }
        if outputs[..index].iter().any(|other| same_name(&other.name, &output.name)) {
            return Err(error(8156, &[&output.name, &table], span));
        }
    }
    Ok(())
}

/// A value for a column of `target`'s type, for unions.
pub(super) fn converted(expr: BoundExpr, target: SqlType, span: ast::Span) -> Result<BoundExpr, SqlError> {
    match expr.kind {
        BoundExprKind::Column(_) if expr.sql_type == target => Ok(expr),
        _ => crate::bind::coerce::convert(expr, target, span),
    }
}

fn mentions_body(body: &QueryBody, name: &str) -> bool {
    match body {
        QueryBody::Select(select) => select.from.iter().any(|t| mentions_table(t, name)),
        QueryBody::Paren(query) => mentions_body(&query.body, name),
        QueryBody::Set { operands, .. } => operands.iter().any(|o| mentions_body(o, name)),
    }
}

fn mentions_table(table: &TableRef, name: &str) -> bool {
    match &table.kind {
        TableRefKind::Table(named) => named.name.is_simple() && same_name(&named.name.name.text, name),
        TableRefKind::Derived { query, .. } => mentions_body(&query.body, name),
        TableRefKind::Join { left, right, .. } | TableRefKind::Apply { left, right, .. } => {
            mentions_table(left, name) || mentions_table(right, name)
        }
        _ => false,
    }
}
