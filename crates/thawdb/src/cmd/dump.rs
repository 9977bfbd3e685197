//! `thawdb dump-page` and `thawdb dump-log`: what is in a file of a closed database. Nothing is written.

use crate::cmd::Failure;
use std::io::Write;
use std::path::Path;
use thawdb_device::file::OpenMode;
use thawdb_device::{AlignedBuf, ReadRequest};
use thawdb_storage::PageId;
use thawdb_storage::log::Log;
use thawdb_storage::page::describe::{Detail, lines};
use thawdb_storage::page::{PAGE_BYTES, PageBytes, header};

/// Writes a page of a data file.
pub fn page(path: &Path, number: u32, detail: Detail, out: &mut dyn Write) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::of(path.display(), error);
    let file = thawdb_device::os::env().device.open(path, OpenMode::ReadOnly).map_err(|e| failed(&e))?;
    let mut buffer = AlignedBuf::zeroed(PAGE_BYTES);
    let offset = u64::from(number) * PAGE_BYTES as u64;
    file.read(&mut [ReadRequest { offset, buffer: &mut buffer }]).map_err(|e| failed(&e))?;
    let page: &PageBytes = buffer.first_chunk().expect("one page");
    // Which file of the database it is, the page itself says; that it stands at the right place is checked.
    let id = PageId { file: header::page_id(page).file, page: number };
    for line in lines(page, id, detail) {
        writeln!(out, "{line}")?;
    }
    if let Err(error) = thawdb_storage::page::checksum::verify(page, id) {
        writeln!(out, "{error}")?;
    }
    Ok(())
}

/// Writes a log file.
pub fn log(path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let file = thawdb_device::os::env().device.open(path, OpenMode::ReadOnly).map_err(|e| Failure::of(path.display(), e))?;
    let mut written = Ok(());
    let outcome = Log::dump(file, &mut |line| {
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    });
    written?;
    outcome.map_err(|error| Failure::of(path.display(), error))
}
