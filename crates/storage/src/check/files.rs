//! The check of what belongs to a file rather than to a tree: the boot page, file headers, and the type of every map page.
//!
//! ```text
//! boot page ──stamp, table of files──> each file's header: stamp, number, filegroup, length ──> maps at their places
//! ```
//! The facts are compared with those the open database works with, so a page that was whole and another database's, or an
//! older one's, is found. Locks: `SPACE_GROWTH` around a
//! header, then its page's latch, shared. Failure: none; what cannot be read is a finding.

use super::{FindingKind, Findings};
use crate::database::Database;
use crate::ids::{PageId, TreeId};
use crate::page::{PageType, header};
use crate::space::layout::{self, BOOT, INTERVAL_PAGES, PFS_PAGES};
use crate::store::boot::{BootFacts, FileFacts, file_header};
use crate::store::file::DataFile;

pub(super) fn check(database: &Database, findings: &mut Findings) {
    let boot = database.store.read(BOOT).and_then(|page| BootFacts::decode(&page));
    let boot = boot.map_err(|error| findings.add(FindingKind::File, None, BOOT, None, error.to_string())).ok();
    for file in database.store.files() {
        check_header(database, file, boot.as_ref(), findings);
        check_map_types(database, file, findings);
    }
}

fn check_header(database: &Database, file: &DataFile, boot: Option<&BootFacts>, findings: &mut Findings) {
    let id = file_header(file.number);
    // While a file grows its header is behind what the database works with.
    let _growing = database.store.growth.lock();
    let found = match database.store.read(id) {
        Ok(page) => FileFacts::decode(&page),
        Err(error) => return findings.add(FindingKind::File, None, id, None, error.to_string()),
    };
    let Some(boot) = boot else { return };
    let expected = FileFacts { stamp: boot.stamp, pages: file.pages(), file: file.number, filegroup: file.filegroup };
    if found != expected {
        findings.add(FindingKind::File, None, id, None, format!("expected {expected:?}, found {found:?}"));
    }
    if !boot.files.iter().any(|(number, _)| *number == file.number) {
        findings.add(FindingKind::File, None, BOOT, None, format!("the boot page does not name file {}", file.number));
    }
}

/// Map pages of a file by their places: PFS everywhere, the others once an interval.
fn check_map_types(database: &Database, file: &DataFile, findings: &mut Findings) {
    let mut base = 0;
    while base < file.pages() {
        let mut maps = vec![(base + 1, PageType::Pfs)];
        if base.is_multiple_of(INTERVAL_PAGES) {
            let interval = base / INTERVAL_PAGES;
            maps.extend([
                (layout::gam(interval), PageType::Gam),
                (layout::system_iam(interval), PageType::Iam),
                (layout::dcm(interval), PageType::Dcm),
                (layout::ml(interval), PageType::Ml),
            ]);
        }
        for (page, expected) in maps {
            let id = PageId { file: file.number, page };
            match database.store.read(id) {
                Ok(page) if header::page_type(&page) == Some(expected) && header::tree(&page) == TreeId(0) => {}
                Ok(page) => {
                    let detail = format!("expected {expected:?}, found {:?} of tree {}", header::page_type(&page), header::tree(&page).0);
                    findings.add(FindingKind::MapHeader, None, id, None, detail);
                }
                Err(error) => findings.add(FindingKind::Map, None, id, None, error.to_string()),
            }
        }
        base += PFS_PAGES;
    }
}
