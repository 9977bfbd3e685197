//! SQL Server's types as pure functions: values, arithmetic, conversions, collations, codecs, messages.
//!
//! A column of values is an Arrow array (`SqlType::arrow_type` says which); a single value is a [`Scalar`].

pub mod error;
pub mod sql_type;
pub mod value;

pub use error::SqlError;
pub use sql_type::{Collation, MaxLength, SqlType};
pub use value::Scalar;
