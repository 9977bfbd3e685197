//! Where the maps of a file lie: arithmetic, nothing else.
//!
//! ```text
//! extent 0:             0 file header | 1 PFS | 2 GAM | 3 system IAM | 4..5 - | 6 DCM | 7 ML
//! extent 1 of file 1:   8 - | 9 boot | 10..15 -
//! extents 2..17:        doublewrite region (file 1 only)
//! every 8,064 pages     first extent is the file's own: PFS at +1
//! every 516,096 pages   (64 of those) also GAM at +2, system IAM at +3, DCM at +6, ML at +7
//! ```
//!
//! SQL Server's places of the first interval (header 0, PFS 1, GAM 2, DCM 6, ML 7, boot 9) are kept; its intervals
//! (8,088 and 511,232 pages) are not, because 64 whole PFS intervals then fill one GAM interval exactly, and the bits of
//! one GAM interval fill one map page exactly.

use crate::ids::PageId;
use crate::page::op::MAP_BYTES;

/// Pages of an extent.
pub const EXTENT_PAGES: u32 = 8;
/// Pages whose states one PFS page holds, a byte each.
pub const PFS_PAGES: u32 = 8064;
/// Extents whose bits one GAM or IAM page holds.
pub const INTERVAL_EXTENTS: u32 = 64_512;
/// Pages of a GAM interval.
pub const INTERVAL_PAGES: u32 = INTERVAL_EXTENTS * EXTENT_PAGES;
/// Most pages of a file: 32 TiB, whole GAM intervals.
pub const FILE_PAGES_MAX: u32 = u32::MAX / INTERVAL_PAGES * INTERVAL_PAGES;

const _: () = assert!(PFS_PAGES as usize == MAP_BYTES && INTERVAL_EXTENTS as usize == MAP_BYTES * 8);
const _: () = assert!(INTERVAL_PAGES == 64 * PFS_PAGES && PFS_PAGES.is_multiple_of(EXTENT_PAGES));

/// The file header's page number, in every file.
pub const FILE_HEADER_PAGE: u32 = 0;
/// First IAM page of the unit to which IAM pages belong. Its others have fixed places too, so that it needs no chain.
pub const SYSTEM_IAM: PageId = PageId { file: 1, page: 3 };
/// The boot page.
pub const BOOT: PageId = PageId { file: 1, page: 9 };
/// First page of the doublewrite region, in file 1.
pub const DOUBLEWRITE_PAGE: u32 = 16;
/// Pages of the doublewrite region: 1 MiB, so that its own write and sync are small beside those they protect.
pub const DOUBLEWRITE_PAGES: u32 = 128;
/// Extents at the start of file 1 that are not for allocation.
pub const PRIMARY_EXTENTS: u32 = (DOUBLEWRITE_PAGE + DOUBLEWRITE_PAGES) / EXTENT_PAGES;

/// State of a page in the PFS: allocated. SQL Server's bit.
pub const PFS_ALLOCATED: u8 = 0x40;
/// State of a page in the PFS: allocated as an IAM page. SQL Server's bits.
pub const PFS_IAM: u8 = 0x50;

/// The extent of a page.
pub const fn extent_of(page: u32) -> u32 {
    page / EXTENT_PAGES
}

/// The first page of an extent.
pub const fn page_of(extent: u32) -> u32 {
    extent * EXTENT_PAGES
}

/// The PFS page for `page`, and the index of its byte.
pub const fn pfs(page: u32) -> (u32, u32) {
    (page / PFS_PAGES * PFS_PAGES + 1, page % PFS_PAGES)
}

/// The GAM interval of an extent, and the index of its bit there.
pub const fn interval(extent: u32) -> (u32, u32) {
    (extent / INTERVAL_EXTENTS, extent % INTERVAL_EXTENTS)
}

/// The GAM page of an interval.
pub const fn gam(interval: u32) -> u32 {
    interval * INTERVAL_PAGES + 2
}

/// The page of an interval that says which of its extents hold IAM pages.
pub const fn system_iam(interval: u32) -> u32 {
    interval * INTERVAL_PAGES + 3
}

/// The DCM page of an interval.
pub const fn dcm(interval: u32) -> u32 {
    interval * INTERVAL_PAGES + 6
}

/// The ML page of an interval.
pub const fn ml(interval: u32) -> u32 {
    interval * INTERVAL_PAGES + 7
}

/// Whether an extent holds maps.
pub const fn is_map_extent(extent: u32) -> bool {
    extent.is_multiple_of(PFS_PAGES / EXTENT_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_lie_in_map_extents_and_cover_every_page() {
        for page in [0, 8063, 8064, INTERVAL_PAGES - 1, INTERVAL_PAGES, INTERVAL_PAGES + 8064, FILE_PAGES_MAX - 1] {
            let (pfs_page, byte) = pfs(page);
            assert_eq!(pfs_page - 1 + byte, page);
            assert!(is_map_extent(extent_of(pfs_page)));
            let (number, bit) = interval(extent_of(page));
            assert_eq!(number * INTERVAL_EXTENTS + bit, extent_of(page));
            for map in [gam(number), system_iam(number), dcm(number), ml(number)] {
                assert!(is_map_extent(extent_of(map)) && map != pfs(map).0);
            }
        }
        assert_eq!((pfs(0).0, gam(0), dcm(0), ml(0)), (1, 2, 6, 7));
    }
}
