//! Result sets as text: columns as wide as their types, headings underlined, counts after them.
//!
//! ```text
//! Id          Name
//! ----------- --------------------
//!           1 Ann
//!
//! (1 rows affected)
//! ```
//!
//! Widths are those of sqlcmd: what the type can need, and 256 characters for a type without limit. `-W` drops the
//! padding. Rows are written as they come, so a result of any length needs memory for one row.

use crate::text;
use std::io::{self, Write};
use thawdb_engine::OutputColumn;
use thawdb_types::{MaxLength, Scalar, SqlError, SqlType};

/// Width of columns whose type has no limit.
const WIDTH_UNLIMITED: usize = 256;
/// "Changed language setting": of interest to drivers alone.
const MESSAGE_LANGUAGE: i32 = 5703;

/// How tables look.
#[derive(Debug, Clone)]
pub struct TableSettings {
    /// Between columns (`-s`).
    pub separator: String,
    /// Without padding (`-W`).
    pub trim: bool,
    /// Rows between headings: 0 prints them once, negative never (`-h`).
    pub rows_per_heading: i64,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self { separator: " ".into(), trim: false, rows_per_heading: 0 }
    }
}

struct Column {
    name: String,
    sql_type: SqlType,
    width: usize,
    right: bool,
}

/// Writes tables and messages.
pub struct Printer {
    settings: TableSettings,
    server_name: String,
    output: Box<dyn Write>,
    errors: Box<dyn Write>,
    columns: Vec<Column>,
    row_count: i64,
    failed: bool,
    broken: Option<io::Error>,
}

impl Printer {
    /// A printer; `server_name` is what errors say.
    pub fn new(settings: TableSettings, server_name: String, output: Box<dyn Write>, errors: Box<dyn Write>) -> Self {
        Self { settings, server_name, output, errors, columns: Vec::new(), row_count: 0, failed: false, broken: None }
    }

    /// A new batch: none of its statements has failed.
    pub fn begin_batch(&mut self) {
        self.failed = false;
    }

    /// Whether a message of severity above 10 came since [`Printer::begin_batch`].
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// A result set begins.
    pub fn columns(&mut self, columns: &[OutputColumn]) {
        self.columns = columns.iter().map(|column| Column::new(&column.name, column.sql_type)).collect();
        self.row_count = 0;
        if self.settings.rows_per_heading >= 0 {
            self.heading();
        }
    }

    fn heading(&mut self) {
        let trim = self.settings.trim;
        let names: Vec<String> = self.columns.iter().map(|c| if trim { c.name.clone() } else { pad(&c.name, c.width, false) }).collect();
        let rule = |c: &Column| "-".repeat(if trim { c.name.chars().count().max(1) } else { c.width });
        let rules: Vec<String> = self.columns.iter().map(rule).collect();
        let separator = self.settings.separator.clone();
        self.keep(&names.join(&separator));
        self.keep(&rules.join(&separator));
    }

    /// A row of the present result set.
    pub fn row(&mut self, values: &[Scalar]) {
        let every = self.settings.rows_per_heading;
        if every > 0 && self.row_count > 0 && self.row_count % every == 0 {
            self.keep("");
            self.heading();
        }
        self.row_count += 1;
        let cells: Vec<String> = values.iter().zip(&self.columns).map(|(value, column)| self.cell(value, column)).collect();
        let line = cells.join(&self.settings.separator);
        self.keep(&line);
    }

    fn cell(&self, value: &Scalar, column: &Column) -> String {
        let text = text::display(value, &column.sql_type);
        if self.settings.trim {
            return text.trim_end().to_owned();
        }
        pad(&text, column.width, column.right)
    }

    /// A statement completed.
    pub fn done(&mut self, rows: Option<u64>) {
        if let Some(rows) = rows {
            self.keep(&format!("\n({rows} rows affected)"));
        } else if !self.columns.is_empty() {
            self.keep("");
        }
        self.columns.clear();
    }

    /// A message.
    pub fn message(&mut self, message: &SqlError) {
        if message.is_informational() {
            if message.number != MESSAGE_LANGUAGE {
                self.keep(&message.text);
            }
            return;
        }
        self.failed = true;
        let procedure = message.procedure.as_ref().map_or(String::new(), |name| format!(" Procedure {name},"));
        let SqlError { number, severity, state, line, text, .. } = message;
        let head = format!("Msg {number}, Level {severity}, State {state}, Server {},{procedure} Line {line}", self.server_name);
        let result = self.flush().and_then(|()| writeln!(self.errors, "{head}\n{text}")).and_then(|()| self.errors.flush());
        self.note(result);
    }

    /// A line of output.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.output, "{text}")
    }

    /// Output without the end of a line.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.output.write_all(text.as_bytes())
    }

    /// A line for standard error.
    pub fn complain(&mut self, text: &str) -> io::Result<()> {
        self.flush()?;
        writeln!(self.errors, "{text}")
    }

    /// Brings everything out; what went wrong with the output since the last call comes up here.
    pub fn flush(&mut self) -> io::Result<()> {
        match self.broken.take() {
            Some(error) => Err(error),
            None => self.output.flush(),
        }
    }

    /// Whether the output takes no more (a closed pipe): the statement may as well stop.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    fn keep(&mut self, line: &str) {
        let result = writeln!(self.output, "{line}");
        self.note(result);
    }

    fn note(&mut self, result: io::Result<()>) {
        if let (Err(error), None) = (result, &self.broken) {
            self.broken = Some(error);
        }
    }
}

impl Column {
    fn new(name: &str, sql_type: SqlType) -> Self {
        let (width, right) = width(&sql_type);
        Self { name: name.to_owned(), sql_type, width: width.max(name.chars().count()), right }
    }
}

/// Characters a value of the type may need, and whether it is set flush right.
fn width(sql_type: &SqlType) -> (usize, bool) {
    let limited = |length: MaxLength, factor: usize, extra: usize| match length {
        MaxLength::Limited(length) => usize::from(length) * factor + extra,
        MaxLength::Max => WIDTH_UNLIMITED,
    };
    let fraction = |scale: u8| if scale == 0 { 0 } else { usize::from(scale) + 1 };
    match *sql_type {
        SqlType::Bit => (3, true),
        SqlType::TinyInt => (4, true),
        SqlType::SmallInt => (6, true),
        SqlType::Int => (11, true),
        SqlType::BigInt => (20, true),
        SqlType::Decimal { precision, .. } => (usize::from(precision) + 2, true),
        SqlType::Money => (21, true),
        SqlType::SmallMoney => (12, true),
        SqlType::Real => (14, true),
        SqlType::Float => (24, true),
        SqlType::Date => (16, true),
        SqlType::Time { scale } => (8 + fraction(scale), true),
        SqlType::DateTime => (23, false),
        SqlType::SmallDateTime => (19, false),
        SqlType::DateTime2 { scale } => (19 + fraction(scale), false),
        SqlType::DateTimeOffset { scale } => (26 + fraction(scale), false),
        SqlType::UniqueIdentifier => (36, false),
        SqlType::Char { length, .. } | SqlType::NChar { length, .. } => (usize::from(length), false),
        SqlType::VarChar { length, .. } | SqlType::NVarChar { length, .. } => (limited(length, 1, 0), false),
        SqlType::Binary { length } => (usize::from(length) * 2 + 2, false),
        SqlType::VarBinary { length } => (limited(length, 2, 2), false),
        SqlType::RowVersion => (18, false),
        SqlType::HierarchyId => (limited(MaxLength::Limited(thawdb_types::hierarchy::BYTES_MAX as u16), 2, 2), false),
        SqlType::Text { .. } | SqlType::NText { .. } | SqlType::Image | SqlType::Xml | SqlType::SqlVariant => (WIDTH_UNLIMITED, false),
    }
}

/// `text` in `width` characters: padded, or cut.
fn pad(text: &str, width: usize, right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        return text.chars().take(width).collect();
    }
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}
