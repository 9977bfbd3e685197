//! A full leaf without what nobody needs: tags of writers whom everybody sees, and ghosts of theirs; and, in a tree that packs
//! its leaves, with what its rows have in common stored once.
//!
//! It is tried before every split and done when it frees an eighth of the page, so that updates in place do not split
//! for ever and a leaf is not rewritten for the sake of a few bytes.
//!
//! Invariants: 1. no view, present or to come, reads another row from the new bytes than from the old. 2. Ghosts with
//! large parts stay: their parts must be freed with them, which the cleaner does. 3. A ghost that is locked stays. 4. A leaf is
//! packed whatever its rows' writers became: tags and ghosts stay as they are. No latches: the caller's leaf.

use super::Settler;
use crate::ids::TxnId;
use crate::page::header::{self, HEADER_BYTES};
use crate::page::packing::Packer;
use crate::page::slotted::SLOT_BYTES;
use crate::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted, op};
use crate::versions::version::Version;

/// The least gain that pays for logging the page anew.
const GAIN_BYTES_MIN: usize = (PAGE_BYTES - HEADER_BYTES) / 8;

/// What becomes of an entry.
enum Kept<'a> {
    Gone,
    AsIs,
    Untagged(Entry<'a>),
}

fn kept<'a>(
    prefix: &[u8],
    entry: &Entry<'a>,
    (creator, creator_settled): (u64, bool),
    settler: &dyn Settler,
    takes_large: bool,
) -> Kept<'a> {
    let version = Version::of(entry, creator);
    if entry.ghost
        && (takes_large || entry.large_bytes.is_empty())
        && settler.purges_ghosts()
        && settler.seen_by_all(version.writer)
        && !settler.ghost_is_locked(&[prefix, entry.suffix].concat())
    {
        return Kept::Gone;
    }
    if entry.tag.is_some() && !entry.ghost && creator_settled && settler.seen_by_all(version.writer) {
        return Kept::Untagged(Entry { tag: None, ..*entry });
    }
    Kept::AsIs
}

/// The page cleaned, if that frees enough.
pub(super) fn compacted(page: &PageBytes, settler: &dyn Settler) -> Option<Box<PageBytes>> {
    cleaned(page, settler, GAIN_BYTES_MIN, None)
}

/// The page cleaned, if that frees anything; ghosts go with their large parts, whose references are added to `freed`.
pub(super) fn tidied(page: &PageBytes, settler: &dyn Settler, freed: &mut Vec<u8>) -> Option<Box<PageBytes>> {
    cleaned(page, settler, 1, Some(freed))
}

fn cleaned(page: &PageBytes, settler: &dyn Settler, gain_bytes_min: usize, mut freed: Option<&mut Vec<u8>>) -> Option<Box<PageBytes>> {
    if header::tagged_count(page) == 0 && header::ghost_count(page) == 0 {
        return None;
    }
    let leaf = Slotted(page);
    let creator = header::creator_number(page);
    let creator_settled = settler.seen_by_all(creator);
    let mut gain = 0;
    let mut encoded: Vec<Vec<u8>> = Vec::with_capacity(leaf.len());
    for slot in 0..leaf.len() {
        let (entry, bytes) = (leaf.entry(slot), leaf.bytes(slot));
        match kept(leaf.prefix(), &entry, (creator, creator_settled), settler, freed.is_some()) {
            Kept::Gone => {
                gain += bytes.len() + SLOT_BYTES;
                if let Some(freed) = &mut freed {
                    freed.extend_from_slice(entry.large_bytes);
                }
            }
            Kept::AsIs => encoded.push(bytes.to_vec()),
            Kept::Untagged(untagged) => {
                let mut shorter = Vec::with_capacity(bytes.len());
                untagged.encode(&mut shorter);
                gain += bytes.len() - shorter.len();
                encoded.push(shorter);
            }
        }
    }
    if gain < gain_bytes_min {
        return None;
    }
    Some(rebuilt(page, if creator_settled { TxnId(0) } else { TxnId(creator) }, leaf.dictionary(), &encoded))
}

/// The leaf of a tree that packs its leaves, packed anew, if that frees enough.
pub(super) fn packed(page: &PageBytes) -> Option<Box<PageBytes>> {
    let leaf = Slotted(page);
    let mut rows: Vec<Vec<u8>> = Vec::with_capacity(leaf.len());
    for slot in 0..leaf.len() {
        let mut whole = Vec::new();
        // A row that cannot be made whole is damage; who reads it says so.
        let row = leaf.row(slot, &mut whole).ok()?.payload.to_vec();
        rows.push(row);
    }
    let packer = Packer::train(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let mut encoded: Vec<Vec<u8>> = Vec::with_capacity(leaf.len());
    let mut packed = Vec::new();
    for (slot, row) in rows.iter().enumerate() {
        packed.clear();
        let is_packed = packer.pack(row, &mut packed);
        let mut bytes = Vec::new();
        Entry { packed: is_packed, payload: if is_packed { &packed } else { row }, ..leaf.entry(slot) }.encode(&mut bytes);
        encoded.push(bytes);
    }
    let before = leaf.dictionary().len() + (0..leaf.len()).map(|slot| leaf.place(slot).1).sum::<usize>();
    let after = packer.dictionary().len() + encoded.iter().map(Vec::len).sum::<usize>();
    if before < after + GAIN_BYTES_MIN {
        return None;
    }
    Some(rebuilt(page, TxnId(header::creator_number(page)), packer.dictionary(), &encoded))
}

/// A leaf like `page` with other entries, which have its prefix.
fn rebuilt(page: &PageBytes, creator: TxnId, dictionary: &[u8], entries: &[Vec<u8>]) -> Box<PageBytes> {
    let id = header::page_id(page);
    let mut image: Box<PageBytes> = Box::new([0; PAGE_BYTES]);
    let mut apply = |operation: &PageOp<'_>| op::apply(&mut image, id, operation).expect("what was on the page fits it again");
    apply(&PageOp::Format(Format {
        page_type: PageType::Leaf,
        tree: header::tree(page),
        object_id: header::object_id(page),
        index_id: header::index_id(page),
        level: 0,
        creator,
    }));
    apply(&PageOp::SetLeft(header::left(page)));
    apply(&PageOp::SetRight(header::right(page)));
    apply(&PageOp::SetPrefix(Slotted(page).prefix()));
    apply(&PageOp::SetDictionary(dictionary));
    for (slot, bytes) in entries.iter().enumerate() {
        apply(&PageOp::SlotInsert { slot: u16::try_from(slot).expect("slots are fewer than 64 Ki"), bytes });
    }
    image
}
