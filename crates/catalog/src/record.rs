//! The bytes of one catalog record: fields one after another, each of a fixed form, behind a version byte.
//!
//! ```text
//! record  = version u8 | field*            text, bytes = length u32 | bytes
//! numbers = little-endian, fixed width     optional    = 0 | 1 value       list = count u32 | value*
//! ```
//!
//! 1. A reader takes exactly what the writer wrote: [`Reader::finish`] refuses bytes left over.
//! 2. Bytes from disk are not trusted: every read is bounded, a bad tag or length is [`RecordError`], never a panic.
//!
//! Not the row codec of `types`: these records are read before any table's definition is known.

use thawdb_types::{Collation, MaxLength, SqlType};

/// A record that cannot be what this version wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError(pub String);

/// Largest count of a list: far above what any definition holds, small enough that a damaged count cannot take memory.
const LIST_COUNT_MAX: usize = 65_536;

/// Writes the fields of a record.
pub struct Writer(Vec<u8>);

impl Writer {
    /// A record of format `version`.
    pub fn new(version: u8) -> Self {
        Self(vec![version])
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    /// Yes or no.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    /// 16 bits.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// 32 bits.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// 64 bits.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// 64 bits without a sign.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A count or position.
    pub fn count(&mut self, value: usize) -> &mut Self {
        let value = u32::try_from(value).expect("definitions are far below 2^32 parts");
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.count(value.len());
        self.0.extend_from_slice(value);
        self
    }

    /// Text.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Text, or nothing.
    pub fn optional_text(&mut self, value: Option<&str>) -> &mut Self {
        self.flag(value.is_some());
        match value {
            Some(text) => self.text(text),
            None => self,
        }
    }

    /// A SQL type.
    pub fn sql_type(&mut self, value: &SqlType) -> &mut Self {
        let (tag, a, b, collation) = type_parts(value);
        self.u8(tag).u16(a).u8(b).u16(collation.0)
    }
}

/// Reads the fields of a record.
pub struct Reader<'a> {
    rest: &'a [u8],
    version: u8,
}

impl<'a> Reader<'a> {
    /// A reader of `record`, which must be of format `version`.
    pub fn new(record: &'a [u8], version: u8) -> Result<Self, RecordError> {
        Self::of_versions(record, version, version)
    }

    /// A reader of `record`, which may be of any format from `oldest` to `newest`: see [`Self::version`].
    pub fn of_versions(record: &'a [u8], oldest: u8, newest: u8) -> Result<Self, RecordError> {
        match record.split_first() {
            Some((&version, rest)) if (oldest..=newest).contains(&version) => Ok(Self { rest, version }),
            Some((&found, _)) => Err(RecordError(format!("catalog record of format {found}, expected {newest}"))),
            None => Err(RecordError("empty catalog record".into())),
        }
    }

    /// The record's format.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// All fields must have been read.
    pub fn finish(self) -> Result<(), RecordError> {
        if self.rest.is_empty() { Ok(()) } else { Err(RecordError(format!("{} bytes left over", self.rest.len()))) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| RecordError(format!("{count} bytes missing")))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        Ok(self.take(N)?.try_into().expect("taken N bytes"))
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, RecordError> {
        Ok(self.array::<1>()?[0])
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Result<bool, RecordError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(RecordError(format!("flag of value {other}"))),
        }
    }

    /// 16 bits.
    pub fn u16(&mut self) -> Result<u16, RecordError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// 32 bits.
    pub fn i32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// 64 bits.
    pub fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// 64 bits without a sign.
    pub fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count or position.
    pub fn count(&mut self) -> Result<usize, RecordError> {
        let value = usize::try_from(u32::from_le_bytes(self.array()?)).expect("usize holds u32");
        if value > LIST_COUNT_MAX { Err(RecordError(format!("count of {value}"))) } else { Ok(value) }
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let length = usize::try_from(u32::from_le_bytes(self.array()?)).expect("usize holds u32");
        self.take(length)
    }

    /// Text.
    pub fn text(&mut self) -> Result<String, RecordError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| RecordError("text is not UTF-8".into()))
    }

    /// Text, or nothing.
    pub fn optional_text(&mut self) -> Result<Option<String>, RecordError> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    /// A list of `item`s.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, RecordError>) -> Result<Vec<T>, RecordError> {
        let count = self.count()?;
        let mut items = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A SQL type.
    pub fn sql_type(&mut self) -> Result<SqlType, RecordError> {
        let (tag, a, b, collation) = (self.u8()?, self.u16()?, self.u8()?, Collation(self.u16()?));
        type_from_parts(tag, a, b, collation).ok_or_else(|| RecordError(format!("type of tag {tag}")))
    }
}

/// `max` as a length.
const MAX: u16 = u16::MAX;

fn length_part(length: MaxLength) -> u16 {
    match length {
        MaxLength::Limited(n) => n,
        MaxLength::Max => MAX,
    }
}

fn length_from(part: u16) -> MaxLength {
    if part == MAX { MaxLength::Max } else { MaxLength::Limited(part) }
}

/// The tag, two parameters and collation of a type. Tags are part of the format and never change their meaning.
fn type_parts(value: &SqlType) -> (u8, u16, u8, Collation) {
    let plain = |tag| (tag, 0, 0, Collation::DEFAULT);
    match *value {
        SqlType::Bit => plain(1),
        SqlType::TinyInt => plain(2),
        SqlType::SmallInt => plain(3),
        SqlType::Int => plain(4),
        SqlType::BigInt => plain(5),
        SqlType::Decimal { precision, scale, numeric } => (if numeric { 7 } else { 6 }, u16::from(precision), scale, Collation::DEFAULT),
        SqlType::Money => plain(8),
        SqlType::SmallMoney => plain(9),
        SqlType::Real => plain(10),
        SqlType::Float => plain(11),
        SqlType::Date => plain(12),
        SqlType::Time { scale } => (13, 0, scale, Collation::DEFAULT),
        SqlType::DateTime => plain(14),
        SqlType::SmallDateTime => plain(15),
        SqlType::DateTime2 { scale } => (16, 0, scale, Collation::DEFAULT),
        SqlType::DateTimeOffset { scale } => (17, 0, scale, Collation::DEFAULT),
        SqlType::Char { length, collation } => (18, length, 0, collation),
        SqlType::VarChar { length, collation } => (19, length_part(length), 0, collation),
        SqlType::NChar { length, collation } => (20, length, 0, collation),
        SqlType::NVarChar { length, collation } => (21, length_part(length), 0, collation),
        SqlType::Text { collation } => (22, 0, 0, collation),
        SqlType::NText { collation } => (23, 0, 0, collation),
        SqlType::Binary { length } => (24, length, 0, Collation::DEFAULT),
        SqlType::VarBinary { length } => (25, length_part(length), 0, Collation::DEFAULT),
        SqlType::Image => plain(26),
        SqlType::UniqueIdentifier => plain(27),
        SqlType::RowVersion => plain(28),
        SqlType::Xml => plain(29),
        SqlType::SqlVariant => plain(30),
        SqlType::HierarchyId => plain(31),
    }
}

fn type_from_parts(tag: u8, a: u16, b: u8, collation: Collation) -> Option<SqlType> {
    Some(match tag {
        1 => SqlType::Bit,
        2 => SqlType::TinyInt,
        3 => SqlType::SmallInt,
        4 => SqlType::Int,
        5 => SqlType::BigInt,
        6 | 7 => SqlType::Decimal { precision: u8::try_from(a).ok()?, scale: b, numeric: tag == 7 },
        8 => SqlType::Money,
        9 => SqlType::SmallMoney,
        10 => SqlType::Real,
        11 => SqlType::Float,
        12 => SqlType::Date,
        13 => SqlType::Time { scale: b },
        14 => SqlType::DateTime,
        15 => SqlType::SmallDateTime,
        16 => SqlType::DateTime2 { scale: b },
        17 => SqlType::DateTimeOffset { scale: b },
        18 => SqlType::Char { length: a, collation },
        19 => SqlType::VarChar { length: length_from(a), collation },
        20 => SqlType::NChar { length: a, collation },
        21 => SqlType::NVarChar { length: length_from(a), collation },
        22 => SqlType::Text { collation },
        23 => SqlType::NText { collation },
        24 => SqlType::Binary { length: a },
        25 => SqlType::VarBinary { length: length_from(a) },
        26 => SqlType::Image,
        27 => SqlType::UniqueIdentifier,
        28 => SqlType::RowVersion,
        29 => SqlType::Xml,
        30 => SqlType::SqlVariant,
        31 => SqlType::HierarchyId,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back() {
        let collation = Collation(3);
        let all = [
            SqlType::Bit,
            SqlType::BigInt,
            SqlType::Decimal { precision: 38, scale: 10, numeric: true },
            SqlType::Decimal { precision: 5, scale: 0, numeric: false },
            SqlType::DateTime2 { scale: 7 },
            SqlType::Char { length: 8000, collation },
            SqlType::VarChar { length: MaxLength::Max, collation },
            SqlType::NVarChar { length: MaxLength::Limited(4000), collation },
            SqlType::VarBinary { length: MaxLength::Max },
            SqlType::SqlVariant,
            SqlType::HierarchyId,
        ];
        for sql_type in all {
            let mut writer = Writer::new(1);
            writer.sql_type(&sql_type);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes, 1).expect("same version");
            assert_eq!(reader.sql_type(), Ok(sql_type));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn damaged_bytes_are_errors() {
        assert!(Reader::new(&[], 1).is_err());
        assert!(Reader::new(&[2], 1).is_err());
        assert!(Reader::new(&[1, 255, 255, 255, 255], 1).expect("same version").text().is_err());
        assert!(Reader::new(&[1, 7], 1).expect("same version").flag().is_err());
        assert!(Reader::new(&[1, 0], 1).expect("same version").finish().is_err());
    }
}
