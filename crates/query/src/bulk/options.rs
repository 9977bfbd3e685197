//! WITH (...) of BULK INSERT and OPENROWSET(BULK): what may be said, what is meant when nothing is.
//!
//! ```text
//! terminators   \t \n \r \0 \\ are escapes, 0x0d0a is bytes; a row terminator of \n alone is \r\n, as documented;
//!               '0x0a' and a real line feed are a lone line feed
//! FORMAT='CSV'  fields may be quoted, default field terminator is a comma; a row terminator of \n ends rows with
//!               or without a carriage return
//! ```
//! Failure: an unknown option is 155, one that is known and not built 40514, a code page not there 4868, a value that
//! makes no sense 153.

use crate::bulk::code_page;
use thawdb_tsql::ast::{Expr, ExprKind, Ident, Literal, OptionItem, OptionValue, Span};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// How many bad rows a load passes over unless MAXERRORS says otherwise.
pub const ERRORS_MAX_DEFAULT: u64 = 10;

/// What the bytes of a character file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePage {
    /// 65001.
    Utf8,
    /// ACP and 1252.
    Windows1252,
    /// OEM and 437: what is meant unless something else is said or the file has a UTF-8 mark.
    Oem437,
    /// RAW: each column's own code page.
    Raw,
}

/// The options of a load, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkOptions {
    /// FIELDTERMINATOR as written; `None` is a tab, or a comma in CSV.
    pub field_terminator: Option<String>,
    /// ROWTERMINATOR as written.
    pub row_terminator: String,
    /// FIRSTROW, from 1.
    pub first_row: u64,
    /// LASTROW.
    pub last_row: Option<u64>,
    /// CODEPAGE; `None` is OEM, or UTF-8 when the file is marked so.
    pub code_page: Option<CodePage>,
    /// DATAFILETYPE = 'widechar': the file is UTF-16.
    pub wide: bool,
    /// FORMAT = 'CSV'.
    pub csv: bool,
    /// FIELDQUOTE.
    pub quote: u8,
    /// KEEPNULLS: an empty field is NULL even where the column has a default.
    pub keep_nulls: bool,
    /// KEEPIDENTITY: identity values come from the file.
    pub keep_identity: bool,
    /// CHECK_CONSTRAINTS.
    pub check_constraints: bool,
    /// FIRE_TRIGGERS.
    pub fire_triggers: bool,
    /// TABLOCK.
    pub table_lock: bool,
    /// BATCHSIZE: rows a transaction.
    pub batch_rows: Option<u64>,
    /// ROWS_PER_BATCH: a hint of how many rows there are.
    pub rows_expected: Option<u64>,
    /// MAXERRORS.
    pub errors_max: u64,
    /// ORDER: column and whether it falls. A hint: the order is checked, never trusted.
    pub order: Vec<(String, bool)>,
}

impl Default for BulkOptions {
    fn default() -> Self {
        Self {
            field_terminator: None,
            row_terminator: "\\n".into(),
            first_row: 1,
            last_row: None,
            code_page: None,
            wide: false,
            csv: false,
            quote: b'"',
            keep_nulls: false,
            keep_identity: false,
            check_constraints: false,
            fire_triggers: false,
            table_lock: false,
            batch_rows: None,
            rows_expected: None,
            errors_max: ERRORS_MAX_DEFAULT,
            order: Vec::new(),
        }
    }
}

impl BulkOptions {
    /// The options of a statement as parsed.
    ///
    /// # Errors
    /// See the head of the module.
    pub fn from_ast(options: &[OptionItem], order: &[(Ident, bool)]) -> Result<Self, SqlError> {
        let mut this = Self { order: order.iter().map(|(name, falls)| (name.text.clone(), *falls)).collect(), ..Self::default() };
        options.iter().try_for_each(|option| this.take(option))?;
        if this.last_row.is_some_and(|last| last < this.first_row) {
            return Err(invalid("LASTROW", Span::default()));
        }
        Ok(this)
    }

    fn take(&mut self, option: &OptionItem) -> Result<(), SqlError> {
        match option.name.as_str() {
            "FIELDTERMINATOR" => self.field_terminator = Some(text(option)?.to_owned()),
            "ROWTERMINATOR" => self.row_terminator = text(option)?.to_owned(),
            "FIRSTROW" => self.first_row = number(option)?.max(1),
            "LASTROW" => self.last_row = Some(number(option)?).filter(|last| *last > 0),
            "CODEPAGE" => self.code_page = Some(code_page_of(option)?),
            "DATAFILETYPE" => self.take_file_type(option)?,
            "FORMAT" if text(option)?.eq_ignore_ascii_case("CSV") => self.csv = true,
            "FORMAT" => return Err(not_built("FORMAT other than 'CSV'", option.span)),
            "FIELDQUOTE" => match text(option)?.as_bytes() {
                [quote] if quote.is_ascii() => self.quote = *quote,
                _ => return Err(invalid("FIELDQUOTE", option.span)),
            },
            "KEEPNULLS" | "KEEP_NULLS" => self.keep_nulls = flag(option)?,
            "KEEPIDENTITY" => self.keep_identity = flag(option)?,
            "CHECK_CONSTRAINTS" => self.check_constraints = flag(option)?,
            "FIRE_TRIGGERS" => self.fire_triggers = flag(option)?,
            "TABLOCK" => self.table_lock = flag(option)?,
            "BATCHSIZE" => self.batch_rows = Some(number(option)?).filter(|rows| *rows > 0),
            "ROWS_PER_BATCH" => self.rows_expected = Some(number(option)?).filter(|rows| *rows > 0),
            // A hint for SQL Server's cost model; ours asks for none.
            "KILOBYTES_PER_BATCH" => drop(number(option)?),
            "MAXERRORS" => self.errors_max = number(option)?,
            "FORMATFILE" | "FORMATFILE_DATA_SOURCE" | "ERRORFILE" | "ERRORFILE_DATA_SOURCE" | "DATA_SOURCE" => {
                return Err(not_built(&format!("{} of a bulk load", option.name), option.span));
            }
            _ => return Err(unknown(&option.name, option.span)),
        }
        Ok(())
    }

    fn take_file_type(&mut self, option: &OptionItem) -> Result<(), SqlError> {
        match text(option)?.to_ascii_lowercase().as_str() {
            "char" => self.wide = false,
            "widechar" => self.wide = true,
            "native" | "widenative" => return Err(not_built("native bulk load files", option.span)),
            _ => return Err(invalid("DATAFILETYPE", option.span)),
        }
        Ok(())
    }

    /// Bytes that end a field in the file (after UTF-16 became UTF-8).
    pub(super) fn field_bytes(&self) -> Vec<u8> {
        let written = self.field_terminator.as_deref().unwrap_or(if self.csv { "," } else { "\\t" });
        self.bytes_of(written)
    }

    /// Bytes that end a row; `None` is a line feed, a carriage return before it not being data.
    pub(super) fn row_bytes(&self) -> Option<Vec<u8>> {
        match self.row_terminator.as_str() {
            "\\n" if self.csv => None,
            "\\n" => Some(b"\r\n".to_vec()),
            written => Some(self.bytes_of(written)),
        }
    }

    fn bytes_of(&self, written: &str) -> Vec<u8> {
        if let Some(bytes) = hexadecimal(written) {
            let units = || bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let is_wide = self.wide && bytes.len() % 2 == 0;
            return if is_wide { char::decode_utf16(units()).filter_map(Result::ok).collect::<String>().into_bytes() } else { bytes };
        }
        let text = unescaped(written);
        if self.wide { text.into_bytes() } else { code_page::encode(&text, self.code_page.unwrap_or(CodePage::Oem437)) }
    }
}

/// `0x` and pairs of digits.
fn hexadecimal(written: &str) -> Option<Vec<u8>> {
    let digits = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"))?;
    let is_pairs = !digits.is_empty() && digits.len() % 2 == 0 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_pairs.then(|| (0..digits.len()).step_by(2).filter_map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect())
}

fn unescaped(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    let mut rest = written.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = match (c, rest.peek()) {
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            ('\\', Some('0')) => Some('\0'),
            ('\\', Some('\\')) => Some('\\'),
            _ => None,
        };
        if escaped.is_some() {
            rest.next();
        }
        out.push(escaped.unwrap_or(c));
    }
    out
}

fn code_page_of(option: &OptionItem) -> Result<CodePage, SqlError> {
    let written = match literal(option) {
        Some(Literal::String { value, .. }) => value.clone(),
        Some(Literal::Integer(number)) => number.to_string(),
        _ => return Err(invalid("CODEPAGE", option.span)),
    };
    match written.to_ascii_uppercase().as_str() {
        "65001" => Ok(CodePage::Utf8),
        "ACP" | "1252" => Ok(CodePage::Windows1252),
        "OEM" | "437" => Ok(CodePage::Oem437),
        "RAW" => Ok(CodePage::Raw),
        other => Err(message(4868, &[&other]).at_line(option.span.line)),
    }
}

fn literal(option: &OptionItem) -> Option<&Literal> {
    match &option.value {
        OptionValue::Expr(Expr { kind: ExprKind::Literal(literal), .. }) => Some(literal),
        _ => None,
    }
}

fn text(option: &OptionItem) -> Result<&str, SqlError> {
    match literal(option) {
        Some(Literal::String { value, .. }) if !value.is_empty() => Ok(value),
        _ => Err(invalid(&option.name, option.span)),
    }
}

fn number(option: &OptionItem) -> Result<u64, SqlError> {
    let value = match literal(option) {
        Some(Literal::Integer(value)) => u64::try_from(*value).ok(),
        Some(Literal::Decimal { text, scale: 0, .. }) => text.parse().ok(),
        _ => None,
    };
    value.ok_or_else(|| invalid(&option.name, option.span))
}

fn unknown(name: &str, span: Span) -> SqlError {
    message(155, &[&name, &"BULK INSERT"]).at_line(span.line)
}

fn invalid(name: &str, span: Span) -> SqlError {
    message(153, &[&name, &"BULK INSERT"]).at_line(span.line)
}

fn not_built(what: &str, span: Span) -> SqlError {
    message(40514, &[&what]).at_line(span.line)
}

/// The option by its presence; drivers also write it with ON or OFF.
fn flag(option: &OptionItem) -> Result<bool, SqlError> {
    match &option.value {
        OptionValue::None => Ok(true),
        OptionValue::Switch(on) => Ok(*on),
        _ => Err(invalid(&option.name, option.span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(options: &str) -> Result<BulkOptions, SqlError> {
        let statement = format!("BULK INSERT dbo.t FROM '/x' WITH ({options})");
        let batch = thawdb_tsql::parse_batch(&statement, &thawdb_tsql::ParseOptions::default());
        assert!(batch.errors.is_empty(), "{:?}", batch.errors);
        let thawdb_tsql::ast::StmtKind::BulkInsert(node) = &batch.statements[0].kind else { panic!("a bulk insert") };
        BulkOptions::from_ast(&node.options, &node.order)
    }

    #[test]
    fn options_and_what_they_mean() {
        let all = parsed(
            "FIELDTERMINATOR = ',', ROWTERMINATOR = '0x0a', FIRSTROW = 2, LASTROW = 5000000000, CODEPAGE = '65001', DATAFILETYPE = 'char', \
             FORMAT = 'CSV', FIELDQUOTE = '''', KEEPNULLS, KEEPIDENTITY, BATCHSIZE = 10, ROWS_PER_BATCH = 9, TABLOCK, MAXERRORS = 0, \
             ORDER (Id DESC, b), CHECK_CONSTRAINTS, FIRE_TRIGGERS",
        )
        .unwrap();
        assert_eq!((all.field_bytes(), all.row_bytes()), (b",".to_vec(), Some(b"\n".to_vec())));
        assert_eq!(
            (all.first_row, all.last_row, all.code_page, all.csv, all.quote),
            (2, Some(5_000_000_000), Some(CodePage::Utf8), true, b'\'')
        );
        assert!(all.keep_nulls && all.keep_identity && all.table_lock && all.check_constraints && all.fire_triggers && !all.wide);
        assert_eq!((all.batch_rows, all.rows_expected, all.errors_max), (Some(10), Some(9), 0));
        assert_eq!(all.order, [("Id".to_owned(), true), ("b".to_owned(), false)]);
    }

    #[test]
    fn terminators() {
        let bytes = |options: &str| {
            let options = parsed(options).unwrap();
            (options.field_bytes(), options.row_bytes())
        };
        for (options, field, row) in [
            ("TABLOCK", &b"\t"[..], Some(&b"\r\n"[..])),
            ("ROWTERMINATOR = '\\n'", b"\t", Some(b"\r\n")),
            ("ROWTERMINATOR = '\n'", b"\t", Some(b"\n")),
            ("ROWTERMINATOR = '\\r\\n'", b"\t", Some(b"\r\n")),
            ("FORMAT = 'CSV'", b",", None),
            ("FORMAT = 'CSV', ROWTERMINATOR = '\\r\\n'", b",", Some(b"\r\n")),
            ("FIELDTERMINATOR = '|~|', ROWTERMINATOR = '|\\0\\\\~'", b"|~|", Some(b"|\0\\~")),
            ("FIELDTERMINATOR = '0x1F1E'", b"\x1F\x1E", Some(b"\r\n")),
            ("FIELDTERMINATOR = '0x7C00', DATAFILETYPE = 'widechar'", b"|", Some(b"\r\n")),
            ("FIELDTERMINATOR = N'\u{E9}'", b"\x82", Some(b"\r\n")),
            ("FIELDTERMINATOR = N'\u{E9}', CODEPAGE = 'ACP'", b"\xE9", Some(b"\r\n")),
            ("FIELDTERMINATOR = N'\u{E9}', CODEPAGE = 65001", b"\xC3\xA9", Some(b"\r\n")),
        ] {
            assert_eq!(bytes(options), (field.to_vec(), row.map(<[u8]>::to_vec)), "{options}");
        }
    }

    #[test]
    fn refused() {
        for (options, number) in [
            ("NOSUCH = 1", 155),
            ("CODEPAGE = '866'", 4868),
            ("DATAFILETYPE = 'native'", 40514),
            ("DATAFILETYPE = 'other'", 153),
            ("FORMATFILE = 'x'", 40514),
            ("FIELDQUOTE = 'ab'", 153),
            ("FIRSTROW = 'a'", 153),
            ("FIRSTROW = 5, LASTROW = 4", 153),
        ] {
            assert_eq!(parsed(options).unwrap_err().number, number, "{options}");
        }
    }
}
