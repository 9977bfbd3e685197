//! Who owns which extent and which page: the state in memory from which pages are handed out.
//!
//! ```text
//! GAM page: a bit an extent, 1 = taken        IAM chain of a unit: a bit an extent, 1 = the unit's, a page an interval
//! PFS page: a byte a page, 0 = free            room (here): extents of a unit that have free pages, as far as known
//!
//! reserve (here, at once) --> mini-transaction works with the page --> commit: maps changed, logged, released
//!                                                    \--> dropped: given back (here)
//! ```
//!
//! The maps change only when a mini-transaction commits, in one pass over map pages in order of page number, after which
//! it latches nothing more: so allocation can deadlock with nothing, and no map is latched while a tree is worked on.
//! Until then the reservation exists in memory alone, and a crash forgets it with the mini-transaction.
//!
//! 1. What is taken here is a superset of what the maps say is taken ([`State::take_run`], [`Space::settle`]).
//! 2. An extent leaves `room` and `full` only when no reservation of it is pending ([`UnitSpace::settle_page`]), and the
//!    search for free pages in the maps gives its findings up if the unit changed meanwhile ([`Space::add_room`]).
//! 3. A page that a mini-transaction frees is handed out again only after its commit ([`Space::settle`]).
//!
//! Locks: `SPACE` (3), never with input or output: what is not in memory is answered with a [`Need`], which
//! `space::fill` satisfies before the question is asked again.
//!
//! Known: free pages within extents are found again after a restart by a bounded search a unit, not by a count, so an
//! almost empty unit may take a new extent although a page is free somewhere.

pub mod fill;
pub mod layout;

use crate::ids::PageId;
use crate::page::op::MAP_BEGIN;
use crate::page::{PageBytes, PageOp};
use layout::{EXTENT_PAGES, INTERVAL_EXTENTS};
use observe::sync::{LockClass, Mutex};
use std::collections::{BTreeMap, HashMap};
use thawdb_observe as observe;

static SPACE: LockClass = LockClass::new("SPACE", 3);

/// An allocation unit, by its first IAM page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(pub PageId);

/// The unit to which IAM pages belong.
pub const SYSTEM_UNIT: Unit = Unit(layout::SYSTEM_IAM);

/// What must be brought into memory, or made, before a reservation can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The unit's IAM chain.
    Unit,
    /// A search for free pages in the unit's extents.
    Search,
    /// A GAM page.
    Interval {
        /// File.
        file: u16,
        /// Interval.
        interval: u32,
    },
    /// An IAM page of the unit for an interval.
    Iam {
        /// File.
        file: u16,
        /// Interval.
        interval: u32,
    },
    /// A longer file in this filegroup.
    Growth {
        /// Filegroup.
        filegroup: u16,
    },
}

/// A run of extents of one unit, under one IAM page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// File.
    pub file: u16,
    /// First extent.
    pub extent: u32,
    /// How many.
    pub count: u32,
    /// The IAM page that covers it.
    pub iam: PageId,
}

/// A change of ownership that a mini-transaction has made in memory and commits to the maps, or takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A page was taken; its PFS byte becomes `state`.
    PageTaken {
        /// Its unit.
        unit: Unit,
        /// The page.
        page: PageId,
        /// PFS byte.
        state: u8,
        /// Whether it lies in an extent that the same mini-transaction took.
        own: bool,
    },
    /// A page was freed.
    PageFreed {
        /// Its unit.
        unit: Unit,
        /// The page.
        page: PageId,
    },
    /// Extents were taken; with `whole` all their pages too.
    RunTaken {
        /// Their unit.
        unit: Unit,
        /// The extents.
        run: Run,
        /// Whether every page is allocated at once.
        whole: bool,
    },
    /// Extents, and all their pages, were given back.
    RunFreed {
        /// Their unit.
        unit: Unit,
        /// The extents.
        run: Run,
    },
}

/// What one mini-transaction has reserved.
#[derive(Debug, Default)]
pub struct Reserved {
    /// To be committed to the maps or taken back, in order.
    pub changes: Vec<Change>,
    /// Extents it took and the pages used in them. Others get at their free pages only after the commit: were it taken
    /// back, theirs would be lost.
    own: Vec<(Unit, u16, u32, u8)>,
}

impl Reserved {
    fn take_own(&mut self, unit: Unit, state: u8) -> Option<PageId> {
        let (_, file, extent, used) = self.own.iter_mut().find(|(owner, _, _, used)| *owner == unit && *used != u8::MAX)?;
        let bit = used.trailing_ones();
        *used |= 1 << bit;
        let page = PageId { file: *file, page: layout::page_of(*extent) + bit };
        self.changes.push(Change::PageTaken { unit, page, state, own: true });
        Some(page)
    }
}

/// One IAM page, as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iam {
    /// The page.
    pub page: PageId,
    /// File whose extents it maps.
    pub file: u16,
    /// Interval of that file.
    pub interval: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Room {
    used: u8,
    pending: u8,
}

/// What is known of a unit.
#[derive(Debug, Default)]
struct UnitSpace {
    filegroup: u16,
    iams: Vec<Iam>,
    room: BTreeMap<(u16, u32), Room>,
    /// Extents without a free page of which a reservation is pending.
    full: BTreeMap<(u16, u32), Room>,
    search_next: Option<(usize, u32)>,
    changes: u64,
    /// Made by a mini-transaction under way: its chain cannot grow yet.
    fresh: bool,
}

struct FileSpace {
    filegroup: u16,
    extents: u32,
    intervals: Vec<Option<Vec<u64>>>,
    rover: u32,
    /// Allocations it is owed: see [`State::next_file`].
    credit: i64,
    /// Nothing is taken from it any more: it is about to be removed.
    closed: bool,
}

#[derive(Default)]
struct State {
    files: BTreeMap<u16, FileSpace>,
    units: HashMap<Unit, UnitSpace>,
}

/// Space of one database.
pub struct Space(Mutex<State>);

impl UnitSpace {
    fn take_page(&mut self) -> Option<PageId> {
        let (&(file, extent), room) = self.room.iter_mut().next()?;
        let bit = room.used.trailing_ones();
        assert!(bit < EXTENT_PAGES, "an extent in `room` has a free page");
        room.used |= 1 << bit;
        room.pending += 1;
        if room.used == u8::MAX {
            let full = self.room.remove(&(file, extent)).expect("just seen");
            self.full.insert((file, extent), full);
        }
        Some(PageId { file, page: layout::page_of(extent) + bit })
    }

    /// Ends the reservation of a page: it is the unit's now, or with `back` free again.
    fn settle_page(&mut self, page: PageId, back: bool) {
        self.changes += 1;
        let at = (page.file, layout::extent_of(page.page));
        let mut room = self.full.remove(&at).or_else(|| self.room.remove(&at)).expect("a pending extent is kept");
        room.pending -= 1;
        if back {
            room.used &= !(1 << (page.page % EXTENT_PAGES));
        }
        self.keep(at, room);
    }

    /// Makes a page free for others. `used` is what the maps say of its extent. Returns whether the extent is empty now.
    fn free_page(&mut self, page: PageId, used: u8) -> bool {
        self.changes += 1;
        let at = (page.file, layout::extent_of(page.page));
        let listed = self.full.remove(&at).or_else(|| self.room.remove(&at));
        let mut room = listed.unwrap_or(Room { used, pending: 0 });
        room.used &= !(1 << (page.page % EXTENT_PAGES));
        self.keep(at, room);
        room.used == 0 && room.pending == 0
    }

    fn keep(&mut self, at: (u16, u32), room: Room) {
        if room.used != u8::MAX {
            self.room.insert(at, room);
        } else if room.pending > 0 {
            self.full.insert(at, room);
        }
    }

    fn iam(&self, unit: Unit, file: u16, interval: u32) -> Option<PageId> {
        if unit == SYSTEM_UNIT {
            return Some(PageId { file, page: layout::system_iam(interval) });
        }
        self.iams.iter().find(|iam| (iam.file, iam.interval) == (file, interval)).map(|iam| iam.page)
    }
}

impl FileSpace {
    fn new(filegroup: u16) -> Self {
        Self { filegroup, extents: 0, intervals: Vec::new(), rover: 0, credit: 0, closed: false }
    }

    /// Free extents, as far as the maps are in memory; all of an interval that is not.
    fn free_extents(&self) -> u32 {
        let free = |(interval, bits): (usize, &Option<Vec<u64>>)| {
            let base = u32::try_from(interval).expect("few") * INTERVAL_EXTENTS;
            let limit = (self.extents - base).min(INTERVAL_EXTENTS);
            match bits {
                None => limit,
                Some(bits) => limit - count_set(bits, limit),
            }
        };
        self.intervals.iter().enumerate().map(free).sum()
    }

    /// The last extent that is taken and no map's; `Err` if a map must be read first.
    fn last_taken(&self, file: u16) -> Result<Option<u32>, Need> {
        for extent in (0..self.extents).rev() {
            let (interval, bit) = layout::interval(extent);
            let bits = self.intervals[interval as usize].as_ref().ok_or(Need::Interval { file, interval })?;
            if is_set(bits, bit) && !layout::is_map_extent(extent) {
                return Ok(Some(extent));
            }
        }
        Ok(None)
    }

    /// Finds and takes up to `count` free extents that follow each other.
    fn take_run(&mut self, file: u16, count: u32) -> Result<Option<(u32, u32)>, Need> {
        let intervals = self.extents.div_ceil(INTERVAL_EXTENTS);
        let first = layout::interval(self.rover.min(self.extents.saturating_sub(1))).0;
        for turn in 0..=intervals {
            let interval = (first + turn) % intervals.max(1);
            let Some(bits) = self.intervals.get_mut(interval as usize).and_then(Option::as_mut) else {
                return Err(Need::Interval { file, interval });
            };
            let base = interval * INTERVAL_EXTENTS;
            let limit = (self.extents - base).min(INTERVAL_EXTENTS);
            let from = if turn == 0 { self.rover.saturating_sub(base).min(limit) } else { 0 };
            if let Some((start, count)) = find_run(bits, from, limit, count) {
                (start..start + count).for_each(|bit| bits[bit as usize / 64] |= 1 << (bit % 64));
                self.rover = base + start + count;
                return Ok(Some((base + start, count)));
            }
        }
        Ok(None)
    }

    fn give_back(&mut self, extent: u32, count: u32) {
        for extent in extent..extent + count {
            let (interval, bit) = layout::interval(extent);
            // An interval that is not in memory will be read from its map, which says the same.
            if let Some(Some(bits)) = self.intervals.get_mut(interval as usize) {
                bits[bit as usize / 64] &= !(1 << (bit % 64));
            }
        }
        self.rover = self.rover.min(extent);
    }
}

fn count_set(bits: &[u64], limit: u32) -> u32 {
    let (whole, rest) = (limit as usize / 64, limit % 64);
    let last = bits.get(whole).map_or(0, |word| (word & ((1 << rest) - 1)).count_ones());
    bits[..whole].iter().map(|word| word.count_ones()).sum::<u32>() + last
}

fn is_set(bits: &[u64], bit: u32) -> bool {
    bits[bit as usize / 64] & (1 << (bit % 64)) != 0
}

/// The first run of `count` free bits, else the longest there is.
fn find_run(bits: &[u64], from: u32, limit: u32, count: u32) -> Option<(u32, u32)> {
    let mut longest: Option<(u32, u32)> = None;
    let mut at = from;
    while let Some(start) = next_free(bits, at, limit) {
        let most = limit.min(start + count);
        let end = (start..most).find(|bit| is_set(bits, *bit)).unwrap_or(most);
        if longest.is_none_or(|(_, length)| end - start > length) {
            longest = Some((start, end - start));
        }
        if end - start == count {
            break;
        }
        at = end;
    }
    longest
}

fn next_free(bits: &[u64], from: u32, limit: u32) -> Option<u32> {
    let mut at = from;
    while at < limit {
        let word = !bits[at as usize / 64] >> (at % 64);
        if word != 0 {
            let found = at + word.trailing_zeros();
            return (found < limit).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// The bits of a map page.
pub fn map_bits(page: &PageBytes) -> Vec<u64> {
    page[MAP_BEGIN..].chunks_exact(8).map(|word| u64::from_le_bytes(*word.first_chunk().expect("eight bytes"))).collect()
}

impl State {
    /// The file to take from next, of those with free extents: each gets its share of what is free in the filegroup, so
    /// that all are full at the same time (proportional fill). Every allocation gives each file credit for what it has
    /// free, and the one with the most is charged for all of it; what was taken is one turn, whatever its length.
    fn next_file(&mut self, filegroup: u16, without: &[u16]) -> Option<u16> {
        let usable = |number: &u16, file: &FileSpace| file.filegroup == filegroup && !file.closed && !without.contains(number);
        let numbers: Vec<u16> = self.files.iter().filter(|(number, file)| usable(number, file)).map(|(number, _)| *number).collect();
        if let [only] = numbers.as_slice() {
            return Some(*only);
        }
        let candidates: Vec<(u16, i64)> =
            numbers.into_iter().map(|number| (number, i64::from(self.files[&number].free_extents()))).collect();
        let total: i64 = candidates.iter().map(|(_, free)| free).sum();
        for (number, free) in &candidates {
            self.files.get_mut(number).expect("just listed").credit += free;
        }
        let most = |number: &u16| self.files[number].credit;
        let chosen = candidates.iter().map(|(number, _)| *number).max_by_key(|number| (most(number), std::cmp::Reverse(*number)))?;
        self.files.get_mut(&chosen).expect("just listed").credit -= total;
        Some(chosen)
    }

    fn take_run(&mut self, filegroup: u16, count: u32) -> Result<(u16, u32, u32), Need> {
        let mut without = Vec::new();
        while let Some(number) = self.next_file(filegroup, &without) {
            let file = self.files.get_mut(&number).expect("just chosen");
            if let Some((extent, count)) = file.take_run(number, count)? {
                return Ok((number, extent, count));
            }
            without.push(number);
        }
        Err(Need::Growth { filegroup })
    }

    fn take_run_for(&mut self, unit: Unit, count: u32) -> Result<Run, Need> {
        let known = self.units.get(&unit).ok_or(Need::Unit)?;
        let (filegroup, home) = (known.filegroup, known.iams.first().filter(|_| known.fresh).map(|iam| iam.file));
        // A unit whose chain cannot grow yet begins in the file that its first IAM page was made for.
        let at_home = match home.and_then(|file| Some((file, self.files.get_mut(&file)?))) {
            Some((number, file)) => file.take_run(number, count)?.map(|(extent, count)| (number, extent, count)),
            None => None,
        };
        let (file, extent, count) = match at_home {
            Some(found) => found,
            None => self.take_run(filegroup, count)?,
        };
        let interval = layout::interval(extent).0;
        match self.units[&unit].iam(unit, file, interval) {
            Some(iam) => Ok(Run { file, extent, count, iam }),
            None => {
                self.files.get_mut(&file).expect("just taken from").give_back(extent, count);
                Err(Need::Iam { file, interval })
            }
        }
    }
}

impl Space {
    /// No files yet.
    pub fn new() -> Self {
        Self(Mutex::new(&SPACE, State::default()))
    }

    /// Makes a file known, or its new length.
    pub fn set_file(&self, file: u16, filegroup: u16, pages: u32) {
        let mut state = self.0.lock();
        let entry = state.files.entry(file).or_insert_with(|| FileSpace::new(filegroup));
        entry.extents = pages / EXTENT_PAGES;
        entry.intervals.resize(entry.extents.div_ceil(INTERVAL_EXTENTS) as usize, None);
    }

    /// Forgets a file that has left the database.
    pub(crate) fn forget_file(&self, file: u16) {
        self.0.lock().files.remove(&file);
    }

    /// Stops, or allows again, taking from a file.
    pub(crate) fn close_file(&self, file: u16, closed: bool) {
        if let Some(known) = self.0.lock().files.get_mut(&file) {
            known.closed = closed;
        }
    }

    /// The extents of a file that are in use: how many, maps counted, and the first after the last that is no map's.
    pub(crate) fn used_extents(&self, file: u16) -> Result<(u32, u32), Need> {
        let state = self.0.lock();
        let Some(known) = state.files.get(&file) else { return Ok((0, 0)) };
        let end = known.last_taken(file)?.map_or(0, |last| last + 1);
        let unread = known.intervals.iter().position(Option::is_none);
        if let Some(interval) = unread {
            return Err(Need::Interval { file, interval: u32::try_from(interval).expect("few") });
        }
        Ok((known.extents - known.free_extents(), end))
    }

    /// Lets a file end at `extents`, or at its last extent in use if that is later; nothing is taken from beyond.
    /// Returns where it ends now.
    pub(crate) fn cut_file(&self, file: u16, extents: u32) -> Result<u32, Need> {
        let mut state = self.0.lock();
        let Some(known) = state.files.get_mut(&file) else { return Ok(extents) };
        let end = known.last_taken(file)?.map_or(0, |last| last + 1).max(extents).min(known.extents);
        known.extents = end;
        known.rover = known.rover.min(end);
        known.intervals.truncate(end.div_ceil(INTERVAL_EXTENTS) as usize);
        Ok(end)
    }

    /// Gives the bits of a GAM page; kept as they are if they are here already.
    pub fn set_interval(&self, file: u16, interval: u32, bits: Vec<u64>) {
        let mut state = self.0.lock();
        let slot = state.files.get_mut(&file).and_then(|f| f.intervals.get_mut(interval as usize));
        if let Some(slot @ None) = slot {
            *slot = Some(bits);
        }
    }

    /// Gives a unit's IAM chain, or its new last page.
    pub fn set_unit(&self, unit: Unit, filegroup: u16, iams: Vec<Iam>, fresh: bool) {
        let mut state = self.0.lock();
        let known = state.units.entry(unit).or_default();
        known.filegroup = filegroup;
        known.fresh = fresh;
        if known.iams.len() < iams.len() {
            if known.iams.is_empty() && !fresh {
                known.search_next = Some((iams.len() - 1, 0));
            }
            known.iams = iams;
        }
    }

    /// The mini-transaction that made a unit is committed.
    pub fn unit_made(&self, unit: Unit) {
        if let Some(known) = self.0.lock().units.get_mut(&unit) {
            known.fresh = false;
        }
    }

    /// Forgets a unit: its making was taken back, or it is gone.
    pub fn forget_unit(&self, unit: Unit) {
        self.0.lock().units.remove(&unit);
    }

    /// The IAM chain of a unit, if known.
    pub fn iams(&self, unit: Unit) -> Option<(u16, Vec<Iam>)> {
        self.0.lock().units.get(&unit).map(|known| (known.filegroup, known.iams.clone()))
    }

    /// Where the search for free pages of `unit` goes on (IAM page, bit), and the unit's count of changes.
    pub fn search_at(&self, unit: Unit) -> Option<(Iam, u32, u64)> {
        let state = self.0.lock();
        let known = state.units.get(&unit)?;
        let (index, bit) = known.search_next?;
        Some((known.iams[index], bit, known.changes))
    }

    /// Adds what a search found and says where the next goes on; ignored if the unit changed since `changes`.
    pub fn add_room(&self, unit: Unit, changes: u64, found: &[(u16, u32, u8)], next_bit: Option<u32>) {
        let mut state = self.0.lock();
        let Some(known) = state.units.get_mut(&unit).filter(|known| known.changes == changes) else {
            return;
        };
        for (file, extent, used) in found {
            if !known.full.contains_key(&(*file, *extent)) && *used != u8::MAX {
                known.room.entry((*file, *extent)).or_insert(Room { used: *used, pending: 0 });
            }
        }
        let index = known.search_next.map_or(0, |(index, _)| index);
        known.search_next = match next_bit {
            Some(bit) => Some((index, bit)),
            None => index.checked_sub(1).map(|index| (index, 0)),
        };
    }

    /// Reserves a page of `unit`.
    pub fn reserve_page(&self, unit: Unit, state_byte: u8, reserved: &mut Reserved) -> Result<PageId, Need> {
        let mut state = self.0.lock();
        let known = state.units.get_mut(&unit).ok_or(Need::Unit)?;
        if let Some(page) = known.take_page() {
            reserved.changes.push(Change::PageTaken { unit, page, state: state_byte, own: false });
            return Ok(page);
        }
        if let Some(page) = reserved.take_own(unit, state_byte) {
            return Ok(page);
        }
        if known.search_next.is_some() {
            return Err(Need::Search);
        }
        let run = state.take_run_for(unit, 1)?;
        reserved.changes.push(Change::RunTaken { unit, run, whole: false });
        reserved.own.push((unit, run.file, run.extent, 0));
        Ok(reserved.take_own(unit, state_byte).expect("a new extent has room"))
    }

    /// Reserves up to `count` extents that follow each other, all their pages allocated.
    pub fn reserve_run(&self, unit: Unit, count: u32, reserved: &mut Reserved) -> Result<Run, Need> {
        let run = self.0.lock().take_run_for(unit, count)?;
        reserved.changes.push(Change::RunTaken { unit, run, whole: true });
        Ok(run)
    }

    /// The interval from which a new unit of `filegroup` would get its first extent.
    pub fn first_interval(&self, filegroup: u16) -> Result<(u16, u32), Need> {
        let mut state = self.0.lock();
        let (file, extent, count) = state.take_run(filegroup, 1)?;
        state.files.get_mut(&file).expect("just taken from").give_back(extent, count);
        Ok((file, layout::interval(extent).0))
    }

    /// Forgets the last IAM page of a unit.
    pub fn drop_last_iam(&self, unit: Unit) {
        if let Some(known) = self.0.lock().units.get_mut(&unit) {
            known.iams.pop();
        }
    }

    /// Takes an empty extent out of its unit's room so that it can be given back; `None` if it is in use again.
    pub fn withdraw_empty(&self, unit: Unit, file: u16, extent: u32) -> Option<Run> {
        let mut state = self.0.lock();
        let known = state.units.get_mut(&unit)?;
        let room = known.room.get(&(file, extent))?;
        let iam = known.iam(unit, file, layout::interval(extent).0)?;
        if room.used != 0 || room.pending != 0 {
            return None;
        }
        known.room.remove(&(file, extent));
        known.changes += 1;
        Some(Run { file, extent, count: 1, iam })
    }

    /// Ends what a mini-transaction did: `committed`, or taken back. `used_after` gives the PFS bits of an extent after
    /// the commit, for freed pages. Returns extents that are empty now.
    pub fn settle(&self, reserved: &Reserved, committed: bool, used_after: &BTreeMap<(u16, u32), u8>) -> Vec<(Unit, u16, u32)> {
        let mut state = self.0.lock();
        let mut empty = Vec::new();
        for change in &reserved.changes {
            state.settle(*change, committed, used_after, &mut empty);
        }
        for (unit, file, extent, used) in reserved.own.iter().filter(|_| committed) {
            if let Some(known) = state.units.get_mut(unit) {
                known.changes += 1;
                known.keep((*file, *extent), Room { used: *used, pending: 0 });
            }
        }
        empty
    }
}

impl State {
    fn settle(&mut self, change: Change, committed: bool, used_after: &BTreeMap<(u16, u32), u8>, empty: &mut Vec<(Unit, u16, u32)>) {
        let (unit, given_back) = match (change, committed) {
            (Change::PageTaken { own: true, .. } | Change::PageFreed { .. }, false) => return,
            (Change::PageTaken { own: true, .. } | Change::RunTaken { .. }, true) => return,
            (Change::PageTaken { unit, page, .. }, _) => {
                if let Some(known) = self.units.get_mut(&unit) {
                    known.settle_page(page, !committed);
                }
                return;
            }
            (Change::PageFreed { unit, page }, true) => {
                let at = (page.file, layout::extent_of(page.page));
                if self.units.get_mut(&unit).is_some_and(|known| known.free_page(page, used_after[&at])) && unit != SYSTEM_UNIT {
                    empty.push((unit, at.0, at.1));
                }
                return;
            }
            (Change::RunFreed { unit, run }, false) => {
                if let Some(known) = self.units.get_mut(&unit).filter(|_| run.count == 1) {
                    known.room.insert((run.file, run.extent), Room::default());
                }
                return;
            }
            (Change::RunTaken { unit, run, .. }, false) | (Change::RunFreed { unit, run }, true) => (unit, run),
        };
        if let Some(known) = self.units.get_mut(&unit) {
            known.changes += 1;
            for extent in given_back.extent..given_back.extent + given_back.count {
                known.room.remove(&(given_back.file, extent));
            }
        }
        self.files.get_mut(&given_back.file).expect("files stay").give_back(given_back.extent, given_back.count);
    }
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations on map pages that make `changes` durable, by map page.
pub fn map_ops(changes: &[Change]) -> BTreeMap<PageId, Vec<PageOp<'static>>> {
    let mut ops: BTreeMap<PageId, Vec<PageOp<'static>>> = BTreeMap::new();
    for change in changes {
        match *change {
            Change::PageTaken { page, state, .. } => set_pages(&mut ops, page.file, page.page, 1, state),
            Change::PageFreed { page, .. } => set_pages(&mut ops, page.file, page.page, 1, 0),
            Change::RunTaken { run, whole, .. } => {
                set_extents(&mut ops, &run, 1);
                if whole {
                    set_pages(&mut ops, run.file, layout::page_of(run.extent), run.count * EXTENT_PAGES, layout::PFS_ALLOCATED);
                }
            }
            Change::RunFreed { run, .. } => {
                set_extents(&mut ops, &run, 0);
                set_pages(&mut ops, run.file, layout::page_of(run.extent), run.count * EXTENT_PAGES, 0);
            }
        }
    }
    ops
}

fn set_pages(ops: &mut BTreeMap<PageId, Vec<PageOp<'static>>>, file: u16, mut page: u32, mut count: u32, value: u8) {
    while count > 0 {
        let (map, first) = layout::pfs(page);
        let here = count.min(layout::PFS_PAGES - first);
        ops.entry(PageId { file, page: map }).or_default().push(PageOp::MapBits { first, count: here, value, width: 8 });
        page += here;
        count -= here;
    }
}

fn set_extents(ops: &mut BTreeMap<PageId, Vec<PageOp<'static>>>, run: &Run, value: u8) {
    let (interval, first) = layout::interval(run.extent);
    assert!(first + run.count <= INTERVAL_EXTENTS, "a run lies in one interval");
    let op = PageOp::MapBits { first, count: run.count, value, width: 1 };
    ops.entry(PageId { file: run.file, page: layout::gam(interval) }).or_default().push(op);
    ops.entry(run.iam).or_default().push(op);
}
