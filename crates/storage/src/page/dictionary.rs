//! What the rows of a packed leaf have in common, and a packed row made whole again.
//!
//! ```text
//! dictionary   prefixes u16 | symbols u16 | ends of both, u16 each | prefix, prefix ... | symbol, symbol ...
//! row          columns 1 or 2 | codes, four bits each | short values | ends of the long values, u16 | long values
//!
//! code      a row by itself                  a packed row
//! 0 to 8    a value of so many bytes         the column's prefix, then so many bytes
//! 9         NULL                             the same
//! 10        a long value                     the same, without the prefix
//! 11        large: six bytes, short          the same
//! 12        the byte 01, no bytes            the same
//! 13        -                                the symbol whose number is the one short byte
//! 14        -                                a short length byte and so many bytes, without the prefix
//! 15        -                                the column's prefix, then a long value
//! ```
//! Values are looked at as bytes: what they mean is the row codec's affair, which writes rows of this form for trees with data
//! compression. The dictionary lies in the leaf behind the common key prefix; a leaf without one has no packed entry. Entries
//! that came after the leaf was packed lie beside the packed ones, unpacked.
//!
//! Invariants: 1. a dictionary on a page is sound ([`check`], part of P10) and [`Dictionary`] relies on it. 2. [`unpack`] takes
//! hostile bytes; it gives the very row that was packed (a test in `packing`). No latches, no failure but `Malformed`.
//!
//! Further reading: Poess and Potapov, "Data Compression in Oracle" (VLDB 2003), for symbol tables kept in the page they serve.
//!
//! [`unpack`]: Dictionary::unpack

use super::entry::Malformed;

/// Most bytes of a short value.
pub(super) const SHORT_BYTES_MAX: usize = 8;
pub(super) const NULL: u8 = 9;
pub(super) const LONG: u8 = 10;
pub(super) const LARGE: u8 = 11;
pub(super) const ONE: u8 = 12;
pub(super) const SYMBOL: u8 = 13;
pub(super) const LITERAL: u8 = 14;
pub(super) const LONG_BEHIND_PREFIX: u8 = 15;
/// Bytes that stand for a large value.
pub(super) const LARGE_BYTES: usize = 6;
/// Most symbols: their number is a byte.
pub(super) const SYMBOLS_MAX: usize = 256;
/// Bytes of the two counts.
const COUNTS_BYTES: usize = 4;

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|word| usize::from(u16::from_le_bytes(*word)))
}

/// A column of a row as it is stored: its code and the bytes that go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) code: u8,
    pub(super) bytes: &'a [u8],
}

/// A row's parts before its short values.
#[derive(Clone, Copy)]
struct Head<'a> {
    count: usize,
    codes: &'a [u8],
    shorts_at: usize,
}

impl<'a> Head<'a> {
    fn of(row: &'a [u8]) -> Result<Self, Malformed> {
        let short = Malformed("a compact row ends within its codes");
        let first = usize::from(*row.first().ok_or(short)?);
        let (count, codes_at) = if first < 0x80 { (first, 1) } else { (first & 0x7F | usize::from(*row.get(1).ok_or(short)?) << 7, 2) };
        let shorts_at = codes_at + count.div_ceil(2);
        Ok(Self { count, codes: row.get(codes_at..shorts_at).ok_or(short)?, shorts_at })
    }

    fn code(&self, column: usize) -> u8 {
        self.codes[column / 2] >> (4 * (column % 2)) & 15
    }
}

/// Takes bytes off the short values.
struct Shorts<'a> {
    row: &'a [u8],
    at: usize,
}

impl<'a> Shorts<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let taken = self.row.get(self.at..self.at + bytes).ok_or(Malformed("a compact row ends within its short values"))?;
        self.at += bytes;
        Ok(taken)
    }
}

/// The long values, once it is known where their ends lie.
struct Longs<'a> {
    row: &'a [u8],
    ends_at: usize,
    count: usize,
}

impl<'a> Longs<'a> {
    fn get(&self, index: usize) -> Result<&'a [u8], Malformed> {
        let short = Malformed("a compact row ends within its long values");
        let end = |index: usize| u16_at(self.row, self.ends_at + 2 * index).ok_or(short);
        let start = if index == 0 { self.ends_at + 2 * self.count } else { end(index - 1)? };
        self.row.get(start..end(index)?).ok_or(short)
    }
}

/// The columns of a row by itself, appended to `fields`.
pub(super) fn fields<'a>(row: &'a [u8], fields: &mut Vec<Field<'a>>) -> Result<(), Malformed> {
    let head = Head::of(row)?;
    let mut shorts = Shorts { row, at: head.shorts_at };
    let (from, mut long_count) = (fields.len(), 0);
    for column in 0..head.count {
        let code = head.code(column);
        let bytes: &[u8] = match code {
            0..=8 => shorts.take(usize::from(code))?,
            LARGE => shorts.take(LARGE_BYTES)?,
            ONE => &[1],
            NULL => &[],
            LONG => {
                long_count += 1;
                &[]
            }
            _ => return Err(Malformed("a code of packed rows in a row by itself")),
        };
        fields.push(Field { code, bytes });
    }
    let longs = Longs { row, ends_at: shorts.at, count: long_count };
    for (index, field) in fields[from..].iter_mut().filter(|field| field.code == LONG).enumerate() {
        field.bytes = longs.get(index)?;
    }
    Ok(())
}

/// A dictionary that was checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dictionary<'a>(&'a [u8]);

/// Whether bytes are a dictionary; none are an empty one.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Malformed> {
    if bytes.is_empty() {
        return Ok(());
    }
    let short = Malformed("a dictionary ends within its places");
    let (prefixes, symbols) = (u16_at(bytes, 0).ok_or(short)?, u16_at(bytes, 2).ok_or(short)?);
    if symbols > SYMBOLS_MAX {
        return Err(Malformed("a dictionary has more symbols than a byte can name"));
    }
    let content = COUNTS_BYTES + 2 * (prefixes + symbols);
    let mut before = 0;
    for index in 0..prefixes + symbols {
        let end = u16_at(bytes, COUNTS_BYTES + 2 * index).ok_or(short)?;
        if end < before {
            return Err(Malformed("the places of a dictionary do not rise"));
        }
        before = end;
    }
    if content + before == bytes.len() { Ok(()) } else { Err(Malformed("a dictionary is not as long as its last place says")) }
}

/// A long value of the row being made whole.
enum LongPart<'a> {
    Known(&'a [u8], &'a [u8]),
    /// The next of the packed row's own, behind this.
    Own(&'a [u8]),
}

/// A row being written.
struct Whole<'o, 'a> {
    out: &'o mut Vec<u8>,
    start: usize,
    codes_at: usize,
    longs: Vec<LongPart<'a>>,
}

impl<'a> Whole<'_, 'a> {
    fn code(&mut self, column: usize, code: u8) {
        self.out[self.codes_at + column / 2] |= code << (4 * (column % 2));
    }

    fn value(&mut self, column: usize, prefix: &'a [u8], rest: &'a [u8]) {
        let bytes = prefix.len() + rest.len();
        if bytes > SHORT_BYTES_MAX {
            self.code(column, LONG);
            self.longs.push(LongPart::Known(prefix, rest));
        } else if bytes == 1 && (prefix == [1] || rest == [1]) {
            self.code(column, ONE);
        } else {
            self.code(column, bytes as u8);
            self.out.extend_from_slice(prefix);
            self.out.extend_from_slice(rest);
        }
    }

    fn end(&mut self, own: &Longs<'a>) -> Result<(), Malformed> {
        let ends_at = self.out.len();
        self.out.resize(ends_at + 2 * self.longs.len(), 0);
        let mut own_index = 0;
        for (index, part) in std::mem::take(&mut self.longs).into_iter().enumerate() {
            match part {
                LongPart::Known(prefix, rest) => {
                    self.out.extend_from_slice(prefix);
                    self.out.extend_from_slice(rest);
                }
                LongPart::Own(prefix) => {
                    self.out.extend_from_slice(prefix);
                    self.out.extend_from_slice(own.get(own_index)?);
                    own_index += 1;
                }
            }
            let end = u16::try_from(self.out.len() - self.start).map_err(|_| Malformed("a packed row is longer than a page"))?;
            self.out[ends_at + 2 * index..ends_at + 2 * index + 2].copy_from_slice(&end.to_le_bytes());
        }
        Ok(())
    }
}

impl<'a> Dictionary<'a> {
    /// Of bytes that [`check`] accepts.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn counts(self) -> (usize, usize) {
        (u16_at(self.0, 0).unwrap_or(0), u16_at(self.0, 2).unwrap_or(0))
    }

    fn part(self, index: usize) -> &'a [u8] {
        let (prefixes, symbols) = self.counts();
        let content = COUNTS_BYTES + 2 * (prefixes + symbols);
        let end = |index: usize| u16_at(self.0, COUNTS_BYTES + 2 * index).unwrap_or(0);
        let start = if index == 0 { 0 } else { end(index - 1) };
        self.0.get(content + start..content + end(index)).unwrap_or(&[])
    }

    /// What a column's values begin with.
    pub(super) fn prefix(self, column: usize) -> &'a [u8] {
        if column < self.counts().0 { self.part(column) } else { &[] }
    }

    /// A value that has a number.
    pub(super) fn symbol(self, number: u8) -> Option<&'a [u8]> {
        let (prefixes, symbols) = self.counts();
        (usize::from(number) < symbols).then(|| self.part(prefixes + usize::from(number)))
    }

    /// Appends the row that was packed.
    pub(crate) fn unpack(self, packed: &'a [u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        let head = Head::of(packed)?;
        let start = out.len();
        out.extend_from_slice(&packed[..head.shorts_at - head.codes.len()]);
        let codes_at = out.len();
        out.resize(codes_at + head.codes.len(), 0);
        let mut whole = Whole { out, start, codes_at, longs: Vec::new() };
        let mut shorts = Shorts { row: packed, at: head.shorts_at };
        let mut own_count = 0;
        for column in 0..head.count {
            match head.code(column) {
                code @ 0..=8 => whole.value(column, self.prefix(column), shorts.take(usize::from(code))?),
                code @ (NULL | ONE) => whole.code(column, code),
                LARGE => {
                    whole.code(column, LARGE);
                    whole.out.extend_from_slice(shorts.take(LARGE_BYTES)?);
                }
                SYMBOL => {
                    let number = shorts.take(1)?[0];
                    let value = self.symbol(number).ok_or(Malformed("a symbol that the dictionary has not"))?;
                    whole.value(column, &[], value);
                }
                LITERAL => {
                    let bytes = usize::from(shorts.take(1)?[0]);
                    whole.value(column, &[], shorts.take(bytes)?);
                }
                code => {
                    own_count += 1;
                    whole.code(column, LONG);
                    whole.longs.push(LongPart::Own(if code == LONG { &[] } else { self.prefix(column) }));
                }
            }
        }
        whole.end(&Longs { row: packed, ends_at: shorts.at, count: own_count })
    }
}
