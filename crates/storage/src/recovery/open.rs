//! Opening: boot page, log, analysis, files.

use super::places::Places;
use super::{PendingState, RecoveryListener};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::{Log, MasterRecord, ScanStart};
use crate::page::checksum::{Content, damage};
use crate::page::{PAGE_BYTES, PageBytes, checksum, header};
use crate::pool::Pool;
use crate::record::{self, LooseChange, LooseParts, Record};
use crate::space::layout::{BOOT, DOUBLEWRITE_PAGE, DOUBLEWRITE_PAGES, EXTENT_PAGES};
use crate::spec::{FileKind, FileSpec};
use crate::store::Store;
use crate::store::boot::{BootFacts, FileFacts, file_header};
use crate::store::create::log_config;
use crate::store::file::DataFile;
use crate::store::loose::LoosePart;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use thawdb_device::{AlignedBuf, BlockFile, DeviceErrorKind, Env, OpenMode, ReadRequest};

type Copies = BTreeMap<PageId, Box<PageBytes>>;

impl Store {
    /// Opens a database by its primary file, after a clean shutdown or a crash. Its work is reading the log from the last
    /// checkpoint on: pages are redone when they are touched ([`Store::redo_step`] goes through the rest).
    pub fn open(
        pool: &Arc<Pool>,
        env: &Env,
        name: &str,
        number: u32,
        primary: &Path,
        listener: &mut dyn RecoveryListener,
    ) -> Result<Arc<Self>, StorageError> {
        let device = env.device.open(primary, OpenMode::Existing)?;
        let copies = read_copies(&*device)?;
        let facts = read_boot(&*device, &copies)?;
        let (_, log_spec) = facts
            .files
            .iter()
            .find(|(_, spec)| spec.kind == FileKind::Log)
            .ok_or_else(|| damage(BOOT, "the boot page names no log".into()))?;
        let log_file = env.device.open(&Places::of(env, primary, &facts).find(&log_spec.path), OpenMode::Existing)?;
        let (log, master) = Log::open(log_file, log_config(log_spec), facts.stamp)?;
        let (state, loose) = analyse(&log, &master, copies, listener)?;
        let store = Self::assemble(name, number, env, pool, Some(log));
        store.checkpoints.found(master.checkpoint, master.scan_from);
        store.pending.fill(state);
        store.loose.fill(loose.parts());
        if let Some((number, spec)) = facts.files.iter().find(|(number, _)| *number == BOOT.file) {
            let spec = FileSpec { path: primary.into(), ..spec.clone() };
            store.open_data_file(*number, 1, &spec, device.clone(), facts.stamp)?;
        }
        // The boot page with what the log adds to it: files that came or went since it was written.
        let mut facts = BootFacts::decode(&*store.read(BOOT)?)?;
        store.relocated.fill(&Places::of(env, primary, &facts), &facts);
        store.relocated.apply(&mut facts);
        for (number, spec) in facts.files.iter().filter(|(number, _)| *number != BOOT.file) {
            if let FileKind::Rows { filegroup } = spec.kind {
                let device = env.device.open(&spec.path, OpenMode::Existing)?;
                store.open_data_file(*number, filegroup, spec, device, facts.stamp)?;
            }
        }
        Ok(store)
    }

    fn open_data_file(
        &self,
        number: u16,
        filegroup: u16,
        spec: &FileSpec,
        device: Arc<dyn BlockFile>,
        stamp: u64,
    ) -> Result<(), StorageError> {
        let length = device.len_bytes()? / PAGE_BYTES as u64;
        let there = u32::try_from(length).unwrap_or(u32::MAX) / EXTENT_PAGES * EXTENT_PAGES;
        self.add_file(DataFile::new(number, filegroup, spec.clone(), device.clone(), self.register(number), there))?;
        let facts = FileFacts::decode(&*self.read(file_header(number))?);
        if (facts.stamp, facts.file) != (stamp, number) {
            return Err(damage(file_header(number), format!("the file belongs to database {:#x}, file {}", facts.stamp, facts.file)));
        }
        if facts.pages > there {
            // It was longer when the header was written: the file system lost the length, or somebody cut the file.
            device.set_len(u64::from(facts.pages) * PAGE_BYTES as u64)?;
        }
        self.file(number)?.set_pages(facts.pages);
        self.space.set_file(number, filegroup, facts.pages);
        Ok(())
    }
}

/// Whole pages in the doublewrite region, the newest of each.
pub(super) fn read_copies(device: &dyn BlockFile) -> Result<Copies, StorageError> {
    let mut buffer = AlignedBuf::zeroed(DOUBLEWRITE_PAGES as usize * PAGE_BYTES);
    let read = device.read(&mut [ReadRequest { offset: u64::from(DOUBLEWRITE_PAGE) * PAGE_BYTES as u64, buffer: &mut buffer }]);
    match read {
        Err(error) if error.kind == DeviceErrorKind::EndOfFile => return Err(damage(BOOT, "the file is shorter than any database".into())),
        other => other?,
    }
    let mut copies = Copies::new();
    for at in 0..DOUBLEWRITE_PAGES as usize {
        let page: &PageBytes = buffer[at * PAGE_BYTES..].first_chunk().expect("the buffer holds the region");
        let id = header::page_id(page);
        if checksum::verify(page, id).is_ok_and(|content| content == Content::Whole)
            && copies.get(&id).is_none_or(|other| header::lsn(other) < header::lsn(page))
        {
            copies.insert(id, Box::new(*page));
        }
    }
    Ok(copies)
}

/// The boot page as the device has it: older than the log perhaps, but files are only added with a checkpoint.
fn read_boot(device: &dyn BlockFile, copies: &Copies) -> Result<BootFacts, StorageError> {
    let mut buffer = AlignedBuf::zeroed(PAGE_BYTES);
    device.read(&mut [ReadRequest { offset: u64::from(BOOT.page) * PAGE_BYTES as u64, buffer: &mut buffer }])?;
    let page: &PageBytes = buffer.first_chunk().expect("one page");
    match checksum::verify(page, BOOT) {
        Ok(Content::Whole) => BootFacts::decode(page),
        Ok(Content::Blank) => Err(damage(BOOT, "the boot page was never written: the database was not made to its end".into())),
        Err(broken) => copies.get(&BOOT).map_or(Err(broken), |copy| BootFacts::decode(copy)),
    }
}

/// What the log says of loose large parts.
#[derive(Default)]
struct LooseAnalysis {
    image: BTreeSet<LoosePart>,
    /// What the last record says of a part: whether it is loose.
    changed: BTreeMap<LoosePart, bool>,
}

impl LooseAnalysis {
    fn record(&mut self, record: &LooseParts<'_>) {
        for part in record.parts() {
            match record.change {
                LooseChange::Image => drop(self.image.insert(part)),
                LooseChange::Loose => drop(self.changed.insert(part, true)),
                LooseChange::Held => drop(self.changed.insert(part, false)),
            }
        }
    }

    fn parts(mut self) -> BTreeSet<LoosePart> {
        for (part, is_loose) in self.changed {
            if is_loose {
                self.image.insert(part)
            } else {
                self.image.remove(&part)
            };
        }
        self.image
    }
}

fn analyse(
    log: &Arc<Log>,
    master: &MasterRecord,
    copies: Copies,
    listener: &mut dyn RecoveryListener,
) -> Result<(PendingState, LooseAnalysis), StorageError> {
    let mut state = PendingState { copies, ..PendingState::default() };
    let mut loose = LooseAnalysis::default();
    let checkpoint = master.opaque.first_chunk().map_or(Lsn(0), |lsn| Lsn(u64::from_le_bytes(*lsn)));
    let (redo_from, logical_from) = match checkpoint {
        Lsn(0) => {
            listener.table(&[]);
            (Lsn(0), Lsn(0))
        }
        checkpoint => read_checkpoint(log, checkpoint, listener)?,
    };
    let scan = match master.scan_start() {
        // Before the first checkpoint everything is looked through.
        ScanStart { at: Lsn(0), .. } => ScanStart { at: redo_from.min(logical_from), incarnation: 0 },
        scan => scan,
    };
    let mut reader = log.reader_at(scan, scan.at)?;
    while let Some((lsn, bytes)) = reader.next_record()? {
        match record::decode(bytes) {
            Ok(Record::Page(record)) => state.add(record.page, lsn, lsn),
            Ok(Record::Logical(payload)) if lsn >= logical_from => listener.record(lsn, payload),
            Ok(Record::Dirty(pages)) if lsn >= logical_from && lsn < checkpoint => {
                pages.pages().for_each(|(page, oldest, newest)| state.add(page, oldest, newest));
            }
            // An image after the checkpoint is that of one that did not come to its end.
            Ok(Record::Loose(parts)) if lsn >= logical_from && (parts.change != LooseChange::Image || lsn < checkpoint) => {
                loose.record(&parts);
            }
            Ok(_) => {}
            Err(error) => return Err(damage(PageId::NONE, format!("log record {:#x}: {error:?}", lsn.0))),
        }
    }
    Ok((state, loose))
}

fn read_checkpoint(log: &Log, lsn: Lsn, listener: &mut dyn RecoveryListener) -> Result<(Lsn, Lsn), StorageError> {
    let mut bytes = Vec::new();
    log.read(lsn, &mut bytes)?;
    match record::decode(&bytes) {
        Ok(Record::Checkpoint(checkpoint)) => {
            listener.table(checkpoint.transactions);
            Ok((checkpoint.redo_from, checkpoint.logical_from))
        }
        other => Err(damage(PageId::NONE, format!("the master record names {:#x} as checkpoint, there is {other:?}", lsn.0))),
    }
}
