//! Backup files: one after another in a medium, each checksummed throughout. Restoring them comes later; reading back and
//! verifying is here.
//!
//! ```text
//! medium   header A (sector 0) | header B (sector 1) | set | set | ...        all little-endian, sectors of 4,096 bytes
//! header   magic u32 | crc u32 | sequence u64 | end u64 | sets u32 | zero      the higher sequence of two whole ones counts
//! set      blocks, each beginning on a sector: begin, then pages and log, then end
//! block    magic u32 | crc u32 | kind u8 | zero 3 | set u32 | a u64 | b u64 | bytes u32 | zero 4 | bytes | zero to the sector
//!          kind 1 begin: a = stamp of the database, bytes = kind of backup u8 (1 database, 2 log), name, in UTF-8
//!          kind 2 pages: a = file number, b = first page number, bytes = pages of 8,192 bytes
//!          kind 3 log:   a = LSN of the block, bytes = the log's block
//!          kind 4 end:   a = first LSN, b = last LSN
//! ```
//! A crc is CRC-32C of all the structure's bytes after it, up to the last of `bytes`.
//!
//! 1. A set counts only if the medium's header says so, and that is written after all of the set is durable
//!    ([`BackupMedium::finish`]): a backup that a crash cut short never was.
//! 2. What is discarded (`NUL`) goes through everything but the writes ([`BackupMedium::null`]).
//!
//! Failure: the device's errors; a medium that is none is `Damage`.

use std::path::Path;
use std::sync::Arc;
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, BlockFile, Env, OpenMode, ReadRequest, WriteRequest};
use thawdb_storage::store::data_backup::BackupSink;
use thawdb_storage::{Lsn, PageId, StorageError};

const HEADER_MAGIC: u32 = u32::from_le_bytes(*b"TBM1");
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"TBB1");
const BLOCK_HEADER_BYTES: usize = 40;
/// First byte behind the two headers.
const SETS_START: u64 = 2 * SECTOR_BYTES as u64;
/// Bytes gathered before they are written: enough for the disk's sequential speed.
const WRITE_BYTES: usize = 4 << 20;
/// Step in which the file is made longer.
const GROWTH_BYTES: u64 = 64 << 20;
/// Longest block believed when reading: a run of pages or the largest block of log, with room to spare.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// What a backup is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupOf {
    /// A database.
    Database,
    /// Its log.
    Log,
}

/// One block of a set, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupBlock {
    /// The set's beginning.
    Begin {
        /// Stamp of the database.
        stamp: u64,
        /// What it is of.
        of: BackupOf,
        /// The database's name.
        name: String,
    },
    /// Pages.
    Pages(PageId, Vec<u8>),
    /// A block of log.
    Log(Lsn, Vec<u8>),
    /// The set's end.
    End(Lsn, Lsn),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    sequence: u64,
    end: u64,
    sets: u32,
}

/// Where a backup goes.
pub struct BackupMedium {
    file: Option<Arc<dyn BlockFile>>,
    header: Header,
    at: u64,
    length: u64,
    pending: Vec<u8>,
    /// Bytes of content taken, padding and headers apart.
    pub content_bytes: u64,
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn damage(offset: u64, detail: &str) -> StorageError {
    StorageError::Damage { page: PageId::NONE, offset, detail: format!("backup file: {detail}") }
}

impl Header {
    fn encode(self) -> AlignedBuf {
        let mut sector = AlignedBuf::zeroed(SECTOR_BYTES);
        put_u32(&mut sector, 0, HEADER_MAGIC);
        put_u64(&mut sector, 8, self.sequence);
        put_u64(&mut sector, 16, self.end);
        put_u32(&mut sector, 24, self.sets);
        let crc = crc32c::crc32c(&sector[8..]);
        put_u32(&mut sector, 4, crc);
        sector
    }

    fn decode(sector: &[u8]) -> Option<Self> {
        let whole = get_u32(sector, 0) == HEADER_MAGIC && get_u32(sector, 4) == crc32c::crc32c(&sector[8..SECTOR_BYTES]);
        whole.then(|| Self { sequence: get_u64(sector, 8), end: get_u64(sector, 16), sets: get_u32(sector, 24) })
    }

    fn read(file: &dyn BlockFile) -> Result<Self, StorageError> {
        let mut sectors = AlignedBuf::zeroed(2 * SECTOR_BYTES);
        if file.len_bytes()? < SETS_START {
            return Err(damage(0, "it is shorter than its header"));
        }
        file.read(&mut [ReadRequest { offset: 0, buffer: &mut sectors }])?;
        let copies = sectors.chunks_exact(SECTOR_BYTES).filter_map(Self::decode);
        copies.max_by_key(|header| header.sequence).ok_or_else(|| damage(0, "both copies of its header are damaged"))
    }
}

impl BackupMedium {
    /// Discards everything.
    pub fn null() -> Self {
        let header = Header { sequence: 0, end: SETS_START, sets: 0 };
        Self { file: None, header, at: SETS_START, length: 0, pending: Vec::new(), content_bytes: 0 }
    }

    /// A file: a new one, or behind the sets it has; with `afresh` what it has is given up.
    pub fn open(env: &Env, path: &Path, afresh: bool) -> Result<Self, StorageError> {
        let exists = env.device.exists(path);
        let file = env.device.open(path, if exists { OpenMode::Existing } else { OpenMode::CreateNew })?;
        let old = if exists { Header::read(&*file) } else { Ok(Header { sequence: 0, end: SETS_START, sets: 0 }) };
        let header = match old {
            Ok(header) if afresh => Header { end: SETS_START, sets: 0, ..header },
            Err(_) if afresh => Header { sequence: 0, end: SETS_START, sets: 0 },
            other => other?,
        };
        let length = file.len_bytes()?;
        let mut medium = Self { file: Some(file), header, at: header.end, length, pending: Vec::new(), content_bytes: 0 };
        if !exists || afresh {
            medium.set_length(GROWTH_BYTES)?;
            // Both copies: an old one must not come back.
            medium.write_header()?;
            medium.write_header()?;
        }
        Ok(medium)
    }

    fn set_length(&mut self, length: u64) -> Result<(), StorageError> {
        if let Some(file) = &self.file {
            file.set_len(length)?;
            self.length = length;
        }
        Ok(())
    }

    fn write_header(&mut self) -> Result<(), StorageError> {
        self.header.sequence += 1;
        if let Some(file) = &self.file {
            let sector = self.header.encode();
            let offset = (self.header.sequence % 2) * SECTOR_BYTES as u64;
            file.write(&[WriteRequest { offset, buffer: &sector }])?;
            file.sync()?;
        }
        Ok(())
    }

    /// Number of the set being written, from 1.
    pub fn set_number(&self) -> u32 {
        self.header.sets + 1
    }

    fn block(&mut self, kind: u8, a: u64, b: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.content_bytes += bytes.len() as u64;
        if self.file.is_none() {
            return Ok(());
        }
        let start = self.pending.len();
        self.pending.resize(start + BLOCK_HEADER_BYTES, 0);
        self.pending.extend_from_slice(bytes);
        let set = self.set_number();
        let block = &mut self.pending[start..];
        put_u32(block, 0, BLOCK_MAGIC);
        block[8] = kind;
        put_u32(block, 12, set);
        put_u64(block, 16, a);
        put_u64(block, 24, b);
        put_u32(block, 32, u32::try_from(bytes.len()).map_err(|_| damage(self.at, "a block of four gigabytes"))?);
        let crc = crc32c::crc32c(&block[8..]);
        put_u32(block, 4, crc);
        let padded = self.pending.len().next_multiple_of(SECTOR_BYTES);
        self.pending.resize(padded, 0);
        if self.pending.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        let end = self.at + self.pending.len() as u64;
        if end > self.length {
            self.set_length(end.next_multiple_of(GROWTH_BYTES))?;
        }
        let mut buffer = AlignedBuf::zeroed(self.pending.len());
        buffer.copy_from_slice(&self.pending);
        file.write(&[WriteRequest { offset: self.at, buffer: &buffer }])?;
        self.at = end;
        self.pending.clear();
        Ok(())
    }

    /// Begins a set.
    pub fn begin(&mut self, of: BackupOf, stamp: u64, name: &str) -> Result<(), StorageError> {
        let mut bytes = vec![if of == BackupOf::Database { 1 } else { 2 }];
        bytes.extend_from_slice(name.as_bytes());
        self.block(1, stamp, 0, &bytes)
    }
}

impl BackupSink for BackupMedium {
    fn pages(&mut self, first: PageId, bytes: &[u8]) -> Result<(), StorageError> {
        self.block(2, u64::from(first.file), u64::from(first.page), bytes)
    }

    fn log(&mut self, at: Lsn, bytes: &[u8]) -> Result<(), StorageError> {
        self.block(3, at.0, 0, bytes)
    }

    /// Ends the set: it counts from here on.
    fn finish(&mut self, first: Lsn, last: Lsn) -> Result<(), StorageError> {
        self.block(4, first.0, last.0, &[])?;
        let number = self.set_number();
        self.flush()?;
        if let Some(file) = self.file.clone() {
            self.set_length(self.at)?;
            file.sync()?;
            self.header.end = self.at;
            self.header.sets = number;
            self.write_header()?;
        }
        Ok(())
    }
}

/// Reads every block of every set of a medium, verified, in order.
pub fn read_medium(env: &Env, path: &Path, take: &mut dyn FnMut(u32, BackupBlock)) -> Result<u32, StorageError> {
    let file = env.device.open(path, OpenMode::ReadOnly)?;
    let header = Header::read(&*file)?;
    let mut at = SETS_START;
    while at < header.end {
        let mut sector = AlignedBuf::zeroed(SECTOR_BYTES);
        file.read(&mut [ReadRequest { offset: at, buffer: &mut sector }])?;
        let length = get_u32(&sector, 32) as usize;
        if get_u32(&sector, 0) != BLOCK_MAGIC || length > BLOCK_BYTES_MAX {
            return Err(damage(at, "no block where one begins"));
        }
        let whole = BLOCK_HEADER_BYTES + length;
        let padded = whole.next_multiple_of(SECTOR_BYTES);
        if at + padded as u64 > header.end {
            return Err(damage(at, "a block reaches beyond the last set"));
        }
        let mut block = AlignedBuf::zeroed(padded);
        file.read(&mut [ReadRequest { offset: at, buffer: &mut block }])?;
        if get_u32(&block, 4) != crc32c::crc32c(&block[8..whole]) {
            return Err(damage(at, "a block does not match its checksum"));
        }
        let decoded = decode(&block[..whole]).ok_or_else(|| damage(at, "a block of an unknown kind"))?;
        take(get_u32(&block, 12), decoded);
        at += padded as u64;
    }
    Ok(header.sets)
}

fn decode(block: &[u8]) -> Option<BackupBlock> {
    let (a, b, bytes) = (get_u64(block, 16), get_u64(block, 24), &block[BLOCK_HEADER_BYTES..]);
    Some(match block[8] {
        1 => {
            let of = if *bytes.first()? == 1 { BackupOf::Database } else { BackupOf::Log };
            BackupBlock::Begin { stamp: a, of, name: String::from_utf8(bytes[1..].to_vec()).ok()? }
        }
        2 => BackupBlock::Pages(PageId { file: u16::try_from(a).ok()?, page: u32::try_from(b).ok()? }, bytes.to_vec()),
        3 => BackupBlock::Log(Lsn(a), bytes.to_vec()),
        4 => BackupBlock::End(Lsn(a), Lsn(b)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_device::sim::Simulation;

    fn add(env: &Env, afresh: bool, number: u8) -> u32 {
        let mut medium = BackupMedium::open(env, Path::new("/b.bak"), afresh).unwrap();
        medium.begin(BackupOf::Log, 7, "d").unwrap();
        medium.log(Lsn(100), &[number; 5000]).unwrap();
        medium.pages(PageId { file: 3, page: 8 }, &[number; 8192]).unwrap();
        let number = medium.set_number();
        medium.finish(Lsn(100), Lsn(5100)).unwrap();
        number
    }

    fn blocks(env: &Env) -> Result<Vec<(u32, BackupBlock)>, StorageError> {
        let mut found = Vec::new();
        read_medium(env, Path::new("/b.bak"), &mut |set, block| found.push((set, block)))?;
        Ok(found)
    }

    #[test]
    fn sets_follow_each_other_are_read_back_and_a_flipped_bit_shows() {
        let world = Simulation::with_seed(1);
        let env = world.env();
        assert_eq!((add(&env, false, 1), add(&env, false, 2)), (1, 2));
        let found = blocks(&env).unwrap();
        assert_eq!(found.len(), 8);
        assert_eq!(found[5], (2, BackupBlock::Log(Lsn(100), vec![2; 5000])));
        assert_eq!(found[7], (2, BackupBlock::End(Lsn(100), Lsn(5100))));
        world.flip_bit(Path::new("/b.bak"), SETS_START + SECTOR_BYTES as u64 + 99, 3).unwrap();
        assert!(blocks(&env).is_err());
        assert_eq!(add(&env, true, 3), 1, "INIT begins again");
        assert_eq!(blocks(&env).unwrap().len(), 4);
    }

    #[test]
    fn a_backup_cut_short_never_was() {
        let world = Simulation::with_seed(2);
        let env = world.env();
        add(&env, false, 1);
        let mut medium = BackupMedium::open(&env, Path::new("/b.bak"), false).unwrap();
        medium.begin(BackupOf::Log, 7, "d").unwrap();
        medium.log(Lsn(1), &[9; 9 << 20]).unwrap();
        drop(medium);
        world.crash();
        world.restart();
        let env = world.env();
        assert_eq!(blocks(&env).unwrap().len(), 4);
        assert_eq!(add(&env, false, 2), 2);
        assert_eq!(blocks(&env).unwrap().len(), 8);
    }
}
