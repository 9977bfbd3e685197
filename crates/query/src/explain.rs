//! Plans as text: SHOWPLAN_TEXT and golden tests.
//!
//! ```text
//!   |--Sort(ORDER BY:([b] ASC))
//!        |--Clustered Index Seek(OBJECT:([shop].[dbo].[orders].[pk_orders]), SEEK:([id]=(5)))
//! ```
//!
//! One line an operator, its inputs indented below it, in SQL Server's words where it has them. A column is shown by the
//! name it has in the operator's input, `Expr` and its position where it has none; a column of an enclosing row as
//! `OUTER(level).name`. The text never depends on addresses or on the order of a hash map.

use crate::context::SessionInfo;
use crate::expr::{Aggregate, AggregateFunction, ArithmeticOp, CompareOp, Expr, ExprKind, SubqueryKind};
use crate::phys::{JoinKind, Node, NodeKind, OutputColumn, SeekBound, SeekRange, SortKey, WindowFunction};
use std::fmt::Write;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, TableDef};
use thawdb_types::{Scalar, SqlType};

/// The plan as indented text, one line an operator; `names` gives databases' names.
pub fn explain(node: &Node, names: &dyn Fn(DatabaseId) -> String) -> String {
    explain_lines(node, names).join("\n")
}

/// The lines of SHOWPLAN_TEXT.
pub fn explain_lines(node: &Node, names: &dyn Fn(DatabaseId) -> String) -> Vec<String> {
    let mut explainer = Explainer { lines: Vec::new(), names, outers: Vec::new() };
    explainer.node(node, 0);
    explainer.lines
}

/// Names of databases as a session knows them.
pub fn session_names(session: &dyn SessionInfo) -> impl Fn(DatabaseId) -> String + '_ {
    |database| match session.global("db_name") {
        Ok(Scalar::Text(name)) if session.database() == database => name,
        _ => format!("{}", database.0),
    }
}

struct Explainer<'n> {
    lines: Vec<String>,
    names: &'n dyn Fn(DatabaseId) -> String,
    outers: Vec<Vec<OutputColumn>>,
}

impl Explainer<'_> {
    fn node(&mut self, node: &Node, depth: usize) {
        let at = self.lines.len();
        self.lines.push(String::new());
        let mut inner = Vec::new();
        let text = self.describe(node, &mut inner);
        let indent = if depth == 0 { String::from("  |--") } else { format!("{}|--", " ".repeat(2 + depth * 5)) };
        self.lines[at] = indent + &text;
        for part in inner {
            match part {
                Part::Input(input) => self.node(input, depth + 1),
                Part::Under(outer, input) => {
                    self.outers.push(outer);
                    self.node(input, depth + 1);
                    self.outers.pop();
                }
            }
        }
    }

    fn describe<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::OneRow | NodeKind::Values { .. } | NodeKind::TableScan { .. } | NodeKind::SourceScan { .. } => self.leaf(node, inner),
            NodeKind::Filter { input, predicate } => {
                let text = format!("Filter(WHERE:({}))", self.expr(predicate, &input.columns, inner));
                inner.push(Part::Input(input));
                text
            }
            NodeKind::Project { input, exprs } => {
                let shown = self.list(exprs, &input.columns, inner);
                inner.push(Part::Input(input));
                format!("Compute Scalar(DEFINE:({shown}))")
            }
            NodeKind::Sort { .. } | NodeKind::TopN { .. } | NodeKind::Limit { .. } => self.order(node, inner),
            NodeKind::Distinct { input } => {
                inner.push(Part::Input(input));
                "Hash Match(Distinct)".into()
            }
            NodeKind::SingleRow { input } => {
                inner.push(Part::Input(input));
                "Assert(SINGLE ROW)".into()
            }
            NodeKind::Concatenate { inputs } => {
                inner.extend(inputs.iter().map(Part::Input));
                "Concatenation".into()
            }
            NodeKind::SetDifference { left, right, keep } => {
                inner.extend([Part::Input(left), Part::Input(right)]);
                if *keep { "Hash Match(Intersect)".into() } else { "Hash Match(Except)".into() }
            }
            NodeKind::Recursive { anchor, recursive, .. } => {
                inner.extend([Part::Input(anchor), Part::Input(recursive)]);
                "Index Spool(WITH STACK)".into()
            }
            NodeKind::WorkTableScan { .. } => "Table Spool".into(),
            NodeKind::Gather { input, .. } => {
                inner.push(Part::Input(input));
                "Parallelism(Gather Streams)".into()
            }
            NodeKind::HashAggregate { .. }
            | NodeKind::StreamAggregate { .. }
            | NodeKind::PartialAggregate { .. }
            | NodeKind::FinalAggregate { .. }
            | NodeKind::Window { .. } => self.grouping(node, inner),
            NodeKind::Apply { .. } | NodeKind::HashJoin { .. } | NodeKind::MergeJoin { .. } | NodeKind::NestedLoopJoin { .. } => {
                self.join(node, inner)
            }
            NodeKind::Insert { .. }
            | NodeKind::Update { .. }
            | NodeKind::Delete { .. }
            | NodeKind::Merge { .. }
            | NodeKind::Instead { .. }
            | NodeKind::AssignVariables { .. } => self.change(node, inner),
        }
    }

    fn leaf<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::Values { rows } => {
                let shown: Vec<String> = rows.iter().take(3).map(|r| format!("({})", self.list(r, &[], inner))).collect();
                let more = if rows.len() > 3 { format!(", ... {} rows", rows.len()) } else { String::new() };
                format!("Constant Scan(VALUES:({}{more}))", shown.join(","))
            }
            NodeKind::TableScan { table, index, ranges, residual, backward, locking, .. } => {
                let mut text = self.scan(table, *index, ranges, inner);
                if let Some(residual) = residual {
                    let _ = write!(text, ", WHERE:({})", self.expr(residual, &node.columns, inner));
                }
                text += match (backward, *index == 0 && table.indexes[0].keys.is_empty()) {
                    (true, _) => " ORDERED BACKWARD)",
                    (false, true) => ")",
                    (false, false) => " ORDERED FORWARD)",
                };
                text + locking.shown()
            }
            NodeKind::SourceScan { source, arguments, residual, .. } => {
                let mut text = format!("Table-valued function([{}]", source.name());
                if !arguments.is_empty() {
                    let _ = write!(text, "({})", self.list(arguments, &[], inner));
                }
                if let Some(residual) = residual {
                    let _ = write!(text, ", WHERE:({})", self.expr(residual, &node.columns, inner));
                }
                text + ")"
            }
            _ => "Constant Scan".into(),
        }
    }

    fn order<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::Sort { input, keys } => {
                let keys = self.keys(keys, &input.columns, inner);
                inner.push(Part::Input(input));
                format!("Sort(ORDER BY:({keys}))")
            }
            NodeKind::TopN { input, keys, limit, percent, with_ties } => {
                let limit = self.expr(limit, &[], inner);
                let keys = self.keys(keys, &input.columns, inner);
                inner.push(Part::Input(input));
                let percent = if *percent { " PERCENT" } else { "" };
                let ties = if *with_ties { " WITH TIES" } else { "" };
                format!("Sort(TOP {limit}{percent}{ties}, ORDER BY:({keys}))")
            }
            NodeKind::Limit { input, offset, limit, percent } => {
                let mut text = String::from("Top(");
                if let Some(offset) = offset {
                    let _ = write!(text, "OFFSET EXPRESSION:({}),", self.expr(offset, &[], inner));
                }
                let limit = limit.as_ref().map(|l| self.expr(l, &[], inner)).unwrap_or_default();
                inner.push(Part::Input(input));
                let percent = if *percent { " PERCENT" } else { "" };
                text + &format!("TOP EXPRESSION:({limit}){percent})")
            }
            _ => String::new(),
        }
    }

    fn grouping<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::HashAggregate { input, keys, aggregates } => {
                let keys = self.list(keys, &input.columns, inner);
                let defines = self.aggregates(aggregates, &input.columns, inner);
                inner.push(Part::Input(input));
                format!("Hash Match(Aggregate, HASH:({keys}) DEFINE:({defines}))")
            }
            NodeKind::StreamAggregate { input, keys, aggregates } => {
                let keys = self.list(keys, &input.columns, inner);
                let defines = self.aggregates(aggregates, &input.columns, inner);
                inner.push(Part::Input(input));
                let group = if keys.is_empty() { String::new() } else { format!("GROUP BY:({keys}) ") };
                format!("Stream Aggregate({group}DEFINE:({defines}))")
            }
            NodeKind::PartialAggregate { input, keys, aggregates } => {
                let defines = self.aggregates(aggregates, &input.columns, inner);
                let shown = self.list(keys, &input.columns, inner);
                inner.push(Part::Input(input));
                match keys.is_empty() {
                    true => format!("Stream Aggregate(DEFINE:({defines}))"),
                    false => format!("Hash Match(Partial Aggregate, HASH:({shown}) DEFINE:({defines}))"),
                }
            }
            NodeKind::FinalAggregate { input, key_count, aggregates } => {
                let names: Vec<String> = aggregates.iter().map(|a| joined_name(a.function).to_owned()).collect();
                let shown: Vec<String> = (0..*key_count).map(|at| column(&input.columns, at)).collect();
                inner.push(Part::Input(input));
                match key_count {
                    0 => format!("Stream Aggregate(DEFINE:({}))", names.join(",")),
                    _ => format!("Hash Match(Aggregate, HASH:({}) DEFINE:({}))", shown.join(","), names.join(",")),
                }
            }
            NodeKind::Window { input, partition, order, functions } => {
                let by = self.list(partition, &input.columns, inner);
                let order = self.keys(order, &input.columns, inner);
                let names: Vec<&str> = functions.iter().map(window_name).collect();
                inner.push(Part::Input(input));
                format!("Window Aggregate({} PARTITION BY:({by}) ORDER BY:({order}))", names.join(","))
            }
            _ => String::new(),
        }
    }

    fn join<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::Apply { left, right, kind, predicate } => {
                let both: Vec<OutputColumn> = left.columns.iter().chain(&right.columns).cloned().collect();
                let on = predicate.as_ref().map(|p| format!(", WHERE:({})", self.expr(p, &both, inner))).unwrap_or_default();
                inner.push(Part::Input(left));
                inner.push(Part::Under(left.columns.clone(), right));
                format!("Nested Loops({}, OUTER REFERENCES{on})", join_name(*kind))
            }
            NodeKind::HashJoin { left, right, kind, keys, residual } => {
                let both: Vec<OutputColumn> = left.columns.iter().chain(&right.columns).cloned().collect();
                let shown: Vec<String> = keys
                    .iter()
                    .map(|(l, r)| format!("({})=({})", self.expr(l, &left.columns, inner), self.expr(r, &right.columns, inner)))
                    .collect();
                let residual = residual.as_ref().map(|p| format!(", RESIDUAL:({})", self.expr(p, &both, inner))).unwrap_or_default();
                inner.extend([Part::Input(left), Part::Input(right)]);
                format!("Hash Match({}, HASH:{}{residual})", join_name(*kind), shown.join(", "))
            }
            NodeKind::MergeJoin { left, right, kind, keys, residual } => {
                let both: Vec<OutputColumn> = left.columns.iter().chain(&right.columns).cloned().collect();
                let shown: Vec<String> =
                    keys.iter().map(|(l, r)| format!("({})=({})", column(&left.columns, *l), column(&right.columns, *r))).collect();
                let residual = residual.as_ref().map(|p| format!(", RESIDUAL:({})", self.expr(p, &both, inner))).unwrap_or_default();
                inner.extend([Part::Input(left), Part::Input(right)]);
                format!("Merge Join({}, MERGE:{}{residual})", join_name(*kind), shown.join(", "))
            }
            NodeKind::NestedLoopJoin { left, right, kind, predicate } => {
                let both: Vec<OutputColumn> = left.columns.iter().chain(&right.columns).cloned().collect();
                let on = predicate.as_ref().map(|p| format!(", WHERE:({})", self.expr(p, &both, inner))).unwrap_or_default();
                inner.extend([Part::Input(left), Part::Input(right)]);
                format!("Nested Loops({}{on})", join_name(*kind))
            }
            _ => String::new(),
        }
    }

    fn change<'p>(&mut self, node: &'p Node, inner: &mut Vec<Part<'p>>) -> String {
        match &node.kind {
            NodeKind::Insert { table, input, targets, defaults, .. } => {
                let set: Vec<String> = targets.iter().map(|t| format!("[{}]", table.columns[*t].name)).collect();
                let default: Vec<String> =
                    defaults.iter().map(|(t, e)| format!("[{}]={}", table.columns[*t].name, self.expr(e, &[], inner))).collect();
                inner.push(Part::Input(input));
                let default = if default.is_empty() { String::new() } else { format!(", DEFAULT:({})", default.join(",")) };
                format!("{} Insert(OBJECT:({}), SET:({}){default})", rows_name(table), self.object(table, None), set.join(","))
            }
            NodeKind::Update { table, input, assignments, .. } => {
                let set: Vec<String> = assignments
                    .iter()
                    .map(|(t, e)| format!("[{}]={}", table.columns[*t].name, self.expr(e, &input.columns, inner)))
                    .collect();
                inner.push(Part::Input(input));
                format!("{} Update(OBJECT:({}), SET:({}))", rows_name(table), self.object(table, None), set.join(","))
            }
            NodeKind::Delete { table, input, .. } => {
                inner.push(Part::Input(input));
                format!("{} Delete(OBJECT:({}))", rows_name(table), self.object(table, None))
            }
            NodeKind::Instead { table, input, .. } => {
                inner.push(Part::Input(input));
                format!("Instead Of Trigger(OBJECT:({}))", self.object(table, None))
            }
            NodeKind::Merge { table, input, .. } => {
                inner.push(Part::Input(input));
                format!("{} Merge(OBJECT:({}))", rows_name(table), self.object(table, None))
            }
            NodeKind::AssignVariables { input, assignments } => {
                let set: Vec<String> = assignments.iter().map(|(v, e)| format!("@{v}={}", self.expr(e, &input.columns, inner))).collect();
                inner.push(Part::Input(input));
                format!("Compute Scalar(ASSIGN:({}))", set.join(","))
            }
            _ => String::new(),
        }
    }

    fn object(&self, table: &TableDef, index: Option<usize>) -> String {
        let mut text = format!("[{}].[{}].[{}]", (self.names)(table.database), table.schema_name, table.name);
        if let Some(name) = index.and_then(|i| table.indexes[i].name.as_ref()) {
            let _ = write!(text, ".[{name}]");
        }
        text
    }

    fn scan<'p>(&mut self, table: &Arc<TableDef>, index: usize, ranges: &'p [SeekRange], inner: &mut Vec<Part<'p>>) -> String {
        let def = &table.indexes[index];
        let kind = match (index, def.keys.is_empty()) {
            (0, true) => "Table",
            (0, false) => "Clustered Index",
            _ => "Index",
        };
        let object = self.object(table, Some(index));
        if ranges.is_empty() {
            return format!("{kind} Scan(OBJECT:({object})");
        }
        let shown: Vec<String> = ranges.iter().map(|r| self.range(table, index, r, inner)).collect();
        format!("{kind} Seek(OBJECT:({object}), SEEK:({})", shown.join(" OR ")) + ""
    }

    fn range<'p>(&mut self, table: &TableDef, index: usize, range: &'p SeekRange, inner: &mut Vec<Part<'p>>) -> String {
        let keys = &table.indexes[index].keys;
        let mut side = |bound: &'p SeekBound, op: &str| {
            let names: Vec<String> =
                keys.iter().take(bound.values.len()).map(|k| format!("[{}]", table.columns[k.column_index].name)).collect();
            let values: Vec<String> = bound.values.iter().map(|v| self.expr(v, &[], inner)).collect();
            match names.as_slice() {
                [one] => format!("{one}{op}{}", values[0]),
                _ => format!("({}){op}({})", names.join(","), values.join(",")),
            }
        };
        match (&range.start, &range.end) {
            (Some(start), Some(end)) if same_values(start, end) => side(start, "="),
            (start, end) => {
                let low = start.as_ref().map(|b| side(b, if b.inclusive { ">=" } else { ">" }));
                let high = end.as_ref().map(|b| side(b, if b.inclusive { "<=" } else { "<" }));
                [low, high].into_iter().flatten().collect::<Vec<_>>().join(" AND ")
            }
        }
    }

    fn list<'p>(&mut self, exprs: &'p [Expr], input: &[OutputColumn], inner: &mut Vec<Part<'p>>) -> String {
        exprs.iter().map(|e| self.expr(e, input, inner)).collect::<Vec<_>>().join(",")
    }

    fn keys<'p>(&mut self, keys: &'p [SortKey], input: &[OutputColumn], inner: &mut Vec<Part<'p>>) -> String {
        let one = |k: &'p SortKey, s: &mut Self, inner: &mut Vec<Part<'p>>| {
            format!("{} {}", s.expr(&k.expr, input, inner), if k.descending { "DESC" } else { "ASC" })
        };
        keys.iter().map(|k| one(k, self, inner)).collect::<Vec<_>>().join(",")
    }

    fn aggregates<'p>(&mut self, aggregates: &'p [Aggregate], input: &[OutputColumn], inner: &mut Vec<Part<'p>>) -> String {
        let mut shown = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let argument = aggregate.argument.as_ref().map_or_else(|| "*".to_string(), |a| self.expr(a, input, inner));
            let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
            shown.push(format!("{}({distinct}{argument})", aggregate_name(aggregate.function)));
        }
        shown.join(",")
    }

    fn expr<'p>(&mut self, expr: &'p Expr, input: &[OutputColumn], inner: &mut Vec<Part<'p>>) -> String {
        use ExprKind as K;
        let mut one = |e: &'p Expr| self.expr(e, input, inner);
        match &expr.kind {
            K::Literal(value) => literal(value, &expr.sql_type),
            K::Column(at) => column(input, *at),
            K::Outer { level, column: at } => match self.outers.iter().rev().nth(level - 1) {
                Some(row) => format!("OUTER{}.{}", if *level > 1 { level.to_string() } else { String::new() }, column(row, *at)),
                None => format!("OUTER{level}.[{at}]"),
            },
            K::Variable(at) => format!("@{at}"),
            K::Global(name) => name.to_string(),
            K::Arithmetic { op, left, right } => format!("{}{}{}", one(left), arithmetic_sign(*op), one(right)),
            K::Negate(e) => format!("-{}", one(e)),
            K::BitNot(e) => format!("~{}", one(e)),
            K::Concat(left, right) => format!("{}+{}", one(left), one(right)),
            K::Compare { op, left, right } => format!("{}{}{}", one(left), compare_sign(*op), one(right)),
            K::And(terms) => terms.iter().map(one).collect::<Vec<_>>().join(" AND "),
            K::Or(terms) => format!("({})", terms.iter().map(one).collect::<Vec<_>>().join(" OR ")),
            K::Not(e) => format!("NOT ({})", one(e)),
            K::IsNull { operand, negated } => format!("{} IS {}NULL", one(operand), if *negated { "NOT " } else { "" }),
            K::InList { operand, list, negated } => {
                let operand = one(operand);
                let items = list.iter().map(one).collect::<Vec<_>>().join(",");
                format!("{operand} {}IN ({items})", if *negated { "NOT " } else { "" })
            }
            K::Like { operand, pattern, negated, .. } => {
                format!("{} {}LIKE {}", one(operand), if *negated { "NOT " } else { "" }, one(pattern))
            }
            K::Case { branches, otherwise } => {
                let mut text = String::from("CASE");
                for (when, then) in branches {
                    let _ = write!(text, " WHEN {} THEN {}", one(when), one(then));
                }
                if let Some(otherwise) = otherwise {
                    let _ = write!(text, " ELSE {}", one(otherwise));
                }
                text + " END"
            }
            K::Convert { operand, style, attempt } => {
                let name = if *attempt { "TRY_CONVERT" } else { "CONVERT_IMPLICIT" };
                format!("{name}({},{},{style})", expr.sql_type.name(), one(operand))
            }
            K::Function { name, arguments, .. } => {
                let shown = arguments.iter().map(one).collect::<Vec<_>>().join(",");
                format!("{}({shown})", name.to_ascii_lowercase())
            }
            K::Subquery { plan, kind } => {
                let text = match kind {
                    SubqueryKind::Scalar => "SUBQUERY".to_string(),
                    SubqueryKind::Exists { negated } => if *negated { "NOT EXISTS" } else { "EXISTS" }.to_string(),
                    SubqueryKind::Quantified { operand, op, all } => {
                        format!("{}{}{}", one(operand), compare_sign(*op), if *all { "ALL" } else { "ANY" })
                    }
                };
                inner.push(Part::Under(input.to_vec(), plan));
                text
            }
        }
    }
}

/// What stands below an operator: an input, or a plan that sees a row.
enum Part<'p> {
    Input(&'p Node),
    Under(Vec<OutputColumn>, &'p Node),
}

fn same_values(start: &SeekBound, end: &SeekBound) -> bool {
    let text = |b: &SeekBound| format!("{:?}", b.values);
    start.inclusive && end.inclusive && start.values.len() == end.values.len() && text(start) == text(end)
}

fn column(columns: &[OutputColumn], at: usize) -> String {
    match columns.get(at) {
        Some(c) if !c.name.is_empty() => format!("[{}]", c.name),
        _ => format!("[Expr{at}]"),
    }
}

fn rows_name(table: &TableDef) -> &'static str {
    if table.indexes[0].keys.is_empty() { "Table" } else { "Clustered Index" }
}

fn literal(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Bit(v) => format!("({})", i32::from(*v)),
        Scalar::TinyInt(v) => format!("({v})"),
        Scalar::SmallInt(v) => format!("({v})"),
        Scalar::Int(v) => format!("({v})"),
        Scalar::BigInt(v) => format!("({v})"),
        Scalar::Decimal(v) => format!("({})", thawdb_types::convert::format_decimal(*v, sql_type.scale())),
        Scalar::Text(v) => format!("'{v}'"),
        other => format!("{other:?}"),
    }
}

fn join_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner Join",
        JoinKind::LeftOuter => "Left Outer Join",
        JoinKind::RightOuter => "Right Outer Join",
        JoinKind::FullOuter => "Full Outer Join",
        JoinKind::LeftSemi => "Left Semi Join",
        JoinKind::LeftAnti => "Left Anti Semi Join",
    }
}

fn arithmetic_sign(op: ArithmeticOp) -> &'static str {
    match op {
        ArithmeticOp::Add => "+",
        ArithmeticOp::Subtract => "-",
        ArithmeticOp::Multiply => "*",
        ArithmeticOp::Divide => "/",
        ArithmeticOp::Modulo => "%",
        ArithmeticOp::BitAnd => "&",
        ArithmeticOp::BitOr => "|",
        ArithmeticOp::BitXor => "^",
    }
}

fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "=",
        CompareOp::NotEqual => "<>",
        CompareOp::Less => "<",
        CompareOp::LessOrEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterOrEqual => ">=",
        CompareOp::Same => " IS NOT DISTINCT FROM ",
        CompareOp::NotSame => " IS DISTINCT FROM ",
    }
}

fn aggregate_name(function: AggregateFunction) -> &'static str {
    match function {
        AggregateFunction::Count => "COUNT",
        AggregateFunction::CountBig => "COUNT_BIG",
        AggregateFunction::Sum => "SUM",
        AggregateFunction::Avg => "AVG",
        AggregateFunction::Min => "MIN",
        AggregateFunction::Max => "MAX",
        AggregateFunction::StDev => "STDEV",
        AggregateFunction::StDevP => "STDEVP",
        AggregateFunction::Var => "VAR",
        AggregateFunction::VarP => "VARP",
        AggregateFunction::ChecksumAgg => "CHECKSUM_AGG",
        AggregateFunction::StringAgg => "STRING_AGG",
        AggregateFunction::Any => "ANY",
    }
}

/// What makes one value of several threads'.
fn joined_name(function: AggregateFunction) -> &'static str {
    match function {
        AggregateFunction::Count | AggregateFunction::CountBig | AggregateFunction::Sum => "SUM([partialagg])",
        AggregateFunction::Avg => "AVG([partialagg])",
        AggregateFunction::Min => "MIN([partialagg])",
        AggregateFunction::Max => "MAX([partialagg])",
        _ => "ANY([partialagg])",
    }
}

fn window_name(function: &WindowFunction) -> &'static str {
    match function {
        WindowFunction::RowNumber => "ROW_NUMBER",
        WindowFunction::Rank => "RANK",
        WindowFunction::DenseRank => "DENSE_RANK",
        WindowFunction::Ntile(_) => "NTILE",
        WindowFunction::PercentRank => "PERCENT_RANK",
        WindowFunction::CumeDist => "CUME_DIST",
        WindowFunction::Percentile { continuous: true, .. } => "PERCENTILE_CONT",
        WindowFunction::Percentile { continuous: false, .. } => "PERCENTILE_DISC",
        WindowFunction::Lag { lead, .. } => {
            if *lead {
                "LEAD"
            } else {
                "LAG"
            }
        }
        WindowFunction::FirstValue { last, .. } => {
            if *last {
                "LAST_VALUE"
            } else {
                "FIRST_VALUE"
            }
        }
        WindowFunction::Aggregate { aggregate, .. } => aggregate_name(aggregate.function),
    }
}
