//! A foreign file in large pieces, its byte order mark taken off and UTF-16 turned into UTF-8.
//!
//! ```text
//! device ── read_next ──► [raw, where UTF-16] ──► the reader's buffer
//! ```
//! Failure: 4860 no such file, 4861 it cannot be opened, 4862 it cannot be read. Reads block the calling worker.

use std::path::Path;
use thawdb_device::{DeviceError, DeviceErrorKind, Env, ForeignFile};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError};

/// Bytes asked of the device at once: large enough for a disk's full speed, small enough to stay in a shared cache.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
const MARK_UTF8: [u8; 3] = [0xEF, 0xBB, 0xBF];
const MARK_UTF16: [u8; 2] = [0xFF, 0xFE];

pub(super) struct Source {
    file: Box<dyn ForeignFile>,
    path: String,
    wide: Option<Wide>,
    /// Bytes of the beginning that were read while looking for a mark and are data.
    head: Vec<u8>,
}

/// UTF-16 on its way to UTF-8.
struct Wide {
    raw: Vec<u8>,
    /// Bytes at the start of `raw` that the last piece left over: half a unit, or a high surrogate.
    left: usize,
}

impl Source {
    /// Opens a file; the flag says whether it is marked as UTF-8.
    pub(super) fn open(env: &Env, path: &str, wide: bool) -> Result<(Self, bool), SqlError> {
        let file = env.device.open_foreign(Path::new(path)).map_err(|error| open_error(path, &error))?;
        let mut this = Self { file, path: path.to_owned(), wide: None, head: Vec::new() };
        let marked = this.take_mark(wide)?;
        if wide {
            this.wide = Some(Wide { raw: vec![0; CHUNK_BYTES], left: 0 });
        }
        Ok((this, marked))
    }

    fn take_mark(&mut self, wide: bool) -> Result<bool, SqlError> {
        let mut head = [0; 3];
        let mut length = 0;
        while length < head.len() {
            match self.file.read_next(&mut head[length..]).map_err(|error| self.read_error(&error))? {
                0 => break,
                count => length += count,
            }
        }
        let head = &head[..length];
        let marked = !wide && head == MARK_UTF8;
        let skipped = match wide {
            true if head.starts_with(&MARK_UTF16) => 2,
            false if marked => 3,
            _ => 0,
        };
        self.head = head[skipped..].to_vec();
        Ok(marked)
    }

    fn read_error(&self, error: &DeviceError) -> SqlError {
        message(4862, &[&self.path, &os_error(error)])
    }

    /// Puts the next bytes at the start of `out`, which has at least [`CHUNK_BYTES`] * 2 bytes; 0 at the end.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<usize, SqlError> {
        match self.wide.take() {
            None => self.read_raw(out),
            Some(mut wide) => {
                let result = self.read_wide(&mut wide, out);
                self.wide = Some(wide);
                result
            }
        }
    }

    fn read_raw(&mut self, out: &mut [u8]) -> Result<usize, SqlError> {
        if !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            out[..head.len()].copy_from_slice(&head);
            return Ok(head.len());
        }
        let room = out.len().min(CHUNK_BYTES);
        self.file.read_next(&mut out[..room]).map_err(|error| self.read_error(&error))
    }

    fn read_wide(&mut self, wide: &mut Wide, out: &mut [u8]) -> Result<usize, SqlError> {
        loop {
            let count = self.read_raw(&mut wide.raw[wide.left..])?;
            let have = wide.left + count;
            let at_end = count == 0;
            if at_end && have == 0 {
                return Ok(0);
            }
            let whole = if at_end { have } else { whole_characters(&wide.raw[..have]) };
            let units = wide.raw[..whole].chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            let mut used = 0;
            for c in char::decode_utf16(units) {
                used += c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut out[used..]).len();
            }
            wide.raw.copy_within(whole..have, 0);
            wide.left = have - whole;
            if used > 0 {
                return Ok(used);
            }
        }
    }
}

/// How many of the bytes are whole characters.
fn whole_characters(raw: &[u8]) -> usize {
    let units = raw.len() / 2 * 2;
    let is_high_surrogate = units >= 2 && (0xD8..0xDC).contains(&raw[units - 1]);
    if is_high_surrogate { units - 2 } else { units }
}

fn open_error(path: &str, error: &DeviceError) -> SqlError {
    match error.kind {
        DeviceErrorKind::NotFound => message(4860, &[&path]),
        _ => message(4861, &[&path, &os_error(error)]),
    }
}

/// As SQL Server prints it: the number, and what it says in brackets.
fn os_error(error: &DeviceError) -> String {
    let said = match error.kind {
        DeviceErrorKind::NotFound => "The system cannot find the file specified.",
        DeviceErrorKind::Denied => "Access is denied.",
        DeviceErrorKind::Busy => "The process cannot access the file because it is being used by another process.",
        DeviceErrorKind::EndOfFile => "Reached the end of the file.",
        DeviceErrorKind::AlreadyExists | DeviceErrorKind::Full | DeviceErrorKind::Io => "I/O error.",
    };
    format!("{}({said})", error.os_error)
}

/// How OPENROWSET(BULK) reads a file as one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeFile {
    /// SINGLE_BLOB: varbinary(max).
    Binary,
    /// SINGLE_CLOB: varchar(max), of code page 1252 unless marked as UTF-8.
    Text,
    /// SINGLE_NCLOB: nvarchar(max), the file being UTF-16.
    WideText,
}

/// The whole file as one value.
///
/// # Errors
/// As reading it in pieces; 4866 for a file over 2^31 - 1 bytes.
pub fn read_whole(env: &Env, path: &str, kind: WholeFile) -> Result<Scalar, SqlError> {
    let (mut source, marked) = Source::open(env, path, kind == WholeFile::WideText)?;
    let (mut piece, mut all) = (vec![0; CHUNK_BYTES * 2], Vec::new());
    if kind == WholeFile::Binary && marked {
        all.extend_from_slice(&MARK_UTF8);
    }
    loop {
        let count = source.read(&mut piece)?;
        if count == 0 {
            break;
        }
        if all.len() + count > i32::MAX as usize {
            return Err(message(4866, &[&1, &1]));
        }
        all.extend_from_slice(&piece[..count]);
    }
    Ok(match kind {
        WholeFile::Binary => Scalar::Binary(all),
        WholeFile::Text if !marked => Scalar::Text(thawdb_types::collation::decode_1252(&all)),
        WholeFile::Text | WholeFile::WideText => Scalar::Text(String::from_utf8_lossy(&all).into_owned()),
    })
}
