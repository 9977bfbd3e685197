//! Rows that a running scope holds by name: the inserted and deleted rows of a trigger, the results INSERT ... EXEC took.
//!
//! A plan names the rowset; its rows are those of the innermost frame when the plan runs (`FrameRows::rows`).

use crate::session::state::SessionState;
use crate::storage_error::internal;
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_query::context::SessionInfo;
use thawdb_query::phys::{OutputColumn, RowSource};
use thawdb_types::{Scalar, SqlError, scalar_at};

/// Rows with their columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rowset {
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) rows: Vec<Vec<Scalar>>,
}

impl Rowset {
    /// Adds rows given as columns; those beyond the rowset's own are left out.
    pub(crate) fn push_columns(&mut self, columns: &[ArrayRef], count: usize) {
        for row in 0..count {
            let value = |(column, array): (&OutputColumn, &ArrayRef)| scalar_at(array.as_ref(), row, &column.sql_type);
            self.rows.push(self.columns.iter().zip(columns).map(value).collect());
        }
    }
}

impl RowSource for Rowset {
    fn name(&self) -> &str {
        "rows"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _: &dyn SessionInfo, _: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        Ok(self.rows.clone())
    }
}

/// A rowset of the running frame, as plans hold it.
#[derive(Debug)]
struct FrameRows {
    name: String,
    columns: Vec<OutputColumn>,
}

/// The source of a frame's rowset, if the innermost frame has one of the name.
pub(crate) fn source(session: &SessionState, name: &str) -> Option<Arc<dyn RowSource>> {
    let frame = session.frames.last().filter(|frame| !frame.rowsets.is_empty())?;
    let name = name.to_lowercase();
    let columns = frame.rowsets.get(&name)?.columns.clone();
    Some(Arc::new(FrameRows { name, columns }))
}

impl RowSource for FrameRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, cx: &dyn SessionInfo, _: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        let session = cx.as_any().downcast_ref::<SessionState>();
        let rowset = session.and_then(|session| session.frames.last()?.rowsets.get(&self.name));
        rowset.map(|rowset| rowset.rows.clone()).ok_or_else(|| internal(format!("the rows of {} are gone", self.name)))
    }
}
