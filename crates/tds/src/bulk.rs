//! Bulk loads (MS-TDS 2.2.6.1): COLMETADATA, then rows, then DONE, as a stream far larger than memory.
//!
//! [`BulkDecoder`] takes the packets as they come and gives whole rows; the bytes of an unfinished row wait for the
//! next packet. Invariant K1: no more than one row and one packet wait ([`BulkDecoder::push`] is followed by draining).

use crate::TdsVersion;
use crate::buffer::{DecodeError, Flaw, Reader};
use crate::token::{ColMetadata, code};
use crate::value;
use thawdb_types::{Scalar, SqlType};

/// What comes next of a bulk load.
#[derive(Debug, Clone, PartialEq)]
pub enum BulkItem {
    /// The columns, first and once.
    Columns(ColMetadata),
    /// A row.
    Row(Vec<Scalar>),
    /// A row with a value that its type, this one, does not have. Nothing behind it is to be read.
    NoValue(SqlType),
    /// The end.
    Done,
}

/// Decodes a bulk load.
#[derive(Debug)]
pub struct BulkDecoder {
    version: TdsVersion,
    pending: Vec<u8>,
    start: usize,
    columns: Option<ColMetadata>,
    over: bool,
}

impl BulkDecoder {
    /// A decoder at the start of a load.
    pub fn new(version: TdsVersion) -> Self {
        Self { version, pending: Vec::new(), start: 0, columns: None, over: false }
    }

    /// Adds the data of a packet.
    pub fn push(&mut self, data: &[u8]) {
        self.pending.drain(..self.start);
        self.start = 0;
        self.pending.extend_from_slice(data);
    }

    /// The next item; `None` until more data comes, and for ever after [`BulkItem::Done`].
    pub fn next_item(&mut self) -> Result<Option<BulkItem>, DecodeError> {
        if self.over {
            return Ok(None);
        }
        let mut reader = Reader::new(&self.pending[self.start..]);
        match self.read(&mut reader) {
            Ok(item) => {
                self.start = self.pending.len() - reader.remaining();
                match &item {
                    BulkItem::Columns(columns) => self.columns = Some(columns.clone()),
                    BulkItem::Row(_) => {}
                    BulkItem::NoValue(_) | BulkItem::Done => self.over = true,
                }
                Ok(Some(item))
            }
            Err(error) if error.is_incomplete() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the data so far ends behind a row, or behind the DONE.
    pub fn is_between_rows(&self) -> bool {
        self.over || (self.columns.is_some() && self.start == self.pending.len())
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<BulkItem, DecodeError> {
        match (reader.u8("bulk token")?, &self.columns) {
            (code::COL_METADATA, None) => ColMetadata::decode_bulk(reader, self.version).map(BulkItem::Columns),
            (code::ROW, Some(columns)) => {
                let mut row = Vec::with_capacity(columns.columns.len());
                for column in &columns.columns {
                    // Unlike parameters, text, ntext and image have their pointers here.
                    match value::decode(&column.info, reader) {
                        Err(error) if error.flaw == Flaw::Value => return Ok(BulkItem::NoValue(column.info.sql_type)),
                        value => row.push(value?),
                    }
                }
                Ok(BulkItem::Row(row))
            }
            (code::DONE, Some(_)) => Ok(BulkItem::Done),
            _ => Err(reader.malformed("bulk token")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{ColumnMeta, Done};
    use crate::type_info::TypeInfo;
    use thawdb_types::{Collation, MaxLength};

    #[test]
    fn rows_come_out_whatever_the_cut() {
        let text = SqlType::NVarChar { length: MaxLength::Max, collation: Collation::DEFAULT };
        let column = |name: &str, sql_type| ColumnMeta { name: name.into(), info: TypeInfo::of(sql_type), nullable: true, identity: false };
        let columns = ColMetadata { columns: vec![column("a", SqlType::Int), column("b", text)] };
        let rows: Vec<Vec<Scalar>> = (0..50).map(|n| vec![Scalar::Int(n), Scalar::Text("x".repeat(n as usize * 7))]).collect();
        let mut wire = Vec::new();
        columns.encode_bulk(TdsVersion::V7_4, &mut wire);
        for row in &rows {
            wire.push(code::ROW);
            for (value, column) in row.iter().zip(&columns.columns) {
                value::encode(&column.info, value, &mut wire);
            }
        }
        Done::FINAL.encode(TdsVersion::V7_4, &mut wire);
        for cut in [1, 13, 4088, wire.len()] {
            let mut decoder = BulkDecoder::new(TdsVersion::V7_4);
            let mut items = Vec::new();
            for piece in wire.chunks(cut) {
                decoder.push(piece);
                while let Some(item) = decoder.next_item().unwrap() {
                    items.push(item);
                }
            }
            assert_eq!(items[0], BulkItem::Columns(columns.clone()));
            let got: Vec<_> = items.iter().filter_map(|i| if let BulkItem::Row(row) = i { Some(row.clone()) } else { None }).collect();
            assert_eq!(got, rows);
            assert_eq!(items.last(), Some(&BulkItem::Done));
            assert!(decoder.is_between_rows());
        }
    }

    /// Rows of text have text pointers, which parameters do not; FreeTDS' freebcp once found the connection closed.
    #[test]
    fn text_comes_with_its_pointer_and_a_value_of_no_type_is_told() {
        let column = |sql_type| ColumnMeta { name: "a".into(), info: TypeInfo::of(sql_type), nullable: true, identity: false };
        let columns = ColMetadata { columns: vec![column(SqlType::Text { collation: Collation::DEFAULT }), column(SqlType::Date)] };
        let mut wire = Vec::new();
        columns.encode_bulk(TdsVersion::V7_4, &mut wire);
        wire.extend([&[code::ROW, 16][..], &[0xFF; 24], &[2, 0, 0, 0, b'h', b'i'], &[3, 1, 0, 0]].concat());
        wire.extend([code::ROW, 0, 3, 0xFF, 0xFF, 0xFF]);
        let mut decoder = BulkDecoder::new(TdsVersion::V7_4);
        decoder.push(&wire);
        assert!(matches!(decoder.next_item().unwrap(), Some(BulkItem::Columns(_))));
        assert_eq!(decoder.next_item().unwrap(), Some(BulkItem::Row(vec![Scalar::text("hi"), Scalar::Date(1)])));
        assert_eq!(decoder.next_item().unwrap(), Some(BulkItem::NoValue(SqlType::Date)));
        assert_eq!(decoder.next_item().unwrap(), None);
    }

    #[test]
    fn an_end_within_a_row_is_seen() {
        let column = ColumnMeta { name: "a".into(), info: TypeInfo::of(SqlType::Int), nullable: true, identity: false };
        let columns = ColMetadata { columns: vec![column] };
        let mut wire = Vec::new();
        columns.encode_bulk(TdsVersion::V7_4, &mut wire);
        let row = [code::ROW, 4, 1, 0, 0, 0];
        for cut in 0..=row.len() {
            let mut decoder = BulkDecoder::new(TdsVersion::V7_4);
            decoder.push(&wire);
            decoder.push(&row[..cut]);
            while decoder.next_item().unwrap().is_some() {}
            assert_eq!(decoder.is_between_rows(), cut == 0 || cut == row.len(), "{cut}");
        }
    }

    #[test]
    fn rows_before_columns_are_refused() {
        let mut decoder = BulkDecoder::new(TdsVersion::V7_4);
        decoder.push(&[code::ROW, 1, 2, 3]);
        assert_eq!(decoder.next_item().unwrap_err().what, "bulk token");
    }
}
