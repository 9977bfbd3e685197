//! The WITH options of BULK INSERT.

use thawdb_tsql::ast::{Expr, ExprKind, Literal, OptionItem, OptionValue};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// How characters of the file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePage {
    /// UTF-8; what is not is taken for Windows-1252 (no CODEPAGE said).
    Guess,
    /// UTF-8 (`65001`).
    Utf8,
    /// Windows-1252 (`ACP`, `OEM`, `RAW`, `1252`).
    Windows1252,
    /// UTF-16, little-endian (`DATAFILETYPE = 'widechar'`).
    Utf16,
}

/// The shape of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkFileOptions {
    /// Between fields.
    pub field_terminator: Vec<u8>,
    /// At the end of a row. `\n` stands for itself with or without `\r` before it.
    pub row_terminator: Vec<u8>,
    /// First row to load, from 1.
    pub first_row: u64,
    /// Last row to load; `None` is the file's last.
    pub last_row: Option<u64>,
    /// Characters.
    pub code_page: CodePage,
    /// FORMAT = 'CSV': fields may be quoted, RFC 4180.
    pub csv: bool,
    /// The quote of CSV.
    pub quote: u8,
    /// Rows that may be bad before the load fails.
    pub max_errors: u64,
}

impl Default for BulkFileOptions {
    fn default() -> Self {
        Self {
            field_terminator: b"\t".to_vec(),
            row_terminator: b"\n".to_vec(),
            first_row: 1,
            last_row: None,
            code_page: CodePage::Guess,
            csv: false,
            quote: b'"',
            max_errors: 10,
        }
    }
}

/// All options of a BULK INSERT.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkOptions {
    /// The file's shape.
    pub file: BulkFileOptions,
    /// KEEPNULLS: an empty field stays NULL where the column has a default.
    pub keep_nulls: bool,
    /// KEEPIDENTITY.
    pub keep_identity: bool,
    /// CHECK_CONSTRAINTS.
    pub check_constraints: bool,
    /// FIRE_TRIGGERS.
    pub fire_triggers: bool,
    /// TABLOCK.
    pub table_lock: bool,
    /// BATCHSIZE: rows to commit together; `None` is all.
    pub batch_rows: Option<u64>,
}

impl BulkOptions {
    /// Reads the options as parsed.
    ///
    /// # Errors
    /// 155 for an option that is none, 40514 for one that is not built (format files, native data, remote sources).
    pub fn from_items(items: &[OptionItem]) -> Result<Self, SqlError> {
        let mut options = Self::default();
        let mut terminator_given = false;
        for item in items {
            options.take(item, &mut terminator_given).map_err(|error| error.at_line(item.span.line))?;
        }
        if options.file.csv && !terminator_given {
            options.file.field_terminator = b",".to_vec();
        }
        Ok(options)
    }

    fn take(&mut self, item: &OptionItem, terminator_given: &mut bool) -> Result<(), SqlError> {
        let on = !matches!(item.value, OptionValue::Switch(false));
        match item.name.as_str() {
            "FIELDTERMINATOR" => {
                *terminator_given = true;
                self.file.field_terminator = terminator(&text(item)?);
            }
            "ROWTERMINATOR" => self.file.row_terminator = terminator(&text(item)?),
            "FIRSTROW" => self.file.first_row = number(item)?.max(1),
            "LASTROW" => self.file.last_row = Some(number(item)?).filter(|n| *n > 0),
            "CODEPAGE" if self.file.code_page != CodePage::Utf16 => self.file.code_page = code_page(&text(item)?)?,
            "CODEPAGE" => {}
            "DATAFILETYPE" => match text(item)?.to_ascii_lowercase().as_str() {
                "char" => {}
                "widechar" => self.file.code_page = CodePage::Utf16,
                other => return Err(not_built(&format!("DATAFILETYPE = '{other}'"))),
            },
            "FORMAT" => match text(item)?.to_ascii_uppercase().as_str() {
                "CSV" => self.file.csv = true,
                other => return Err(not_built(&format!("FORMAT = '{other}'"))),
            },
            "FIELDQUOTE" => self.file.quote = text(item)?.bytes().next().unwrap_or(b'"'),
            "KEEPNULLS" => self.keep_nulls = on,
            "KEEPIDENTITY" => self.keep_identity = on,
            "CHECK_CONSTRAINTS" => self.check_constraints = on,
            "FIRE_TRIGGERS" => self.fire_triggers = on,
            "TABLOCK" => self.table_lock = on,
            "BATCHSIZE" => self.batch_rows = Some(number(item)?).filter(|n| *n > 0),
            "MAXERRORS" => self.file.max_errors = number(item)?,
            // Hints that change no result.
            "ROWS_PER_BATCH" | "KILOBYTES_PER_BATCH" | "ORDER" => {}
            "FORMATFILE" | "DATA_SOURCE" | "ERRORFILE" | "FORMATFILE_DATA_SOURCE" | "ERRORFILE_DATA_SOURCE" => {
                return Err(not_built(&format!("BULK INSERT with {}", item.name)));
            }
            other => return Err(message(155, &[&other, &"BULK INSERT"])),
        }
        Ok(())
    }
}

fn not_built(what: &str) -> SqlError {
    message(40514, &[&what])
}

fn literal(expr: &Expr) -> Option<&Literal> {
    match &expr.kind {
        ExprKind::Literal(literal) => Some(literal),
        ExprKind::Paren(inner) => literal(inner),
        _ => None,
    }
}

fn text(item: &OptionItem) -> Result<String, SqlError> {
    match &item.value {
        OptionValue::Expr(expr) => match literal(expr) {
            Some(Literal::String { value, .. }) => Ok(value.clone()),
            Some(Literal::Integer(value)) => Ok(value.to_string()),
            _ => Err(message(155, &[&item.name, &"BULK INSERT"])),
        },
        OptionValue::Word(word) => Ok(word.clone()),
        _ => Err(message(155, &[&item.name, &"BULK INSERT"])),
    }
}

fn number(item: &OptionItem) -> Result<u64, SqlError> {
    let found = match &item.value {
        OptionValue::Expr(expr) => match literal(expr) {
            Some(Literal::Integer(value)) => u64::try_from(*value).ok(),
            Some(Literal::Decimal { text, .. }) => text.parse().ok(),
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| message(155, &[&item.name, &"BULK INSERT"]))
}

fn code_page(name: &str) -> Result<CodePage, SqlError> {
    match name.to_ascii_uppercase().as_str() {
        "65001" => Ok(CodePage::Utf8),
        "RAW" | "ACP" | "OEM" | "1252" => Ok(CodePage::Windows1252),
        "1200" => Ok(CodePage::Utf16),
        other => Err(message(4868, &[&other])),
    }
}

/// The bytes that a terminator's text means: `\t`, `\n`, `\r`, `\0`, `\\`, and `0x0a` in hexadecimal.
fn terminator(text: &str) -> Vec<u8> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        && !hex.is_empty()
        && hex.len() % 2 == 0
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
    {
        let digit = |b: u8| char::from(b).to_digit(16).expect("only hexadecimal digits came here") as u8;
        let bytes: Vec<u8> = hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
        return bytes;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = match (byte, bytes.peek()) {
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'0')) => Some(0),
            (b'\\', Some(b'\\')) => Some(b'\\'),
            _ => None,
        };
        match escaped {
            Some(meant) => {
                bytes.next();
                out.push(meant);
            }
            None => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminators() {
        for (text, bytes) in [
            ("\\t", &b"\t"[..]),
            ("\\r\\n", b"\r\n"),
            ("0x0a", b"\n"),
            ("0x0D0A", b"\r\n"),
            ("||", b"||"),
            ("\\\\", b"\\"),
            ("0xz", b"0xz"),
        ] {
            assert_eq!(terminator(text), bytes, "{text}");
        }
    }
}
