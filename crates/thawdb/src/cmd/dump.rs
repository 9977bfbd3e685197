//! `thawdb dump-page` and `thawdb dump-log`: what is in a file of a closed database. Nothing is written.

use crate::args::{DumpLogArguments, DumpPageArguments};
use crate::cmd::Failure;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use thawdb_device::file::OpenMode;
use thawdb_device::{AlignedBuf, ReadRequest};
use thawdb_storage::PageId;
use thawdb_storage::log::Log;
use thawdb_storage::page::describe::{Detail, lines};
use thawdb_storage::page::{PAGE_BYTES, PageBytes, header};

/// `dump-page`.
pub fn run_page(arguments: &DumpPageArguments) -> Result<ExitCode, Failure> {
    let detail = match (arguments.header, arguments.bytes) {
        (true, _) => Detail::Header,
        (false, true) => Detail::Bytes,
        (false, false) => Detail::Entries,
    };
    page(&arguments.file, arguments.page, detail, &mut std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// `dump-log`.
pub fn run_log(arguments: &DumpLogArguments) -> Result<ExitCode, Failure> {
    log(&arguments.file, &mut std::io::BufWriter::new(std::io::stdout().lock()))?;
    Ok(ExitCode::SUCCESS)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_closed_database_are_shown() {
        let folder = std::env::temp_dir().join(format!("thawdb-dump-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, kind| thawdb_storage::FileSpec {
            name: name.into(),
            path: folder.join(name),
            kind,
            size_bytes: 4 << 20,
            size_bytes_max: None,
            growth_bytes: 1 << 20,
        };
        let files = vec![file("d.mdf", thawdb_storage::FileKind::Rows { filegroup: 1 }), file("d.ldf", thawdb_storage::FileKind::Log)];
        let config = thawdb_storage::StorageConfig { memory_bytes_max: 16 << 20 };
        let spec = thawdb_storage::DatabaseSpec { name: "d".into(), files, temporary: false };
        let database = thawdb_storage::Storage::new(thawdb_device::os::env(), config).create_database(&spec).unwrap();
        database.close().unwrap();
        drop(database);
        let mut shown = Vec::new();
        page(&folder.join("d.mdf"), 9, Detail::Bytes, &mut shown).unwrap();
        let text = String::from_utf8(shown).unwrap();
        assert!(text.starts_with("PAGE: (1:9)") && text.contains("m_type = 13 (Boot)") && text.contains("d.ldf"), "{text}");
        let mut shown = Vec::new();
        log(&folder.join("d.ldf"), &mut shown).unwrap();
        let text = String::from_utf8(shown).unwrap();
        assert!(text.starts_with("master: stamp") && text.contains("checkpoint, redo from") && text.contains("page 1:9"), "{text}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
