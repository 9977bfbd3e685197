//! Redo of one page, and its repair: the same walk along its records.

use super::Missing;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::Log;
use crate::page::checksum::{Content, damage};
use crate::page::op::apply;
use crate::page::{PAGE_BYTES, PageBytes, PageType, checksum, header, verify};
use crate::pool::{AccessHint, Loaded};
use crate::record::{self, Record};
use crate::store::Store;
use crate::store::suspect::SuspectEvent;
use observe::counter::{Counter, CounterKind};
use std::sync::Arc;
use thawdb_observe as observe;

static REDONE: Counter = Counter::new("Databases", "Pages redone/sec", CounterKind::PerSecond);
static REPAIRED: Counter = Counter::new("Databases", "Pages repaired/sec", CounterKind::PerSecond);

/// Pages redone in one step of the background.
const STEP_PAGES: usize = 64;

/// Records of a page that are to be applied, oldest first, and whether the page's bytes before matter.
struct Chain {
    records: Vec<(Lsn, Vec<u8>)>,
    afresh: bool,
}

impl Store {
    /// Lets a page that was read into the pool: whole, of the right name, sound, and with every change the log has of it.
    pub(crate) fn admit(&self, page: PageId, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let admitted = self.admit_or_repair(page, bytes);
        if let Err(error) = &admitted {
            self.suspect.failed(page, error, self.env().clock.utc_ns());
        }
        admitted
    }

    /// As [`Self::admit`] for a page read ahead, except that a wrong one is left to who needs it: repair looks through the log.
    pub(crate) fn admit_ahead(&self, page: PageId, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let content = checksum::verify(bytes, page);
        if let Some(missing) = self.pending.get(page) {
            return self.redo(page, missing, content, bytes);
        }
        let lost = content.and_then(|_| self.find_lost_write(page, bytes).map_or(Ok(()), Err));
        lost?;
        match (header::is_blank(bytes), verify::first_violation(bytes, page)) {
            (false, None) => Ok(Loaded::Clean),
            _ => Err(damage(page, "left to who needs the page".into())),
        }
    }

    fn admit_or_repair(&self, page: PageId, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let content = checksum::verify(bytes, page);
        if let Some(missing) = self.pending.get(page) {
            return self.redo(page, missing, content, bytes);
        }
        let wrong = match content {
            Ok(Content::Whole) => match (self.find_lost_write(page, bytes), verify::first_violation(bytes, page)) {
                (Some(lost), _) => lost,
                (None, Some(violation)) => return Err(violation.into_error(page)),
                (None, None) => return Ok(Loaded::Clean),
            },
            Ok(Content::Blank) if self.written.at_least(page) == Lsn(0) => {
                return Err(damage(page, "the page was never written".into()));
            }
            Ok(Content::Blank) => damage(page, "the page was written, and nothing is there".into()),
            Err(broken) => broken,
        };
        let loaded = self.repair(page, wrong, bytes)?;
        self.suspect.note(page, SuspectEvent::Restored, self.env().clock.utc_ns());
        Ok(loaded)
    }

    /// Whether the page is older than what was written: the write was lost, or went elsewhere.
    fn find_lost_write(&self, page: PageId, bytes: &PageBytes) -> Option<StorageError> {
        let (found, written) = (header::lsn(bytes), self.written.at_least(page));
        (found < written).then(|| damage(page, format!("lost write: LSN {:#x} was written, {:#x} is there", written.0, found.0)))
    }

    /// Brings a page up to date as it is loaded, and lists it as dirty.
    fn redo(
        &self,
        page: PageId,
        missing: Missing,
        content: Result<Content, StorageError>,
        bytes: &mut PageBytes,
    ) -> Result<Loaded, StorageError> {
        let mut broken = None;
        let mut is_there = true;
        match content {
            Ok(Content::Whole) => {}
            Ok(Content::Blank) => {
                bytes.fill(0);
                is_there = false;
            }
            Err(error) => match self.pending.copy(page) {
                Some(copy) => *bytes = *copy,
                None => {
                    bytes.fill(0);
                    (broken, is_there) = (Some(error), false);
                }
            },
        }
        let has = header::lsn(bytes);
        let chain = self.chain(page, missing.newest, has).map_err(|error| match (error, &broken) {
            // The chain leaves the log before it reaches a start: what is wrong is the page.
            (StorageError::Damage { .. }, Some(broken)) => broken.clone(),
            (error, _) => error,
        })?;
        // The maps of an added file are whole before any record is about them (`store::files`), and their LSN is 0.
        if !is_there && !chain.afresh {
            return Err(broken.unwrap_or_else(|| damage(page, "never written, and the log does not begin with its making".into())));
        }
        let afresh = if chain.afresh { chain.records[0].0 } else { Lsn(0) };
        replay(page, &chain, bytes)?;
        REDONE.increment();
        // Listed before it is taken off the pending ones, and off them before it can be used.
        self.dirty.push(page, missing.oldest);
        self.pending.remove(page);
        Ok(Loaded::Redone { recovery: missing.oldest, group_end: self.log().map_or(Lsn(0), |log| log.durable()), afresh })
    }

    /// The records of `page` from `newest` back to the first that a page with LSN `has` lacks.
    fn chain(&self, page: PageId, newest: Lsn, has: Lsn) -> Result<Chain, StorageError> {
        let log = self.log().ok_or_else(|| StorageError::Bug("redo without a log".into()))?;
        let mut records = Vec::new();
        let mut afresh = false;
        let (mut at, mut met) = (newest, newest);
        while at > has {
            let mut bytes = Vec::new();
            log.read_through(&self.pending.windows, at, met, &mut bytes)?;
            let record = match record::decode(&bytes) {
                Ok(Record::Page(record)) if record.page == page => record,
                other => return Err(damage(page, format!("log record {:#x} should be the page's, is {other:?}", at.0))),
            };
            let previous = record.previous;
            assert!(previous < at, "a chain goes back");
            afresh = record.starts_afresh();
            records.push((at, bytes));
            if afresh {
                break;
            }
            (at, met) = (previous, at);
        }
        if !afresh && at != has {
            return Err(damage(page, format!("the page has LSN {:#x}, its next record follows {:#x}", has.0, at.0)));
        }
        records.reverse();
        Ok(Chain { records, afresh })
    }

    /// Records that redo of a page from nothing would apply.
    #[cfg(test)]
    pub(super) fn chain_length(&self, page: PageId, newest: Lsn) -> Result<usize, StorageError> {
        self.chain(page, newest, Lsn(0)).map(|chain| chain.records.len())
    }

    /// Makes a wrong page right, if something whole of it is left and the log still holds all that came after: the old page
    /// whose newer version was lost, the copy in the doublewrite region, or a record that starts it afresh.
    fn repair(&self, page: PageId, wrong: StorageError, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let Some(log) = self.log() else {
            return Err(wrong);
        };
        log.flush(log.end())?;
        let newest = match self.written.at_least(page) {
            // The last version written is the last there is: the page was not in the pool.
            Lsn(0) => self.newest_record(log, page)?,
            newest => Some(newest),
        };
        let Some(newest) = newest.filter(|newest| *newest >= log.start()) else { return self.repair_from_copy(page, wrong, bytes) };
        let old = checksum::verify(bytes, page).is_ok_and(|content| content == Content::Whole).then(|| Box::new(*bytes));
        let copy = self.doublewrite_copy(page).filter(|copy| header::lsn(copy) <= newest);
        for start in [old, copy, None] {
            let has = start.as_ref().map_or(Lsn(0), |start| header::lsn(start));
            let Ok(chain) = self.chain(page, newest, has) else { continue };
            if start.is_none() && !chain.afresh {
                continue;
            }
            match start {
                Some(start) => *bytes = *start,
                None => bytes.fill(0),
            }
            if replay(page, &chain, bytes).is_err() || header::page_type(bytes) == Some(PageType::Run) {
                // Its content was forced to the device and is not in the log: what was changed in it since finds nothing.
                continue;
            }
            self.pending.forget_windows();
            return Ok(self.repaired(page, &chain, newest));
        }
        self.pending.forget_windows();
        Err(wrong)
    }

    fn repaired(&self, page: PageId, chain: &Chain, newest: Lsn) -> Loaded {
        REPAIRED.increment();
        let recovery = chain.records.first().map_or(newest, |(lsn, _)| *lsn);
        self.dirty.push(page, recovery);
        let durable = self.log().map_or(Lsn(0), |log| log.durable());
        Loaded::Redone { recovery, group_end: durable, afresh: if chain.afresh { recovery } else { Lsn(0) } }
    }

    /// The log knows nothing of the page any more: if the doublewrite region still has what was last written, that is it.
    fn repair_from_copy(&self, page: PageId, wrong: StorageError, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let written = self.written.at_least(page);
        match self.doublewrite_copy(page).filter(|copy| written > Lsn(0) && header::lsn(copy) == written) {
            Some(copy) => {
                *bytes = *copy;
                Ok(self.repaired(page, &Chain { records: Vec::new(), afresh: false }, self.log_end()))
            }
            None => Err(wrong),
        }
    }

    /// What the doublewrite region has of a page now.
    fn doublewrite_copy(&self, page: PageId) -> Option<Box<PageBytes>> {
        let file = self.file(1).ok()?;
        super::open::read_copies(&*file.device).ok()?.remove(&page)
    }

    /// Looks through the log for the last record of a page.
    fn newest_record(&self, log: &Arc<Log>, page: PageId) -> Result<Option<Lsn>, StorageError> {
        let mut newest = None;
        let mut reader = log.reader(log.start())?;
        while let Some((lsn, bytes)) = reader.next_record()? {
            if let Ok(Record::Page(record)) = record::decode(bytes)
                && record.page == page
            {
                newest = Some(lsn);
            }
        }
        Ok(newest)
    }

    /// Pages that a crash left to be redone and nobody has touched yet.
    pub fn pending_pages(&self) -> usize {
        self.pending.len()
    }

    /// Redoes some pages that nobody touched yet; returns how many are left.
    pub fn redo_step(&self) -> Result<usize, StorageError> {
        let pages = self.pending.some(STEP_PAGES);
        self.prefetch(&pages)?;
        for page in &pages {
            self.read_with(*page, AccessHint::Once)?;
        }
        Ok(self.pending.len())
    }

    /// Redoes every page that nobody touched yet.
    pub fn finish_redo(&self) -> Result<(), StorageError> {
        while self.redo_step()? > 0 {}
        Ok(())
    }
}

fn replay(page: PageId, chain: &Chain, bytes: &mut PageBytes) -> Result<(), StorageError> {
    for (lsn, encoded) in &chain.records {
        let failed = |error| damage(page, format!("redo of log record {:#x}: {error:?}", lsn.0));
        let Ok(Record::Page(record)) = record::decode(encoded) else {
            return Err(StorageError::Bug("a chain has page records only".into()));
        };
        for op in record.ops() {
            op.and_then(|op| apply(bytes, page, &op)).map_err(failed)?;
        }
        header::set_lsn_number(bytes, lsn.0);
    }
    match verify::first_violation(bytes, page) {
        Some(violation) => Err(violation.into_error(page)),
        None => Ok(()),
    }
}

const _: () = assert!(PAGE_BYTES == 8192, "records carry page offsets in 16 bits");
