//! What every built-in function takes and gives.
//!
//! ```text
//! name ─► find ─► Signature { arguments, result, ... } ─ bind ─► BoundExprKind::Function { name, arguments }
//! ```
//!
//! Invariants: names are upper case and sorted ([`find`] halves its way; a test holds it); the evaluator finds each
//! argument in the type its [`Arg`] promises; optional arguments that were left out are left out of the call.
//!
//! It evaluates nothing. CASE-like forms (ISNULL, COALESCE, CHOOSE, IIF, NULLIF) are typed by the binder and stand in the
//! table only so that their names and classes are known in one place.

use crate::algebra::{BoundExpr, BoundExprKind};
use thawdb_types::{Collation, MaxLength, Scalar, SqlType};

mod results;
pub(crate) use results::display_length;
mod table;

pub use table::SIGNATURES;

/// What a function asks of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// A word such as `day`: handed on as a varchar constant in lower case, spelled out in full.
    Part,
    /// Any character type as it is; everything else as varchar.
    Text,
    /// Any character or binary type as it is; everything else as varchar.
    TextOrBinary,
    /// nvarchar(4000), or nvarchar(max) for what is max.
    Unicode,
    /// nchar or nvarchar as it is; nothing else (8116).
    National,
    /// Any character type as it is; nothing else (8116).
    Character,
    /// int.
    Int,
    /// bigint.
    BigInt,
    /// float.
    Float,
    /// bit.
    Bit,
    /// Any number as it is (bit and strings as float).
    Number,
    /// Any date or time type as it is; everything else as datetime.
    Date,
    /// Any date or time type as it is; strings as datetimeoffset(7).
    Offset,
    /// A type that has both date and time as it is; nothing else (8116).
    DateAndTime,
    /// varbinary of its length; strings too.
    Binary,
    /// As it is.
    Any,
    /// sql_variant.
    Variant,
    /// All arguments of this kind get their common type.
    Common,
    /// A string as it is; every other type as the varchar that CONCAT makes of it.
    Concat,
}

/// How the result's type follows.
#[derive(Debug, Clone, Copy)]
pub enum Out {
    /// Always this.
    Type(SqlType),
    /// That of an argument, after its conversion.
    Same(usize),
    /// By a rule of its own.
    Rule(fn(&[BoundExpr]) -> SqlType),
}

/// When the result may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// When an argument is.
    Strict,
    /// Never.
    Never,
    /// Whenever.
    Maybe,
}

/// How often the answer changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Same arguments, same answer: may be computed while compiling.
    Deterministic,
    /// The same for all rows of a statement.
    Stable,
    /// Another for every row.
    Volatile,
}

/// A function's type rule.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// Its name in upper case: what the evaluator knows it by.
    pub name: &'static str,
    /// What its arguments must be; the last repeats for a variadic one.
    pub arguments: &'static [Arg],
    /// How many of `arguments` must be there.
    pub required: usize,
    /// Most arguments; more than `arguments.len()` for a variadic one.
    pub most: usize,
    /// Type of the result.
    pub result: Out,
    /// When it is NULL.
    pub nulls: Nulls,
    /// How often it changes.
    pub class: Class,
}

/// The function called `name`, in any case.
pub fn find(name: &str) -> Option<&'static Signature> {
    let upper = name.to_ascii_uppercase();
    SIGNATURES.binary_search_by(|s| s.name.cmp(upper.as_str())).ok().map(|at| &SIGNATURES[at])
}

/// Whether the function gives another value for every row.
pub fn is_volatile(name: &str) -> bool {
    find(name).is_some_and(|s| s.class == Class::Volatile)
}

/// Whether the function's value depends on its arguments alone.
pub fn is_deterministic(name: &str) -> bool {
    find(name).is_some_and(|s| s.class == Class::Deterministic)
}

/// The full word of a date part, `None` for no such part.
pub fn date_part(word: &str) -> Option<&'static str> {
    const PARTS: &[(&str, &[&str])] = &[
        ("year", &["yy", "yyyy"]),
        ("quarter", &["qq", "q"]),
        ("month", &["mm", "m"]),
        ("dayofyear", &["dy", "y"]),
        ("day", &["dd", "d"]),
        ("week", &["wk", "ww"]),
        ("iso_week", &["isowk", "isoww"]),
        ("weekday", &["dw", "w"]),
        ("hour", &["hh"]),
        ("minute", &["mi", "n"]),
        ("second", &["ss", "s"]),
        ("millisecond", &["ms"]),
        ("microsecond", &["mcs"]),
        ("nanosecond", &["ns"]),
        ("tzoffset", &["tz"]),
    ];
    let lower = word.to_ascii_lowercase();
    PARTS.iter().find(|(full, short)| *full == lower || short.contains(&lower.as_str())).map(|(full, _)| *full)
}

/// Type of an `@@name`, lower case with its signs; `None` if there is none of that name.
pub fn global_type(name: &str) -> Option<SqlType> {
    use SqlType as T;
    Some(match name {
        "@@connections" | "@@cpu_busy" | "@@cursor_rows" | "@@error" | "@@fetch_status" | "@@idle" | "@@io_busy" | "@@lock_timeout"
        | "@@max_connections" | "@@options" | "@@pack_received" | "@@pack_sent" | "@@packet_errors" | "@@procid" | "@@rowcount"
        | "@@textsize" | "@@timeticks" | "@@total_errors" | "@@total_read" | "@@total_write" | "@@trancount" | "@@microsoftversion" => {
            T::Int
        }
        "@@datefirst" | "@@max_precision" | "@@nestlevel" => {
            if name == "@@nestlevel" {
                T::Int
            } else {
                T::TinyInt
            }
        }
        "@@langid" | "@@spid" => T::SmallInt,
        "@@identity" => T::numeric(38, 0),
        "@@dbts" => T::varbinary(8),
        "@@version" => T::nvarchar(300),
        "@@language" | "@@remserver" | "@@servername" | "@@servicename" => T::nvarchar(128),
        _ => return None,
    })
}

/// The text type with the length `length` that is Unicode if any of `arguments` is, under the first one's collation.
pub(crate) fn text_like(arguments: &[BoundExpr], length: Option<u32>) -> SqlType {
    let collation = arguments.iter().find_map(|a| a.sql_type.collation()).unwrap_or(Collation::DEFAULT);
    let unicode = arguments.iter().any(|a| a.sql_type.is_unicode());
    let limit = if unicode { 4000 } else { 8000 };
    let length = match length {
        Some(n) => MaxLength::Limited(n.clamp(1, limit) as u16),
        None => MaxLength::Max,
    };
    if unicode { SqlType::NVarChar { length, collation } } else { SqlType::VarChar { length, collation } }
}

/// An integer constant's value.
pub(crate) fn constant_int(expr: &BoundExpr) -> Option<i64> {
    match &expr.kind {
        BoundExprKind::Literal(Scalar::Int(v)) => Some(i64::from(*v)),
        BoundExprKind::Literal(Scalar::BigInt(v)) => Some(*v),
        BoundExprKind::Convert { operand, .. } => constant_int(operand),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_shapes_are_sound() {
        for pair in SIGNATURES.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for s in SIGNATURES {
            assert!(s.required <= s.most, "{}", s.name);
            assert!(s.most == 0 || !s.arguments.is_empty(), "{}", s.name);
            assert_eq!(s.name, s.name.to_uppercase());
        }
    }

    #[test]
    fn date_parts() {
        for (word, part) in [("DD", "day"), ("yyyy", "year"), ("n", "minute"), ("mcs", "microsecond"), ("isowk", "iso_week")] {
            assert_eq!(date_part(word), Some(part));
        }
        assert_eq!(date_part("fortnight"), None);
    }
}
