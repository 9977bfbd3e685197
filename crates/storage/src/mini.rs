//! Mini-transactions: the one way to change pages. All changes of one are in the log together or not at all.
//!
//! ```text
//! begin -> latch, allocate ... apply ... -> commit: maps -> mark dirty -> append one group -> stamp LSNs -> unlatch
//!                                     \-> dropped: bytes as they were, reservations given back
//! ```
//!
//! A split, an allocation, a row change with its version are each one mini-transaction: redo is purely physical and no
//! half-made structure exists after a crash. A transaction of SQL consists of many; its fate is a logical record.
//!
//! 1. What has an operation has its bytes of before ([`Mini::apply`]), so that a drop restores them; a page new in the
//!    pool vanishes instead.
//! 2. A changed page is marked dirty, with the log's end before the append, before its record is in the log: a
//!    checkpoint between the two sees it ([`Mini::append`]).
//! 3. After the append nothing can fail; a panic there ends the process ([`Mini::drop`]).
//! 4. Map pages are latched last and in order of page number ([`Mini::apply_maps`]).
//! 5. No page's records become a chain that redo on first touch would follow through all of the log: after
//!    [`CHAIN_GROUPS_MAX`] groups over [`CHAIN_LOG_BYTES`] its next record is the whole page ([`Mini::cut_long_chain`]).
//!
//! Latches: exclusive, in the caller's order (parent to child, left to right). Blocking: for latches, for reading pages,
//! for room in the log's buffer. Not for the log's durability: that is [`Store::flush_log`] with what commit returns.
//!
//! Failure: `Poisoned`, `LogFull`, `TooLong` (a group larger than a log block may be), `Io`, `Damage`: everything is as before.

use crate::error::StorageError;
use crate::ids::{LargeRef, Lsn, PageId, TreeId, TxnId};
use crate::log::Use;
use crate::page::op::{MAP_BEGIN, apply};
use crate::page::{Format, PageBytes, PageOp, PageOpError, PageType, header};
use crate::pool::PageWrite;
use crate::record::{self, LooseChange};
use crate::space::layout::{self, EXTENT_PAGES, PFS_ALLOCATED, PFS_IAM};
use crate::space::{Change, Need, Reserved, Run, SYSTEM_UNIT, Unit, map_ops};
use crate::store::Store;
use crate::store::boot;
use crate::store::loose::LoosePart;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Groups that change a page without the page itself in the log: its image, 2 to 8 KiB, is then a small part of them.
const CHAIN_GROUPS_MAX: u32 = 128;
/// Log over which they lie at the least. What is nearer is read in a few windows, a millisecond each, however many groups it is:
/// the chain of a map page that a transaction of 5,000,000 rows had changed went through 160 of them.
const CHAIN_LOG_BYTES: u64 = 4 << 20;

/// Copies of pages that a thread keeps for its next mini-transaction: as many as a row's change takes.
const SPARES_MAX: usize = 8;

thread_local! {
    /// Given back to the allocator and taken again for each change, pieces of this size made it tidy its lists each time.
    static SPARES: RefCell<Vec<Box<PageBytes>>> = const { RefCell::new(Vec::new()) };
}

fn copy_of(page: &PageBytes) -> Box<PageBytes> {
    // A thread that ends may have none any more, as in `keep_spare`.
    match SPARES.try_with(|spares| spares.borrow_mut().pop()).ok().flatten() {
        Some(mut spare) => {
            *spare = *page;
            spare
        }
        None => Box::new(*page),
    }
}

fn keep_spare(copy: Box<PageBytes>) {
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARES_MAX {
            spares.push(copy);
        }
    });
}

/// A page latched by a mini-transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u32);

/// An allocation unit to be made.
#[derive(Debug, Clone, Copy)]
pub struct UnitSpec {
    /// Written in the headers of its IAM pages.
    pub tree: TreeId,
    /// Written in the headers of its IAM pages.
    pub object_id: u32,
    /// Written in the headers of its IAM pages.
    pub index_id: u32,
    /// Where its extents come from.
    pub filegroup: u16,
}

/// A mini-transaction; dropped without commit, it never was.
pub struct Mini<'s> {
    store: &'s Store,
    txn: TxnId,
    usage: Use,
    pages: Vec<Option<MiniPage<'s>>>,
    logical: Vec<Vec<u8>>,
    loose: Vec<(LooseChange, LoosePart)>,
    pub(crate) reserved: Reserved,
    units_made: Vec<Unit>,
    phase: Phase,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Open,
    Appended,
    Committed,
}

struct MiniPage<'s> {
    id: PageId,
    write: PageWrite<'s>,
    before: Option<Box<PageBytes>>,
    /// The log record in the making; empty while nothing changed.
    record: Vec<u8>,
    changed: bool,
    /// Whether its first operation makes the content before not matter.
    afresh: bool,
}

impl<'s> Mini<'s> {
    /// Begins, for `txn` (0 for work of no transaction).
    pub fn begin(store: &'s Store, txn: TxnId) -> Self {
        Self {
            store,
            txn,
            usage: Use::Normal,
            pages: Vec::new(),
            logical: Vec::new(),
            loose: Vec::new(),
            reserved: Reserved::default(),
            units_made: Vec::new(),
            phase: Phase::Open,
        }
    }

    /// Says that this is work that must be able to end (rollback, commit): it may use the log's reserve.
    pub fn finishing(mut self) -> Self {
        self.usage = Use::Finish;
        self
    }

    /// The store.
    pub fn store(&self) -> &'s Store {
        self.store
    }

    fn position(&self, id: PageId) -> Option<Handle> {
        let at = self.pages.iter().position(|page| page.as_ref().is_some_and(|page| page.id == id))?;
        Some(Handle(u32::try_from(at).expect("few pages")))
    }

    fn push(&mut self, id: PageId, write: PageWrite<'s>) -> Handle {
        self.pages.push(Some(MiniPage { id, write, before: None, record: Vec::new(), changed: false, afresh: false }));
        Handle(u32::try_from(self.pages.len() - 1).expect("few pages"))
    }

    /// Latches a page to change it, waiting for others; the same handle again if it is latched already.
    pub fn latch(&mut self, id: PageId) -> Result<Handle, StorageError> {
        if let Some(handle) = self.position(id) {
            return Ok(handle);
        }
        let write = self.store.write_existing(id, true)?.expect("waiting ends with the latch");
        Ok(self.push(id, write))
    }

    /// Latches a page if nobody holds it: for latches against the order.
    pub fn try_latch(&mut self, id: PageId) -> Result<Option<Handle>, StorageError> {
        if let Some(handle) = self.position(id) {
            return Ok(Some(handle));
        }
        Ok(self.store.write_existing(id, false)?.map(|write| self.push(id, write)))
    }

    /// Gives up the latch of a page that was not changed.
    pub fn unlatch(&mut self, handle: Handle) {
        let place = &mut self.pages[handle.0 as usize];
        assert!(place.as_ref().is_some_and(|page| !page.changed), "a changed page stays latched until commit");
        *place = None;
    }

    fn at(&self, handle: Handle) -> &MiniPage<'s> {
        self.pages[handle.0 as usize].as_ref().expect("the handle's page is latched")
    }

    /// The bytes of a latched page, changes included.
    pub fn page(&self, handle: Handle) -> &PageBytes {
        &self.at(handle).write
    }

    /// Which page a handle is.
    pub fn id(&self, handle: Handle) -> PageId {
        self.at(handle).id
    }

    /// Changes a latched page. An operation that does not fit is a `Bug`: callers ask the page for room first.
    pub fn apply(&mut self, handle: Handle, op: PageOp<'_>) -> Result<(), StorageError> {
        let logged = self.store.log().is_some();
        let txn = self.txn;
        let page = self.pages[handle.0 as usize].as_mut().expect("the handle's page is latched");
        if !page.changed {
            if page.write.is_present() {
                page.before = Some(copy_of(&page.write));
            } else if !op.starts_afresh() {
                return Err(StorageError::Bug(format!("first operation on new page {:?} is {op:?}", page.id)));
            }
        }
        apply(&mut page.write, page.id, &op).map_err(|error| op_failed(page.id, &op, error))?;
        if logged {
            if !page.changed {
                let previous = page.before.as_ref().map_or(Lsn(0), |before| header::lsn(before));
                record::begin_page(&mut page.record, page.id, previous, txn);
            }
            op.encode(&mut page.record);
        }
        page.afresh |= !page.changed && op.starts_afresh();
        page.changed = true;
        Ok(())
    }

    /// Takes a page of `unit` and formats it.
    pub fn allocate(&mut self, unit: Unit, format: Format) -> Result<Handle, StorageError> {
        self.allocate_as(unit, format, PFS_ALLOCATED)
    }

    fn allocate_as(&mut self, unit: Unit, format: Format, state: u8) -> Result<Handle, StorageError> {
        let page = loop {
            match self.store.space.reserve_page(unit, state, &mut self.reserved) {
                Ok(page) => break page,
                Err(need) => self.satisfy(unit, need)?,
            }
        };
        let handle = self.make_page(page)?;
        self.apply(handle, PageOp::Format(format))?;
        Ok(handle)
    }

    /// Latches a page whose content does not matter; its first operation must start it afresh.
    pub(crate) fn make_page(&mut self, page: PageId) -> Result<Handle, StorageError> {
        if let Some(handle) = self.position(page) {
            return Ok(handle);
        }
        let write = self.store.write_new(page)?;
        Ok(self.push(page, write))
    }

    fn satisfy(&mut self, unit: Unit, need: Need) -> Result<(), StorageError> {
        if let Need::Iam { file, interval } = need
            && self.units_made.contains(&unit)
        {
            return self.extend_own_chain(unit, file, interval);
        }
        // The IAM page of a unit made here is latched here: nobody may read it to name its tree.
        let own = matches!(need, Need::Growth { .. }) && self.units_made.contains(&unit);
        self.store.satisfy(if own { SYSTEM_UNIT } else { unit }, need)
    }

    /// Adds an IAM page to a unit made here, whose last one is latched here: the file that was chosen for its room has been
    /// filled meanwhile, by its own IAM page perhaps.
    fn extend_own_chain(&mut self, unit: Unit, file: u16, interval: u32) -> Result<(), StorageError> {
        let (filegroup, mut iams) = self.store.space.iams(unit).ok_or_else(|| StorageError::Bug("a unit vanished".into()))?;
        let last = self.latch(iams.last().expect("a unit has an IAM page").page)?;
        let bytes = self.page(last);
        let (tree, object_id, index_id) = (header::tree(bytes), header::object_id(bytes), header::index_id(bytes));
        let page = self.make_iam(UnitSpec { tree, object_id, index_id, filegroup }, file, interval)?;
        self.apply(last, PageOp::SetRight(page))?;
        iams.push(crate::space::Iam { page, file, interval });
        self.store.space.set_unit(unit, filegroup, iams, true);
        Ok(())
    }

    /// Gives a page of `unit` back; others get it after the commit.
    pub fn free(&mut self, unit: Unit, page: PageId) -> Result<(), StorageError> {
        while self.store.space.iams(unit).is_none() {
            self.satisfy(unit, Need::Unit)?;
        }
        self.reserved.changes.push(Change::PageFreed { unit, page });
        Ok(())
    }

    /// Takes up to `count` extents of `unit` that follow each other, all their pages allocated and not formatted.
    pub fn allocate_run(&mut self, unit: Unit, count: u32) -> Result<Run, StorageError> {
        loop {
            match self.store.space.reserve_run(unit, count, &mut self.reserved) {
                Ok(run) => return Ok(run),
                Err(need) => self.satisfy(unit, need)?,
            }
        }
    }

    /// Makes an allocation unit.
    pub fn create_unit(&mut self, spec: UnitSpec) -> Result<Unit, StorageError> {
        let (file, interval) = loop {
            match self.store.space.first_interval(spec.filegroup) {
                Ok(found) => break found,
                Err(need) => self.satisfy(SYSTEM_UNIT, need)?,
            }
        };
        let iam = self.make_iam(spec, file, interval)?;
        let unit = Unit(iam);
        self.units_made.push(unit);
        self.store.space.set_unit(unit, spec.filegroup, vec![crate::space::Iam { page: iam, file, interval }], true);
        Ok(unit)
    }

    pub(crate) fn make_iam(&mut self, spec: UnitSpec, file: u16, interval: u32) -> Result<PageId, StorageError> {
        let UnitSpec { tree, object_id, index_id, filegroup } = spec;
        let format = Format { page_type: PageType::Iam, tree, object_id, index_id, level: 0, creator: TxnId(0) };
        let handle = self.allocate_as(SYSTEM_UNIT, format, PFS_IAM)?;
        let facts = boot::IamFacts { file, filegroup, interval };
        self.apply(handle, PageOp::RawPatch { offset: boot::IAM_FACTS, bytes: &facts.encode() })?;
        Ok(self.id(handle))
    }

    /// Adds a logical record to the group.
    pub fn log_only(&mut self, payload: &[u8]) {
        if self.store.log().is_some() {
            self.logical.push(record::logical(payload));
        }
    }

    /// Says that from this group on nothing but the list of loose parts holds these large parts.
    pub fn loosen(&mut self, tree: TreeId, refs: &[u8]) {
        self.part_changes(LooseChange::Loose, tree, refs);
    }

    /// Says that from this group on a row or a version holds these large parts, or that they are gone.
    pub fn hold_parts(&mut self, tree: TreeId, refs: &[u8]) {
        self.part_changes(LooseChange::Held, tree, refs);
    }

    fn part_changes(&mut self, change: LooseChange, tree: TreeId, refs: &[u8]) {
        let pages = LargeRef::all(refs).map(LargeRef::page).filter(|page| *page != PageId::NONE);
        self.loose.extend(pages.map(|page| (change, (page, tree))));
    }

    /// Ends it: everything is in the log and visible to others, not yet durable. Returns the LSN up to which the log must
    /// be flushed for that; 0 if nothing was logged.
    pub fn commit(mut self) -> Result<Lsn, StorageError> {
        self.store.check_usable()?;
        let used_after = self.apply_maps()?;
        let end = self.append()?;
        let empty = self.store.space.settle(&self.reserved, true, &used_after);
        self.units_made.iter().for_each(|unit| self.store.space.unit_made(*unit));
        self.phase = Phase::Committed;
        let store = self.store;
        drop(self);
        for (unit, file, extent) in empty {
            store.return_extent(unit, file, extent);
        }
        Ok(end)
    }

    /// Changes the map pages. Returns the PFS bits after it of every extent in which a page was freed.
    fn apply_maps(&mut self) -> Result<BTreeMap<(u16, u32), u8>, StorageError> {
        let mut used_after = BTreeMap::new();
        for (map, ops) in map_ops(&self.reserved.changes) {
            let handle = self.latch(map)?;
            let page_type = header::page_type(self.page(handle));
            if !matches!(page_type, Some(PageType::Gam | PageType::Pfs | PageType::Iam)) {
                // Another page lies here, whole: a write went astray, or a chain of maps is older than the page.
                return Err(crate::page::checksum::damage(map, format!("expected a map, found {page_type:?}")));
            }
            for op in ops {
                self.apply(handle, op)?;
            }
        }
        for change in &self.reserved.changes {
            if let Change::PageFreed { page, .. } = change {
                let extent = layout::extent_of(page.page);
                let (map, first) = layout::pfs(layout::page_of(extent));
                let handle = self.position(PageId { file: page.file, page: map }).expect("latched above");
                used_after.insert((page.file, extent), used_pages(self.page(handle), first));
            }
        }
        Ok(used_after)
    }

    fn append(&mut self) -> Result<Lsn, StorageError> {
        // Read before the append: not above the LSN of any record of this group.
        let recovery = self.store.log_end();
        let mut changed: Vec<&mut MiniPage<'s>> = self.pages.iter_mut().flatten().filter(|page| page.changed).collect();
        for page in &mut changed {
            if page.write.mark_dirty(recovery) {
                self.store.dirty.push(page.id, recovery);
            }
        }
        let Some(log) = self.store.log() else {
            self.phase = Phase::Appended;
            self.store.loose.apply(&self.loose);
            return Ok(Lsn(0));
        };
        if changed.is_empty() && self.logical.is_empty() && self.loose.is_empty() {
            self.phase = Phase::Appended;
            return Ok(Lsn(0));
        }
        Self::cut_long_chain(&mut changed, self.usage, recovery, self.txn);
        let loose = loose_records(&self.loose);
        // Held until the list has what the log has: a checkpoint sees both or neither.
        let gate = (!loose.is_empty()).then(|| self.store.loose.enter());
        let records: Vec<&[u8]> = changed.iter().map(|page| &page.record).chain(&self.logical).chain(&loose).map(Vec::as_slice).collect();
        let mut lsns = Vec::with_capacity(records.len());
        let end = log.append(&records, self.usage, &mut lsns)?;
        self.phase = Phase::Appended;
        self.store.loose.apply(&self.loose);
        drop(gate);
        for (page, lsn) in changed.iter_mut().zip(&lsns) {
            header::set_lsn_number(&mut page.write, lsn.0);
            page.write.set_group_end(end, page.afresh.then_some(*lsn));
        }
        Ok(end)
    }
}

impl<'s> Mini<'s> {
    /// Logs one of the changed pages whole, if redo would have to go far back for it. One only, so that groups stay small, and
    /// none of work that must fit what was reserved for it.
    fn cut_long_chain(changed: &mut [&mut MiniPage<'s>], usage: Use, log_end: Lsn, txn: TxnId) {
        let is_long = |page: &MiniPage<'s>| {
            let (groups, bytes) = page.write.chain(log_end);
            // What a page of a run holds is forced to the device, and never in the log.
            let whole = header::page_type(&page.write) != Some(PageType::Run);
            !page.afresh && groups >= CHAIN_GROUPS_MAX && bytes > CHAIN_LOG_BYTES && whole
        };
        if usage != Use::Normal {
            return;
        }
        if let Some(page) = changed.iter_mut().find(|page| is_long(page)) {
            let previous = page.before.as_ref().map_or(Lsn(0), |before| header::lsn(before));
            page.record.clear();
            record::begin_page(&mut page.record, page.id, previous, txn);
            PageOp::Image { lz4: &PageOp::compress(&page.write) }.encode(&mut page.record);
            page.afresh = true;
        }
    }
}

impl Drop for Mini<'_> {
    fn drop(&mut self) {
        match self.phase {
            Phase::Committed => self.pages.iter_mut().flatten().filter_map(|page| page.before.take()).for_each(keep_spare),
            Phase::Appended => {
                // The log has the changes and the pages may not: going on would diverge from what recovery will make.
                std::process::abort();
            }
            Phase::Open => {
                for page in self.pages.iter_mut().flatten() {
                    if let Some(before) = page.before.take() {
                        *page.write = *before;
                        keep_spare(before);
                    } else if page.changed {
                        page.write.fill(0);
                    }
                }
                self.store.space.settle(&self.reserved, false, &BTreeMap::new());
                self.units_made.iter().for_each(|unit| self.store.space.forget_unit(*unit));
            }
        }
    }
}

/// A record for each run of like changes.
fn loose_records(changes: &[(LooseChange, LoosePart)]) -> Vec<Vec<u8>> {
    let runs = changes.chunk_by(|a, b| a.0 == b.0);
    runs.map(|run| record::loose(run[0].0, &run.iter().map(|(_, part)| *part).collect::<Vec<_>>())).collect()
}

/// A bit for each allocated page of the extent whose first PFS byte is `first`.
pub(crate) fn used_pages(pfs: &PageBytes, first: u32) -> u8 {
    let states = &pfs[MAP_BEGIN + first as usize..][..EXTENT_PAGES as usize];
    states.iter().enumerate().fold(0, |used, (at, state)| if *state == 0 { used } else { used | 1 << at })
}

/// Whether a page is allocated, as the PFS has it.
pub(crate) fn is_in_use(store: &Store, page: PageId) -> Result<bool, StorageError> {
    let (map, at) = layout::pfs(page.page);
    let pfs = store.read(PageId { file: page.file, page: map })?;
    Ok(pfs[MAP_BEGIN + at as usize] != 0)
}

fn op_failed(id: PageId, op: &PageOp<'_>, error: PageOpError) -> StorageError {
    StorageError::Bug(format!("page {}:{}: {error:?} in {op:?}", id.file, id.page))
}

#[cfg(test)]
mod tests;
