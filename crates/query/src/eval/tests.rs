//! Vectorised against row-by-row evaluation, on random expressions over random rows; and CASE's promise.

use crate::eval::rows::{RowRef, eval_row};
use crate::eval::{eval_array, select};
use crate::exec::cx::{Cx, CxState};
use crate::expr::{ArithmeticOp, CompareOp, Expr, ExprKind};
use crate::testing::{TestHost, arithmetic, column, compare, expr, literal};
use thawdb_types::{Batch, ColumnBuilder, Scalar, SqlType, scalar_at};

const TYPES: [SqlType; 5] = [SqlType::Int, SqlType::BigInt, SqlType::Float, SqlType::varchar(10), SqlType::numeric(9, 2)];

/// A seeded generator: the tests are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn value(&mut self, sql_type: &SqlType) -> Scalar {
        if self.below(5) == 0 {
            return Scalar::Null;
        }
        let small = self.below(7) as i64 - 3;
        match sql_type {
            SqlType::Int if self.below(20) == 0 => Scalar::Int(i32::MAX),
            SqlType::Int => Scalar::Int(small as i32),
            SqlType::BigInt => Scalar::BigInt(small),
            SqlType::Float => Scalar::Float(small as f64 / 2.0),
            SqlType::Decimal { .. } => Scalar::Decimal(i128::from(small) * 25),
            _ => Scalar::text(["", "a", "A ", "b", "caf\u{e9}", "%"][self.below(6) as usize]),
        }
    }

    fn of_type(&mut self, sql_type: SqlType, depth: u32) -> Expr {
        let at = TYPES.iter().position(|t| *t == sql_type).expect("one of the types");
        match self.below(if depth == 0 { 2 } else { 6 }) {
            0 => column(at, sql_type),
            1 => literal(self.value(&sql_type), sql_type),
            2 if sql_type != TYPES[3] => {
                let ops = [ArithmeticOp::Add, ArithmeticOp::Subtract, ArithmeticOp::Multiply, ArithmeticOp::Divide, ArithmeticOp::Modulo];
                let op = ops[self.below(if matches!(sql_type, SqlType::Decimal { .. }) { 2 } else { 5 }) as usize];
                arithmetic(op, self.of_type(sql_type, depth - 1), self.of_type(sql_type, depth - 1))
            }
            3 if sql_type == SqlType::BigInt || sql_type == SqlType::Float => {
                let operand = Box::new(self.of_type(SqlType::Int, depth - 1));
                expr(ExprKind::Convert { operand, style: 0, attempt: false }, sql_type)
            }
            3 if sql_type == SqlType::Int => {
                let operand = Box::new(self.of_type(SqlType::BigInt, depth - 1));
                expr(ExprKind::Convert { operand, style: 0, attempt: self.below(2) == 0 }, sql_type)
            }
            _ => {
                let branches = (0..=self.below(2)).map(|_| (self.predicate(depth - 1), self.of_type(sql_type, depth - 1))).collect();
                let otherwise = if self.below(2) == 0 { None } else { Some(Box::new(self.of_type(sql_type, depth - 1))) };
                expr(ExprKind::Case { branches, otherwise }, sql_type)
            }
        }
    }

    fn predicate(&mut self, depth: u32) -> Expr {
        let sql_type = TYPES[self.below(5) as usize];
        let deeper = depth.saturating_sub(1);
        let kind = match self.below(if depth == 0 { 3 } else { 7 }) {
            0 => {
                use CompareOp::*;
                let op = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, Same, NotSame][self.below(8) as usize];
                return compare(op, self.of_type(sql_type, deeper), self.of_type(sql_type, deeper));
            }
            1 => ExprKind::IsNull { operand: Box::new(self.of_type(sql_type, deeper)), negated: self.below(2) == 0 },
            2 => ExprKind::InList {
                operand: Box::new(self.of_type(sql_type, deeper)),
                list: (0..=self.below(3)).map(|_| literal(self.value(&sql_type), sql_type)).collect(),
                negated: self.below(2) == 0,
            },
            3 => ExprKind::And((0..=1 + self.below(2)).map(|_| self.predicate(deeper)).collect()),
            4 => ExprKind::Or((0..=1 + self.below(2)).map(|_| self.predicate(deeper)).collect()),
            5 => ExprKind::Not(Box::new(self.predicate(deeper))),
            _ => ExprKind::Like {
                operand: Box::new(self.of_type(TYPES[3], deeper)),
                pattern: Box::new(literal(self.value(&TYPES[3]), TYPES[3])),
                escape: None,
                negated: self.below(2) == 0,
            },
        };
        expr(kind, SqlType::Bit)
    }

    fn batch(&mut self, rows: usize) -> Batch {
        let columns = TYPES
            .iter()
            .map(|sql_type| {
                let mut builder = ColumnBuilder::new(sql_type, rows);
                (0..rows).for_each(|_| builder.append(&self.value(sql_type)));
                builder.finish()
            })
            .collect();
        Batch::new(columns, rows)
    }
}

#[test]
fn both_ways_agree() {
    let mut host = TestHost::new("both_ways");
    let mut failed = 0;
    for seed in 0..4_000 {
        let mut draw = Draw(seed);
        let batch = draw.batch(37);
        let expr = if seed % 2 == 0 { draw.predicate(3) } else { draw.of_type(TYPES[(seed / 2 % 5) as usize], 3) };
        let mut state = CxState::default();
        let mut cx = Cx { host: &mut host, state: &mut state };
        let rows: Vec<_> = (0..batch.rows).map(|row| eval_row(&expr, RowRef::at(&batch.columns, row), &mut cx)).collect();
        match eval_array(&expr, &batch, &mut cx) {
            Ok(array) => {
                for (row, value) in rows.iter().enumerate() {
                    assert_eq!(Ok(scalar_at(array.as_ref(), row, &expr.sql_type)), *value, "seed {seed} row {row}: {expr:?}");
                }
            }
            Err(error) => {
                failed += 1;
                let same = rows.iter().any(|r| r.as_ref().is_err_and(|e| e.number == error.number));
                assert!(same, "seed {seed}: {error} of {expr:?}");
            }
        }
        if expr.sql_type == SqlType::Bit
            && let Ok(mask) = select(&expr, &batch, &mut cx)
        {
            assert!(rows.iter().enumerate().all(|(row, v)| mask.value(row) == (*v == Ok(Scalar::Bit(true)))), "seed {seed}");
        }
    }
    assert!((100..2_000).contains(&failed), "{failed} of 4,000 expressions failed: the test should see both ends");
}

#[test]
fn guarded_errors_are_not_raised() {
    let mut host = TestHost::new("guarded");
    let batch = Batch::new(vec![std::sync::Arc::new(arrow_array::Int32Array::from(vec![0, 1, 2, 0]))], 4);
    let zero = || compare(CompareOp::Equal, column(0, SqlType::Int), literal(Scalar::Int(0), SqlType::Int));
    let divided = || arithmetic(ArithmeticOp::Divide, literal(Scalar::Int(10), SqlType::Int), column(0, SqlType::Int));
    let otherwise = Some(Box::new(divided()));
    let case = expr(ExprKind::Case { branches: vec![(zero(), literal(Scalar::Null, SqlType::Int))], otherwise }, SqlType::Int);
    let large = compare(CompareOp::Greater, divided(), literal(Scalar::Int(6), SqlType::Int));
    let guarded = expr(ExprKind::And(vec![expr(ExprKind::Not(Box::new(zero())), SqlType::Bit), large]), SqlType::Bit);
    let bare = divided();
    let mut state = CxState::default();
    let mut cx = Cx { host: &mut host, state: &mut state };
    assert_eq!(eval_array(&case, &batch, &mut cx).unwrap().null_count(), 2);
    assert_eq!(select(&guarded, &batch, &mut cx).unwrap().set_indices().collect::<Vec<_>>(), [1]);
    assert_eq!(eval_array(&bare, &batch, &mut cx).unwrap_err().number, 8134);
}
