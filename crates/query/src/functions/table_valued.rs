//! Built-in functions that give rows: STRING_SPLIT and GENERATE_SERIES (OPENJSON stands with JSON).

use crate::context::SessionInfo;
use crate::phys::{OutputColumn, RowSource};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Rows = Vec<Vec<Scalar>>;

fn column(name: &str, sql_type: SqlType, nullable: bool) -> OutputColumn {
    OutputColumn { name: name.to_owned(), sql_type, nullable, identity: false }
}

/// STRING_SPLIT(text, separator [, enable_ordinal]).
#[derive(Debug)]
pub(crate) struct StringSplit {
    columns: Vec<OutputColumn>,
}

impl StringSplit {
    /// `value` is the type of the pieces; `ordinal` adds the column of that name.
    pub(crate) fn new(value: SqlType, ordinal: bool) -> Self {
        let mut columns = vec![column("value", value, false)];
        columns.extend(ordinal.then(|| column("ordinal", SqlType::BigInt, false)));
        Self { columns }
    }
}

impl RowSource for StringSplit {
    fn name(&self) -> &str {
        "STRING_SPLIT"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let separator = match arguments[1].as_text().map(|text| (text, text.chars().count())) {
            Some((text, 1)) => text,
            _ => return Err(message(214, &[&"separator", &"nchar(1)/nvarchar(1)"]).with_state(11)),
        };
        let Some(text) = arguments[0].as_text() else {
            return Ok(Vec::new());
        };
        let pieces = text.split(separator).enumerate();
        Ok(pieces.map(|(at, piece)| vec![Scalar::text(piece), Scalar::BigInt(at as i64 + 1)]).collect())
    }
}

/// GENERATE_SERIES(start, stop [, step]): of the integer or decimal type `sql_type`, in which its arguments come.
#[derive(Debug)]
pub(crate) struct GenerateSeries {
    columns: [OutputColumn; 1],
}

impl GenerateSeries {
    pub(crate) fn new(sql_type: SqlType) -> Self {
        Self { columns: [column("value", sql_type, false)] }
    }

    fn number(value: &Scalar) -> Option<i128> {
        match value {
            Scalar::Decimal(unscaled) => Some(*unscaled),
            other => other.as_i64().map(i128::from),
        }
    }

    fn scalar(&self, value: i128) -> Scalar {
        match self.columns[0].sql_type {
            SqlType::TinyInt => Scalar::TinyInt(value as u8),
            SqlType::SmallInt => Scalar::SmallInt(value as i16),
            SqlType::Int => Scalar::Int(value as i32),
            SqlType::BigInt => Scalar::BigInt(value as i64),
            _ => Scalar::Decimal(value),
        }
    }
}

impl RowSource for GenerateSeries {
    fn name(&self) -> &str {
        "GENERATE_SERIES"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let (Some(start), Some(stop)) = (Self::number(&arguments[0]), Self::number(&arguments[1])) else {
            return Ok(Vec::new());
        };
        let one = 10_i128.pow(u32::from(self.columns[0].sql_type.scale()));
        let step = match arguments.get(2).map(Self::number) {
            None => {
                if start <= stop {
                    one
                } else {
                    -one
                }
            }
            Some(None) => return Ok(Vec::new()),
            Some(Some(0)) => return Err(message(4199, &[&0, &3, &"generate_series"])),
            Some(Some(step)) => step,
        };
        let mut rows = Vec::new();
        let mut value = start;
        while if step > 0 { value <= stop } else { value >= stop } {
            rows.push(vec![self.scalar(value)]);
            value += step;
        }
        Ok(rows)
    }
}
