//! Runs on disk: blocks of rows with a checksum, described so that another process could take them up.
//!
//! ```text
//!   file:  run | run | run ...            run: block | block | ... (whole sectors, consecutive)
//!   block: magic u32 | version u32 | ordinal u32 | used_bytes u32 | crc u32 | rows, as `block` encodes them | zeros to the sector
//! ```
//! Invariants: 1. a block is written whole or is found broken by its CRC-32C, which covers header (with the field
//! zeroed) and rows. 2. ordinals count from 0 in each run, so blocks of a reused place do not pass. 3. Files are not
//! synced: a run outlives a crash only if the owner of the descriptors syncs first.
//! Failure: device errors pass through; content that fails a check is `Damage` with the file offset.

use super::SortOptions;
use super::block::RunBlock;
use super::merge::RunReader;
use crate::error::StorageError;
use crate::ids::PageId;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_device::{AlignedBuf, BlockFile, Env, OpenMode, ReadRequest, WriteRequest};

const SECTOR: usize = thawdb_device::file::SECTOR_BYTES;
const MAGIC: u32 = u32::from_le_bytes(*b"TRUN");
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 20;
/// Largest usual block: one request that keeps a disk at full bandwidth.
const BLOCK_BYTES_MAX: usize = 256 << 10;
/// File grows by this much at a time, so that its length is not changed with every block.
const GROWTH_BYTES: u64 = 64 << 20;

/// Where a run lies and what it must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDescriptor {
    /// Byte offset of its first block in the file.
    pub offset: u64,
    /// Bytes of all its blocks.
    pub bytes: u64,
    /// Blocks.
    pub block_count: u32,
    /// Rows.
    pub row_count: u64,
}

/// Where the file is; it is removed with the last who holds this.
struct RunPlace {
    env: Env,
    path: PathBuf,
    file: Arc<dyn BlockFile>,
    block_bytes: usize,
}

impl RunPlace {
    fn damage(&self, offset: u64, detail: impl std::fmt::Display) -> StorageError {
        StorageError::Damage { page: PageId::NONE, offset, detail: format!("{}: {detail}", self.path.display()) }
    }
}

impl Drop for RunPlace {
    fn drop(&mut self) {
        // What cannot be removed now goes when the temp folder is emptied at the next start.
        let _ = self.env.device.remove(&self.path);
    }
}

/// A file of runs that is being written.
pub(super) struct RunFile {
    place: Arc<RunPlace>,
    end: u64,
    length: u64,
    memory_bytes_max: usize,
    /// Bytes of the block being written.
    buffer: Vec<u8>,
}

impl RunFile {
    pub(super) fn create(env: &Env, options: &SortOptions) -> Result<Self, StorageError> {
        env.device.create_folder(&options.temp_folder)?;
        let mut random = [0; 16];
        env.random.fill(&mut random);
        let name: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let path = options.temp_folder.join(format!("sort-{name}.run"));
        let file = env.device.open(&path, OpenMode::CreateNew)?;
        // A sixteenth of the memory each lets fifteen runs merge at once even with the least memory.
        let block_bytes = (options.memory_bytes_max / 16).next_multiple_of(SECTOR).clamp(SECTOR, BLOCK_BYTES_MAX);
        let place = Arc::new(RunPlace { env: env.clone(), path, file, block_bytes });
        Ok(Self { place, end: 0, length: 0, memory_bytes_max: options.memory_bytes_max, buffer: Vec::new() })
    }

    /// Runs that can be merged at once within the memory bound.
    pub(super) fn way_count_max(&self) -> usize {
        (self.memory_bytes_max / self.place.block_bytes).clamp(4, 4096)
    }

    /// Bytes of rows, as `block` stores them, that make a block of the usual size.
    pub(super) fn rows_bytes(&self) -> usize {
        self.place.block_bytes - HEADER_BYTES
    }

    /// The run that begins here.
    pub(super) fn begin_run(&self) -> RunDescriptor {
        RunDescriptor { offset: self.end, bytes: 0, block_count: 0, row_count: 0 }
    }

    /// Writes the next block of a run.
    pub(super) fn write(&mut self, run: &mut RunDescriptor, block: &RunBlock) -> Result<(), StorageError> {
        self.buffer.clear();
        self.buffer.resize(HEADER_BYTES, 0);
        block.encode(&mut self.buffer);
        let used = self.buffer.len();
        put(&mut self.buffer, 0, MAGIC);
        put(&mut self.buffer, 4, VERSION);
        put(&mut self.buffer, 8, run.block_count);
        put(&mut self.buffer, 12, u32::try_from(used).expect("a block is small, and a row below half of 4 GiB"));
        let crc = crc32c::crc32c(&self.buffer);
        put(&mut self.buffer, 16, crc);
        let mut sectors = AlignedBuf::zeroed(used.next_multiple_of(SECTOR));
        sectors[..used].copy_from_slice(&self.buffer);
        self.append(&sectors)?;
        run.bytes += sectors.len() as u64;
        run.block_count += 1;
        run.row_count += block.len() as u64;
        Ok(())
    }

    fn append(&mut self, block: &AlignedBuf) -> Result<(), StorageError> {
        let end = self.end + block.len() as u64;
        if end > self.length {
            self.length = end.next_multiple_of(GROWTH_BYTES.min((self.memory_bytes_max as u64).next_multiple_of(SECTOR as u64)));
            self.place.file.set_len(self.length)?;
        }
        self.place.file.write(&[WriteRequest { offset: self.end, buffer: block }])?;
        self.end = end;
        Ok(())
    }

    /// Reads a run.
    pub(super) fn reader(&self, run: RunDescriptor) -> FileReader {
        FileReader { place: self.place.clone(), next_offset: run.offset, next_ordinal: 0, run }
    }
}

fn put(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn take(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

/// Reads one run, a block at a time.
pub(super) struct FileReader {
    place: Arc<RunPlace>,
    run: RunDescriptor,
    next_offset: u64,
    next_ordinal: u32,
}

impl FileReader {
    /// The bytes of the next block.
    fn load(&self) -> Result<(AlignedBuf, usize), StorageError> {
        let offset = self.next_offset;
        let left = self.run.offset + self.run.bytes - offset;
        let usual = usize::try_from(left).map_or(self.place.block_bytes, |left| left.min(self.place.block_bytes));
        let mut block = AlignedBuf::zeroed(usual);
        self.place.file.read(&mut [ReadRequest { offset, buffer: &mut block }])?;
        if (take(&block, 0), take(&block, 4), take(&block, 8)) != (MAGIC, VERSION, self.next_ordinal) {
            return Err(self.place.damage(offset, format_args!("block {} of the run is not there", self.next_ordinal)));
        }
        let used = take(&block, 12) as usize;
        if used < HEADER_BYTES || used as u64 > left {
            return Err(self.place.damage(offset, format_args!("block of {used} bytes")));
        }
        if used > usual {
            block = AlignedBuf::zeroed(used.next_multiple_of(SECTOR));
            self.place.file.read(&mut [ReadRequest { offset, buffer: &mut block }])?;
        }
        let expected = take(&block, 16);
        put(&mut block, 16, 0);
        let found = crc32c::crc32c(&block[..used]);
        if expected != found {
            return Err(self.place.damage(offset, format_args!("checksum expected {expected:#010x}, found {found:#010x}")));
        }
        Ok((block, used))
    }
}

impl RunReader for FileReader {
    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        if self.next_ordinal == self.run.block_count {
            return Ok(None);
        }
        let (bytes, used) = self.load()?;
        let block = RunBlock::decode(&bytes[HEADER_BYTES..used]).map_err(|detail| self.place.damage(self.next_offset, detail))?;
        if block.is_empty() {
            return Err(self.place.damage(self.next_offset, "block without rows"));
        }
        self.next_ordinal += 1;
        self.next_offset += used.next_multiple_of(SECTOR) as u64;
        Ok(Some(block))
    }
}
