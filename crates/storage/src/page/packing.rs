//! Packing the rows of a leaf: what they have in common is found, and each is written in terms of it.
//!
//! ```text
//! rows ─► a sample ─► for each column the prefix that saves most ─► whole values that come again and again ─► dictionary
//!                                                                                    row by row: `Packer::pack`
//! ```
//! A prefix pays where most values of a column begin with it: dates of one month, names of one domain; those that do not
//! cost a byte more. A value that is still longer than a byte and comes more than once gets a number. Both are judged by what
//! they save in bytes on the sample, scaled to all rows, against what they take in the dictionary.
//!
//! Invariants: 1. what [`Packer::pack`] writes, `Dictionary::unpack` makes the same row of (`rows_come_back`). 2. The same rows in
//! the same order make the same dictionary: nothing depends on an order of hashing. 3. A row that would not become shorter, or
//! is not of the compact form, is left as it is.
//! Cost: some hundred comparisons of short byte strings a column, whatever the number of rows.

use super::dictionary::{
    Dictionary, Field, LARGE, LITERAL, LONG, LONG_BEHIND_PREFIX, NULL, ONE, SHORT_BYTES_MAX, SYMBOL, SYMBOLS_MAX, fields,
};

/// Rows that are looked at to find what they have in common: enough that what a sixteenth of the rows share shows.
const SAMPLE_ROWS: usize = 128;
/// Bytes that naming a prefix or symbol takes beside its own.
const PLACE_BYTES: usize = 2;
/// Most bytes of a dictionary: half of what a leaf holds.
const DICTIONARY_BYTES_MAX: usize = 4_000;
/// Longest prefix or symbol: longer ones are rarely shared, and their comparison costs.
const PART_BYTES_MAX: usize = 255;

/// A dictionary, and its symbols in the order of their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Packer {
    dictionary: Vec<u8>,
    by_value: Vec<u8>,
}

/// Bytes that a value takes in a row whose column has this prefix, its code apart.
fn cost(value: &[u8], prefix: &[u8]) -> usize {
    if value == [1] {
        return 0;
    }
    match value.strip_prefix(prefix) {
        Some(rest) if rest.len() <= SHORT_BYTES_MAX => rest.len(),
        Some(rest) => rest.len() + 2,
        None if value.len() <= usize::from(u8::MAX) => value.len() + 1,
        None => value.len() + 2,
    }
}

fn is_value(field: &Field<'_>) -> bool {
    !matches!(field.code, NULL | LARGE | ONE)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take(PART_BYTES_MAX).take_while(|(a, b)| a == b).count()
}

/// The prefix of a column that saves most: going down from what all values share to what ever fewer do. `sorted` are the
/// column's values, each of which stands for `scale` of them.
fn best_prefix<'a>(sorted: &[&'a [u8]], scale: usize) -> &'a [u8] {
    let plain: usize = sorted.iter().map(|value| cost(value, &[])).sum();
    let (mut best, mut best_saved): (&[u8], usize) = (&[], 0);
    let mut group = sorted;
    while let (Some(first), Some(last)) = (group.first(), group.last()) {
        let shared = common_bytes(first, last);
        let prefix = &first[..shared];
        let packed: usize = sorted.iter().map(|value| cost(value, prefix)).sum();
        let saved = (plain.saturating_sub(packed) * scale).saturating_sub(shared + PLACE_BYTES);
        if saved > best_saved {
            (best, best_saved) = (prefix, saved);
        }
        if shared == PART_BYTES_MAX || group.len() < 2 {
            break;
        }
        // The most frequent next byte; values that end here go.
        let longer = group.partition_point(|value| value.len() <= shared);
        let mut largest = 0..0;
        let mut from = longer;
        while from < group.len() {
            let byte = group[from][shared];
            let to = from + group[from..].partition_point(|value| value[shared] == byte);
            if to - from > largest.len() {
                largest = from..to;
            }
            from = to;
        }
        if largest.len() < 2 {
            break;
        }
        group = &group[largest];
    }
    best
}

/// A value that could have a number.
struct Candidate<'a> {
    value: &'a [u8],
    saved: usize,
}

/// Values worth a number, those that save most first. `values` are all values with what each costs now.
fn best_symbols<'a>(mut values: Vec<(&'a [u8], usize)>, scale: usize) -> Vec<Candidate<'a>> {
    values.retain(|(value, cost)| *cost > 1 && value.len() <= PART_BYTES_MAX);
    values.sort_unstable();
    let mut found = Vec::new();
    for same in values.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let value = same[0].0;
        let gained: usize = same.iter().map(|(_, cost)| cost - 1).sum();
        let saved = (gained * scale).saturating_sub(value.len() + PLACE_BYTES);
        if saved > 0 {
            found.push(Candidate { value, saved });
        }
    }
    found.sort_unstable_by(|a, b| b.saved.cmp(&a.saved).then_with(|| a.value.cmp(b.value)));
    found.truncate(SYMBOLS_MAX);
    found
}

fn narrow(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).expect("a dictionary is shorter than a page").to_le_bytes()
}

/// The bytes of a dictionary of these parts.
fn encode(prefixes: &[&[u8]], symbols: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&narrow(prefixes.len()));
    bytes.extend_from_slice(&narrow(symbols.len()));
    let mut end = 0;
    for part in prefixes.iter().chain(symbols) {
        end += part.len();
        bytes.extend_from_slice(&narrow(end));
    }
    prefixes.iter().chain(symbols).for_each(|part| bytes.extend_from_slice(part));
    bytes
}

impl Packer {
    /// Finds what rows have in common; `None` where that is nothing worth keeping, or a row is not of the compact form.
    pub(crate) fn train(rows: &[&[u8]]) -> Option<Self> {
        let scale = rows.len().div_ceil(SAMPLE_ROWS).max(1);
        let mut all: Vec<Field<'_>> = Vec::new();
        let mut starts = Vec::new();
        for row in rows.iter().step_by(scale).filter(|row| !row.is_empty()) {
            starts.push(all.len());
            fields(row, &mut all).ok()?;
        }
        starts.push(all.len());
        let columns = starts.windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
        let (mut prefixes, mut values): (Vec<&[u8]>, Vec<(&[u8], usize)>) = (Vec::with_capacity(columns), Vec::new());
        let mut of_column: Vec<&[u8]> = Vec::new();
        for column in 0..columns {
            of_column.clear();
            let row_fields = starts.windows(2).filter_map(|row| all[row[0]..row[1]].get(column));
            of_column.extend(row_fields.filter(|field| is_value(field)).map(|field| field.bytes));
            of_column.sort_unstable();
            let prefix = best_prefix(&of_column, scale);
            prefixes.push(prefix);
            values.extend(of_column.iter().map(|value| (*value, cost(value, prefix))));
        }
        while prefixes.last().is_some_and(|prefix| prefix.is_empty()) {
            prefixes.pop();
        }
        let mut bytes_left = DICTIONARY_BYTES_MAX.saturating_sub(prefixes.iter().map(|prefix| prefix.len() + PLACE_BYTES).sum());
        let mut symbols: Vec<&[u8]> = Vec::new();
        for candidate in best_symbols(values, scale) {
            let bytes = candidate.value.len() + PLACE_BYTES;
            if bytes <= bytes_left {
                bytes_left -= bytes;
                symbols.push(candidate.value);
            }
        }
        (!prefixes.is_empty() || !symbols.is_empty()).then(|| Self::of(encode(&prefixes, &symbols)))
    }

    /// One that writes in terms of a dictionary which is there already and was checked.
    pub(crate) fn of(dictionary: Vec<u8>) -> Self {
        let view = Dictionary::new(&dictionary);
        let mut by_value: Vec<u8> = (0..=u8::MAX).take_while(|number| view.symbol(*number).is_some()).collect();
        by_value.sort_unstable_by_key(|number| view.symbol(*number));
        Self { dictionary, by_value }
    }

    /// The dictionary's bytes.
    pub(crate) fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    fn number_of(&self, value: &[u8]) -> Option<u8> {
        let view = Dictionary::new(&self.dictionary);
        let found = self.by_value.binary_search_by(|number| view.symbol(*number).unwrap_or_default().cmp(value));
        found.ok().map(|at| self.by_value[at])
    }

    /// Appends `row` packed; false, with nothing appended, if that is not shorter.
    pub(crate) fn pack(&self, row: &[u8], out: &mut Vec<u8>) -> bool {
        let mut columns = Vec::new();
        if row.is_empty() || fields(row, &mut columns).is_err() {
            return false;
        }
        let start = out.len();
        let head_bytes = if columns.len() < 0x80 { 1 } else { 2 };
        out.extend_from_slice(&row[..head_bytes]);
        let codes_at = out.len();
        out.resize(codes_at + columns.len().div_ceil(2), 0);
        let mut longs: Vec<&[u8]> = Vec::new();
        for (column, field) in columns.iter().enumerate() {
            let code = self.put(column, field, out, &mut longs);
            out[codes_at + column / 2] |= code << (4 * (column % 2));
        }
        let ends_at = out.len();
        out.resize(ends_at + 2 * longs.len(), 0);
        for (index, long) in longs.iter().enumerate() {
            out.extend_from_slice(long);
            // A packed row that is longer than a page would be is longer than the row, too, and goes below.
            let end = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
            out[ends_at + 2 * index..ends_at + 2 * index + 2].copy_from_slice(&end.to_le_bytes());
        }
        if out.len() - start < row.len() {
            return true;
        }
        out.truncate(start);
        false
    }

    /// Writes a column's short bytes, or notes its long ones; its code comes back.
    fn put<'a>(&self, column: usize, field: &Field<'a>, out: &mut Vec<u8>, longs: &mut Vec<&'a [u8]>) -> u8 {
        if !is_value(field) {
            if field.code == LARGE {
                out.extend_from_slice(field.bytes);
            }
            return field.code;
        }
        let (value, prefix) = (field.bytes, Dictionary::new(&self.dictionary).prefix(column));
        if cost(value, prefix) > 1
            && let Some(number) = self.number_of(value)
        {
            out.push(number);
            return SYMBOL;
        }
        match value.strip_prefix(prefix) {
            Some(rest) if rest.len() <= SHORT_BYTES_MAX => {
                out.extend_from_slice(rest);
                rest.len() as u8
            }
            Some(rest) => {
                longs.push(rest);
                if prefix.is_empty() { LONG } else { LONG_BEHIND_PREFIX }
            }
            None => match u8::try_from(value.len()) {
                Ok(length) => {
                    out.push(length);
                    out.extend_from_slice(value);
                    LITERAL
                }
                Err(_) => {
                    longs.push(value);
                    LONG
                }
            },
        }
    }
}

/// The rows of a leaf in the making, packed. Those that would fill it unpacked show what they have in common; from then on each
/// is packed as it comes, until the packed ones fill the leaf.
#[derive(Default)]
pub(crate) struct PackedRows {
    tried: bool,
    packer: Option<Packer>,
    /// Packed rows, one behind the other, and where each lies; nothing for a row that stays as it is.
    bytes: Vec<u8>,
    rows: Vec<Option<(usize, usize)>>,
    /// What they take less than the rows, the dictionary counted.
    saved: usize,
}

impl PackedRows {
    pub(crate) fn clear(&mut self) {
        self.tried = false;
        self.packer = None;
        self.bytes.clear();
        self.rows.clear();
        self.saved = 0;
    }

    /// Whether [`Self::train`] was called for this leaf.
    pub(crate) fn was_tried(&self) -> bool {
        self.tried
    }

    /// Packs a row; what that saves comes back.
    fn add(&mut self, row: &[u8]) -> usize {
        let Some(packer) = &self.packer else { return 0 };
        let start = self.bytes.len();
        let is_packed = packer.pack(row, &mut self.bytes);
        self.rows.push(is_packed.then_some((start, self.bytes.len())));
        if is_packed { row.len() - (self.bytes.len() - start) } else { 0 }
    }

    /// Finds what the rows so far have in common, and packs them, if that saves anything.
    pub(crate) fn train(&mut self, rows: &[&[u8]]) {
        self.packer = Packer::train(rows);
        let saved: usize = rows.iter().map(|row| self.add(row)).sum();
        let dictionary_bytes = self.dictionary().len();
        if saved <= dictionary_bytes {
            self.clear();
        } else {
            self.saved = saved - dictionary_bytes;
        }
        self.tried = true;
    }

    /// Adds a row packed, if `fits` says so of all bytes that are saved with it.
    pub(crate) fn push_if(&mut self, row: &[u8], fits: impl Fn(usize) -> bool) -> bool {
        if self.packer.is_none() {
            return false;
        }
        let saved = self.saved + self.add(row);
        if fits(saved) {
            self.saved = saved;
            return true;
        }
        if let Some((start, _)) = self.rows.pop().flatten() {
            self.bytes.truncate(start);
        }
        false
    }

    /// The dictionary; empty if the rows are not packed.
    pub(crate) fn dictionary(&self) -> &[u8] {
        self.packer.as_ref().map_or(&[], Packer::dictionary)
    }

    /// A row packed; `None` if it stays as it is.
    pub(crate) fn row(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.rows.get(index)?)?;
        Some(&self.bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::super::dictionary;
    use super::*;

    /// A row of the compact form; `None` is NULL.
    fn row(values: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut row = if values.len() < 0x80 {
            vec![values.len() as u8]
        } else {
            vec![(values.len() & 0x7F | 0x80) as u8, (values.len() >> 7) as u8]
        };
        let codes_at = row.len();
        row.resize(codes_at + values.len().div_ceil(2), 0);
        let mut longs = Vec::new();
        for (column, value) in values.iter().enumerate() {
            let code = match value {
                None => NULL,
                Some(value) if value == &[1] => ONE,
                Some(value) if value.len() <= 8 => {
                    row.extend(value);
                    value.len() as u8
                }
                Some(value) => {
                    longs.push(value);
                    LONG
                }
            };
            row[codes_at + column / 2] |= code << (4 * (column % 2));
        }
        let ends_at = row.len();
        row.resize(ends_at + 2 * longs.len(), 0);
        for (index, long) in longs.iter().enumerate() {
            row.extend(*long);
            let end = narrow(row.len());
            row[ends_at + 2 * index..ends_at + 2 * index + 2].copy_from_slice(&end);
        }
        row
    }

    fn round_trip(rows: &[Vec<u8>]) -> (usize, usize) {
        let views: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let plain = rows.iter().map(Vec::len).sum();
        let Some(packer) = Packer::train(&views) else { return (plain, plain) };
        dictionary::check(packer.dictionary()).expect("what was trained is sound");
        let mut total = packer.dictionary().len();
        for row in rows {
            let mut packed = vec![0xEE];
            if !packer.pack(row, &mut packed) {
                assert_eq!(packed, [0xEE]);
                total += row.len();
                continue;
            }
            total += packed.len() - 1;
            assert!(packed.len() - 1 < row.len());
            let mut whole = vec![0xDD];
            Dictionary::new(packer.dictionary()).unpack(&packed[1..], &mut whole).expect("it was packed");
            assert_eq!(&whole[1..], row);
            // Cut short or with a byte changed it ends in a row or an error.
            for cut in 1..packed.len() {
                let _ = Dictionary::new(packer.dictionary()).unpack(&packed[1..cut], &mut Vec::new());
                let mut bad = packed.clone();
                bad[cut] ^= 0x5A;
                let _ = Dictionary::new(packer.dictionary()).unpack(&bad[1..], &mut Vec::new());
            }
        }
        (plain, total)
    }

    #[test]
    fn what_rows_share_is_stored_once() {
        let dated = |n: u32| {
            let date = 1_088_000_000_000_u64 + u64::from(n / 40) * 25_920_000;
            row(&[
                Some(n.to_be_bytes()[1..].to_vec()),
                None,
                Some(vec![2]),
                Some(date.to_be_bytes()[2..].to_vec()),
                Some(b"someone@example.com".to_vec()),
            ])
        };
        let (plain, packed) = round_trip(&(0..400).map(dated).collect::<Vec<_>>());
        assert!(packed * 2 < plain, "{packed} of {plain}");
        let noise = |n: u64| row(&[Some(n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec())]);
        let (plain, packed) = round_trip(&(1..200).map(noise).collect::<Vec<_>>());
        assert!(packed <= plain, "{packed} of {plain}");
        assert_eq!(round_trip(&[]), (0, 0));
        let wide: Vec<Option<Vec<u8>>> = (0..200_u8).map(|n| Some(vec![n, 7, 7])).collect();
        round_trip(&[row(&wide), row(&wide), row(&wide)]);
    }

    #[test]
    fn exceptions_keep_their_values() {
        let mut rows: Vec<Vec<u8>> = (0..50_u8).map(|n| row(&[Some([b"common prefix ".as_slice(), &[n]].concat())])).collect();
        rows.push(row(&[Some(Vec::new())]));
        rows.push(row(&[Some(vec![1])]));
        rows.push(row(&[Some(b"another".to_vec())]));
        rows.push(row(&[Some(vec![9; 300])]));
        rows.push(row(&[Some([b"common prefix ".as_slice(), &[5; 400]].concat())]));
        rows.push(row(&[None]));
        let (plain, packed) = round_trip(&rows);
        assert!(packed < plain);
    }

    /// Numbers that look random, the same in every run.
    struct Seeded(u64);

    impl Seeded {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        fn bytes(&mut self, length: usize, below: usize) -> Vec<u8> {
            (0..length).map(|_| self.below(below) as u8).collect()
        }

        fn value(&mut self) -> Option<Vec<u8>> {
            let length = self.below(20);
            match self.below(4) {
                0 => None,
                1 => Some(self.bytes(length.min(11), 3)),
                2 => Some(self.bytes(length, 256)),
                _ => Some(b"the same thing".to_vec()),
            }
        }
    }

    #[test]
    fn rows_come_back() {
        for seed in 0..400 {
            let mut random = Seeded(seed);
            let rows = (0..random.below(30)).map(|_| {
                let columns = random.below(6);
                row(&(0..columns).map(|_| random.value()).collect::<Vec<_>>())
            });
            round_trip(&rows.collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_read() {
        for seed in 0..20_000 {
            let mut random = Seeded(seed);
            let (bytes, row) = (random.below(60), random.below(40));
            let (mut bytes, row) = (random.bytes(bytes, 256), random.bytes(row, 256));
            if seed % 2 == 0 && bytes.len() > 4 {
                // Counts small enough to be a dictionary's.
                bytes[..4].copy_from_slice(&[seed as u8 % 3, 0, 1, 0]);
            }
            if dictionary::check(&bytes).is_ok() {
                let _ = Dictionary::new(&bytes).unpack(&row, &mut Vec::new());
                let _ = Packer::of(bytes).pack(&row, &mut Vec::new());
            }
        }
    }
}
