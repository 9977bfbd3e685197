//! sys.types: the types every database has.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, bit, col, int, null, optional_text, small, text, tiny};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Collation, MaxLength, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const COLUMNS: &[Column] = &[
    col("name", NAME),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("schema_id", Int),
    null("principal_id", Int),
    col("max_length", SmallInt),
    col("precision", TinyInt),
    col("scale", TinyInt),
    null("collation_name", NAME),
    null("is_nullable", Bit),
    col("is_user_defined", Bit),
    col("is_assembly_type", Bit),
    col("default_object_id", Int),
    col("rule_object_id", Int),
    col("is_table_type", Bit),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[View { schema: "sys", name: "types", columns: COLUMNS, rows: types }];

/// A type as sys.types shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownType {
    pub(crate) name: &'static str,
    pub(crate) system_type_id: u8,
    pub(crate) user_type_id: i32,
    pub(crate) max_length: i16,
    pub(crate) precision: u8,
    pub(crate) scale: u8,
    collated: bool,
    nullable: bool,
}

const C: Collation = Collation::DEFAULT;
const LONGEST: MaxLength = MaxLength::Limited(8000);
const LONGEST_UNICODE: MaxLength = MaxLength::Limited(4000);

/// Each type at its greatest, as sys.types describes it.
const GREATEST: [SqlType; 30] = [
    SqlType::Image,
    SqlType::Text { collation: C },
    SqlType::UniqueIdentifier,
    SqlType::Date,
    SqlType::Time { scale: 7 },
    SqlType::DateTime2 { scale: 7 },
    SqlType::DateTimeOffset { scale: 7 },
    SqlType::TinyInt,
    SqlType::SmallInt,
    SqlType::Int,
    SqlType::SmallDateTime,
    SqlType::Real,
    SqlType::Money,
    SqlType::DateTime,
    SqlType::Float,
    SqlType::SqlVariant,
    SqlType::NText { collation: C },
    SqlType::Bit,
    SqlType::Decimal { precision: 38, scale: 38, numeric: false },
    SqlType::Decimal { precision: 38, scale: 38, numeric: true },
    SqlType::SmallMoney,
    SqlType::BigInt,
    SqlType::VarBinary { length: LONGEST },
    SqlType::VarChar { length: LONGEST, collation: C },
    SqlType::Binary { length: 8000 },
    SqlType::Char { length: 8000, collation: C },
    SqlType::RowVersion,
    SqlType::NVarChar { length: LONGEST_UNICODE, collation: C },
    SqlType::NChar { length: 4000, collation: C },
    SqlType::Xml,
];

/// user_type_id of sysname.
const SYSNAME_ID: i32 = 256;

/// All types in the order of sys.types.
pub(crate) fn known() -> impl Iterator<Item = KnownType> {
    let plain = GREATEST.iter().map(|sql_type| KnownType {
        name: sql_type.base_name(),
        system_type_id: sql_type.system_type_id(),
        user_type_id: sql_type.user_type_id(),
        max_length: sql_type.max_length(),
        precision: sql_type.precision(),
        scale: sql_type.scale(),
        collated: sql_type.is_text(),
        nullable: !matches!(sql_type, SqlType::RowVersion),
    });
    let sysname = KnownType {
        name: "sysname",
        system_type_id: 231,
        user_type_id: SYSNAME_ID,
        max_length: 256,
        precision: 0,
        scale: 0,
        collated: true,
        nullable: false,
    };
    plain.chain([sysname])
}

/// The type of a name.
pub(crate) fn by_name(name: &str) -> Option<KnownType> {
    known().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// TYPE_ID.
pub(crate) fn id_of_name(name: &str) -> Option<i32> {
    by_name(name).map(|known| known.user_type_id)
}

/// TYPE_NAME.
pub(crate) fn name_of_id(id: i32) -> Option<&'static str> {
    known().find(|known| known.user_type_id == id).map(|known| known.name)
}

fn types(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let row = |known: KnownType| {
        vec![
            text(known.name),
            tiny(known.system_type_id),
            int(known.user_type_id),
            int(4),
            Scalar::Null,
            small(known.max_length),
            tiny(known.precision),
            tiny(known.scale),
            optional_text(known.collated.then(|| Collation::DEFAULT.name())),
            bit(known.nullable),
            bit(false),
            bit(false),
            int(0),
            int(0),
            bit(false),
        ]
    };
    Ok(known().map(row).collect())
}
