//! The plain bytes of header pages: the boot page, file headers, IAM facts.
//!
//! ```text
//! boot page     96 stamp u64 | 104 first version u32 | 108 files u16 | 110.. zero | 352 trees' 1,024 bytes | 1376 files
//!   a file      number u16 | kind u8 (0 rows, 1 log) | 0 | filegroup u16 | name bytes u16 | path bytes u16
//!               | size u64 | greatest size u64 (0 unlimited) | growth u64 | name | path
//! file header   96 stamp u64 | 104 pages u32 | 108 file u16 | 110 filegroup u16
//! IAM page      96 file u16 | 98 filegroup u16 | 100 interval u32
//! ```
//!
//! Decoding takes hostile bytes: damage is an error.

use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::checksum::damage;
use crate::page::op::Decoder;
use crate::page::{PAGE_BYTES, PageBytes, PageOpError};
use crate::space::layout::BOOT;
use crate::spec::{FileKind, FileSpec};
use std::path::PathBuf;

/// First byte of the boot page's facts.
pub const BOOT_FACTS: u16 = 96;
/// First byte of the part of the boot page that belongs to the trees' half.
pub const BOOT_TREES: u16 = 352;
/// Bytes of that part.
pub const BOOT_TREES_BYTES: usize = 1024;
/// First byte of the table of files.
pub const BOOT_FILES: u16 = 1376;
/// First byte of a file header's facts.
pub const FILE_FACTS: u16 = 96;
/// First byte of an IAM page's facts.
pub const IAM_FACTS: u16 = 96;
/// Format that made the database.
pub const DATABASE_VERSION: u32 = 1;

const _: () = assert!(BOOT_TREES as usize + BOOT_TREES_BYTES == BOOT_FILES as usize);

/// What the boot page says.
#[derive(Debug, Clone)]
pub struct BootFacts {
    /// Random number that tells this database's files and log from any other's.
    pub stamp: u64,
    /// Every file: number (0 for the log) and as CREATE DATABASE named it.
    pub files: Vec<(u16, FileSpec)>,
}

/// What a file header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// The database's stamp.
    pub stamp: u64,
    /// Length in pages.
    pub pages: u32,
    /// File number.
    pub file: u16,
    /// Filegroup.
    pub filegroup: u16,
}

/// What an IAM page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IamFacts {
    /// File whose extents it maps.
    pub file: u16,
    /// Filegroup of the unit.
    pub filegroup: u16,
    /// Interval of that file.
    pub interval: u32,
}

impl BootFacts {
    /// The bytes at [`BOOT_FACTS`], and those at [`BOOT_FILES`].
    pub fn encode(&self) -> Result<(Vec<u8>, Vec<u8>), StorageError> {
        let mut facts = Vec::new();
        facts.extend_from_slice(&self.stamp.to_le_bytes());
        facts.extend_from_slice(&DATABASE_VERSION.to_le_bytes());
        facts.extend_from_slice(&in_u16(self.files.len())?.to_le_bytes());
        let mut table = Vec::new();
        for (number, spec) in &self.files {
            let (kind, filegroup) = match spec.kind {
                FileKind::Rows { filegroup } => (0, filegroup),
                FileKind::Log => (1, 0),
            };
            let path = spec.path.as_os_str().as_encoded_bytes();
            table.extend_from_slice(&number.to_le_bytes());
            table.extend_from_slice(&[kind, 0]);
            table.extend_from_slice(&filegroup.to_le_bytes());
            table.extend_from_slice(&in_u16(spec.name.len())?.to_le_bytes());
            table.extend_from_slice(&in_u16(path.len())?.to_le_bytes());
            for number in [spec.size_bytes, spec.size_bytes_max.unwrap_or(0), spec.growth_bytes] {
                table.extend_from_slice(&number.to_le_bytes());
            }
            table.extend_from_slice(spec.name.as_bytes());
            table.extend_from_slice(path);
        }
        let bytes_max = PAGE_BYTES - usize::from(BOOT_FILES);
        if table.len() > bytes_max {
            return Err(StorageError::TooLong { bytes: table.len(), bytes_max });
        }
        Ok((facts, table))
    }

    /// Reads the boot page.
    pub fn decode(page: &PageBytes) -> Result<Self, StorageError> {
        Self::read(page).map_err(|error| damage(BOOT, format!("boot page: {error:?}")))
    }

    fn read(page: &PageBytes) -> Result<Self, PageOpError> {
        let mut facts = Decoder(&page[usize::from(BOOT_FACTS)..]);
        let stamp = facts.u64()?;
        if facts.u32()? != DATABASE_VERSION {
            return Err(PageOpError::Malformed("made by an unknown version"));
        }
        let count = facts.u16()?;
        let mut table = Decoder(&page[usize::from(BOOT_FILES)..]);
        let files = (0..count).map(|_| read_file(&mut table)).collect::<Result<_, _>>()?;
        Ok(Self { stamp, files })
    }
}

fn in_u16(count: usize) -> Result<u16, StorageError> {
    u16::try_from(count).map_err(|_| StorageError::TooLong { bytes: count, bytes_max: usize::from(u16::MAX) })
}

fn read_file(table: &mut Decoder<'_>) -> Result<(u16, FileSpec), PageOpError> {
    let (number, kind) = (table.u16()?, table.u16()?);
    let filegroup = table.u16()?;
    let kind = match kind {
        0 => FileKind::Rows { filegroup },
        1 => FileKind::Log,
        _ => return Err(PageOpError::Malformed("unknown kind of file")),
    };
    let (name_bytes, path_bytes) = (table.u16()?, table.u16()?);
    let (size_bytes, size_bytes_max, growth_bytes) = (table.u64()?, table.u64()?, table.u64()?);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| PageOpError::Malformed("name of a file is no UTF-8"));
    let name = text(table.take(name_bytes)?)?;
    let path = PathBuf::from(text(table.take(path_bytes)?)?);
    let size_bytes_max = (size_bytes_max > 0).then_some(size_bytes_max);
    Ok((number, FileSpec { name, path, kind, size_bytes, size_bytes_max, growth_bytes }))
}

impl FileFacts {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        [&self.stamp.to_le_bytes()[..], &self.pages.to_le_bytes(), &self.file.to_le_bytes(), &self.filegroup.to_le_bytes()].concat()
    }

    /// Reads a file header.
    pub fn decode(page: &PageBytes) -> Self {
        let mut from = Decoder(&page[usize::from(FILE_FACTS)..]);
        let mut read = || Ok::<_, PageOpError>(Self { stamp: from.u64()?, pages: from.u32()?, file: from.u16()?, filegroup: from.u16()? });
        read().expect("a page is long enough")
    }
}

impl IamFacts {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        [&self.file.to_le_bytes()[..], &self.filegroup.to_le_bytes(), &self.interval.to_le_bytes()].concat()
    }

    /// Reads an IAM page.
    pub fn decode(page: &PageBytes) -> Self {
        let mut from = Decoder(&page[usize::from(IAM_FACTS)..]);
        let mut read = || Ok::<_, PageOpError>(Self { file: from.u16()?, filegroup: from.u16()?, interval: from.u32()? });
        read().expect("a page is long enough")
    }
}

/// The file header of file `number`.
pub const fn file_header(number: u16) -> PageId {
    PageId { file: number, page: crate::space::layout::FILE_HEADER_PAGE }
}
