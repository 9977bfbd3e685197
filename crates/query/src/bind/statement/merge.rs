//! MERGE: target and source joined once, each joined row given the first clause that takes it.
//!
//! ```text
//! source ─┐                              action: number of the clause that takes the row, NULL for none
//!         ├─ join by ON ─► action ─► rows with an action ─► TOP ─► values of each clause
//! target ─┘  (outer where NOT MATCHED clauses need it)
//! ```
//!
//! 1. Actions are numbered deletes first, then updates, then inserts: the executor takes rows in that order, so that
//!    uniqueness is judged as if all had happened at once.
//! 2. A clause's values are computed for its own rows alone (a CASE over the action), before any row changes.
//! 3. NOT MATCHED sees the source only (5333), NOT MATCHED BY SOURCE the target only (5334).
//!
//! Messages: 5324, 10710, 10711, 10714 (which clauses may stand where), 5318 (one name for both sides). That a target row
//! is met twice (8672) is the executor's to see.

use super::output::InputColumns;
use super::target::{Target, base_of};
use super::{BoundMerge, BoundStmt, MergeStepKind};
use crate::access::AccessAction;
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::scope::{ScopeTable, same_name};
use crate::bind::{Binder, Clause, HiddenTables, Level};
use crate::compile::ChangeAction;
use crate::phys::JoinKind;
use thawdb_tsql::ast::{self, InsertSource, MergeAction, MergeClause, MergeWhen};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Both sides of a MERGE, bound.
struct Sides {
    target: Target,
    target_tables: Vec<ScopeTable>,
    source_tables: Vec<ScopeTable>,
    /// A column of the source that is never NULL where a source row stands.
    marker: ColumnRef,
}

impl Binder<'_> {
    /// Binds a MERGE statement.
    pub(crate) fn bind_merge(&mut self, merge: &ast::Merge) -> Result<BoundStmt, SqlError> {
        if let Some(with) = &merge.with {
            self.push_ctes(with)?;
        }
        check_clauses(&merge.clauses)?;
        self.levels.push(Level::new());
        let bound = self.bind_merge_level(merge);
        self.levels.pop();
        bound
    }

    fn bind_merge_level(&mut self, merge: &ast::Merge) -> Result<BoundStmt, SqlError> {
        let mut sides = self.merge_sides(merge)?;
        let mut order: Vec<usize> = (0..merge.clauses.len()).collect();
        order.sort_by_key(|at| rank(&merge.clauses[*at].action));
        let action = self.columns.add("", SqlType::Int, true);
        let mut branches = Vec::with_capacity(merge.clauses.len());
        for (at, clause) in merge.clauses.iter().enumerate() {
            let number = order.iter().position(|known| *known == at).expect("every clause is ordered");
            let condition = self.when(&sides, clause)?;
            branches.push((condition, number_expr(number)));
        }
        let chosen = BoundExpr::new(BoundExprKind::Case { branches, otherwise: None }, SqlType::Int);
        let rel = std::mem::replace(&mut sides.target.rel, Rel::OneRow);
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.push((action, chosen));
        let rel = Rel::Project { input: Box::new(rel), exprs };
        let operand = Box::new(self.column_expr(action));
        let taken = BoundExpr { kind: BoundExprKind::IsNull { operand, negated: true }, sql_type: SqlType::Bit, nullable: false };
        let rel = self.target_top(rel.filter(vec![taken]), merge.top.as_ref())?;
        let mut values = Vec::new();
        let mut steps = Vec::with_capacity(order.len());
        for (number, at) in order.into_iter().enumerate() {
            let clause = &merge.clauses[at];
            let kind = self.seen_by(&sides, clause.when, |b| b.merge_step(merge, &sides, clause))?;
            steps.push(self.step_values(kind, action, number, &mut values));
        }
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.extend(values);
        let rel = Rel::Project { input: Box::new(rel), exprs };
        self.bind_merge_output(merge, sides, steps, action, rel)
    }

    fn bind_merge_output(
        &mut self,
        merge: &ast::Merge,
        sides: Sides,
        steps: Vec<MergeStepKind>,
        action: ColumnRef,
        rel: Rel,
    ) -> Result<BoundStmt, SqlError> {
        let target = sides.target;
        let name = self.columns.add("$action", SqlType::nvarchar(10), false);
        self.merge_action = Some(name);
        let mut level_tables = sides.target_tables;
        level_tables.extend(sides.source_tables);
        self.level().tables = level_tables;
        self.target_rows(&target.table);
        for step in &steps {
            match step {
                MergeStepKind::Delete => self.need_change(AccessAction::Delete, &target.table, &[]),
                MergeStepKind::Insert { .. } => self.need_change(AccessAction::Insert, &target.table, &[]),
                MergeStepKind::Update { assignments } => {
                    let set: Vec<usize> = assignments.iter().map(|(at, _)| *at).collect();
                    self.need_change(AccessAction::Update, &target.table, &set);
                }
            }
        }
        let input = InputColumns { deleted: target.columns.clone(), target: target.position, merge: true };
        let output = self.bind_output(&merge.output, &target.table, Some(&input));
        self.merge_action = None;
        let output = output?;
        let computed = self.stored_computed(&target.table)?;
        Ok(BoundStmt::Merge(Box::new(BoundMerge {
            table: target.table,
            input: rel,
            locator: target.locator,
            old: target.columns,
            action,
            action_name: name,
            steps,
            computed,
            output,
        })))
    }

    /// Binds target, source and ON, and joins them as the clauses need it.
    fn merge_sides(&mut self, merge: &ast::Merge) -> Result<Sides, SqlError> {
        let (mut own, position) = self.target_and_from(&merge.target, &[])?;
        if let Some(alias) = &merge.alias {
            let scope = &mut self.level().tables[position];
            (scope.name, scope.alias) = (alias.text.clone(), true);
        }
        let scope = self.level().tables[position].clone();
        let get = base_of(&own, &scope, merge.target.span)?;
        self.choose_view_check(&get, &scope.name, merge.target.span)?;
        self.refuse_history(&get.table, None, merge.target.span)?;
        self.depend(&get.table, true);
        let read: Vec<ColumnRef> = get.columns.iter().map(|(_, c)| *c).collect();
        let place = |c: &ColumnRef| get.columns.iter().find(|(_, id)| id == c).map(|(p, _)| *p);
        let names = scope.columns.iter().filter_map(|c| place(&c.column).map(|p| (c.name.clone(), p))).collect();
        let derived = scope.columns.iter().filter(|c| place(&c.column).is_none()).map(|c| c.name.clone()).collect();
        let locator = self.columns.add("", SqlType::varbinary(1700), true);
        if !self.expose(&mut own, &read, locator) {
            return Err(error(4403, &[&scope.name], merge.target.span));
        }
        let (own, columns) = self.all_columns(own, &get);
        self.check_merge_triggers(merge, &get.table)?;
        self.level().tables.clear();
        let (source, source_tables) = self.bind_table_ref(&merge.source)?;
        if source_tables.iter().any(|table| same_name(&table.name, &scope.name) && table.alias == scope.alias) {
            return Err(error(5318, &[], merge.target.span));
        }
        let marker = self.columns.add("", SqlType::Int, true);
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = source.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.push((marker, BoundExpr::literal(Scalar::Int(1), SqlType::Int)));
        let source = Rel::Project { input: Box::new(source), exprs };
        let target_tables = vec![scope.clone()];
        self.level().tables = target_tables.iter().chain(&source_tables).cloned().collect();
        let on = self.bind_condition(&merge.on)?.conjuncts();
        let has = |when: MergeWhen| merge.clauses.iter().any(|clause| clause.when == when);
        let kind = match (has(MergeWhen::NotMatchedByTarget), has(MergeWhen::NotMatchedBySource)) {
            (false, false) => JoinKind::Inner,
            (true, false) => JoinKind::LeftOuter,
            (false, true) => JoinKind::RightOuter,
            (true, true) => JoinKind::FullOuter,
        };
        self.make_nullable(&target_tables);
        self.make_nullable(&source_tables);
        for column in &columns {
            self.columns.info_mut(*column).nullable = true;
        }
        let rel = Rel::Join { left: Box::new(source), right: Box::new(own), kind, predicates: on, hint: None };
        let (table, name) = (get.table.clone(), scope.name.clone());
        let target = Target { table, rel, locator, columns, names, name, derived, joined: true, position: 0 };
        Ok(Sides { target, target_tables, source_tables, marker })
    }

    /// 334, and 5316 for INSTEAD OF triggers on some of the actions alone.
    fn check_merge_triggers(&self, merge: &ast::Merge, table: &thawdb_catalog::TableDef) -> Result<(), SqlError> {
        let action = |clause: &MergeClause| match clause.action {
            MergeAction::Delete => ChangeAction::Delete,
            MergeAction::Update(_) => ChangeAction::Update,
            MergeAction::Insert { .. } => ChangeAction::Insert,
        };
        let actions: Vec<ChangeAction> = merge.clauses.iter().map(action).collect();
        self.check_output(&merge.output, table, &actions)?;
        let instead = actions.iter().filter(|action| self.is_instead(table, **action)).count();
        match instead {
            0 => Ok(()),
            some if some < actions.len() => Err(error(5316, &[&table.name], merge.target.span)),
            _ => Err(not_built("MERGE where INSTEAD OF triggers run", merge.target.span)),
        }
    }

    /// Whether a clause takes a row, as a condition over the join.
    fn when(&mut self, sides: &Sides, clause: &MergeClause) -> Result<BoundExpr, SqlError> {
        let present = |b: &Self, column: ColumnRef, negated: bool| BoundExpr {
            kind: BoundExprKind::IsNull { operand: Box::new(b.column_expr(column)), negated },
            sql_type: SqlType::Bit,
            nullable: false,
        };
        let (target, source) = (sides.target.locator, sides.marker);
        let mut terms = match clause.when {
            MergeWhen::Matched => vec![present(self, target, true), present(self, source, true)],
            MergeWhen::NotMatchedByTarget => vec![present(self, target, false)],
            MergeWhen::NotMatchedBySource => vec![present(self, source, false)],
        };
        if let Some(condition) = &clause.condition {
            terms.push(self.seen_by(sides, clause.when, |b| b.within(Clause::Where, |b| b.bind_condition(condition)))?);
        }
        Ok(BoundExpr::and(terms))
    }

    /// Binds with what a kind of clause may look at.
    fn seen_by<T>(&mut self, sides: &Sides, when: MergeWhen, bind: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        let (target, source) = (&sides.target_tables, &sides.source_tables);
        let (seen, hidden) = match when {
            MergeWhen::Matched => (target.iter().chain(source).cloned().collect(), None),
            MergeWhen::NotMatchedByTarget => (source.clone(), Some(HiddenTables { number: 5333, tables: target.clone() })),
            MergeWhen::NotMatchedBySource => (target.clone(), Some(HiddenTables { number: 5334, tables: source.clone() })),
        };
        let before = std::mem::replace(&mut self.level().tables, seen);
        self.level().hidden = hidden;
        let bound = bind(self);
        self.level().tables = before;
        self.level().hidden = None;
        bound
    }

    fn merge_step(&mut self, merge: &ast::Merge, sides: &Sides, clause: &MergeClause) -> Result<MergeStepKind, SqlError> {
        match &clause.action {
            MergeAction::Delete => Ok(MergeStepKind::Delete),
            MergeAction::Update(assignments) => {
                let set = self.within(Clause::Set, |b| b.bind_assignments(assignments, &sides.target))?;
                if !set.variables.is_empty() {
                    return Err(not_built("SET @variable in MERGE", clause.span));
                }
                let mut assignments = set.columns;
                self.begin_period(&sides.target.table, &mut assignments);
                Ok(MergeStepKind::Update { assignments })
            }
            MergeAction::Insert { columns, values } => self.merge_insert(merge, sides, columns, values, clause),
        }
    }

    fn merge_insert(
        &mut self,
        merge: &ast::Merge,
        sides: &Sides,
        columns: &[ast::Ident],
        values: &[ast::Expr],
        clause: &MergeClause,
    ) -> Result<MergeStepKind, SqlError> {
        let table = sides.target.table.clone();
        let source = if values.is_empty() { InsertSource::DefaultValues } else { InsertSource::Values(Vec::new()) };
        let mut insert = ast::Insert {
            with: None,
            top: None,
            target: merge.target.clone(),
            columns: columns.to_vec(),
            output: Vec::new(),
            source,
            hints: Vec::new(),
        };
        if sides.target_tables[0].base.is_none() {
            let place = |name: &str| sides.target.names.iter().find(|(known, _)| same_name(known, name)).map(|(_, at)| *at);
            let through: Vec<_> = sides.target_tables[0].columns.iter().map(|c| (c.name.clone(), place(&c.name))).collect();
            insert = super::insert::through_view(&insert, &table, &through)?;
        }
        let mut targets = self.insert_targets(&table, &insert, clause.span)?;
        if values.is_empty() {
            targets.clear();
        } else {
            let numbers = if insert.columns.is_empty() { (213, 213) } else { (109, 110) };
            self.check_width(&table, &targets, values.len(), numbers, clause.span)?;
        }
        let mut given = Vec::with_capacity(values.len());
        for (index, value) in targets.iter().zip(values) {
            let column = &table.columns[*index];
            if let Some(generated) = self.period_value(&table, *index) {
                if !matches!(value.kind, ast::ExprKind::Default) {
                    return Err(error(13_536, &[&self.full_name(&table)], value.span));
                }
                given.push((*index, generated));
                continue;
            }
            let bound = match value.kind {
                ast::ExprKind::Default if column.identity.is_some() => return Err(error(339, &[], value.span)),
                ast::ExprKind::Default => self.column_default(column, value.span)?,
                _ => self.within(Clause::Set, |b| b.bind_expr(value))?,
            };
            given.push((*index, crate::bind::coerce::store(bound, column.sql_type, value.span)?));
        }
        let defaults = self.missing_defaults(&table, &targets, clause.span)?;
        Ok(MergeStepKind::Insert { values: given, defaults })
    }

    /// Gives each value of a clause a column that is computed for its own rows alone.
    fn step_values(
        &mut self,
        mut kind: MergeStepKind,
        action: ColumnRef,
        number: usize,
        computed: &mut Vec<(ColumnRef, BoundExpr)>,
    ) -> MergeStepKind {
        let values = match &mut kind {
            MergeStepKind::Delete => &mut Vec::new(),
            MergeStepKind::Update { assignments } => assignments,
            MergeStepKind::Insert { values, .. } => values,
        };
        for (_, value) in values {
            if matches!(value.kind, BoundExprKind::Literal(_) | BoundExprKind::Variable(_)) {
                continue;
            }
            let column = self.columns.add("", value.sql_type, true);
            let own = BoundExpr::compare(crate::expr::CompareOp::Equal, self.column_expr(action), number_expr(number));
            let sql_type = value.sql_type;
            let kind = BoundExprKind::Case { branches: vec![(own, value.clone())], otherwise: None };
            computed.push((column, BoundExpr::new(kind, sql_type)));
            *value = self.column_expr(column);
        }
        kind
    }
}

fn number_expr(number: usize) -> BoundExpr {
    let number = i32::try_from(number).expect("a statement has few clauses");
    BoundExpr::literal(Scalar::Int(number), SqlType::Int)
}

/// Deletes come before updates, updates before inserts.
fn rank(action: &MergeAction) -> u8 {
    match action {
        MergeAction::Delete => 0,
        MergeAction::Update(_) => 1,
        MergeAction::Insert { .. } => 2,
    }
}

fn action_word(action: &MergeAction) -> &'static str {
    match action {
        MergeAction::Delete => "DELETE",
        MergeAction::Update(_) => "UPDATE",
        MergeAction::Insert { .. } => "INSERT",
    }
}

fn when_words(when: MergeWhen) -> &'static str {
    match when {
        MergeWhen::Matched => "WHEN MATCHED",
        MergeWhen::NotMatchedByTarget => "WHEN NOT MATCHED",
        MergeWhen::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
    }
}

/// Which clauses may stand where, and how often.
fn check_clauses(clauses: &[MergeClause]) -> Result<(), SqlError> {
    for (at, clause) in clauses.iter().enumerate() {
        let (action, when) = (action_word(&clause.action), when_words(clause.when));
        let inserts = matches!(clause.action, MergeAction::Insert { .. });
        match clause.when {
            MergeWhen::NotMatchedByTarget if !inserts => return Err(error(10710, &[&action], clause.span)),
            MergeWhen::Matched | MergeWhen::NotMatchedBySource if inserts => return Err(error(10711, &[&when], clause.span)),
            _ => {}
        }
        for before in clauses[..at].iter().filter(|before| before.when == clause.when) {
            if rank(&before.action) == rank(&clause.action) {
                return Err(error(10714, &[&action, &when], clause.span));
            }
            if before.condition.is_none() {
                return Err(error(5324, &[&when, &when], clause.span));
            }
        }
    }
    Ok(())
}
