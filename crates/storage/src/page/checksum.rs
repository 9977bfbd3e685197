//! The checksum that proves, after a read, that a page is the one asked for and arrived whole.
//!
//! 1. A page leaves for the device only [`seal`]ed, and enters the pool only [`verify`]ed.
//! 2. A page of zeros is blank (never written), not damaged; whether blank is right is for the caller to say.

use super::header::{self, PageBytes};
use crate::error::StorageError;
use crate::ids::PageId;

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A page that was never written: all zero.
    Blank,
    /// A whole page with the right name.
    Whole,
}

fn computed(page: &PageBytes) -> u32 {
    crc32c::crc32c(&page[4..])
}

/// Sets the checksum; the last thing before a page is written.
pub fn seal(page: &mut PageBytes) {
    let sum = computed(page);
    header::set_checksum(page, sum);
}

/// Verifies checksum, version and name of a page that was read.
pub fn verify(page: &PageBytes, id: PageId) -> Result<Content, StorageError> {
    let (stored, found) = (header::checksum(page), computed(page));
    if stored != found {
        if header::is_blank(page) {
            return Ok(Content::Blank);
        }
        return Err(damage(id, format!("checksum: stored {stored:#010x}, computed {found:#010x}")));
    }
    if header::page_id(page) != id {
        let other = header::page_id(page);
        return Err(damage(id, format!("page id: expected {}:{}, found {}:{}", id.file, id.page, other.file, other.page)));
    }
    if header::format_version(page) != header::FORMAT_VERSION {
        return Err(damage(id, format!("format version: expected {}, found {}", header::FORMAT_VERSION, header::format_version(page))));
    }
    Ok(Content::Whole)
}

/// The one place where damage of a page becomes an error (824).
pub fn damage(id: PageId, detail: String) -> StorageError {
    StorageError::Damage { page: id, offset: u64::from(id.page) * header::PAGE_BYTES as u64, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: PageId = PageId { file: 1, page: 77 };

    fn sealed() -> PageBytes {
        let mut page = [0; header::PAGE_BYTES];
        header::set_page_id(&mut page, ID);
        header::set_format_version(&mut page, header::FORMAT_VERSION);
        seal(&mut page);
        page
    }

    #[test]
    fn any_flipped_bit_is_seen() {
        let whole = sealed();
        assert_eq!(verify(&whole, ID).expect("whole"), Content::Whole);
        for at in (0..header::PAGE_BYTES).step_by(61).chain([0, 3, 4, header::PAGE_BYTES - 1]) {
            let mut page = whole;
            page[at] ^= 0x10;
            assert!(verify(&page, ID).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_misdirected_page_is_seen_and_a_blank_one_told_apart() {
        assert!(verify(&sealed(), PageId { file: 1, page: 78 }).is_err());
        assert_eq!(verify(&[0; header::PAGE_BYTES], ID).expect("blank"), Content::Blank);
    }
}
