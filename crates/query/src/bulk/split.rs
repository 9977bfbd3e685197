//! Finding the fields of one row in a buffer.
//!
//! ```text
//! plain   field TERM field TERM ... field ROW     each field but the last ends at the field terminator, whatever else
//!                                                 it holds; the last ends at the row terminator
//! csv     field , "quoted ""field"", with , and
//!         line ends" , field ROW                  RFC 4180; a row may be short or long
//! ```
//! The row terminator `\n` also takes a `\r` before it along.

use super::options::BulkFileOptions;
use std::ops::Range;

/// A field of the row: its bytes in the buffer, without quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Field {
    pub(super) bytes: Range<usize>,
    /// It was quoted: never NULL, and doubled quotes within stand for one.
    pub(super) quoted: bool,
}

/// What was found at the start of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// A row, and where the next begins.
    Row { next: usize },
    /// The buffer ends within the row.
    Incomplete,
    /// The file ends within a row that lacks fields.
    Cut,
    /// Nothing is left.
    End,
}

pub(super) struct Splitter {
    field_terminator: Vec<u8>,
    row_terminator: Vec<u8>,
    csv: bool,
    quote: u8,
    field_count: usize,
}

impl Splitter {
    pub(super) fn new(options: &BulkFileOptions, field_count: usize) -> Self {
        Self {
            field_terminator: options.field_terminator.clone(),
            row_terminator: options.row_terminator.clone(),
            csv: options.csv,
            quote: options.quote,
            field_count,
        }
    }

    /// Finds the row at the start of `buffer`; `last` tells that no more bytes follow.
    pub(super) fn split(&self, buffer: &[u8], last: bool, fields: &mut Vec<Field>) -> Split {
        fields.clear();
        if buffer.is_empty() {
            return if last { Split::End } else { Split::Incomplete };
        }
        if self.csv { self.split_csv(buffer, last, fields) } else { self.split_plain(buffer, last, fields) }
    }

    fn split_plain(&self, buffer: &[u8], last: bool, fields: &mut Vec<Field>) -> Split {
        let mut at = 0;
        for _ in 1..self.field_count {
            match find(buffer, at, &self.field_terminator) {
                Some(end) => {
                    fields.push(Field { bytes: at..end, quoted: false });
                    at = end + self.field_terminator.len();
                }
                None if !last => return Split::Incomplete,
                // Blank lines at the end of the file are no row.
                None if fields.is_empty() && buffer[at..].iter().all(u8::is_ascii_whitespace) => return Split::End,
                None => return Split::Cut,
            }
        }
        match find(buffer, at, &self.row_terminator) {
            Some(end) => {
                fields.push(Field { bytes: at..self.without_return(buffer, at, end), quoted: false });
                Split::Row { next: end + self.row_terminator.len() }
            }
            None if last => {
                fields.push(Field { bytes: at..buffer.len(), quoted: false });
                Split::Row { next: buffer.len() }
            }
            None => Split::Incomplete,
        }
    }

    /// End of a field that ends at `end`, where a row terminator is: `\n` takes `\r` along.
    fn without_return(&self, buffer: &[u8], start: usize, end: usize) -> usize {
        if self.row_terminator == b"\n" && end > start && buffer[end - 1] == b'\r' { end - 1 } else { end }
    }

    fn split_csv(&self, buffer: &[u8], last: bool, fields: &mut Vec<Field>) -> Split {
        let mut at = 0;
        loop {
            let quoted = buffer.get(at) == Some(&self.quote);
            let (content, end) = if quoted {
                match self.closing_quote(buffer, at + 1, last) {
                    Some(close) => (at + 1..close, close + 1),
                    None if last => return Split::Cut,
                    None => return Split::Incomplete,
                }
            } else {
                (at..at, at)
            };
            // What stands between a closing quote and the terminator is blank in sound files, and is left out.
            match self.end_of_csv_field(buffer, end) {
                CsvEnd::Field(stop) => {
                    fields.push(Field { bytes: if quoted { content } else { at..stop }, quoted });
                    at = stop + self.field_terminator.len();
                }
                CsvEnd::Row(stop) => {
                    let whole = at..self.without_return(buffer, at, stop);
                    fields.push(Field { bytes: if quoted { content } else { whole }, quoted });
                    return Split::Row { next: stop + self.row_terminator.len() };
                }
                CsvEnd::Buffer if last => {
                    fields.push(Field { bytes: if quoted { content } else { at..buffer.len() }, quoted });
                    return Split::Row { next: buffer.len() };
                }
                CsvEnd::Buffer => return Split::Incomplete,
            }
        }
    }

    /// The quote that ends a quoted field; doubled ones do not. `None` if the buffer ends before.
    fn closing_quote(&self, buffer: &[u8], mut at: usize, last: bool) -> Option<usize> {
        loop {
            let found = at + buffer[at..].iter().position(|b| *b == self.quote)?;
            match buffer.get(found + 1) {
                Some(next) if *next == self.quote => at = found + 2,
                Some(_) => return Some(found),
                // At the buffer's end the quote may be the first of two.
                None => return last.then_some(found),
            }
        }
    }

    fn end_of_csv_field(&self, buffer: &[u8], from: usize) -> CsvEnd {
        let (field_first, row_first) = (self.field_terminator[0], self.row_terminator[0]);
        let mut at = from;
        while let Some(offset) = buffer[at..].iter().position(|b| *b == field_first || *b == row_first) {
            at += offset;
            if buffer[at..].starts_with(&self.field_terminator) {
                return CsvEnd::Field(at);
            }
            if buffer[at..].starts_with(&self.row_terminator) {
                return CsvEnd::Row(at);
            }
            at += 1;
        }
        CsvEnd::Buffer
    }
}

enum CsvEnd {
    Field(usize),
    Row(usize),
    Buffer,
}

/// Where `wanted` begins at or after `from`.
#[inline]
fn find(buffer: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let (first, rest) = wanted.split_first()?;
    let mut at = from;
    loop {
        at += buffer[at..].iter().position(|b| b == first)?;
        if rest.is_empty() || buffer[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, csv: bool, last: bool) -> (Split, Vec<(&str, bool)>) {
        let field_terminator = if csv { b",".to_vec() } else { b"\t".to_vec() };
        let options = BulkFileOptions { csv, field_terminator, ..BulkFileOptions::default() };
        let mut fields = Vec::new();
        let found = Splitter::new(&options, 3).split(text.as_bytes(), last, &mut fields);
        (found, fields.into_iter().map(|f| (&text[f.bytes], f.quoted)).collect())
    }

    #[test]
    fn plain_rows() {
        assert_eq!(split("a\tb\tc\r\nd", false, false), (Split::Row { next: 7 }, vec![("a", false), ("b", false), ("c", false)]));
        assert_eq!(split("a\tb\nx\tc\n", false, true).1, [("a", false), ("b\nx", false), ("c", false)]);
        assert_eq!(split("a\tb\tc", false, true).0, Split::Row { next: 5 });
        assert_eq!(split("a\tb\tc", false, false).0, Split::Incomplete);
        assert_eq!(split("a\tb", false, true).0, Split::Cut);
        assert_eq!(split("\n", false, true).0, Split::End);
    }

    #[test]
    fn csv_rows() {
        assert_eq!(
            split("a,\"b\n,\"\"c\",\n", true, false),
            (Split::Row { next: 12 }, vec![("a", false), ("b\n,\"\"c", true), ("", false)])
        );
        assert_eq!(split("\"a", true, false).0, Split::Incomplete);
        assert_eq!(split("\"a\"", true, false).0, Split::Incomplete);
        assert_eq!(split("\"a\"", true, true), (Split::Row { next: 3 }, vec![("a", true)]));
        assert_eq!(split("\"a", true, true).0, Split::Cut);
        assert_eq!(split("", true, true).0, Split::End);
    }
}
