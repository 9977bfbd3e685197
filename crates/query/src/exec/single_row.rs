//! At most one row (512 otherwise), and exactly one: NULLs stand in for none. The shape of a scalar subquery.

use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::{Node, OutputColumn};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, array_from_scalar};

pub(super) struct SingleRow<'p> {
    input: BoxOperator<'p>,
    columns: &'p [OutputColumn],
    done: bool,
}

impl<'p> SingleRow<'p> {
    pub(super) fn new(input: &'p Node) -> Self {
        let mut operator = build(input);
        operator.row_goal(2);
        Self { input: operator, columns: &input.columns, done: false }
    }
}

impl<'p> Operator<'p> for SingleRow<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.done = false;
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let Some(first) = self.input.next(cx)? else {
            let nulls = self.columns.iter().map(|c| array_from_scalar(&c.sql_type, &Scalar::Null, 1)).collect();
            return Ok(Some(Batch::new(nulls, 1)));
        };
        if first.rows > 1 || self.input.next(cx)?.is_some() {
            return Err(message(512, &[]));
        }
        Ok(Some(first))
    }
}
