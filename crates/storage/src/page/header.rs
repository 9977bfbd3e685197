//! The 96 bytes at the start of every page: where each field lies and how it is read and set.
//!
//! ```text
//! [`FIELDS`] is the picture; docs/FORMAT.md shows the same table and a test compares the two.
//! ```
//!
//! 1. Every field is little-endian and lies wholly within [`HEADER_BYTES`] (const assertions below).
//! 2. Bytes of no field are zero on every page ([`super::verify`] reports others).
//! 3. Nothing here checks a value: that is `verify`'s, so that a damaged page can still be shown.

use crate::ids::{Lsn, PageId, TreeId, TxnId};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 8192;
/// Bytes of the header; 96 as in SQL Server, so that sizes a DBA computes by heart stay true.
pub const HEADER_BYTES: usize = 96;
/// Format that this code writes.
pub const FORMAT_VERSION: u8 = 1;

/// The bytes of one page.
pub type PageBytes = [u8; PAGE_BYTES];

/// What a page holds. Numbers are on disk for ever; those that SQL Server has too carry its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageType {
    /// Leaf of a tree: rows.
    Leaf = 1,
    /// Inner node of a tree: separators and children.
    Inner = 2,
    /// Parts of large values.
    Large = 3,
    /// Versions of rows.
    Version = 5,
    /// Map of extents in use.
    Gam = 8,
    /// Extents of one allocation unit within one interval of a file.
    Iam = 10,
    /// State of each page.
    Pfs = 11,
    /// The database's own facts.
    Boot = 13,
    /// A file's own facts.
    FileHeader = 15,
    /// Extents changed since the last full backup.
    Dcm = 16,
    /// Extents changed without full logging.
    Ml = 17,
    /// A sorted run's block.
    Run = 18,
}

impl PageType {
    /// Every type.
    pub const ALL: [Self; 12] = [
        Self::Leaf,
        Self::Inner,
        Self::Large,
        Self::Version,
        Self::Gam,
        Self::Iam,
        Self::Pfs,
        Self::Boot,
        Self::FileHeader,
        Self::Dcm,
        Self::Ml,
        Self::Run,
    ];

    /// The type with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|t| *t as u8 == number)
    }

    /// Whether pages of this type hold slots and entries; all others have a body of plain bytes.
    pub const fn is_slotted(self) -> bool {
        matches!(self, Self::Leaf | Self::Inner | Self::Version)
    }

    /// Whether the slots stand in rising key order.
    pub const fn is_keyed(self) -> bool {
        matches!(self, Self::Leaf | Self::Inner)
    }
}

/// A field of the header.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name, as docs/FORMAT.md has it.
    pub name: &'static str,
    /// First byte.
    pub offset: usize,
    /// Width in bytes.
    pub bytes: usize,
    /// Meaning.
    pub meaning: &'static str,
}

const fn field(name: &'static str, offset: usize, bytes: usize, meaning: &'static str) -> Field {
    Field { name, offset, bytes, meaning }
}

const CHECKSUM: usize = 0;
const VERSION: usize = 4;
const TYPE: usize = 5;
const FLAGS: usize = 6;
const PAGE_NUMBER: usize = 8;
const FILE: usize = 12;
const LEVEL: usize = 14;
const LSN: usize = 16;
const TREE: usize = 24;
const OBJECT: usize = 32;
const INDEX: usize = 36;
const SLOT_COUNT: usize = 40;
const FREE_BEGIN: usize = 42;
const GARBAGE: usize = 44;
const PREFIX: usize = 46;
const CREATOR: usize = 48;
const LEFT_PAGE: usize = 56;
const RIGHT_PAGE: usize = 60;
const LEFT_FILE: usize = 64;
const RIGHT_FILE: usize = 66;
const TAGGED: usize = 68;
const GHOSTS: usize = 70;
const DICTIONARY: usize = 72;

/// First reserved byte at the header's end; zero up to [`HEADER_BYTES`].
pub const RESERVED_BEGIN: usize = 74;

/// The header's fields, in order of offset.
pub const FIELDS: &[Field] = &[
    field("checksum", CHECKSUM, 4, "CRC-32C of bytes 4 to 8191; set when the page is written, verified when it is read"),
    field("format_version", VERSION, 1, "1"),
    field("page_type", TYPE, 1, "see the table of page types"),
    field("flags", FLAGS, 2, "owned by the page type; 0 where it has none"),
    field("page_number", PAGE_NUMBER, 4, "page number within its file"),
    field("file_number", FILE, 2, "file number within its database"),
    field("level", LEVEL, 1, "height in the tree; 0 is the leaf"),
    field("reserved", LEVEL + 1, 1, "zero"),
    field("lsn", LSN, 8, "log position of the last record that changed the page"),
    field("tree_id", TREE, 8, "allocation unit"),
    field("object_id", OBJECT, 4, "object"),
    field("index_id", INDEX, 4, "index within the object"),
    field("slot_count", SLOT_COUNT, 2, "slots, from the page's end downwards"),
    field("free_begin", FREE_BEGIN, 2, "first byte after the last entry"),
    field("garbage_bytes", GARBAGE, 2, "bytes of removed entries below free_begin"),
    field("prefix_bytes", PREFIX, 2, "length of the common key prefix stored right after the header"),
    field("creator_txn", CREATOR, 8, "rows without a version tag were inserted by this transaction; 0 is long committed"),
    field("left_page", LEFT_PAGE, 4, "left sibling's page number"),
    field("right_page", RIGHT_PAGE, 4, "right sibling's page number, or the next page of a chain"),
    field("left_file", LEFT_FILE, 2, "left sibling's file, 0 is none"),
    field("right_file", RIGHT_FILE, 2, "right sibling's file, 0 is none"),
    field("tagged_count", TAGGED, 2, "entries with a version tag"),
    field("ghost_count", GHOSTS, 2, "entries marked as ghosts"),
    field("dictionary_bytes", DICTIONARY, 2, "length of the dictionary of a packed leaf, right after the prefix"),
    field("reserved", RESERVED_BEGIN, HEADER_BYTES - RESERVED_BEGIN, "zero"),
];

const _: () = {
    let mut end = 0;
    let mut at = 0;
    while at < FIELDS.len() {
        assert!(FIELDS[at].offset == end, "fields leave no gap and do not overlap");
        end += FIELDS[at].bytes;
        at += 1;
    }
    assert!(end == HEADER_BYTES, "fields fill the header");
};

macro_rules! fields {
    ($($(#[$doc:meta])* $get:ident $set:ident $width:ty = $at:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $get(page: &PageBytes) -> $width {
                <$width>::from_le_bytes(*page[$at..].first_chunk().expect("the header holds the field"))
            }
            #[inline]
            pub(crate) fn $set(page: &mut PageBytes, value: $width) {
                page[$at..$at + size_of::<$width>()].copy_from_slice(&value.to_le_bytes());
            }
        )*
    };
}

fields! {
    /// Checksum as stored.
    checksum set_checksum u32 = CHECKSUM;
    /// Format version.
    format_version set_format_version u8 = VERSION;
    /// Number of the page type.
    type_number set_type_number u8 = TYPE;
    /// Flags of the page type.
    flags set_flags u16 = FLAGS;
    /// Page number.
    page_number set_page_number u32 = PAGE_NUMBER;
    /// File number.
    file_number set_file_number u16 = FILE;
    /// Height in the tree.
    level set_level u8 = LEVEL;
    /// Log position as stored.
    lsn_number set_lsn_number u64 = LSN;
    /// Allocation unit as stored.
    tree_number set_tree_number u64 = TREE;
    /// Object.
    object_id set_object_id u32 = OBJECT;
    /// Index within the object.
    index_id set_index_id u32 = INDEX;
    /// Number of slots.
    slot_count set_slot_count u16 = SLOT_COUNT;
    /// First byte after the last entry.
    free_begin set_free_begin u16 = FREE_BEGIN;
    /// Bytes of removed entries.
    garbage_bytes set_garbage_bytes u16 = GARBAGE;
    /// Length of the common prefix.
    prefix_bytes set_prefix_bytes u16 = PREFIX;
    /// Creator as stored.
    creator_number set_creator_number u64 = CREATOR;
    /// Left sibling's page number.
    left_page set_left_page u32 = LEFT_PAGE;
    /// Right sibling's page number.
    right_page set_right_page u32 = RIGHT_PAGE;
    /// Left sibling's file.
    left_file set_left_file u16 = LEFT_FILE;
    /// Right sibling's file.
    right_file set_right_file u16 = RIGHT_FILE;
    /// Entries with a version tag.
    tagged_count set_tagged_count u16 = TAGGED;
    /// Entries marked as ghosts.
    ghost_count set_ghost_count u16 = GHOSTS;
    /// Length of the dictionary.
    dictionary_bytes set_dictionary_bytes u16 = DICTIONARY;
}

/// The page's own name.
#[inline]
pub fn page_id(page: &PageBytes) -> PageId {
    PageId { file: file_number(page), page: page_number(page) }
}

pub(crate) fn set_page_id(page: &mut PageBytes, id: PageId) {
    set_file_number(page, id.file);
    set_page_number(page, id.page);
}

/// The page's type; `None` on a page never written or damaged.
#[inline]
pub fn page_type(page: &PageBytes) -> Option<PageType> {
    PageType::from_number(type_number(page))
}

/// Log position of the last change.
#[inline]
pub fn lsn(page: &PageBytes) -> Lsn {
    Lsn(lsn_number(page))
}

/// Allocation unit.
#[inline]
pub fn tree(page: &PageBytes) -> TreeId {
    TreeId(tree_number(page))
}

/// Transaction that inserted the rows without a version tag; 0 is long committed.
#[inline]
pub fn creator(page: &PageBytes) -> TxnId {
    TxnId(creator_number(page))
}

/// Left sibling, or [`PageId::NONE`].
#[inline]
pub fn left(page: &PageBytes) -> PageId {
    PageId { file: left_file(page), page: left_page(page) }
}

/// Right sibling or next page of the chain, or [`PageId::NONE`].
#[inline]
pub fn right(page: &PageBytes) -> PageId {
    PageId { file: right_file(page), page: right_page(page) }
}

/// Whether the page is all zero: never written.
pub fn is_blank(page: &PageBytes) -> bool {
    page.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_reads_back_and_touches_no_other() {
        let mut page = [0; PAGE_BYTES];
        set_page_id(&mut page, PageId { file: 7, page: 0x0102_0304 });
        set_lsn_number(&mut page, u64::MAX);
        set_slot_count(&mut page, 0x0506);
        assert_eq!(page_id(&page), PageId { file: 7, page: 0x0102_0304 });
        assert_eq!((lsn(&page), slot_count(&page)), (Lsn(u64::MAX), 0x0506));
        assert_eq!((level(&page), tree_number(&page), free_begin(&page)), (0, 0, 0));
    }

    #[test]
    fn page_types_have_distinct_numbers() {
        for t in PageType::ALL {
            assert_eq!(PageType::from_number(t as u8), Some(t));
        }
        assert_eq!(PageType::from_number(0), None);
    }
}
