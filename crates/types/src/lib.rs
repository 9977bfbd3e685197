//! SQL Server's types as pure functions: values, arithmetic, conversions, collations, codecs, messages.
//!
//! A column of values is an Arrow array (`SqlType::arrow_type` says which); a single value is a [`Scalar`].
//!
//! ```text
//! sql_type   what a type is: names, limits, precedence, sizes
//! value      one value           column   arrays, builders, batches of them
//! convert    one type to another (rules, scalar, vectorised)
//! arithmetic + - * / % and what type each gives     calendar, datepart   dates and times
//! compare    order of values     collation   order and equality of text, LIKE, code pages
//! key        memcmp-ordered bytes of values     row   a row's stored bytes
//! xml        xml values as text in one form                variant  sql_variant: a value with its type
//! error      SqlError, placeholders             messages   the catalogue of numbers and texts
//! ```

pub mod arithmetic;
pub mod batch;
pub mod calendar;
pub mod collation;
pub mod column;
pub mod compare;
pub mod convert;
pub mod datepart;
pub mod error;
pub mod hierarchy;
pub mod key;
pub mod messages;
pub mod row;
pub mod sql_type;
pub mod time_zone;
pub mod value;
pub mod variant;
pub mod xml;

pub use batch::Batch;
pub use column::{ColumnBuilder, array_from_scalar, scalar_at};
pub use error::{SqlError, message};
pub use sql_type::{Collation, MaxLength, SqlType, TypeArgument, TypeUse};
pub use value::Scalar;
