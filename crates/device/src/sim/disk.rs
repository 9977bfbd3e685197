//! One file's bytes: what reads see, and what a crash may leave of it.
//!
//! ```text
//! sectors: 0 1 2 3 ...      as reads see them; absent reads as zero
//! pending: 2 -> [durable | write 17 | write 19]     sectors written since the last sync, with every version
//! ```
//!
//! 1. A sector without pending versions is durable as it is.
//! 2. Versions carry the number of the write that made them, so that the fate of one write is the same for all its
//!    sectors unless it is torn ([`CrashFates`]).
//! 3. Changes of length are kept in order, up to one that is lost with all after it; a sector that a kept shrinking
//!    cut off never comes back ([`Inode::crash`]).

use crate::file::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_observe::seeded::SeededRandom;

pub(super) type Sector = [u8; SECTOR_BYTES];
/// `None` is a sector of zeroes.
pub(super) type Content = Option<Arc<Sector>>;

#[derive(Debug, Default)]
pub(super) struct Inode {
    pub len: u64,
    durable_len: u64,
    sectors: BTreeMap<u64, Arc<Sector>>,
    pending: BTreeMap<u64, Pending>,
    /// Changes of length since the last sync.
    lengths: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Pending {
    durable: Content,
    versions: Vec<Version>,
}

#[derive(Debug)]
struct Version {
    write: u64,
    /// Made by a change of length: its fate is that of the length.
    by_length: bool,
    content: Content,
}

/// What a crash does to each unsynced write; a function of the crash's seed and the write's number.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrashFates {
    pub seed: u64,
    /// Of four writes, so many are kept.
    pub kept_of_four: u64,
    pub tear_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    Torn,
}

impl CrashFates {
    fn draw(&self, write: u64, sector: u64) -> SeededRandom {
        let mut random = SeededRandom::new(self.seed ^ write.rotate_left(32) ^ sector.wrapping_mul(0x9E37_79B9));
        random.split()
    }

    fn of(&self, write: u64) -> Fate {
        let mut random = self.draw(write, u64::MAX);
        match (random.chance(1, 4), random.chance(self.kept_of_four, 4)) {
            (true, _) => Fate::Torn,
            (false, true) => Fate::Kept,
            (false, false) => Fate::Lost,
        }
    }

    /// What a write's `version` leaves of a sector that held `before`.
    fn apply(&self, before: Content, version: &Version, sector: u64) -> Content {
        match self.of(version.write) {
            Fate::Lost => before,
            Fate::Kept => version.content.clone(),
            Fate::Torn => self.tear(before, version, sector),
        }
    }

    fn tear(&self, before: Content, version: &Version, sector: u64) -> Content {
        let mut random = self.draw(version.write, sector);
        let pieces = (SECTOR_BYTES / self.tear_bytes) as u64;
        // The first `from_new` pieces are new and the rest old, or the other way round.
        let from_new = random.below(pieces + 1) as usize * self.tear_bytes;
        let (mut first, second) = (to_bytes(&version.content), to_bytes(&before));
        if random.chance(1, 2) {
            first[from_new..].copy_from_slice(&second[from_new..]);
        } else {
            first[..from_new].copy_from_slice(&second[..from_new]);
        }
        Some(Arc::new(first))
    }
}

fn to_bytes(content: &Content) -> Sector {
    content.as_ref().map_or([0; SECTOR_BYTES], |sector| **sector)
}

impl Inode {
    /// A file of given bytes, durable.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut inode = Self { len: bytes.len() as u64, durable_len: bytes.len() as u64, ..Self::default() };
        for (index, piece) in (0..).zip(bytes.chunks(SECTOR_BYTES)) {
            let mut sector = [0; SECTOR_BYTES];
            sector[..piece.len()].copy_from_slice(piece);
            inode.sectors.insert(index, Arc::new(sector));
        }
        inode
    }

    /// The same file as reads see it, all of it durable.
    pub(super) fn as_seen(&self) -> Self {
        Self { len: self.len, durable_len: self.len, sectors: self.sectors.clone(), ..Self::default() }
    }

    /// Offsets of the sectors that hold something.
    pub(super) fn written(&self) -> Vec<u64> {
        self.sectors.keys().map(|index| index * SECTOR_BYTES as u64).collect()
    }

    /// Copies bytes out; the range lies within the length.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        assert!(offset + buffer.len() as u64 <= self.len, "the range lies within the length");
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let within = (at % SECTOR_BYTES as u64) as usize;
            let count = (SECTOR_BYTES - within).min(buffer.len() - done);
            match self.sectors.get(&(at / SECTOR_BYTES as u64)) {
                Some(sector) => buffer[done..done + count].copy_from_slice(&sector[within..within + count]),
                None => buffer[done..done + count].fill(0),
            }
            done += count;
        }
    }

    /// Writes whole sectors; `takes` says for each whether it arrives. Makes the file longer if need be.
    pub(super) fn write(&mut self, write: u64, offset: u64, buffer: &[u8], mut takes: impl FnMut() -> bool) {
        let end = offset + buffer.len() as u64;
        if end > self.len {
            self.len = end;
            self.lengths.push((write, end));
        }
        for (index, piece) in (offset / SECTOR_BYTES as u64..).zip(buffer.chunks_exact(SECTOR_BYTES)) {
            if takes() {
                let sector: Sector = piece.try_into().expect("chunks are of a sector's size");
                self.put(index, Version { write, by_length: false, content: Some(Arc::new(sector)) });
            }
        }
    }

    pub(super) fn set_len(&mut self, write: u64, len: u64) {
        let first_gone = len.div_ceil(SECTOR_BYTES as u64);
        let gone: Vec<u64> = self.sectors.range(first_gone..).map(|(&index, _)| index).collect();
        for index in gone {
            self.put(index, Version { write, by_length: true, content: None });
        }
        self.len = len;
        self.lengths.push((write, len));
    }

    fn put(&mut self, index: u64, version: Version) {
        let before = match &version.content {
            Some(sector) => self.sectors.insert(index, Arc::clone(sector)),
            None => self.sectors.remove(&index),
        };
        self.pending.entry(index).or_insert_with(|| Pending { durable: before, versions: Vec::new() }).versions.push(version);
    }

    pub(super) fn sync(&mut self) {
        self.pending.clear();
        self.lengths.clear();
        self.durable_len = self.len;
    }

    /// Leaves what the crash leaves, all of it durable.
    pub(super) fn crash(&mut self, fates: &CrashFates) {
        // File systems log changes of a file's length in order: the crash keeps a first part of them.
        let kept = std::mem::take(&mut self.lengths).into_iter().take_while(|&(write, _)| fates.of(write) != Fate::Lost).last();
        let kept_to = kept.map_or(0, |(write, _)| write);
        for (index, pending) in std::mem::take(&mut self.pending) {
            let left = pending.versions.iter().fold(pending.durable, |before, version| match version.by_length {
                true if version.write <= kept_to => version.content.clone(),
                true => before,
                false => fates.apply(before, version, index),
            });
            match left {
                Some(sector) => self.sectors.insert(index, sector),
                None => self.sectors.remove(&index),
            };
        }
        self.len = kept.map_or(self.durable_len, |(_, len)| len);
        self.durable_len = self.len;
        drop(self.sectors.split_off(&self.len.div_ceil(SECTOR_BYTES as u64)));
    }

    /// Changes a bit, durably: in what reads see and in every version a crash could leave.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) {
        let index = offset / SECTOR_BYTES as u64;
        let place = (offset % SECTOR_BYTES as u64) as usize;
        let flip = |content: &Content| -> Content {
            let mut sector = to_bytes(content);
            sector[place] ^= 1 << bit;
            Some(Arc::new(sector))
        };
        let seen = flip(&self.sectors.get(&index).cloned()).expect("a flipped sector is not absent");
        self.sectors.insert(index, seen);
        if let Some(pending) = self.pending.get_mut(&index) {
            pending.durable = flip(&pending.durable);
            pending.versions.iter_mut().for_each(|version| version.content = flip(&version.content));
        }
    }

    /// Mixes what reads see into a fingerprint.
    pub(super) fn fingerprint(&self, mut mix: impl FnMut(&[u8])) {
        mix(&self.len.to_le_bytes());
        for (index, sector) in &self.sectors {
            mix(&index.to_le_bytes());
            mix(&sector[..]);
        }
    }
}
