//! Bytes of the log file. Everything is little-endian; sectors are 4,096 bytes; what is not named is zero.
//!
//! ```text
//! file      master A (sector 0) | master B (sector 1) | zero to 64 KiB | VLF | VLF | ...
//! master    magic u32 | crc u32 | stamp u64 | sequence u64 | checkpoint u64 | oldest u64 | incarnation u32
//!           | opaque length u32 | scan from u64 | scan incarnation u32 | zero u32
//!           | model u8 (1 FULL, 2 BULK_LOGGED, 3 SIMPLE) | chain u8 | zero 6 | backed up to u64 | chain begins at u64
//!           | time of the last log backup i64 | zero u64 | opaque bytes
//! VLF       shape sector | activation sector | body: blocks, each beginning on a sector
//! shape     magic u32 | crc u32 | stamp u64 | file offset u64 | size u64 | created at u64   written at the cut, again if cut shorter
//! activation magic u32 | crc u32 | stamp u64 | start u64 | continues_at u64 | incarnation u32 | vlf number u32 | parity u32
//! block     magic u32 | crc u32 | lsn u64 | stamp u64 | durable u64 | used u32 | records u32 | incarnation u32 | zero u32
//!           then records, then zero to the sector
//! record    length u32 | check u32 | bytes
//! ```
//!
//! A crc is CRC-32C of all the structure's bytes after it (a block's: to `used`). A record's check is the CRC-32C of
//! its bytes xor a mix of its LSN, so that a record read alone proves both its content and its place.

use crate::ids::Lsn;
use crate::log::ScanStart;
use crate::log::policy::LogPolicy;
use thawdb_device::file::SECTOR_BYTES;

/// Where the first VLF begins.
pub const RING_START: u64 = 64 * 1024;
/// Bytes of a VLF before its body: shape and activation.
pub const VLF_HEADER_BYTES: u64 = 2 * SECTOR_BYTES as u64;
/// Bytes of a block before its first record.
pub const BLOCK_HEADER_BYTES: usize = 48;
/// Bytes of a record before its content.
pub const RECORD_HEADER_BYTES: usize = 8;
/// Most bytes a caller may keep in the master record.
pub const OPAQUE_BYTES_MAX: usize = 3000;
const MASTER_HEADER_BYTES: usize = 104;
const _: () = assert!(MASTER_HEADER_BYTES + OPAQUE_BYTES_MAX <= SECTOR_BYTES, "the master record is one sector");

const MASTER_MAGIC: u32 = u32::from_le_bytes(*b"TLM2");
const SHAPE_MAGIC: u32 = u32::from_le_bytes(*b"TLV2");
const ACTIVATION_MAGIC: u32 = u32::from_le_bytes(*b"TLA2");
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"TLB1");

/// What the log file itself remembers, in two copies written in turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MasterRecord {
    /// Rises with every write; the higher of two valid copies counts.
    pub sequence: u64,
    /// Where recovery begins; 0 before the first checkpoint.
    pub checkpoint: Lsn,
    /// Where a block begins from which on the log is looked through for its end; 0 is the start of the checkpoint's VLF.
    pub scan_from: Lsn,
    /// No block from there on is of an earlier incarnation.
    pub scan_incarnation: u32,
    /// First byte of the oldest VLF still held when this was written.
    pub oldest: Lsn,
    /// Rises with every open: blocks of an earlier one beyond its valid end can never be taken for new ones.
    pub incarnation: u32,
    /// What log backups have to do with it.
    pub policy: LogPolicy,
    /// Bytes of the log's user.
    pub opaque: Vec<u8>,
}

/// Place and size of a VLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// First byte in the file.
    pub offset: u64,
    /// Bytes, its header included.
    pub size_bytes: u64,
    /// End of the log when it was cut; 0 for those the log was made with.
    pub created_at: Lsn,
}

/// The last use of a VLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation {
    /// LSN of its first byte.
    pub start: Lsn,
    /// Where the blocks of the VLF before it end.
    pub continues_at: Lsn,
    /// Incarnation that activated it.
    pub incarnation: u32,
    /// Number of the VLF's use, rising by one with each activation in the log (FSeqNo).
    pub number: u32,
    /// 64 or 128, changing with each use of the same VLF.
    pub parity: u8,
}

/// Header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// LSN of its first byte.
    pub lsn: Lsn,
    /// What was durable when it was sealed: nothing below can be missing in a sound log.
    pub durable: Lsn,
    /// Bytes in use, header included.
    pub used_bytes: u32,
    /// Records in it.
    pub record_count: u32,
    /// Incarnation that wrote it.
    pub incarnation: u32,
}

/// Bytes a block takes in the file.
pub fn padded(used_bytes: usize) -> u64 {
    used_bytes.next_multiple_of(SECTOR_BYTES) as u64
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes magic, crc and stamp of a structure whose other bytes are in place.
fn seal(bytes: &mut [u8], magic: u32, stamp: u64, stamp_at: usize) {
    put_u32(bytes, 0, magic);
    put_u64(bytes, stamp_at, stamp);
    let crc = crc32c::crc32c(&bytes[8..]);
    put_u32(bytes, 4, crc);
}

fn sealed(bytes: &[u8], magic: u32, stamp: u64, stamp_at: usize) -> bool {
    get_u32(bytes, 0) == magic && get_u64(bytes, stamp_at) == stamp && get_u32(bytes, 4) == crc32c::crc32c(&bytes[8..])
}

impl MasterRecord {
    /// Where the next open looks through the log from.
    pub fn scan_start(&self) -> ScanStart {
        ScanStart { at: self.scan_from, incarnation: self.scan_incarnation }
    }

    /// Fills `sector`.
    pub fn encode(&self, stamp: u64, sector: &mut [u8]) {
        assert!(sector.len() == SECTOR_BYTES && self.opaque.len() <= OPAQUE_BYTES_MAX, "checked by set_master");
        sector.fill(0);
        put_u64(sector, 16, self.sequence);
        put_u64(sector, 24, self.checkpoint.0);
        put_u64(sector, 32, self.oldest.0);
        put_u32(sector, 40, self.incarnation);
        put_u32(sector, 44, u32::try_from(self.opaque.len()).expect("3,000 at most"));
        put_u64(sector, 48, self.scan_from.0);
        put_u32(sector, 56, self.scan_incarnation);
        self.policy.encode(&mut sector[64..MASTER_HEADER_BYTES]);
        sector[MASTER_HEADER_BYTES..MASTER_HEADER_BYTES + self.opaque.len()].copy_from_slice(&self.opaque);
        seal(sector, MASTER_MAGIC, stamp, 8);
    }

    /// Reads a copy; `None` if it is not whole or not of this database.
    pub fn decode(stamp: u64, sector: &[u8]) -> Option<Self> {
        if sector.len() != SECTOR_BYTES || !sealed(sector, MASTER_MAGIC, stamp, 8) {
            return None;
        }
        let length = get_u32(sector, 44) as usize;
        Some(Self {
            sequence: get_u64(sector, 16),
            checkpoint: Lsn(get_u64(sector, 24)),
            oldest: Lsn(get_u64(sector, 32)),
            scan_from: Lsn(get_u64(sector, 48)),
            scan_incarnation: get_u32(sector, 56),
            incarnation: get_u32(sector, 40),
            policy: LogPolicy::decode(&sector[64..MASTER_HEADER_BYTES])?,
            opaque: sector[MASTER_HEADER_BYTES..].get(..length)?.to_vec(),
        })
    }
}

impl Shape {
    /// Fills `sector`.
    pub fn encode(&self, stamp: u64, sector: &mut [u8]) {
        sector.fill(0);
        put_u64(sector, 16, self.offset);
        put_u64(sector, 24, self.size_bytes);
        put_u64(sector, 32, self.created_at.0);
        seal(sector, SHAPE_MAGIC, stamp, 8);
    }

    /// Reads the shape that should stand at `offset`.
    pub fn decode(stamp: u64, offset: u64, sector: &[u8]) -> Option<Self> {
        let shape = Self { offset: get_u64(sector, 16), size_bytes: get_u64(sector, 24), created_at: Lsn(get_u64(sector, 32)) };
        let sound = sealed(sector, SHAPE_MAGIC, stamp, 8) && shape.offset == offset && shape.size_bytes > VLF_HEADER_BYTES;
        (sound && shape.size_bytes.is_multiple_of(SECTOR_BYTES as u64)).then_some(shape)
    }
}

impl Activation {
    /// Fills `sector`.
    pub fn encode(&self, stamp: u64, sector: &mut [u8]) {
        sector.fill(0);
        put_u64(sector, 16, self.start.0);
        put_u64(sector, 24, self.continues_at.0);
        put_u32(sector, 32, self.incarnation);
        put_u32(sector, 36, self.number);
        put_u32(sector, 40, u32::from(self.parity));
        seal(sector, ACTIVATION_MAGIC, stamp, 8);
    }

    /// Reads it; `None` if the VLF was never used, or its last activation did not reach the disk whole.
    pub fn decode(stamp: u64, sector: &[u8]) -> Option<Self> {
        sealed(sector, ACTIVATION_MAGIC, stamp, 8).then(|| Self {
            start: Lsn(get_u64(sector, 16)),
            continues_at: Lsn(get_u64(sector, 24)),
            incarnation: get_u32(sector, 32),
            number: get_u32(sector, 36),
            parity: sector[40],
        })
    }
}

impl BlockHeader {
    /// Writes the header of `block`, whose records are in place, its crc last.
    pub fn encode(&self, stamp: u64, block: &mut [u8]) {
        let used = self.used_bytes as usize;
        put_u64(block, 8, self.lsn.0);
        put_u64(block, 24, self.durable.0);
        put_u32(block, 32, self.used_bytes);
        put_u32(block, 36, self.record_count);
        put_u32(block, 40, self.incarnation);
        put_u32(block, 44, 0);
        seal(&mut block[..used], BLOCK_MAGIC, stamp, 16);
    }

    /// Reads a header that claims to stand at `lsn`, its block not yet verified.
    pub fn decode(stamp: u64, lsn: Lsn, bytes: &[u8]) -> Option<Self> {
        let header = Self {
            lsn: Lsn(get_u64(bytes, 8)),
            durable: Lsn(get_u64(bytes, 24)),
            used_bytes: get_u32(bytes, 32),
            record_count: get_u32(bytes, 36),
            incarnation: get_u32(bytes, 40),
        };
        let claims = get_u32(bytes, 0) == BLOCK_MAGIC && get_u64(bytes, 16) == stamp && header.lsn == lsn;
        (claims && header.used_bytes as usize >= BLOCK_HEADER_BYTES).then_some(header)
    }

    /// Whether `block`, all its `used_bytes`, is whole.
    pub fn verify(block: &[u8]) -> bool {
        get_u32(block, 4) == crc32c::crc32c(&block[8..])
    }
}

fn lsn_mix(lsn: Lsn) -> u32 {
    let mixed = lsn.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from(mixed >> 32).expect("32 bits are left")
}

/// Header of a record at `lsn` with this content checksum.
pub fn record_header(length: usize, content_crc: u32, lsn: Lsn) -> [u8; RECORD_HEADER_BYTES] {
    let mut header = [0; RECORD_HEADER_BYTES];
    put_u32(&mut header, 0, u32::try_from(length).expect("groups are bounded"));
    put_u32(&mut header, 4, content_crc ^ lsn_mix(lsn));
    header
}

/// Length of the content of the record with this header.
pub fn record_length(header: &[u8]) -> usize {
    get_u32(header, 0) as usize
}

/// Whether `content` is that of the record at `lsn` with this header.
pub fn record_verify(header: &[u8], lsn: Lsn, content: &[u8]) -> bool {
    get_u32(header, 4) ^ lsn_mix(lsn) == crc32c::crc32c(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::policy::RecoveryModel;

    const STAMP: u64 = 77;

    #[test]
    fn structures_round_trip_and_every_flipped_bit_shows() {
        let mut sector = vec![0; SECTOR_BYTES];
        let check = |sector: &mut Vec<u8>, used: usize, read: &dyn Fn(&[u8]) -> bool| {
            assert!(read(sector));
            for bit in 0..used * 8 {
                sector[bit / 8] ^= 1 << (bit % 8);
                assert!(!read(sector), "bit {bit}");
                sector[bit / 8] ^= 1 << (bit % 8);
            }
        };
        let mut policy = LogPolicy { model: RecoveryModel::Full, ..LogPolicy::default() };
        policy.begin_chain(Lsn(7), Lsn(8));
        let master = MasterRecord {
            sequence: 3,
            checkpoint: Lsn(9),
            scan_from: Lsn(8),
            scan_incarnation: 1,
            oldest: Lsn(1),
            incarnation: 2,
            policy,
            opaque: vec![1, 2, 3],
        };
        master.encode(STAMP, &mut sector);
        check(&mut sector, 112, &|s| MasterRecord::decode(STAMP, s) == Some(master.clone()));
        let shape = Shape { offset: RING_START, size_bytes: 1 << 20, created_at: Lsn(3) };
        shape.encode(STAMP, &mut sector);
        check(&mut sector, 40, &|s| Shape::decode(STAMP, RING_START, s) == Some(shape));
        let activation = Activation { start: Lsn(5), continues_at: Lsn(4), incarnation: 1, number: 9, parity: 64 };
        activation.encode(STAMP, &mut sector);
        check(&mut sector, 40, &|s| Activation::decode(STAMP, s) == Some(activation));
        let header = BlockHeader { lsn: Lsn(8192), durable: Lsn(7), used_bytes: 100, record_count: 1, incarnation: 4 };
        header.encode(STAMP, &mut sector);
        check(&mut sector, 100, &|s| {
            BlockHeader::decode(STAMP, Lsn(8192), s).is_some_and(|h| h == header && BlockHeader::verify(&s[..100]))
        });
    }

    #[test]
    fn a_record_proves_its_place() {
        let content = b"insert";
        let header = record_header(content.len(), crc32c::crc32c(content), Lsn(100));
        assert_eq!(record_length(&header), 6);
        assert!(record_verify(&header, Lsn(100), content));
        assert!(!record_verify(&header, Lsn(108), content));
        assert!(!record_verify(&header, Lsn(100), b"inserT"));
    }
}
