//! WITH RESULT SETS of EXEC: what the statement sends gets the names, types and nullability that were written.
//!
//! ```text
//! columns ─► Shape::columns ─► the written ones      rows ─► Shape::rows ─► converted, NULLs looked for      end ─► all there?
//! ```
//!
//! Failure: 11535 and 11536 for more and fewer result sets than written, 11537 for another number of columns, 11538 for types
//! without a conversion, 11553 for a NULL where none may be; conversions raise their own. `AS OBJECT`, `AS TYPE` and `AS FOR XML`
//! are not built (40517). No locks.

use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use arrow_array::{Array, ArrayRef};
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::{ResultSet, ResultSets};
use thawdb_types::convert::{CastRule, implicit_cast};
use thawdb_types::{Collation, SqlError, SqlType, TypeUse};

/// The shape that results are given.
pub(crate) struct Shape {
    /// Columns by result set; `None` lets everything through (UNDEFINED).
    sets: Option<Vec<Vec<OutputColumn>>>,
    /// Result sets begun.
    begun: usize,
    /// Types of the present one as they come.
    from: Vec<SqlType>,
}

impl Shape {
    /// What was written.
    pub(crate) fn of(session: &SessionState, written: &ResultSets) -> Result<Self, SqlError> {
        let sets = match written {
            ResultSets::Undefined => None,
            ResultSets::None => Some(Vec::new()),
            ResultSets::Definitions(sets) => Some(sets.iter().map(|set| columns_of(session, set)).collect::<Result<_, _>>()?),
        };
        Ok(Self { sets, begun: 0, from: Vec::new() })
    }

    /// A result set begins: its columns as written.
    pub(crate) fn columns(&mut self, come: &[OutputColumn]) -> Result<Vec<OutputColumn>, SqlError> {
        let Some(sets) = &self.sets else { return Ok(come.to_vec()) };
        self.begun += 1;
        let Some(written) = sets.get(self.begun - 1) else {
            return Err(message(11535, &[&"EXECUTE", &sets.len()]));
        };
        if written.len() != come.len() {
            return Err(message(11537, &[&"EXECUTE", &written.len(), &self.begun, &come.len()]));
        }
        for (at, (to, from)) in (1..).zip(written.iter().zip(come)) {
            if implicit_cast(&from.sql_type, &to.sql_type) == CastRule::Never {
                let (to, from) = (to.sql_type.message_name(), from.sql_type.message_name());
                return Err(message(11538, &[&"EXECUTE", &to, &at, &self.begun, &from]));
            }
        }
        self.from = come.iter().map(|column| column.sql_type).collect();
        let named = |(to, from): (&OutputColumn, &OutputColumn)| OutputColumn { identity: from.identity, ..to.clone() };
        Ok(written.iter().zip(come).map(named).collect())
    }

    /// Rows of the present result set, converted.
    pub(crate) fn rows(&self, come: &[ArrayRef]) -> Result<Vec<ArrayRef>, SqlError> {
        let Some(written) = self.sets.as_ref().and_then(|sets| sets.get(self.begun.saturating_sub(1))) else { return Ok(come.to_vec()) };
        let mut shaped = Vec::with_capacity(come.len());
        for (at, ((array, from), to)) in (1..).zip(come.iter().zip(&self.from).zip(written)) {
            if !to.nullable && array.null_count() > 0 {
                return Err(message(11553, &[&"EXECUTE", &at, &self.begun]));
            }
            let options = thawdb_types::convert::ConvertOptions::default();
            shaped.push(thawdb_types::convert::cast_array(array, from, &to.sql_type, options)?);
        }
        Ok(shaped)
    }

    /// Everything was sent.
    pub(crate) fn end(&self) -> Result<(), SqlError> {
        match &self.sets {
            Some(sets) if self.begun < sets.len() => Err(message(11536, &[&"EXECUTE", &sets.len(), &self.begun])),
            _ => Ok(()),
        }
    }
}

fn columns_of(session: &SessionState, set: &ResultSet) -> Result<Vec<OutputColumn>, SqlError> {
    let ResultSet::Columns(columns) = set else { return Err(unsupported_option("WITH RESULT SETS AS")) };
    let mut shaped = Vec::with_capacity(columns.len());
    for (ordinal, column) in (1..).zip(columns) {
        let collation = match &column.collation {
            None => Collation::DEFAULT,
            Some(name) => Collation::by_name(&name.text).ok_or_else(|| message(448, &[&name.text]))?,
        };
        let name = &column.name.text;
        let sql_type = match meaning(session, &column.data_type, TypeUse::Parameter { ordinal, name }, collation)? {
            TypeMeaning::Value { sql_type, .. } => sql_type,
            TypeMeaning::Table(_) => return Err(message(350, &[name])),
        };
        let nullable = column.nullable.unwrap_or(true);
        shaped.push(OutputColumn { name: name.clone(), sql_type, nullable, identity: false });
    }
    Ok(shaped)
}
