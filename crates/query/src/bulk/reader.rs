//! Rows of a character file as batches.
//!
//! ```text
//! buffer   |used|  row ............ |  next rows ...  |  free   |
//!                ^start            ^                  ^end
//! char     every field runs to its own terminator, whatever stands in between: the last one's is the row terminator
//! CSV      the same; a field may be quoted (quotes doubled, terminators inside), and no row ends before its last field
//! ```
//! Invariants: 1. A row's fields lie in the buffer as a whole before any of them becomes a value (`scan_row`).
//! 2. The buffer grows only while one row is longer than it, by doubling: each byte is scanned a bounded number of times.
//! 3. A row of which a field is wrong is not in the batch (`convert_row`), and is counted once against MAXERRORS.
//!
//! Errors of rows (4863 truncation, 4864 type or character, 4867 overflow, 4869 NULL not allowed) go to the client as
//! messages while the load goes on; one more than MAXERRORS ends it with 4865. What ends it at once: 4866 a field
//! longer than any column takes, 4832 an end of file within a row, 4879 a quoted field that is none, and the file's own
//! errors. A last row without its row terminator is a row. Rows before FIRSTROW are scanned and not looked at.

use crate::bulk::field::{FieldColumn, FieldError};
use crate::bulk::options::{BulkOptions, CodePage};
use crate::bulk::scan::{find, find_all, find_either};
use crate::bulk::source::{CHUNK_BYTES, Source};
use crate::context::StatementHost;
use crate::exec::batch::Rows;
use arrow_buffer::BooleanBuffer;
use thawdb_catalog::TableDef;
use thawdb_device::Env;
use thawdb_types::error::message;
use thawdb_types::{Batch, SqlError, SqlType};

/// Rows of a full batch: the most an operator may hand on.
const BATCH_ROWS_MAX: usize = 2 * Batch::ROWS_AIM;
/// Bytes a field of a column without a max type may have in the file: 8,000 characters of up to four bytes.
const FIELD_BYTES_MAX: usize = 32_000;

/// What a field of the file is for.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkField {
    /// Name of the column, for messages.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether an empty field is an error here: the column is NOT NULL and no default stands in.
    pub required: bool,
    /// Whether the batches have a column of it.
    pub wanted: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    /// Quotes stand doubled within.
    doubled: bool,
}

enum Scanned {
    Row,
    More,
    End,
}

/// A file being read.
pub struct BulkReader {
    source: Source,
    path: String,
    fields: Vec<BulkField>,
    columns: Vec<FieldColumn>,
    field_end: Vec<u8>,
    /// `None` is a line feed with or without a carriage return.
    row_end: Option<Vec<u8>>,
    quote: Option<u8>,
    first_row: u64,
    last_row: u64,
    errors_max: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    source_ended: bool,
    spans: Vec<Span>,
    unquoted: Vec<u8>,
    /// Rows scanned, from the file's beginning.
    row: u64,
    errors: u64,
    ended: bool,
}

impl BulkReader {
    /// Opens a file whose fields are the columns of `table`, and says which columns its batches have.
    ///
    /// Identity columns are left out unless KEEPIDENTITY, rowversions always.
    ///
    /// # Errors
    /// 4860, 4861, 4862.
    pub fn open(env: &Env, path: &str, options: &BulkOptions, table: &TableDef) -> Result<(Self, Vec<usize>), SqlError> {
        let field = |column: &thawdb_catalog::ColumnDef| BulkField {
            name: column.name.clone(),
            sql_type: column.sql_type,
            required: !column.nullable && (options.keep_nulls || column.default.is_none()),
            wanted: (column.identity.is_none() || options.keep_identity) && column.sql_type != SqlType::RowVersion,
        };
        let fields: Vec<BulkField> = table.columns.iter().map(field).collect();
        let targets = fields.iter().enumerate().filter(|(_, f)| f.wanted).map(|(at, _)| at).collect();
        Ok((Self::with_fields(env, path, options, fields)?, targets))
    }

    /// Opens a file with these fields, of which there is at least one.
    ///
    /// # Errors
    /// 4860, 4861, 4862.
    pub fn with_fields(env: &Env, path: &str, options: &BulkOptions, fields: Vec<BulkField>) -> Result<Self, SqlError> {
        assert!(!fields.is_empty(), "a table has columns");
        let (source, marked) = Source::open(env, path, options.wide)?;
        let page = match options.code_page {
            _ if options.wide => CodePage::Utf8,
            Some(page) => page,
            None if marked => CodePage::Utf8,
            None => CodePage::Oem437,
        };
        let columns = fields.iter().filter(|f| f.wanted).map(|f| FieldColumn::new(f.sql_type, page, BATCH_ROWS_MAX)).collect();
        Ok(Self {
            source,
            path: path.to_owned(),
            columns,
            field_end: options.field_bytes(),
            row_end: options.row_bytes(),
            quote: options.csv.then_some(options.quote),
            first_row: options.first_row,
            last_row: options.last_row.unwrap_or(u64::MAX),
            errors_max: options.errors_max,
            buffer: vec![0; 2 * CHUNK_BYTES + CHUNK_BYTES / 2],
            start: 0,
            end: 0,
            source_ended: false,
            spans: vec![Span::default(); fields.len()],
            unquoted: Vec::new(),
            fields,
            row: 0,
            errors: 0,
            ended: false,
        })
    }

    /// The next rows, at least one; `None` at the end.
    ///
    /// # Errors
    /// See the head of the module.
    pub fn next_batch(&mut self, host: &mut dyn StatementHost) -> Result<Option<Batch>, SqlError> {
        let mut rows_left = u64::MAX;
        self.next_batch_within(host, &mut rows_left)
    }

    /// The next rows, at most `rows_left` of them, which becomes less by their count; `None` at the end or when none are
    /// left to be read. So a caller commits every BATCHSIZE rows.
    ///
    /// # Errors
    /// See the head of the module.
    pub fn next_batch_within(&mut self, host: &mut dyn StatementHost, rows_left: &mut u64) -> Result<Option<Batch>, SqlError> {
        let rows_max = usize::try_from(*rows_left).unwrap_or(usize::MAX).min(BATCH_ROWS_MAX);
        while !self.ended && rows_max > 0 {
            host.check_cancelled()?;
            let batch = self.read_rows(rows_max, host)?;
            if batch.rows > 0 {
                *rows_left -= batch.rows as u64;
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Whether every row has been read.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Rows passed over because a field was wrong.
    pub fn error_count(&self) -> u64 {
        self.errors
    }

    fn read_rows(&mut self, rows_max: usize, host: &mut dyn StatementHost) -> Result<Batch, SqlError> {
        let (mut rows, mut bad) = (0, Vec::new());
        while rows < rows_max {
            if self.row >= self.last_row {
                self.ended = true;
                break;
            }
            match self.scan_row()? {
                Scanned::More => {
                    self.fill()?;
                    continue;
                }
                Scanned::End => {
                    self.ended = true;
                    break;
                }
                Scanned::Row => {}
            }
            self.row += 1;
            if self.row < self.first_row {
                continue;
            }
            if let Err(error) = self.convert_row() {
                bad.push(rows);
                self.errors += 1;
                host.info(error);
                if self.errors > self.errors_max {
                    return Err(message(4865, &[&self.errors_max]));
                }
            }
            rows += 1;
        }
        let batch = Batch::new(self.columns.iter_mut().map(FieldColumn::finish).collect(), rows);
        if bad.is_empty() {
            return Ok(batch);
        }
        let mut keep = vec![true; rows];
        bad.into_iter().for_each(|row| keep[row] = false);
        Ok(batch.filter(&BooleanBuffer::from(keep)))
    }

    /// Finds the ends of the next row's fields and moves `start` behind it.
    fn scan_row(&mut self) -> Result<Scanned, SqlError> {
        let last = self.fields.len() - 1;
        let mut at = self.start;
        for field in 0..=last {
            let found = match self.quote {
                Some(quote) if self.buffer[..self.end].get(at) == Some(&quote) => self.quoted_end(field, at, quote)?,
                _ => self.plain_end(field, at)?,
            };
            match found {
                Some((span, next)) => {
                    self.check_length(field, span.end - span.start)?;
                    self.spans[field] = span;
                    at = next;
                }
                None => return self.without_end(field, at),
            }
        }
        self.start = at;
        Ok(Scanned::Row)
    }

    /// The field at `at` that is not quoted, and where the next one begins.
    #[inline]
    fn plain_end(&self, field: usize, at: usize) -> Result<Option<(Span, usize)>, SqlError> {
        let bytes = &self.buffer[..self.end];
        let span = |end| Span { start: at, end, quoted: false, doubled: false };
        if field + 1 == self.fields.len() {
            let found = match &self.row_end {
                Some(terminator) => find_all(bytes, at, terminator).map(|end| (span(end), end + terminator.len())),
                None => find(bytes, at, b'\n').map(|end| (span(without_return(bytes, at, end)), end + 1)),
            };
            let is_unfinished_last = found.is_none() && self.source_ended && (self.end > at || field > 0);
            return Ok(if is_unfinished_last { Some((span(self.end), self.end)) } else { found });
        }
        if self.quote.is_some() {
            return self.csv_end(field, at);
        }
        Ok(match self.field_end.as_slice() {
            [only] => find(bytes, at, *only).map(|end| (span(end), end + 1)),
            terminator => find_all(bytes, at, terminator).map(|end| (span(end), end + terminator.len())),
        })
    }

    /// A plain field of CSV before the last: a row that ends here has too few fields.
    fn csv_end(&self, field: usize, at: usize) -> Result<Option<(Span, usize)>, SqlError> {
        let bytes = &self.buffer[..self.end];
        let row_end = self.row_end.as_deref().unwrap_or(b"\n");
        let mut from = at;
        while let Some(end) = find_either(bytes, from, self.field_end[0], row_end[0]) {
            let rest = &bytes[end..];
            if rest.starts_with(&self.field_end) {
                return Ok(Some((Span { start: at, end, quoted: false, doubled: false }, end + self.field_end.len())));
            }
            if rest.starts_with(row_end) {
                let is_blank = at == self.start && bytes[at..].iter().all(|b| matches!(b, b'\r' | b'\n'));
                return if is_blank { Ok(None) } else { Err(self.damaged(field)) };
            }
            from = end + 1;
        }
        Ok(None)
    }

    /// The quoted field at `at`, quotes taken off, and where the next one begins.
    fn quoted_end(&self, field: usize, at: usize, quote: u8) -> Result<Option<(Span, usize)>, SqlError> {
        let bytes = &self.buffer[..self.end];
        let (mut from, mut doubled) = (at + 1, false);
        let end = loop {
            match find(bytes, from, quote) {
                Some(end) if bytes.get(end + 1) == Some(&quote) => {
                    doubled = true;
                    from = end + 2;
                }
                Some(end) => break end,
                None => return Ok(None),
            }
        };
        let span = Span { start: at + 1, end, quoted: true, doubled };
        let rest = &bytes[end + 1..];
        let is_last = field + 1 == self.fields.len();
        let terminator = match (is_last, &self.row_end) {
            (false, _) => &self.field_end[..],
            (true, Some(bytes)) => bytes,
            (true, None) if rest.first() == Some(&b'\r') => b"\r\n",
            (true, None) => b"\n",
        };
        if rest.starts_with(terminator) {
            return Ok(Some((span, end + 1 + terminator.len())));
        }
        match (self.source_ended, rest.len() < terminator.len()) {
            (true, _) if rest.is_empty() && is_last => Ok(Some((span, self.end))),
            (false, true) => Ok(None),
            _ => Err(self.damaged(field)),
        }
    }

    /// Field `field` has no end in the buffer.
    fn without_end(&self, field: usize, at: usize) -> Result<Scanned, SqlError> {
        if !self.source_ended {
            self.check_length(field, self.end - at)?;
            return Ok(Scanned::More);
        }
        // Line ends that an editor leaves at the end of a file are no row of CSV.
        let is_blank = || self.quote.is_some() && self.buffer[self.start..self.end].iter().all(|b| matches!(b, b'\r' | b'\n'));
        if self.start == self.end || is_blank() { Ok(Scanned::End) } else { Err(message(4832, &[])) }
    }

    #[inline]
    fn check_length(&self, field: usize, bytes: usize) -> Result<(), SqlError> {
        let is_too_long = bytes > FIELD_BYTES_MAX && (!self.fields[field].sql_type.is_large() || bytes > i32::MAX as usize);
        if is_too_long { Err(message(4866, &[&(self.row + 1), &(field + 1)])) } else { Ok(()) }
    }

    fn damaged(&self, field: usize) -> SqlError {
        message(4879, &[&self.path, &(self.row + 1), &(field + 1)])
    }

    /// Reads on behind what the buffer holds of the present row.
    fn fill(&mut self) -> Result<(), SqlError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < 2 * CHUNK_BYTES {
            let longer = (self.buffer.len() * 2).max(self.end + 2 * CHUNK_BYTES);
            self.buffer.resize(longer, 0);
        }
        // Pieces as large as what is there already: a row of many pieces is scanned a bounded number of times.
        let wanted = self.end.max(1);
        let before = self.end;
        while !self.source_ended && self.end - before < wanted && self.buffer.len() - self.end >= 2 * CHUNK_BYTES {
            let count = self.source.read(&mut self.buffer[self.end..])?;
            self.source_ended = count == 0;
            self.end += count;
        }
        Ok(())
    }

    /// Appends the scanned row to the columns.
    fn convert_row(&mut self) -> Result<(), SqlError> {
        let mut column = 0;
        for (at, (field, span)) in self.fields.iter().zip(&self.spans).enumerate() {
            if !field.wanted {
                continue;
            }
            let mut bytes = &self.buffer[span.start..span.end];
            if span.doubled {
                self.unquoted.clear();
                undouble(bytes, self.quote.expect("only quoted fields have doubled quotes"), &mut self.unquoted);
                bytes = &self.unquoted;
            }
            let given =
                if bytes.is_empty() && !(span.quoted && field.sql_type.is_text()) { Ok(false) } else { self.columns[column].append(bytes) };
            let number = match given {
                Ok(true) => None,
                Ok(false) if !field.required => {
                    self.columns[column].append_null();
                    None
                }
                Ok(false) => Some(4869),
                Err(FieldError::Truncation) => Some(4863),
                Err(FieldError::Mismatch) => Some(4864),
                Err(FieldError::Overflow) => Some(4867),
            };
            if let Some(number) = number {
                self.columns[column..].iter_mut().for_each(FieldColumn::append_null);
                return Err(message(number, &[&self.row, &(at + 1), &field.name]));
            }
            column += 1;
        }
        Ok(())
    }
}

fn without_return(bytes: &[u8], start: usize, end: usize) -> usize {
    if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

fn undouble(bytes: &[u8], quote: u8, out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(found) = find(bytes, at, quote) {
        out.extend_from_slice(&bytes[at..=found]);
        at = found + 2;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or(&[]));
}
