//! A data file as batches of typed columns.

use super::field::{Refusal, append};
use super::options::{BulkFileOptions, CodePage};
use super::split::{Field, Split, Splitter};
use crate::context::StatementHost;
use crate::exec::Rows;
use arrow_buffer::BooleanBuffer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_device::{Device, DeviceError, DeviceErrorKind};
use thawdb_types::error::message;
use thawdb_types::{Batch, ColumnBuilder, SqlError, SqlType};

/// Bytes read at once: long sequential reads, and few of them.
const CHUNK_BYTES: usize = 4 << 20;
/// A row larger than this is taken for a file whose terminators are not those given.
const ROW_BYTES_MAX: usize = 256 << 20;
/// Rows in a batch.
const BATCH_ROWS: usize = 8192;
/// Text bytes in a batch, about: rows of large texts make smaller batches.
const BATCH_BYTES: usize = 16 << 20;

/// A column that the file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkField {
    /// Name of the table's column, for messages.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// An empty field is an error (4869) if it is false.
    pub nullable: bool,
}

/// A file being read.
pub struct BulkReader {
    device: Arc<dyn Device>,
    path: PathBuf,
    options: BulkFileOptions,
    fields: Vec<BulkField>,
    splitter: Splitter,
    buffer: Vec<u8>,
    /// Where the rows not parsed yet begin.
    start: usize,
    offset: u64,
    /// Bytes of a UTF-16 unit parted by the end of a chunk.
    half_unit: Vec<u8>,
    at_end: bool,
    row_number: u64,
    errors: u64,
}

impl BulkReader {
    /// Opens a file.
    ///
    /// # Errors
    /// 4860 if it is not there, 4861 if it cannot be opened.
    pub fn open(device: Arc<dyn Device>, path: &Path, options: BulkFileOptions, fields: Vec<BulkField>) -> Result<Self, SqlError> {
        let splitter = Splitter::new(&options, fields.len());
        let mut reader = Self {
            device,
            path: path.to_owned(),
            options,
            fields,
            splitter,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            half_unit: Vec::new(),
            at_end: false,
            row_number: 0,
            errors: 0,
        };
        reader.fill()?;
        if reader.buffer.starts_with(b"\xEF\xBB\xBF") {
            reader.start = 3;
        }
        Ok(reader)
    }

    /// The next rows; `None` at the end. Rows that are refused are told as messages and left out.
    pub fn next(&mut self, host: &mut dyn StatementHost) -> Result<Option<Batch>, SqlError> {
        loop {
            host.check_cancelled()?;
            let mut builders: Vec<ColumnBuilder> = self.fields.iter().map(|f| ColumnBuilder::new(&f.sql_type, BATCH_ROWS)).collect();
            let (mut rows, mut bytes) = (0, 0);
            let mut refused = Vec::new();
            let mut fields = Vec::new();
            while rows < BATCH_ROWS && bytes < BATCH_BYTES {
                let Some(range) = self.next_row(&mut fields)? else { break };
                if self.row_number < self.options.first_row {
                    continue;
                }
                bytes += range;
                if let Err(error) = self.parse(self.start - range, &fields, &mut builders) {
                    refused.push(rows);
                    self.refuse(error, host)?;
                    builders.iter_mut().filter(|b| b.len() == rows).for_each(ColumnBuilder::append_null);
                }
                rows += 1;
            }
            if rows == 0 {
                return Ok(None);
            }
            let batch = Batch::new(builders.iter_mut().map(ColumnBuilder::finish).collect(), rows);
            if refused.is_empty() {
                return Ok(Some(batch));
            }
            let batch = batch.filter(&BooleanBuffer::collect_bool(rows, |row| refused.binary_search(&row).is_err()));
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    /// Finds the next row and moves past it: its length in bytes; field ranges count from the row's start.
    fn next_row(&mut self, fields: &mut Vec<Field>) -> Result<Option<usize>, SqlError> {
        if self.options.last_row.is_some_and(|last| self.row_number >= last) {
            return Ok(None);
        }
        loop {
            match self.splitter.split(&self.buffer[self.start..], self.at_end, fields) {
                Split::Row { next } => {
                    self.start += next;
                    self.row_number += 1;
                    return Ok(Some(next));
                }
                Split::End => return Ok(None),
                Split::Cut => return Err(message(4832, &[])),
                Split::Incomplete if self.buffer.len() - self.start > ROW_BYTES_MAX => {
                    return Err(message(4866, &[&(self.row_number + 1), &(fields.len() + 1)]));
                }
                Split::Incomplete => self.fill()?,
            }
        }
    }

    fn parse(&self, row_start: usize, fields: &[Field], builders: &mut [ColumnBuilder]) -> Result<(), SqlError> {
        let row = &self.buffer[row_start..];
        for (at, (column, builder)) in self.fields.iter().zip(builders).enumerate() {
            let error = |number: i32| message(number, &[&self.row_number, &(at + 1), &column.name]);
            let field = fields.get(at).ok_or_else(|| error(4864))?;
            let present = append(row, field, &column.sql_type, &self.options, builder).map_err(|refusal| match refusal {
                Refusal::Mismatch => error(4864),
                Refusal::TooLong => error(4863),
                Refusal::Overflow => error(4867),
            })?;
            if !present && !column.nullable {
                return Err(error(4869));
            }
        }
        // A CSV row with more fields than columns.
        if fields.len() > self.fields.len() {
            return Err(message(4866, &[&self.row_number, &self.fields.len()]));
        }
        Ok(())
    }

    /// Counts a refused row and tells it; fails when there are too many.
    fn refuse(&mut self, error: SqlError, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        self.errors += 1;
        host.info(error);
        if self.errors > self.options.max_errors { Err(message(4865, &[&self.options.max_errors])) } else { Ok(()) }
    }

    /// Reads another chunk behind what is left of the buffer.
    fn fill(&mut self) -> Result<(), SqlError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let wide = self.options.code_page == CodePage::Utf16;
        let mut chunk = if wide { std::mem::take(&mut self.half_unit) } else { std::mem::take(&mut self.buffer) };
        let kept = chunk.len();
        chunk.resize(kept + CHUNK_BYTES, 0);
        let read = self.device.read_foreign(&self.path, self.offset, &mut chunk[kept..]).map_err(|e| self.failed(&e))?;
        chunk.truncate(kept + read);
        self.offset += read as u64;
        self.at_end = read == 0;
        if wide {
            self.take_wide(&chunk);
        } else {
            self.buffer = chunk;
        }
        Ok(())
    }

    /// Appends UTF-16 as UTF-8; what is left of a character waits for the next chunk.
    fn take_wide(&mut self, chunk: &[u8]) {
        let mut units: Vec<u16> = chunk.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let mut used = units.len() * 2;
        if !self.at_end && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
            used -= 2;
        }
        self.half_unit = if self.at_end { Vec::new() } else { chunk[used..].to_vec() };
        self.buffer.extend(String::from_utf16_lossy(&units).into_bytes());
    }

    fn failed(&self, error: &DeviceError) -> SqlError {
        let path = self.path.display();
        let code = format!("{}(failed to retrieve text for this error. Reason: 317)", error.os_error);
        match error.kind {
            DeviceErrorKind::NotFound => message(4860, &[&path]),
            _ if self.offset == 0 => message(4861, &[&path, &code]),
            _ => message(4862, &[&path, &code]),
        }
    }
}
