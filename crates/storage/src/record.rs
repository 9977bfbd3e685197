//! Log records as this crate writes them: what kind, and for a page which one and what came before.
//!
//! ```text
//! page:       1 | file u16 | page u32 | previous LSN u64 | transaction, LEB128 | operations ...
//! logical:    2 | bytes of the transactions' half
//! checkpoint: 3 | redo from u64 | logical from u64 | bytes of the transactions' half
//! loose:      4 | what u8: 0 held, 1 loose, 2 loose at the checkpoint that follows | { file u16 | page u32 | tree u64 } ...
//! dirty:      5 | { file u16 | page u32 | oldest u64 | newest u64 } ...
//! ```
//!
//! 1. All changes that one mini-transaction makes to one page are one record, so "previous LSN" is the LSN that the page
//!    carried when it was latched, and a page's records form a chain from the newest back.
//! 2. Decoding takes hostile bytes and returns an error, never panics.

use crate::ids::{Lsn, PageId, TreeId, TxnId};
use crate::page::op::Decoder;
use crate::page::{PageOp, PageOpError};

const PAGE: u8 = 1;
const LOGICAL: u8 = 2;
const CHECKPOINT: u8 = 3;
const LOOSE: u8 = 4;
const DIRTY: u8 = 5;
/// Bytes of a page in a record of dirty pages.
const DIRTY_PAGE_BYTES: usize = 22;
/// Bytes of a part in a record of loose parts.
const LOOSE_PART_BYTES: usize = 14;

/// A record, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// Changes of one page.
    Page(PageRecord<'a>),
    /// A record of the transactions' half.
    Logical(&'a [u8]),
    /// A checkpoint.
    Checkpoint(Checkpoint<'a>),
    /// Large parts that became loose, or are no longer.
    Loose(LooseParts<'a>),
    /// Pages with changes that the device may lack at the checkpoint whose record follows.
    Dirty(DirtyPages<'a>),
}

/// Pages with changes that the device may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyPages<'a>(&'a [u8]);

/// A page with changes that the device may lack: an LSN not above the oldest of them, and the newest's.
pub type MissingPage = (PageId, Lsn, Lsn);

impl DirtyPages<'_> {
    /// The pages.
    pub fn pages(&self) -> impl Iterator<Item = MissingPage> + '_ {
        self.0.chunks_exact(DIRTY_PAGE_BYTES).map(|page| {
            let mut from = Decoder(page);
            let mut read = || Ok::<_, PageOpError>((from.page_id()?, Lsn(from.u64()?), Lsn(from.u64()?)));
            read().expect("twenty-two bytes")
        })
    }
}

/// What became of large parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LooseChange {
    /// A row holds them now, or they are gone.
    Held,
    /// Nothing holds them.
    Loose,
    /// Nothing holds them at the checkpoint whose record follows.
    Image,
}

/// Large parts by their first pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseParts<'a> {
    /// What became of them.
    pub change: LooseChange,
    parts: &'a [u8],
}

impl LooseParts<'_> {
    /// The parts.
    pub fn parts(&self) -> impl Iterator<Item = (PageId, TreeId)> + '_ {
        self.parts.chunks_exact(LOOSE_PART_BYTES).map(|part| {
            let mut from = Decoder(part);
            let mut read = || Ok::<_, PageOpError>((from.page_id()?, TreeId(from.u64()?)));
            read().expect("fourteen bytes")
        })
    }
}

/// Changes of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRecord<'a> {
    /// The page.
    pub page: PageId,
    /// The page's record before this one; 0 if the first operation starts afresh on a page that was not read.
    pub previous: Lsn,
    /// The transaction for which it was done; 0 is none. For people: redo does not look at it.
    pub txn: TxnId,
    /// Encoded [`PageOp`]s.
    pub ops: &'a [u8],
}

/// A checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint<'a> {
    /// No change of a page before this is missing on the device.
    pub redo_from: Lsn,
    /// Every logical record before this is part of `transactions`.
    pub logical_from: Lsn,
    /// State of the transactions' half.
    pub transactions: &'a [u8],
}

/// Begins a page record; operations are appended to it.
pub fn begin_page(out: &mut Vec<u8>, page: PageId, previous: Lsn, txn: TxnId) {
    out.push(PAGE);
    out.extend_from_slice(&page.file.to_le_bytes());
    out.extend_from_slice(&page.page.to_le_bytes());
    out.extend_from_slice(&previous.0.to_le_bytes());
    let mut rest = txn.0;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A logical record.
pub fn logical(payload: &[u8]) -> Vec<u8> {
    [&[LOGICAL], payload].concat()
}

/// A checkpoint record.
pub fn checkpoint(checkpoint: &Checkpoint<'_>) -> Vec<u8> {
    [&[CHECKPOINT][..], &checkpoint.redo_from.0.to_le_bytes(), &checkpoint.logical_from.0.to_le_bytes(), checkpoint.transactions].concat()
}

/// A record of large parts that became loose, or are no longer.
pub fn loose(change: LooseChange, parts: &[(PageId, TreeId)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + parts.len() * LOOSE_PART_BYTES);
    out.push(LOOSE);
    out.push(match change {
        LooseChange::Held => 0,
        LooseChange::Loose => 1,
        LooseChange::Image => 2,
    });
    for (page, tree) in parts {
        out.extend_from_slice(&page.file.to_le_bytes());
        out.extend_from_slice(&page.page.to_le_bytes());
        out.extend_from_slice(&tree.0.to_le_bytes());
    }
    out
}

/// A record of dirty pages.
pub fn dirty(pages: &[MissingPage]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + pages.len() * DIRTY_PAGE_BYTES);
    out.push(DIRTY);
    for (page, oldest, newest) in pages {
        out.extend_from_slice(&page.file.to_le_bytes());
        out.extend_from_slice(&page.page.to_le_bytes());
        out.extend_from_slice(&oldest.0.to_le_bytes());
        out.extend_from_slice(&newest.0.to_le_bytes());
    }
    out
}

/// Reads a record.
pub fn decode(bytes: &[u8]) -> Result<Record<'_>, PageOpError> {
    let mut from = Decoder(bytes);
    match from.u8()? {
        PAGE => {
            let (page, previous) = (from.page_id()?, Lsn(from.u64()?));
            let txn = TxnId(varint(&mut from)?);
            Ok(Record::Page(PageRecord { page, previous, txn, ops: from.0 }))
        }
        LOGICAL => Ok(Record::Logical(from.0)),
        CHECKPOINT => {
            Ok(Record::Checkpoint(Checkpoint { redo_from: Lsn(from.u64()?), logical_from: Lsn(from.u64()?), transactions: from.0 }))
        }
        LOOSE => {
            let change = match from.u8()? {
                0 => LooseChange::Held,
                1 => LooseChange::Loose,
                2 => LooseChange::Image,
                _ => return Err(PageOpError::Malformed("unknown change of large parts")),
            };
            if !from.0.len().is_multiple_of(LOOSE_PART_BYTES) {
                return Err(PageOpError::Malformed("large parts are cut"));
            }
            Ok(Record::Loose(LooseParts { change, parts: from.0 }))
        }
        DIRTY if from.0.len().is_multiple_of(DIRTY_PAGE_BYTES) => Ok(Record::Dirty(DirtyPages(from.0))),
        DIRTY => Err(PageOpError::Malformed("dirty pages are cut")),
        _ => Err(PageOpError::Malformed("unknown kind of log record")),
    }
}

fn varint(from: &mut Decoder<'_>) -> Result<u64, PageOpError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = from.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(PageOpError::Malformed("transaction number too long"))
}

impl<'a> PageRecord<'a> {
    /// Its operations.
    pub fn ops(&self) -> impl Iterator<Item = Result<PageOp<'a>, PageOpError>> {
        let mut rest = self.ops;
        let mut failed = false;
        std::iter::from_fn(move || {
            if rest.is_empty() || failed {
                return None;
            }
            let op = PageOp::decode(&mut rest);
            failed = op.is_err();
            Some(op)
        })
    }

    /// Whether the page's content before does not matter.
    pub fn starts_afresh(&self) -> bool {
        self.ops().next().is_some_and(|op| op.is_ok_and(|op| op.starts_afresh()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_hostile_ones_are_refused() {
        for txn in [0, 1, 127, 128, u64::MAX] {
            let mut bytes = Vec::new();
            begin_page(&mut bytes, PageId { file: 3, page: 9 }, Lsn(77), TxnId(txn));
            PageOp::SlotRemove { slot: 5 }.encode(&mut bytes);
            PageOp::SetFlags(1).encode(&mut bytes);
            let Ok(Record::Page(record)) = decode(&bytes) else { panic!("a page record") };
            assert_eq!((record.page, record.previous, record.txn), (PageId { file: 3, page: 9 }, Lsn(77), TxnId(txn)));
            let ops: Vec<_> = record.ops().collect();
            assert_eq!(ops, [Ok(PageOp::SlotRemove { slot: 5 }), Ok(PageOp::SetFlags(1))]);
            assert!(!record.starts_afresh());
            (0..16).for_each(|cut| assert!(decode(&bytes[..cut.min(15)]).is_err()));
        }
        assert_eq!(decode(&logical(b"x")), Ok(Record::Logical(b"x")));
        let stored = Checkpoint { redo_from: Lsn(4), logical_from: Lsn(5), transactions: b"table" };
        assert_eq!(decode(&checkpoint(&stored)), Ok(Record::Checkpoint(stored)));
        let parts = [(PageId { file: 2, page: 3 }, TreeId(u64::MAX)), (PageId { file: 1, page: u32::MAX }, TreeId(7))];
        for change in [LooseChange::Held, LooseChange::Loose, LooseChange::Image] {
            let bytes = loose(change, &parts);
            let Ok(Record::Loose(read)) = decode(&bytes) else { panic!("a record of large parts") };
            assert_eq!((read.change, read.parts().collect::<Vec<_>>()), (change, parts.to_vec()));
            assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        }
        let pages = [(PageId { file: 1, page: u32::MAX }, Lsn(5), Lsn(u64::MAX)), (PageId { file: 9, page: 2 }, Lsn(0), Lsn(1))];
        let bytes = dirty(&pages);
        let Ok(Record::Dirty(read)) = decode(&bytes) else { panic!("a record of dirty pages") };
        assert_eq!(read.pages().collect::<Vec<_>>(), pages);
        assert!(decode(&bytes[..20]).is_err());
        assert!(decode(&[9]).is_err() && decode(&[]).is_err() && decode(&[4, 3]).is_err());
        let endless = [&[1, 0, 0, 0, 0, 0, 0][..], &[0; 8], &[0xff; 12]].concat();
        assert_eq!(decode(&endless), Err(PageOpError::Malformed("transaction number too long")));
    }
}
