//! Runs on disk: blocks of rows with a checksum, described so that another process could take them up.
//!
//! ```text
//!   file:  run | run | run ...            run: block | block | ... (whole sectors, consecutive)
//!   block: magic u32 | version u16 | flags u16 | ordinal u32 | row_count u32 | used_bytes u32 | key_bytes u32
//!          | payload_bytes u32 | crc u32 | rows ... | zeros to the sector
//!   row:   key_length u32, payload_length u32 (absent with FLAG_FIXED), key, payload
//! ```
//! Invariants: 1. a block is written whole or is found broken by its CRC-32C, which covers header (with the field
//! zeroed) and rows. 2. ordinals count from 0 in each run, so blocks of a reused place do not pass. 3. Files are not
//! synced: a run outlives a crash only if the owner of the descriptors syncs first.
//! Failure: device errors pass through; content that fails a check is `Damage` with the file offset.

use super::SortOptions;
use super::rows::RowShape;
use crate::error::StorageError;
use crate::ids::PageId;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_device::{AlignedBuf, BlockFile, Env, OpenMode, ReadRequest, WriteRequest};

const SECTOR: usize = thawdb_device::file::SECTOR_BYTES;
const MAGIC: u32 = u32::from_le_bytes(*b"TRUN");
const VERSION: u16 = 1;
const FLAG_FIXED: u16 = 1;
const HEADER_BYTES: usize = 32;
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

pub(super) struct RunFile {
    env: Env,
    path: PathBuf,
    file: Arc<dyn BlockFile>,
    end: u64,
    length: u64,
    block_bytes: usize,
    memory_bytes_max: usize,
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
        Ok(Self { env: env.clone(), path, file, end: 0, length: 0, block_bytes, memory_bytes_max: options.memory_bytes_max })
    }

    /// Runs that can be merged at once within the memory bound.
    pub(super) fn way_count_max(&self) -> usize {
        (self.memory_bytes_max / self.block_bytes).clamp(4, 4096)
    }

    /// What merging `run_count` runs holds in blocks.
    pub(super) fn merge_bytes(&self, run_count: usize) -> usize {
        run_count * self.block_bytes
    }

    pub(super) fn begin_run(&self, shape: Option<RowShape>) -> RunWriter {
        RunWriter {
            shape,
            block: vec![0; HEADER_BYTES],
            rows_in_block: 0,
            run: RunDescriptor { offset: self.end, bytes: 0, block_count: 0, row_count: 0 },
        }
    }

    fn append(&mut self, block: &AlignedBuf) -> Result<(), StorageError> {
        let end = self.end + block.len() as u64;
        if end > self.length {
            self.length = end.next_multiple_of(GROWTH_BYTES.min((self.memory_bytes_max as u64).next_multiple_of(SECTOR as u64)));
            self.file.set_len(self.length)?;
        }
        self.file.write(&[WriteRequest { offset: self.end, buffer: block }])?;
        self.end = end;
        Ok(())
    }

    fn damage(&self, offset: u64, detail: String) -> StorageError {
        StorageError::Damage { page: PageId::NONE, offset, detail: format!("{}: {detail}", self.path.display()) }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // What cannot be removed now goes when the temp folder is emptied at the next start.
        let _ = self.env.device.remove(&self.path);
    }
}

/// Writes one run.
pub(super) struct RunWriter {
    shape: Option<RowShape>,
    block: Vec<u8>,
    rows_in_block: u32,
    run: RunDescriptor,
}

fn put(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn take(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("row lengths were checked at intake")
}

impl RunWriter {
    pub(super) fn push(&mut self, file: &mut RunFile, key: &[u8], payload: &[u8]) -> Result<(), StorageError> {
        let row_bytes = key.len() + payload.len() + if self.shape.is_some() { 0 } else { 8 };
        if self.rows_in_block > 0 && self.block.len() + row_bytes > file.block_bytes {
            self.flush(file)?;
        }
        match self.shape {
            Some((key_bytes, payload_bytes)) => {
                assert!(key.len() == key_bytes as usize && payload.len() == payload_bytes as usize, "rows have the run's shape");
            }
            None => {
                self.block.extend_from_slice(&narrow(key.len()).to_le_bytes());
                self.block.extend_from_slice(&narrow(payload.len()).to_le_bytes());
            }
        }
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(payload);
        self.rows_in_block += 1;
        Ok(())
    }

    fn flush(&mut self, file: &mut RunFile) -> Result<(), StorageError> {
        let used = self.block.len();
        put(&mut self.block, 0, MAGIC);
        let (key_bytes, payload_bytes) = self.shape.unwrap_or((0, 0));
        put(&mut self.block, 4, u32::from(VERSION) | (u32::from(if self.shape.is_some() { FLAG_FIXED } else { 0 }) << 16));
        put(&mut self.block, 8, self.run.block_count);
        put(&mut self.block, 12, self.rows_in_block);
        put(&mut self.block, 16, narrow(used));
        put(&mut self.block, 20, key_bytes);
        put(&mut self.block, 24, payload_bytes);
        put(&mut self.block, 28, 0);
        let crc = crc32c::crc32c(&self.block);
        put(&mut self.block, 28, crc);
        let mut sectors = AlignedBuf::zeroed(used.next_multiple_of(SECTOR));
        sectors[..used].copy_from_slice(&self.block);
        file.append(&sectors)?;
        self.run.bytes += sectors.len() as u64;
        self.run.block_count += 1;
        self.run.row_count += u64::from(self.rows_in_block);
        self.rows_in_block = 0;
        self.block.truncate(HEADER_BYTES);
        self.block[..HEADER_BYTES].fill(0);
        Ok(())
    }

    pub(super) fn finish(mut self, file: &mut RunFile) -> Result<RunDescriptor, StorageError> {
        if self.rows_in_block > 0 {
            self.flush(file)?;
        }
        Ok(self.run)
    }
}

/// Reads one run, a block at a time.
pub(super) struct RunReader {
    run: RunDescriptor,
    next_offset: u64,
    next_ordinal: u32,
    block: AlignedBuf,
    used: usize,
    at: usize,
    rows_left: u32,
    shape: Option<RowShape>,
    key: (usize, usize),
    payload: (usize, usize),
}

impl RunReader {
    pub(super) fn new(run: RunDescriptor) -> Self {
        let next_offset = run.offset;
        Self {
            run,
            next_offset,
            next_ordinal: 0,
            block: AlignedBuf::zeroed(0),
            used: 0,
            at: 0,
            rows_left: 0,
            shape: None,
            key: (0, 0),
            payload: (0, 0),
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.block[self.key.0..self.key.1]
    }

    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        &self.block[self.payload.0..self.payload.1]
    }

    /// Moves to the next row; false at the end.
    pub(super) fn advance(&mut self, file: &RunFile) -> Result<bool, StorageError> {
        if self.rows_left == 0 {
            if self.next_ordinal == self.run.block_count {
                return Ok(false);
            }
            self.load(file)?;
        }
        let (key_bytes, payload_bytes) = match self.shape {
            Some((key_bytes, payload_bytes)) => (key_bytes as usize, payload_bytes as usize),
            None => {
                if self.at + 8 > self.used {
                    return Err(file.damage(self.next_offset, "row beyond its block".into()));
                }
                let lengths = (take(&self.block, self.at) as usize, take(&self.block, self.at + 4) as usize);
                self.at += 8;
                lengths
            }
        };
        if self.used - self.at < key_bytes.saturating_add(payload_bytes) {
            return Err(file.damage(self.next_offset, "row beyond its block".into()));
        }
        self.key = (self.at, self.at + key_bytes);
        self.payload = (self.key.1, self.key.1 + payload_bytes);
        self.at = self.payload.1;
        self.rows_left -= 1;
        Ok(true)
    }

    fn load(&mut self, file: &RunFile) -> Result<(), StorageError> {
        let offset = self.next_offset;
        let run_end = self.run.offset + self.run.bytes;
        let usual = usize::try_from(run_end - offset).map_or(file.block_bytes, |left| left.min(file.block_bytes));
        if self.block.len() < usual {
            self.block = AlignedBuf::zeroed(file.block_bytes);
        }
        file.file.read(&mut [ReadRequest { offset, buffer: &mut self.block[..usual] }])?;
        if take(&self.block, 0) != MAGIC || take(&self.block, 4) & 0xFFFF != u32::from(VERSION) || take(&self.block, 8) != self.next_ordinal
        {
            return Err(file.damage(offset, format!("block {} of the run is not there", self.next_ordinal)));
        }
        let used = take(&self.block, 16) as usize;
        if used < HEADER_BYTES || offset + used as u64 > run_end {
            return Err(file.damage(offset, format!("block of {used} bytes")));
        }
        if used > usual {
            self.block = AlignedBuf::zeroed(used.next_multiple_of(SECTOR));
            file.file.read(&mut [ReadRequest { offset, buffer: &mut self.block }])?;
        }
        let expected = take(&self.block, 28);
        put(&mut self.block, 28, 0);
        let found = crc32c::crc32c(&self.block[..used]);
        if expected != found {
            return Err(file.damage(offset, format!("checksum expected {expected:#010x}, found {found:#010x}")));
        }
        self.shape = (take(&self.block, 4) >> 16 == u32::from(FLAG_FIXED)).then(|| (take(&self.block, 20), take(&self.block, 24)));
        self.rows_left = take(&self.block, 12);
        self.used = used;
        self.at = HEADER_BYTES;
        self.next_ordinal += 1;
        self.next_offset += used.next_multiple_of(SECTOR) as u64;
        Ok(())
    }
}
