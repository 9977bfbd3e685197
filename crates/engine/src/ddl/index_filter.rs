//! The WHERE clause of an index: from its syntax to what the catalog keeps, and what it may not hold.
//!
//! ```text
//! filter   conjunct [AND conjunct ...]      conjunct   column IS [NOT] NULL | column op constant | column IN (constant, ...)
//! ```
//! | refused | message |
//! |---|---|
//! | OR, NOT, BETWEEN, LIKE, EXISTS; NOT IN | 156; 102 |
//! | a side that is no column or no constant | 10735 |
//! | a constant NULL | 10620 |
//! | a constant whose type the column would be converted to | 10611 |
//! | a constant that does not convert to the column's type | 10612 |
//!
//! A number that an exact column cannot hold (`int_column > 5.5`) becomes the comparison with one it can, which keeps and
//! refuses the same values; one beyond the type's range becomes IS NOT NULL or a test that nothing passes.

use crate::batch::compile_cx::CompileCx;
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::filter::constant;
use thawdb_catalog::{ColumnDef, FilterConjunct, FilterOp, FilterTest, IndexFilter};
use thawdb_query::compile::bind_scalar;
use thawdb_query::expr::{Expr as PlanExpr, ExprKind as PlanKind};
use thawdb_tsql::ast::{CompareOp, Expr, ExprKind, Literal};
use thawdb_types::convert::convert;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Reads the filters of one table's indexes.
pub(crate) struct FilterReader<'a> {
    pub(crate) session: &'a SessionState,
    /// The table as the statement writes it.
    pub(crate) table: &'a str,
    pub(crate) columns: &'a [ColumnDef],
}

/// A constant, its type, and its text in definitions.
struct Constant {
    value: Scalar,
    sql_type: SqlType,
    text: String,
}

impl FilterReader<'_> {
    /// The filter that index `index` gets from its WHERE clause.
    pub(crate) fn read(&self, index: &str, clause: &Expr) -> Result<Arc<IndexFilter>, SqlError> {
        let (mut conjuncts, mut texts) = (Vec::new(), Vec::new());
        for term in terms(clause) {
            let (conjunct, text) = self.conjunct(index, term).map_err(|error| error.at_line(term.span.line))?;
            conjuncts.push(conjunct);
            texts.push(text);
        }
        Ok(Arc::new(IndexFilter { text: format!("({})", texts.join(" AND ")), conjuncts }))
    }

    fn conjunct(&self, index: &str, term: &Expr) -> Result<(FilterConjunct, String), SqlError> {
        let incorrect = || message(10735, &[&"index", &index, &self.table]);
        let word = |keyword: &str| Err(message(156, &[&keyword]));
        match &term.kind {
            ExprKind::Or(_) => word("OR"),
            ExprKind::Not(_) => word("NOT"),
            ExprKind::Between { .. } => word("BETWEEN"),
            ExprKind::Like { .. } => word("LIKE"),
            ExprKind::Exists(_) => word("EXISTS"),
            ExprKind::InList { negated: true, .. } => Err(message(102, &[&"NOT"])),
            ExprKind::IsNull { operand, negated } => {
                let column_index = self.column(operand)?.ok_or_else(incorrect)?;
                let (test, shown) = if *negated { (FilterTest::IsNotNull, "IS NOT NULL") } else { (FilterTest::IsNull, "IS NULL") };
                Ok((FilterConjunct { column_index, test }, format!("[{}] {shown}", self.columns[column_index].name)))
            }
            ExprKind::Compare { op, left, right } => {
                let column_index = self.column(left)?.ok_or_else(incorrect)?;
                let constant = self.constant(right)?.ok_or_else(incorrect)?;
                let (op, sign) = operator(*op);
                let text = format!("[{}]{sign}{}", self.columns[column_index].name, constant.text);
                Ok((FilterConjunct { column_index, test: self.test(index, column_index, op, &constant)? }, text))
            }
            ExprKind::InList { operand, list, .. } => {
                let column_index = self.column(operand)?.ok_or_else(incorrect)?;
                self.list(index, column_index, list)
            }
            _ => Err(incorrect()),
        }
    }

    fn list(&self, index: &str, column_index: usize, list: &[Expr]) -> Result<(FilterConjunct, String), SqlError> {
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for item in list {
            let constant = self.constant(item)?.ok_or_else(|| message(10735, &[&"index", &index, &self.table]))?;
            match self.test(index, column_index, FilterOp::Equal, &constant)? {
                FilterTest::Compare(FilterOp::Equal, value) => values.push(value),
                other => assert_eq!(other, FilterTest::Never, "equality is a comparison or passes nothing"),
            }
            texts.push(constant.text);
        }
        let name = &self.columns[column_index].name;
        let text = match texts.as_slice() {
            [one] => format!("[{name}]={one}"),
            _ => format!("[{name}] IN ({})", texts.join(", ")),
        };
        let test = if values.is_empty() { FilterTest::Never } else { FilterTest::In(values) };
        Ok((FilterConjunct { column_index, test }, text))
    }

    /// Position of the column that an expression is; 207 for one the table does not have.
    fn column(&self, expr: &Expr) -> Result<Option<usize>, SqlError> {
        let ExprKind::Column(name) = &strip(expr).kind else { return Ok(None) };
        if name.table.is_some() {
            return Ok(None);
        }
        let position = self.columns.iter().position(|column| name.column.is(&column.name));
        position.map(Some).ok_or_else(|| message(207, &[&name.column.text]))
    }

    fn constant(&self, expr: &Expr) -> Result<Option<Constant>, SqlError> {
        if !is_constant(expr) {
            return Ok(None);
        }
        let bound = bind_scalar(expr, &CompileCx::new(self.session, 0))?;
        let Some(value) = value_of(&bound)? else { return Ok(None) };
        let text = thawdb_tsql::definition(expr).ok_or_else(|| message(1046, &[]))?;
        // The outer parentheses are a whole definition's.
        Ok(Some(Constant { value, sql_type: bound.sql_type, text: text[1..text.len() - 1].to_owned() }))
    }

    /// `column op constant` as a test.
    fn test(&self, index: &str, column_index: usize, op: FilterOp, known: &Constant) -> Result<FilterTest, SqlError> {
        let column = &self.columns[column_index];
        let (from, to) = (&known.sql_type, &column.sql_type);
        if known.value.is_null() {
            return Err(message(10620, &[&"index", &index, &self.table]));
        }
        if to.is_incomparable() {
            return Err(message(10735, &[&"index", &index, &self.table]));
        }
        if let (Some((value, scale)), Some(range)) = (exact(&known.value, from), Range::of(to)) {
            return range.test(op, value, scale, to).ok_or_else(|| unsupported_option("a number of this size in a filter"));
        }
        let higher = || message(10611, &[&"index", &index, &self.table, &column.name, &"indexes", &column.name]);
        if from.is_text() && to.is_text() {
            let is_wider = from.is_unicode() && !to.is_unicode();
            return if is_wider { Err(higher()) } else { Ok(FilterTest::Compare(op, constant(&known.value, *to))) };
        }
        if from.is_binary() && to.is_binary() {
            return Ok(FilterTest::Compare(op, constant(&known.value, *to)));
        }
        if from.precedence() < to.precedence() {
            return Err(higher());
        }
        let converted = convert(&known.value, from, to, 0);
        let value = converted.map_err(|_| message(10612, &[&"index", &index, &self.table, &column.name]))?;
        Ok(FilterTest::Compare(op, constant(&value, *to)))
    }
}

/// The terms of a conjunction, parentheses undone.
fn terms(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Paren(inner) => terms(inner),
        ExprKind::And(all) => all.iter().flat_map(terms).collect(),
        _ => vec![expr],
    }
}

fn strip(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Paren(inner) => strip(inner),
        _ => expr,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match &strip(expr).kind {
        ExprKind::Literal(Literal::Odbc { .. }) => false,
        ExprKind::Literal(_) => true,
        ExprKind::Unary { operand, .. } => matches!(strip(operand).kind, ExprKind::Literal(_)),
        ExprKind::Cast { operand, try_: false, .. } | ExprKind::Convert { operand, style: None, try_: false, .. } => is_constant(operand),
        _ => false,
    }
}

/// The value of a bound constant; `None` if it is none.
fn value_of(expr: &PlanExpr) -> Result<Option<Scalar>, SqlError> {
    match &expr.kind {
        PlanKind::Literal(value) => Ok(Some(value.clone())),
        PlanKind::Convert { operand, style, .. } => match value_of(operand)? {
            Some(value) => convert(&value, &operand.sql_type, &expr.sql_type, *style).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn operator(op: CompareOp) -> (FilterOp, &'static str) {
    match op {
        CompareOp::Equal => (FilterOp::Equal, "="),
        CompareOp::NotEqual => (FilterOp::NotEqual, "<>"),
        CompareOp::Less => (FilterOp::Less, "<"),
        CompareOp::LessOrEqual => (FilterOp::LessOrEqual, "<="),
        CompareOp::Greater => (FilterOp::Greater, ">"),
        CompareOp::GreaterOrEqual => (FilterOp::GreaterOrEqual, ">="),
    }
}

/// An exact number and its scale.
fn exact(value: &Scalar, sql_type: &SqlType) -> Option<(i128, u32)> {
    match (value, sql_type) {
        (Scalar::Decimal(value), SqlType::Decimal { scale, .. }) => Some((*value, u32::from(*scale))),
        (Scalar::Money(value), _) => Some((i128::from(*value), 4)),
        _ => value.as_i64().filter(|_| sql_type.is_integer() || *sql_type == SqlType::Bit).map(|value| (i128::from(value), 0)),
    }
}

/// What an exact type holds, in units of its scale.
struct Range {
    least: i128,
    most: i128,
    scale: u32,
}

impl Range {
    fn of(sql_type: &SqlType) -> Option<Self> {
        let range = |least: i64, most: i64, scale| Some(Self { least: i128::from(least), most: i128::from(most), scale });
        match *sql_type {
            SqlType::Bit => range(0, 1, 0),
            SqlType::TinyInt => range(0, 255, 0),
            SqlType::SmallInt => range(i64::from(i16::MIN), i64::from(i16::MAX), 0),
            SqlType::Int => range(i64::from(i32::MIN), i64::from(i32::MAX), 0),
            SqlType::BigInt => range(i64::MIN, i64::MAX, 0),
            SqlType::SmallMoney => range(i64::from(i32::MIN), i64::from(i32::MAX), 4),
            SqlType::Money => range(i64::MIN, i64::MAX, 4),
            SqlType::Decimal { precision, scale, .. } => {
                let most = 10_i128.pow(u32::from(precision)) - 1;
                Some(Self { least: -most, most, scale: u32::from(scale) })
            }
            _ => None,
        }
    }

    /// `column op value` for a column of this range; `None` for numbers that 128 bits do not hold in both scales.
    fn test(&self, op: FilterOp, value: i128, scale: u32, sql_type: &SqlType) -> Option<FilterTest> {
        use FilterOp as Op;
        // `floor` is the greatest unit of the column that is not above the value.
        let (floor, is_exact) = if scale <= self.scale {
            (value.checked_mul(10_i128.checked_pow(self.scale - scale)?)?, true)
        } else {
            let unit = 10_i128.checked_pow(scale - self.scale)?;
            (value.div_euclid(unit), value.rem_euclid(unit) == 0)
        };
        let always = |holds: bool| if holds { FilterTest::IsNotNull } else { FilterTest::Never };
        if floor > self.most {
            return Some(always(matches!(op, Op::Less | Op::LessOrEqual | Op::NotEqual)));
        }
        if floor < self.least {
            return Some(always(matches!(op, Op::Greater | Op::GreaterOrEqual | Op::NotEqual)));
        }
        let op = match (op, is_exact) {
            (op, true) => op,
            (Op::Equal | Op::NotEqual, false) => return Some(always(op == Op::NotEqual)),
            (Op::Less | Op::LessOrEqual, false) => Op::LessOrEqual,
            (Op::Greater | Op::GreaterOrEqual, false) => Op::Greater,
        };
        Some(FilterTest::Compare(op, constant(&unit_value(floor, sql_type), *sql_type)))
    }
}

/// A number of units of an exact type, which is in its range, as its value.
fn unit_value(units: i128, sql_type: &SqlType) -> Scalar {
    let whole = i64::try_from(units);
    let whole = || whole.expect("a value in the type's range");
    match sql_type {
        SqlType::Bit => Scalar::Bit(units != 0),
        SqlType::TinyInt => Scalar::TinyInt(u8::try_from(units).expect("a value in the type's range")),
        SqlType::SmallInt => Scalar::SmallInt(i16::try_from(units).expect("a value in the type's range")),
        SqlType::Int => Scalar::Int(i32::try_from(units).expect("a value in the type's range")),
        SqlType::BigInt => Scalar::BigInt(whole()),
        SqlType::Money | SqlType::SmallMoney => Scalar::Money(whole()),
        _ => Scalar::Decimal(units),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of a small type against numbers around, between and beyond its values.
    #[test]
    fn a_number_the_column_cannot_hold_keeps_the_same_values() {
        let range = Range::of(&SqlType::TinyInt).expect("an exact type");
        for tenths in -30..=2600_i128 {
            for op in
                [FilterOp::Equal, FilterOp::NotEqual, FilterOp::Less, FilterOp::LessOrEqual, FilterOp::Greater, FilterOp::GreaterOrEqual]
            {
                let test = range.test(op, tenths, 1, &SqlType::TinyInt).expect("small numbers");
                for value in [0, 1, 2, 127, 254, 255_u8] {
                    let wanted = match op {
                        FilterOp::Equal => i128::from(value) * 10 == tenths,
                        FilterOp::NotEqual => i128::from(value) * 10 != tenths,
                        FilterOp::Less => i128::from(value) * 10 < tenths,
                        FilterOp::LessOrEqual => i128::from(value) * 10 <= tenths,
                        FilterOp::Greater => i128::from(value) * 10 > tenths,
                        FilterOp::GreaterOrEqual => i128::from(value) * 10 >= tenths,
                    };
                    let key = constant(&Scalar::TinyInt(value), SqlType::TinyInt);
                    assert_eq!(test.holds(&key, false), wanted, "{value} {op:?} {tenths}/10");
                }
            }
        }
    }
}
