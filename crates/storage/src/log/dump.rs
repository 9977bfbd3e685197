//! A closed log file as people read it: `thawdb dump-log`. Nothing is written, and damage ends the lines with its error.

use super::format::{MasterRecord, record_length};
use super::open::{chain, read_vlfs, ring_of};
use super::reader::BlockWalk;
use super::{Log, LogConfig, format};
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::record::{self, Record};
use std::sync::Arc;
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, BlockFile, ReadRequest};

fn describe(content: &[u8]) -> String {
    match record::decode(content) {
        Ok(Record::Page(page)) => {
            let ops: Vec<String> =
                page.ops().map(|op| op.map_or_else(|error| format!("{error:?}"), |op| name(&format!("{op:?}")))).collect();
            format!(
                "page {}:{} previous {:#x} transaction {} {}",
                page.page.file,
                page.page.page,
                page.previous.0,
                page.txn.0,
                ops.join(" ")
            )
        }
        Ok(Record::Logical(bytes)) => format!("logical, {} bytes", bytes.len()),
        Ok(Record::Loose(_)) => "loose parts".to_owned(),
        Ok(Record::Dirty(_)) => "dirty pages".to_owned(),
        Ok(Record::Checkpoint(checkpoint)) => {
            format!("checkpoint, redo from {:#x}, transactions from {:#x}", checkpoint.redo_from.0, checkpoint.logical_from.0)
        }
        Err(error) => format!("unreadable: {error:?}"),
    }
}

/// The first word of an operation's debug form.
fn name(shown: &str) -> String {
    shown.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}

impl Log {
    /// Gives the lines of a log file: its master record, its VLFs, its blocks and records in order.
    pub fn dump(file: Arc<dyn BlockFile>, line: &mut dyn FnMut(String)) -> Result<(), StorageError> {
        let mut sectors = AlignedBuf::zeroed(2 * SECTOR_BYTES);
        file.read(&mut [ReadRequest { offset: 0, buffer: &mut sectors }])?;
        let stamp_in = |sector: &[u8]| u64::from_le_bytes(*sector[8..].first_chunk().expect("a sector is longer"));
        let copies = sectors
            .chunks_exact(SECTOR_BYTES)
            .filter_map(|sector| Some((stamp_in(sector), MasterRecord::decode(stamp_in(sector), sector)?)));
        let newest = copies.max_by_key(|(_, master)| master.sequence);
        let Some((stamp, master)) = newest else {
            return Err(super::reader::damage(Lsn(0), 0, "both copies of the master record are damaged"));
        };
        line(format!(
            "master: stamp {stamp:#x} sequence {} checkpoint {:#x} oldest {:#x} incarnation {} {:?}",
            master.sequence, master.checkpoint.0, master.oldest.0, master.incarnation, master.policy
        ));
        let file_bytes = file.len_bytes()?;
        let vlfs = read_vlfs(&*file, stamp, file_bytes)?;
        for (shape, last) in &vlfs {
            line(format!("vlf at {:#x} bytes {} {last:?}", shape.offset, shape.size_bytes));
        }
        let (active, free) = chain(&vlfs, &master)?;
        let config = LogConfig { size_bytes: file_bytes, size_bytes_max: Some(file_bytes), growth_bytes: 0 };
        let log = Self::assemble(file, config, stamp, file_bytes, ring_of(&vlfs, active.clone(), free), master, Lsn(0));
        for vlf in active {
            let mut walk = BlockWalk::new(log.clone(), vlf);
            while walk.advance()? {
                line(format!("block {:#x} bytes {}", walk.block_lsn.0, walk.block().len()));
                records(walk.block_lsn, walk.block(), line);
            }
        }
        Ok(())
    }
}

fn records(block: Lsn, bytes: &[u8], line: &mut dyn FnMut(String)) {
    let mut at = format::BLOCK_HEADER_BYTES;
    while let Some(head) = bytes.get(at..at + format::RECORD_HEADER_BYTES) {
        let begin = at + format::RECORD_HEADER_BYTES;
        let Some(content) = bytes.get(begin..begin + record_length(head)) else { return };
        line(format!("  {:#x} {}", block.0 + at as u64, describe(content)));
        at = begin + content.len();
    }
}
