//! What is known of the values in a table's columns: histograms and densities, one record a table.
//!
//! ```text
//! rows by the leading column:   NULL | (.. s1] (.. s2] ... (.. s200]     each step: rows equal to its high key,
//!                                                                        rows and distinct values between it and the one below
//! densities:                    1 / distinct values of (c1), (c1, c2), ...
//! ```
//! Invariants: 1. steps rise by their high keys, the first of all being that of NULL if there are NULLs; none of them is
//! NULL but that. 2. There is one density and one average length for each prefix of the columns. 3. A record is of the table
//! that was created when it says: a number may be another table's after a restart. 4. A histogram is asked of a column only
//! while its values still compare as they did when it was made ([`TableStatistics::leading`]).
//!
//! They are no part of a definition: transactions of their own write them, and losing one costs time alone.

use crate::defs::ObjectId;
use crate::record::{Reader, RecordError, Writer};
use thawdb_types::{Scalar, SqlType};

const VERSION: u8 = 1;

/// Who made statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StatisticsOrigin {
    /// They come with an index, whose number they have.
    Index = 0,
    /// The optimizer wanted them.
    Automatic = 1,
    /// CREATE STATISTICS.
    User = 2,
}

/// A step of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramStep {
    /// Its upper end, a value of the leading column's type.
    pub high: Scalar,
    /// Rows equal to it.
    pub equal_rows: f64,
    /// Rows below it and above the step before.
    pub range_rows: f64,
    /// Different values among those.
    pub distinct_range_rows: f64,
}

/// What a scan or sample of the rows told.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticsData {
    /// When, 1/300 s since 1900-01-01.
    pub updated: i64,
    /// Rows of the table.
    pub rows: f64,
    /// Rows that were looked at.
    pub rows_sampled: u64,
    /// Leaves the rows took, about.
    pub leaves: u64,
    /// The type of the first column: that of the histogram's values.
    pub key_type: SqlType,
    /// The histogram of the first column.
    pub steps: Vec<HistogramStep>,
    /// Different values of each prefix of the columns.
    pub distinct: Vec<f64>,
    /// Bytes of each prefix on average.
    pub average_bytes: Vec<f64>,
}

/// Statistics of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// sys.stats.stats_id.
    pub id: i32,
    /// Their name.
    pub name: String,
    /// The columns' numbers, leading column first.
    pub columns: Vec<i32>,
    /// Who made them.
    pub origin: StatisticsOrigin,
    /// NORECOMPUTE: not updated by themselves.
    pub no_recompute: bool,
    /// PERSIST_SAMPLE_PERCENT.
    pub sample_percent: Option<f64>,
    /// What they tell, once they have been made of rows.
    pub data: Option<StatisticsData>,
}

/// All statistics of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableStatistics {
    /// The table.
    pub table: ObjectId,
    /// When it was created.
    pub created: i64,
    /// Its statistics, by number.
    pub list: Vec<Statistics>,
}

impl TableStatistics {
    /// The latest statistics with data that begin with this column, which is of `sql_type`.
    pub fn leading(&self, column: i32, sql_type: &SqlType) -> Option<(&Statistics, &StatisticsData)> {
        let of_column = self.list.iter().filter(|s| s.columns.first() == Some(&column));
        let with_data = of_column.filter_map(|s| Some((s, s.data.as_ref()?)));
        with_data.filter(|(_, data)| compare_alike(&data.key_type, sql_type)).max_by_key(|(_, data)| data.updated)
    }

    /// Statistics by their name.
    pub fn named(&self, name: &str) -> Option<&Statistics> {
        self.list.iter().find(|s| s.name.eq_ignore_ascii_case(name))
    }
}

/// Whether values of one type are values of the other, in the same order: all but lengths is alike.
fn compare_alike(made: &SqlType, present: &SqlType) -> bool {
    let text = made.is_text() && present.is_text() && made.collation() == present.collation();
    made == present || text || made.is_binary() && present.is_binary()
}

fn float(w: &mut Writer, value: f64) {
    w.u64(value.to_bits());
}

fn read_float(r: &mut Reader<'_>) -> Result<f64, RecordError> {
    let value = f64::from_bits(r.u64()?);
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(RecordError(format!("{value} rows"))) }
}

fn write_data(w: &mut Writer, data: &StatisticsData) {
    w.i64(data.updated).u64(data.rows_sampled).u64(data.leaves).sql_type(&data.key_type);
    float(w, data.rows);
    w.count(data.steps.len());
    for step in &data.steps {
        scalar(w, &step.high);
        [step.equal_rows, step.range_rows, step.distinct_range_rows].into_iter().for_each(|value| float(w, value));
    }
    w.count(data.distinct.len());
    data.distinct.iter().zip(&data.average_bytes).flat_map(|(d, b)| [*d, *b]).for_each(|value| float(w, value));
}

/// A value with the kind of scalar it is; the type is the column's.
fn scalar(w: &mut Writer, value: &Scalar) {
    let (tag, bytes): (u8, Vec<u8>) = match value {
        Scalar::Null => (0, Vec::new()),
        Scalar::Bit(v) => (1, vec![u8::from(*v)]),
        Scalar::TinyInt(v) => (2, vec![*v]),
        Scalar::SmallInt(v) => (3, v.to_le_bytes().to_vec()),
        Scalar::Int(v) => (4, v.to_le_bytes().to_vec()),
        Scalar::BigInt(v) => (5, v.to_le_bytes().to_vec()),
        Scalar::Decimal(v) => (6, v.to_le_bytes().to_vec()),
        Scalar::Money(v) => (7, v.to_le_bytes().to_vec()),
        Scalar::Real(v) => (8, v.to_le_bytes().to_vec()),
        Scalar::Float(v) => (9, v.to_le_bytes().to_vec()),
        Scalar::Date(v) => (10, v.to_le_bytes().to_vec()),
        Scalar::Time(v) => (11, v.to_le_bytes().to_vec()),
        Scalar::DateTime(v) => (12, v.to_le_bytes().to_vec()),
        Scalar::SmallDateTime(v) => (13, v.to_le_bytes().to_vec()),
        Scalar::DateTime2(v) => (14, v.to_le_bytes().to_vec()),
        Scalar::DateTimeOffset(utc, minutes) => (15, thawdb_types::key::datetimeoffset_bytes(*utc, *minutes).to_vec()),
        Scalar::Text(v) => (16, v.as_bytes().to_vec()),
        Scalar::Binary(v) => (17, v.clone()),
        Scalar::Guid(v) => (18, v.to_vec()),
    };
    w.u8(tag).bytes(&bytes);
}

fn read_scalar(r: &mut Reader<'_>) -> Result<Scalar, RecordError> {
    let (tag, bytes) = (r.u8()?, r.bytes()?);
    let wrong = |_| RecordError(format!("value of kind {tag} in {} bytes", bytes.len()));
    let long = || bytes.try_into().map(i64::from_le_bytes).map_err(wrong);
    let int = || bytes.try_into().map(i32::from_le_bytes).map_err(wrong);
    Ok(match tag {
        0 => Scalar::Null,
        1 => Scalar::Bit(bytes == [1]),
        2 => Scalar::TinyInt(bytes.try_into().map(u8::from_le_bytes).map_err(wrong)?),
        3 => Scalar::SmallInt(bytes.try_into().map(i16::from_le_bytes).map_err(wrong)?),
        4 => Scalar::Int(int()?),
        5 => Scalar::BigInt(long()?),
        6 => Scalar::Decimal(bytes.try_into().map(i128::from_le_bytes).map_err(wrong)?),
        7 => Scalar::Money(long()?),
        8 => Scalar::Real(bytes.try_into().map(f32::from_le_bytes).map_err(wrong)?),
        9 => Scalar::Float(bytes.try_into().map(f64::from_le_bytes).map_err(wrong)?),
        10 => Scalar::Date(int()?),
        11 => Scalar::Time(long()?),
        12 => Scalar::DateTime(long()?),
        13 => Scalar::SmallDateTime(long()?),
        14 => Scalar::DateTime2(long()?),
        15 => {
            let (utc, minutes) = thawdb_types::key::datetimeoffset_parts(bytes.try_into().map_err(wrong)?);
            Scalar::DateTimeOffset(utc, minutes)
        }
        16 => Scalar::Text(String::from_utf8(bytes.to_vec()).map_err(|_| RecordError("text is not UTF-8".into()))?),
        17 => Scalar::Binary(bytes.to_vec()),
        18 => Scalar::Guid(bytes.try_into().map_err(wrong)?),
        other => return Err(RecordError(format!("value of kind {other}"))),
    })
}

fn read_data(r: &mut Reader<'_>) -> Result<StatisticsData, RecordError> {
    let (updated, rows_sampled, leaves, key_type, rows) = (r.i64()?, r.u64()?, r.u64()?, r.sql_type()?, read_float(r)?);
    let steps = r.list(|r| {
        let high = read_scalar(r)?;
        let (equal_rows, range_rows, distinct_range_rows) = (read_float(r)?, read_float(r)?, read_float(r)?);
        Ok(HistogramStep { high, equal_rows, range_rows, distinct_range_rows })
    })?;
    let prefixes = r.list(|r| Ok((read_float(r)?, read_float(r)?)))?;
    let (distinct, average_bytes) = prefixes.into_iter().unzip();
    Ok(StatisticsData { updated, rows, rows_sampled, leaves, key_type, steps, distinct, average_bytes })
}

pub(crate) fn write_statistics(all: &TableStatistics) -> Vec<u8> {
    let mut w = Writer::new(VERSION);
    w.i32(all.table.0).i64(all.created).count(all.list.len());
    for one in &all.list {
        w.i32(one.id).text(&one.name).u8(one.origin as u8).flag(one.no_recompute);
        w.flag(one.sample_percent.is_some());
        float(&mut w, one.sample_percent.unwrap_or(0.0));
        w.count(one.columns.len());
        for column in &one.columns {
            w.i32(*column);
        }
        w.flag(one.data.is_some());
        if let Some(data) = &one.data {
            write_data(&mut w, data);
        }
    }
    w.finish()
}

pub(crate) fn read_statistics(record: &[u8]) -> Result<TableStatistics, RecordError> {
    let mut r = Reader::new(record, VERSION)?;
    let (table, created) = (ObjectId(r.i32()?), r.i64()?);
    let list = r.list(|r| {
        let (id, name) = (r.i32()?, r.text()?);
        let origin = match r.u8()? {
            0 => StatisticsOrigin::Index,
            1 => StatisticsOrigin::Automatic,
            2 => StatisticsOrigin::User,
            other => return Err(RecordError(format!("statistics of origin {other}"))),
        };
        let (no_recompute, has_percent, percent) = (r.flag()?, r.flag()?, read_float(r)?);
        let columns = r.list(Reader::i32)?;
        let data = if r.flag()? { Some(read_data(r)?) } else { None };
        Ok(Statistics { id, name, columns, origin, no_recompute, sample_percent: has_percent.then_some(percent), data })
    })?;
    r.finish()?;
    Ok(TableStatistics { table, created, list })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_damage_is_an_error() {
        let step = |high| HistogramStep { high, equal_rows: 1.5, range_rows: 2.0, distinct_range_rows: 1.0 };
        let values = [Scalar::Null, Scalar::Int(-7), Scalar::text("\u{e9}"), Scalar::DateTimeOffset(5, -60), Scalar::Guid([3; 16])];
        let key_type = SqlType::nvarchar(7);
        let data = StatisticsData {
            updated: 12,
            rows: 1000.0,
            rows_sampled: 10,
            leaves: 3,
            key_type,
            steps: values.into_iter().map(step).collect(),
            distinct: vec![5.0, 7.5],
            average_bytes: vec![4.0, 12.0],
        };
        let one = |data| Statistics {
            id: 2,
            name: "s".into(),
            columns: vec![1, 3],
            origin: StatisticsOrigin::User,
            no_recompute: true,
            sample_percent: Some(12.5),
            data,
        };
        let all = TableStatistics { table: ObjectId(9), created: 77, list: vec![one(Some(data)), one(None)] };
        let bytes = write_statistics(&all);
        assert_eq!(read_statistics(&bytes).unwrap(), all);
        (0..bytes.len()).for_each(|cut| assert!(read_statistics(&bytes[..cut]).is_err()));
    }

    #[test]
    fn a_histogram_is_of_values_that_compare_as_they_did() {
        let data = |key_type| StatisticsData {
            updated: 0,
            rows: 0.0,
            rows_sampled: 0,
            leaves: 1,
            key_type,
            steps: Vec::new(),
            distinct: Vec::new(),
            average_bytes: Vec::new(),
        };
        let known = |key_type| {
            let data = Some(data(key_type));
            let (id, name, origin) = (2, String::from("s"), StatisticsOrigin::Automatic);
            let one = Statistics { id, name, columns: vec![4], origin, no_recompute: false, sample_percent: None, data };
            TableStatistics { table: ObjectId(1), created: 0, list: vec![one] }
        };
        let speaks = |made, present| known(made).leading(4, &present).is_some();
        assert!(speaks(SqlType::Int, SqlType::Int) && speaks(SqlType::varchar(5), SqlType::nvarchar(9)));
        assert!(!speaks(SqlType::Int, SqlType::BigInt) && !speaks(SqlType::decimal(9, 2), SqlType::decimal(9, 4)));
        assert!(!speaks(SqlType::varbinary(8), SqlType::SqlVariant) && known(SqlType::Int).leading(3, &SqlType::Int).is_none());
    }
}
