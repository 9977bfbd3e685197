//! Redo of one page, and its repair: the same walk along its records.

use super::Missing;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::page::checksum::{Content, damage};
use crate::page::op::apply;
use crate::page::{PAGE_BYTES, PageBytes, checksum, header, verify};
use crate::pool::{AccessHint, Loaded};
use crate::record::{self, Record};
use crate::store::Store;
use observe::counter::{Counter, CounterKind};
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
        let content = checksum::verify(bytes, page);
        if let Some(missing) = self.pending.get(page) {
            return self.redo(page, missing, content, bytes);
        }
        match content {
            Ok(Content::Whole) => {}
            Ok(Content::Blank) => return Err(damage(page, "the page was never written".into())),
            Err(broken) => return self.repair(page, broken, bytes),
        }
        match verify::first_violation(bytes, page) {
            Some(violation) => Err(violation.into_error(page)),
            None => Ok(Loaded::Clean),
        }
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
        match content {
            Ok(Content::Whole) => {}
            Ok(Content::Blank) => bytes.fill(0),
            Err(error) => match self.pending.copy(page) {
                Some(copy) => *bytes = *copy,
                None => {
                    bytes.fill(0);
                    broken = Some(error);
                }
            },
        }
        let has = header::lsn(bytes);
        let chain = self.chain(page, missing.newest, has).map_err(|error| match (error, &broken) {
            // The chain leaves the log before it reaches a start: what is wrong is the page.
            (StorageError::Damage { .. }, Some(broken)) => broken.clone(),
            (error, _) => error,
        })?;
        if has == Lsn(0) && !chain.afresh {
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
        let mut at = newest;
        while at > has {
            let mut bytes = Vec::new();
            log.read_through(&self.pending.windows, at, &mut bytes)?;
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
            at = previous;
        }
        if !afresh && at != has {
            return Err(damage(page, format!("the page has LSN {:#x}, its next record follows {:#x}", has.0, at.0)));
        }
        records.reverse();
        Ok(Chain { records, afresh })
    }

    /// Makes a broken page anew, if the log still holds a record that starts it afresh: then it holds all after that too.
    fn repair(&self, page: PageId, broken: StorageError, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let Some(log) = self.log() else {
            return Err(broken);
        };
        log.flush(log.end())?;
        let mut newest = None;
        let mut reader = log.reader(log.start())?;
        while let Some((lsn, bytes)) = reader.next_record()? {
            if let Ok(Record::Page(record)) = record::decode(bytes)
                && record.page == page
            {
                newest = Some(lsn);
            }
        }
        let chain = match newest.map(|newest| self.chain(page, newest, Lsn(0))) {
            Some(Ok(chain)) if chain.afresh => chain,
            // The chain leaves the log before it reaches a start: the first error tells the truth about the page.
            _ => return Err(broken),
        };
        bytes.fill(0);
        replay(page, &chain, bytes)?;
        REPAIRED.increment();
        let recovery = chain.records[0].0;
        self.dirty.push(page, recovery);
        Ok(Loaded::Redone { recovery, group_end: log.durable(), afresh: recovery })
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
