//! Rows on their way through the external sort: one byte string each, large parts included.
//!
//! ```text
//! inline | 0                                                                      no large parts
//! inline | parts | their lengths u32.. | inline length u32 | part count u16 | 1   some
//! ```
//! Failure: bytes that are not of this form are [`Damage`].

use thawdb_types::key::Damage;
use thawdb_types::row::RowBuffer;

/// Puts a row in `out`, emptied first.
pub fn pack(row: &RowBuffer, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(row.inline());
    if !row.large().is_empty() {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a value is below 2^31 bytes").to_le_bytes();
        row.large().iter().for_each(|part| out.extend_from_slice(part));
        row.large().iter().for_each(|part| out.extend_from_slice(&length(part)));
        out.extend_from_slice(&length(row.inline()));
        out.extend_from_slice(&u16::try_from(row.large().len()).expect("a row has at most 1,024 columns").to_le_bytes());
    }
    out.push(u8::from(!row.large().is_empty()));
}

/// A row's inline bytes and large parts.
///
/// # Errors
/// [`Damage`] for bytes that [`pack`] did not write.
pub fn unpack(packed: &[u8]) -> Result<(&[u8], Vec<&[u8]>), Damage> {
    let bad = || Damage::new("a sorted row is not as it was packed");
    let (tag, rest) = packed.split_last().ok_or_else(bad)?;
    if *tag == 0 {
        return Ok((rest, Vec::new()));
    }
    let (rest, count) = rest.split_last_chunk::<2>().ok_or_else(bad)?;
    let (rest, inline) = rest.split_last_chunk::<4>().ok_or_else(bad)?;
    let lengths_at = rest.len().checked_sub(4 * usize::from(u16::from_le_bytes(*count))).ok_or_else(bad)?;
    let (bytes, lengths) = rest.split_at(lengths_at);
    let (inline, mut bytes) = bytes.split_at_checked(u32::from_le_bytes(*inline) as usize).ok_or_else(bad)?;
    let mut parts = Vec::with_capacity(lengths.len() / 4);
    for length in lengths.chunks_exact(4) {
        let length = u32::from_le_bytes(length.try_into().expect("chunks of four")) as usize;
        let (part, rest) = bytes.split_at_checked(length).ok_or_else(bad)?;
        parts.push(part);
        bytes = rest;
    }
    Ok((inline, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::row::{RowLayout, StoredColumn};
    use thawdb_types::{MaxLength, Scalar, SqlType};

    #[test]
    fn rows_come_back() {
        let text = SqlType::VarChar { length: MaxLength::Max, collation: Default::default() };
        let layout =
            RowLayout::new(vec![StoredColumn::new(SqlType::Int, true), StoredColumn::new(text, true), StoredColumn::new(text, true)]);
        let (mut row, mut packed) = (RowBuffer::default(), Vec::new());
        for lengths in [[0, 3], [5_000, 0], [4_000, 70_000]] {
            let text = |length| Scalar::text(&"x".repeat(length));
            layout.encode(&[Scalar::Int(1), text(lengths[0]), text(lengths[1])], &mut row).unwrap();
            pack(&row, &mut packed);
            let (inline, parts) = unpack(&packed).unwrap();
            assert_eq!(inline, row.inline());
            assert_eq!(parts, row.large().iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        for bad in [&[][..], &[1], &[0, 0, 0, 0, 0, 0, 9, 0, 1], &[9, 9, 9, 9, 0, 0, 1]] {
            assert!(unpack(bad).is_err(), "{bad:?}");
        }
    }
}
