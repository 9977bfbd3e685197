//! Every change a page can undergo, as data: logged, and applied by one function in normal work and in redo.
//!
//! ```text
//! record of one page = op | op | ...          op = tag u8 | fields, little-endian | bytes with a u16 or u32 length
//! ```
//!
//! 1. [`apply`] is a function of the page's bytes and the operation, nothing else: redo makes the bytes that normal
//!    work made (crash tests compare them).
//! 2. An operation that fails has changed nothing, except [`PageOp::Image`], [`PageOp::Packed`] and [`PageOp::Format`],
//!    which cannot fail after their first write.
//! 3. [`PageOp::decode`] takes hostile bytes: wrong tags, lengths and numbers are errors, never panics.
//! 4. Operations after which the content before does not matter ([`PageOp::starts_afresh`]) end the way back that redo
//!    must go, and free the page from the doublewrite region until the next checkpoint.
//!
//! Not here: the log sequence number, which the mini-transaction stamps; the checksum, set when the page is written.

use super::header::{self, HEADER_BYTES, PAGE_BYTES, PageBytes, PageType};
use super::slotted::{self, SlotError};
use super::{verify, whole};
use crate::ids::{PageId, TreeId, TxnId};

/// First byte of a map's bits: GAM, IAM, PFS, DCM and ML. What lies before is for the map's own facts.
pub const MAP_BEGIN: usize = 128;
/// Bytes of a map.
pub const MAP_BYTES: usize = PAGE_BYTES - MAP_BEGIN;

/// What a page is made to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Type.
    pub page_type: PageType,
    /// Allocation unit.
    pub tree: TreeId,
    /// Object.
    pub object_id: u32,
    /// Index within the object.
    pub index_id: u32,
    /// Height in the tree.
    pub level: u8,
    /// Inserter of the rows that carry no version tag; 0 if that is long committed.
    pub creator: TxnId,
}

/// A change of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOp<'a> {
    /// Make it an empty page.
    Format(Format),
    /// Make it this page: LZ4 of the whole page, from [`PageOp::compress`].
    Image {
        /// The compressed bytes.
        lz4: &'a [u8],
    },
    /// Make it this leaf, from [`super::whole::pack`].
    Packed {
        /// The packed bytes.
        packed: &'a [u8],
    },
    /// Insert an entry; slots from `slot` on move by one.
    SlotInsert {
        /// Where.
        slot: u16,
        /// The entry, from [`super::entry::Entry::encode`].
        bytes: &'a [u8],
    },
    /// Replace an entry.
    SlotReplace {
        /// Which.
        slot: u16,
        /// The new entry.
        bytes: &'a [u8],
    },
    /// Remove an entry; slots after it move by one.
    SlotRemove {
        /// Which.
        slot: u16,
    },
    /// Overwrite some bytes of an entry.
    SlotPatch {
        /// Which.
        slot: u16,
        /// First byte within the entry.
        at: u16,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// Remove the entries from a slot on.
    Truncate {
        /// The first to go.
        from_slot: u16,
    },
    /// Set the left sibling.
    SetLeft(PageId),
    /// Set the right sibling.
    SetRight(PageId),
    /// Set the common key prefix; every entry's suffix is encoded anew.
    SetPrefix(&'a [u8]),
    /// Set the dictionary of a leaf that has no packed entry.
    SetDictionary(&'a [u8]),
    /// Set the creator.
    SetCreator(TxnId),
    /// Set the flags.
    SetFlags(u16),
    /// Set a run of a map's values.
    MapBits {
        /// First value's index.
        first: u32,
        /// How many.
        count: u32,
        /// What to set them to.
        value: u8,
        /// Bits of one value: 1 or 8.
        width: u8,
    },
    /// Overwrite bytes of a page that has no slots.
    RawPatch {
        /// First byte in the page, not within the header.
        offset: u16,
        /// The new bytes.
        bytes: &'a [u8],
    },
}

/// Why an operation cannot be decoded or applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOpError {
    /// The entry does not fit.
    NoRoom,
    /// The page has no such slot.
    NoSlot,
    /// The operation or the page is not what it should be.
    Malformed(&'static str),
}

impl From<SlotError> for PageOpError {
    fn from(error: SlotError) -> Self {
        match error {
            SlotError::NoRoom => Self::NoRoom,
            SlotError::NoSlot => Self::NoSlot,
            SlotError::Malformed(why) => Self::Malformed(why),
        }
    }
}

/// Applies `op` to the page named `id`.
pub fn apply(page: &mut PageBytes, id: PageId, op: &PageOp<'_>) -> Result<(), PageOpError> {
    match *op {
        PageOp::Format(format) => format_page(page, id, &format),
        PageOp::Image { lz4 } => load_image(page, id, lz4)?,
        PageOp::Packed { packed } => whole::unpack(page, id, packed)?,
        PageOp::SlotInsert { slot, bytes } => slotted::insert(slots_of(page)?, usize::from(slot), bytes)?,
        PageOp::SlotReplace { slot, bytes } => slotted::replace(slots_of(page)?, usize::from(slot), bytes)?,
        PageOp::SlotRemove { slot } => slotted::remove(slots_of(page)?, usize::from(slot))?,
        PageOp::SlotPatch { slot, at, bytes } => slotted::patch(slots_of(page)?, usize::from(slot), usize::from(at), bytes)?,
        PageOp::Truncate { from_slot } => slotted::truncate(slots_of(page)?, usize::from(from_slot))?,
        PageOp::SetPrefix(prefix) => slotted::set_prefix(slots_of(page)?, prefix)?,
        PageOp::SetDictionary(dictionary) => slotted::set_dictionary(slots_of(page)?, dictionary)?,
        PageOp::SetLeft(left) => {
            header::set_left_file(page, left.file);
            header::set_left_page(page, left.page);
        }
        PageOp::SetRight(right) => {
            header::set_right_file(page, right.file);
            header::set_right_page(page, right.page);
        }
        PageOp::SetCreator(txn) => header::set_creator_number(page, txn.0),
        PageOp::SetFlags(flags) => header::set_flags(page, flags),
        PageOp::MapBits { first, count, value, width } => set_map(page, first, count, value, width)?,
        PageOp::RawPatch { offset, bytes } => raw_patch(page, usize::from(offset), bytes)?,
    }
    Ok(())
}

fn slots_of(page: &mut PageBytes) -> Result<&mut PageBytes, PageOpError> {
    match header::page_type(page) {
        Some(page_type) if page_type.is_slotted() => Ok(page),
        _ => Err(PageOpError::Malformed("a page without slots")),
    }
}

fn format_page(page: &mut PageBytes, id: PageId, format: &Format) {
    page.fill(0);
    header::set_page_id(page, id);
    header::set_format_version(page, header::FORMAT_VERSION);
    header::set_type_number(page, format.page_type as u8);
    header::set_tree_number(page, format.tree.0);
    header::set_object_id(page, format.object_id);
    header::set_index_id(page, format.index_id);
    header::set_level(page, format.level);
    header::set_creator_number(page, format.creator.0);
    header::set_free_begin(page, u16::try_from(HEADER_BYTES).expect("96"));
}

fn load_image(page: &mut PageBytes, id: PageId, lz4: &[u8]) -> Result<(), PageOpError> {
    let mut image = [0; PAGE_BYTES];
    let bytes = lz4_flex::block::decompress_into(lz4, &mut image).map_err(|_| PageOpError::Malformed("image is no LZ4 block"))?;
    if bytes != PAGE_BYTES {
        return Err(PageOpError::Malformed("image is no whole page"));
    }
    if verify::first_violation(&image, id).is_some() {
        return Err(PageOpError::Malformed("image is no page of this name"));
    }
    *page = image;
    Ok(())
}

fn set_map(page: &mut PageBytes, first: u32, count: u32, value: u8, width: u8) -> Result<(), PageOpError> {
    let is_map = matches!(header::page_type(page), Some(PageType::Gam | PageType::Iam | PageType::Pfs | PageType::Dcm | PageType::Ml));
    if !is_map {
        return Err(PageOpError::Malformed("a page without a map"));
    }
    let end = u64::from(first) + u64::from(count);
    let (first, count) = (first as usize, count as usize);
    match (width, value) {
        (8, _) if end <= MAP_BYTES as u64 => page[MAP_BEGIN + first..MAP_BEGIN + first + count].fill(value),
        (1, 0 | 1) if end <= MAP_BYTES as u64 * 8 => set_bits(&mut page[MAP_BEGIN..], first, count, value == 1),
        _ => return Err(PageOpError::Malformed("run beyond the map, or of an unknown width")),
    }
    Ok(())
}

fn set_bits(map: &mut [u8], first: usize, count: usize, on: bool) {
    let mut at = first;
    while at < first + count {
        if at.is_multiple_of(8) && first + count - at >= 8 {
            map[at / 8] = if on { 0xff } else { 0 };
            at += 8;
        } else {
            let bit = 1 << (at % 8);
            map[at / 8] = if on { map[at / 8] | bit } else { map[at / 8] & !bit };
            at += 1;
        }
    }
}

fn raw_patch(page: &mut PageBytes, offset: usize, bytes: &[u8]) -> Result<(), PageOpError> {
    match header::page_type(page) {
        Some(page_type) if !page_type.is_slotted() => {}
        _ => return Err(PageOpError::Malformed("raw patch of a page with slots")),
    }
    if offset < HEADER_BYTES || offset + bytes.len() > PAGE_BYTES {
        return Err(PageOpError::Malformed("raw patch beyond the body"));
    }
    page[offset..offset + bytes.len()].copy_from_slice(bytes);
    Ok(())
}

const FORMAT: u8 = 1;
const IMAGE: u8 = 2;
const SLOT_INSERT: u8 = 3;
const SLOT_REPLACE: u8 = 4;
const SLOT_REMOVE: u8 = 5;
const SLOT_PATCH: u8 = 6;
const TRUNCATE: u8 = 7;
const SET_LEFT: u8 = 8;
const SET_RIGHT: u8 = 9;
const SET_PREFIX: u8 = 10;
const SET_CREATOR: u8 = 11;
const SET_FLAGS: u8 = 12;
const MAP_BITS: u8 = 13;
const RAW_PATCH: u8 = 14;
const PACKED: u8 = 15;
const SET_DICTIONARY: u8 = 16;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // A page's worth at most; LZ4 of an incompressible page is longer than the page, hence not 8,192 but u16.
    out.extend_from_slice(&u16::try_from(bytes.len()).expect("operations carry at most a page's bytes").to_le_bytes());
    out.extend_from_slice(bytes);
}

impl<'a> PageOp<'a> {
    /// The bytes that [`PageOp::Image`] carries for `page`. Checksum and LSN do not matter and are left out.
    pub fn compress(page: &PageBytes) -> Vec<u8> {
        let mut copy = *page;
        header::set_checksum(&mut copy, 0);
        header::set_lsn_number(&mut copy, 0);
        lz4_flex::block::compress(&copy)
    }

    /// Whether the page's content before does not matter.
    pub const fn starts_afresh(&self) -> bool {
        matches!(self, Self::Format(_) | Self::Image { .. } | Self::Packed { .. })
    }

    /// Appends the operation's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Format(f) => {
                out.extend_from_slice(&[FORMAT, f.page_type as u8, f.level]);
                out.extend_from_slice(&f.tree.0.to_le_bytes());
                out.extend_from_slice(&f.object_id.to_le_bytes());
                out.extend_from_slice(&f.index_id.to_le_bytes());
                out.extend_from_slice(&f.creator.0.to_le_bytes());
            }
            Self::Image { lz4 } => encode_sized(out, IMAGE, &[], lz4),
            Self::Packed { packed } => encode_sized(out, PACKED, &[], packed),
            Self::SlotInsert { slot, bytes } => encode_sized(out, SLOT_INSERT, &[slot], bytes),
            Self::SlotReplace { slot, bytes } => encode_sized(out, SLOT_REPLACE, &[slot], bytes),
            Self::SlotRemove { slot } => encode_words(out, SLOT_REMOVE, &[slot]),
            Self::SlotPatch { slot, at, bytes } => encode_sized(out, SLOT_PATCH, &[slot, at], bytes),
            Self::Truncate { from_slot } => encode_words(out, TRUNCATE, &[from_slot]),
            Self::SetLeft(id) => encode_page_id(out, SET_LEFT, id),
            Self::SetRight(id) => encode_page_id(out, SET_RIGHT, id),
            Self::SetPrefix(prefix) => encode_sized(out, SET_PREFIX, &[], prefix),
            Self::SetDictionary(dictionary) => encode_sized(out, SET_DICTIONARY, &[], dictionary),
            Self::SetCreator(txn) => {
                out.push(SET_CREATOR);
                out.extend_from_slice(&txn.0.to_le_bytes());
            }
            Self::SetFlags(flags) => encode_words(out, SET_FLAGS, &[flags]),
            Self::MapBits { first, count, value, width } => {
                out.push(MAP_BITS);
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&[value, width]);
            }
            Self::RawPatch { offset, bytes } => encode_sized(out, RAW_PATCH, &[offset], bytes),
        }
    }

    /// Appends the operation that makes `page`, whole: packed if its entries allow it, else an image.
    pub fn encode_whole(page: &PageBytes, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[PACKED, 0, 0]);
        if header::page_type(page) == Some(PageType::Leaf) && whole::pack(page, out) {
            let bytes = u16::try_from(out.len() - start - 3).expect("packed is shorter than the page");
            out[start + 1..start + 3].copy_from_slice(&bytes.to_le_bytes());
        } else {
            out.truncate(start);
            let lz4 = Self::compress(page);
            PageOp::Image { lz4: &lz4 }.encode(out);
        }
    }

    /// Takes the first operation off `bytes`.
    pub fn decode(bytes: &mut &'a [u8]) -> Result<Self, PageOpError> {
        let mut from = Decoder(bytes);
        let op = match from.u8()? {
            FORMAT => Self::Format(from.format()?),
            IMAGE => Self::Image { lz4: from.sized()? },
            PACKED => Self::Packed { packed: from.sized()? },
            SLOT_INSERT => Self::SlotInsert { slot: from.u16()?, bytes: from.sized()? },
            SLOT_REPLACE => Self::SlotReplace { slot: from.u16()?, bytes: from.sized()? },
            SLOT_REMOVE => Self::SlotRemove { slot: from.u16()? },
            SLOT_PATCH => Self::SlotPatch { slot: from.u16()?, at: from.u16()?, bytes: from.sized()? },
            TRUNCATE => Self::Truncate { from_slot: from.u16()? },
            SET_LEFT => Self::SetLeft(from.page_id()?),
            SET_RIGHT => Self::SetRight(from.page_id()?),
            SET_PREFIX => Self::SetPrefix(from.sized()?),
            SET_DICTIONARY => Self::SetDictionary(from.sized()?),
            SET_CREATOR => Self::SetCreator(TxnId(from.u64()?)),
            SET_FLAGS => Self::SetFlags(from.u16()?),
            MAP_BITS => Self::MapBits { first: from.u32()?, count: from.u32()?, value: from.u8()?, width: from.u8()? },
            RAW_PATCH => Self::RawPatch { offset: from.u16()?, bytes: from.sized()? },
            _ => return Err(PageOpError::Malformed("unknown operation")),
        };
        *bytes = from.0;
        Ok(op)
    }
}

fn encode_words(out: &mut Vec<u8>, tag: u8, words: &[u16]) {
    out.push(tag);
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn encode_sized(out: &mut Vec<u8>, tag: u8, words: &[u16], bytes: &[u8]) {
    encode_words(out, tag, words);
    put_bytes(out, bytes);
}

fn encode_page_id(out: &mut Vec<u8>, tag: u8, id: PageId) {
    encode_words(out, tag, &[id.file]);
    out.extend_from_slice(&id.page.to_le_bytes());
}

/// Takes fields off the front of bytes that may be hostile.
pub(crate) struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], PageOpError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(PageOpError::Malformed("operation ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, PageOpError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, PageOpError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, PageOpError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, PageOpError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn page_id(&mut self) -> Result<PageId, PageOpError> {
        Ok(PageId { file: self.u16()?, page: self.u32()? })
    }

    fn sized(&mut self) -> Result<&'a [u8], PageOpError> {
        let count = self.u16()?;
        self.take(count)
    }

    pub(crate) fn take(&mut self, count: u16) -> Result<&'a [u8], PageOpError> {
        let (bytes, rest) = self.0.split_at_checked(usize::from(count)).ok_or(PageOpError::Malformed("operation ends early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn format(&mut self) -> Result<Format, PageOpError> {
        let page_type = PageType::from_number(self.u8()?).ok_or(PageOpError::Malformed("unknown page type"))?;
        Ok(Format {
            page_type,
            level: self.u8()?,
            tree: TreeId(self.u64()?),
            object_id: self.u32()?,
            index_id: self.u32()?,
            creator: TxnId(self.u64()?),
        })
    }
}
