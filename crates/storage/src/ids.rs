//! Newtypes of the identifiers that cross rooms; bare integers do not.

/// A page: file number within the database (from 1) and page number within the file (from 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    /// File number, from 1; 0 only in [`PageId::NONE`].
    pub file: u16,
    /// Page number in the file.
    pub page: u32,
}

impl PageId {
    /// No page.
    pub const NONE: Self = Self { file: 0, page: 0 };
}

/// A position in the log, in bytes since the database was created; never repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lsn(pub u64);

/// A transaction; given at its first write, rising for ever. 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TxnId(pub u64);

/// A tree: its allocation unit's number, unique in the database for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(pub u64);

/// Where a large part of a row lies, opaque to all but `storage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LargeRef(pub [u8; 16]);

impl LargeRef {
    /// The page that leads to the part; [`PageId::NONE`] for one without bytes.
    pub(crate) fn page(self) -> PageId {
        let bytes = self.0;
        PageId { file: u16::from_le_bytes([bytes[0], bytes[1]]), page: u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]) }
    }

    /// The references in a run of them.
    pub(crate) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.chunks_exact(size_of::<Self>()).map(|part| Self(part.try_into().expect("chunks of sixteen")))
    }
}

/// A place in the log as people read it: number of the VLF, 512-byte block in it, byte in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogPoint {
    /// Number of the VLF's use.
    pub number: u32,
    /// Block of 512 bytes within it.
    pub block: u32,
    /// Byte within the block.
    pub slot: u16,
}

impl LogPoint {
    /// As the management views write it.
    pub fn hex(&self) -> String {
        format!("{:08x}:{:08x}:{:04x}", self.number, self.block, self.slot)
    }

    /// As backup headers write it.
    pub fn decimal(&self) -> u128 {
        u128::from(self.number) * 1_000_000_000_000_000 + u128::from(self.block) * 100_000 + u128::from(self.slot)
    }
}

impl std::fmt::Display for LogPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}:{}:{})", self.number, self.block, self.slot)
    }
}
