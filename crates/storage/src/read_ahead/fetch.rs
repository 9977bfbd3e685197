//! One file's part of a chunk: read, verified and let into the pool by a thread of the device, beside the scan.
//!
//! ```text
//! Fetch::start ──► UnderWay ──read, verify──► LettingIn ──► Done ──► Fetch::wait
//!                     │ dropped                   │ dropped: waits, it is processor work
//!                     └──► Abandoned              └──► Done
//! ```
//! Checksums and the structure of pages are a third of what a scan costs a processor, so they are verified where another
//! processor may do it, and the scan decodes meanwhile.
//!
//! Invariants: 1. a page counts as sound only if its bytes are whole, of its name, sound in structure and not older than
//! what was written last ([`Job::verify`]). 2. Nothing is let into the pool once the owner is gone: dropping a [`Fetch`]
//! waits out [`Phase::LettingIn`], so that a file is never forgotten under a page being let in. 3. A page is let in only if
//! its mark of absence is what it was before it was asked for, and only into frames that are free or clean: no thread of
//! the device waits here for a write.
//!
//! Locks: `READ_AHEAD` (5) guards the phase; nothing is called under it. Failure: a failed read leaves no page sound.

use super::group::ScanGroup;
use crate::ids::{Lsn, PageId};
use crate::page::checksum::{self, Content};
use crate::page::{PAGE_BYTES, PageBytes, header, verify};
use crate::pool::{AccessHint, Loaded, Pool, PoolFile};
use crate::store::suspect::Written;
use observe::sync::{Condvar, LockClass, Mutex};
use observe::wait::{self, WaitKind, WaitResource};
use std::sync::Arc;
use thawdb_device::{AlignedBuf, BlockFile, ReadRequest};
use thawdb_observe as observe;

static READ_AHEAD: LockClass = LockClass::new("READ_AHEAD", 5);

/// Neighbouring pages that are read together, into a buffer whose size is a power of two so that it can be used again.
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) pages: usize,
    pub(super) memory: AlignedBuf,
}

impl Run {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[..self.pages * PAGE_BYTES]
    }

    /// The bytes of `page`, if the run has it.
    pub(super) fn page(&self, page: u32) -> Option<&PageBytes> {
        let at = page.checked_sub(self.first)? as usize;
        (at < self.pages).then(|| self.memory[at * PAGE_BYTES..].first_chunk().expect("the run holds the page"))
    }
}

/// A page that is wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) page: u32,
    /// The mark of its absence, taken before it was asked for.
    pub(super) mark: u64,
    /// Whether its bytes in the run can be used.
    pub(super) sound: bool,
}

/// What a thread of the device needs.
pub(super) struct Job {
    pub(super) file: u16,
    pub(super) device: Arc<dyn BlockFile>,
    pub(super) pool: Arc<Pool>,
    pub(super) pool_file: Arc<PoolFile>,
    pub(super) written: Arc<Written>,
    /// The scan's group, which counts the pages let in; `None` where all are to be let in.
    pub(super) group: Option<Arc<ScanGroup>>,
    pub(super) wanted: Vec<Wanted>,
    pub(super) runs: Vec<Run>,
}

/// What was read.
pub(super) struct Fetched {
    pub(super) wanted: Vec<Wanted>,
    pub(super) runs: Vec<Run>,
}

enum Phase {
    UnderWay,
    LettingIn,
    Done(Fetched),
    Abandoned,
}

struct Shared {
    phase: Mutex<Phase>,
    arrived: Condvar,
}

impl Shared {
    /// Whether the owner still wants it; if so it is `next` from now on.
    fn go_on(&self, next: Phase) -> bool {
        let mut phase = self.phase.lock();
        if matches!(*phase, Phase::Abandoned) {
            return false;
        }
        *phase = next;
        self.arrived.notify_all();
        true
    }
}

/// The owner's side of a part under way.
pub(super) struct Fetch {
    shared: Arc<Shared>,
    /// What who waits for it waits for.
    resource: WaitResource,
}

impl Fetch {
    /// Begins.
    pub(super) fn start(job: Job) -> Self {
        let shared = Arc::new(Shared { phase: Mutex::new(&READ_AHEAD, Phase::UnderWay), arrived: Condvar::new() });
        let (theirs, device) = (shared.clone(), job.device.clone());
        let resource = job.wanted.first().map_or(WaitResource::None, |wanted| job.pool_file.resource(wanted.page));
        device.start_task(Box::new(move || job.run(&theirs)));
        Self { shared, resource }
    }

    /// Waits until it is done. Who has to wait waits for pages to be read, by that name.
    pub(super) fn wait(mut self) -> Fetched {
        if let Some(fetched) = Self::taken(&mut self.shared.phase.lock()) {
            return fetched;
        }
        let _waiting = wait::enter_on(WaitKind::PageIoLatchShared, std::mem::take(&mut self.resource));
        let mut phase = self.shared.phase.lock();
        loop {
            match Self::taken(&mut phase) {
                Some(fetched) => return fetched,
                None => self.shared.arrived.wait(&mut phase),
            }
        }
    }

    fn taken(phase: &mut Phase) -> Option<Fetched> {
        // Abandoned is also right for a part whose outcome is taken: there is nothing left to wait for.
        match std::mem::replace(phase, Phase::Abandoned) {
            Phase::Done(fetched) => Some(fetched),
            before => {
                *phase = before;
                None
            }
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let mut phase = self.shared.phase.lock();
        while matches!(*phase, Phase::LettingIn) {
            self.shared.arrived.wait(&mut phase);
        }
        *phase = Phase::Abandoned;
    }
}

impl Job {
    fn run(mut self, shared: &Shared) {
        if !shared.go_on(Phase::UnderWay) {
            return;
        }
        if self.read() {
            self.verify();
            if !shared.go_on(Phase::LettingIn) {
                return;
            }
            self.let_in();
        }
        shared.go_on(Phase::Done(Fetched { wanted: self.wanted, runs: self.runs }));
    }

    fn read(&mut self) -> bool {
        let mut requests: Vec<ReadRequest<'_>> =
            self.runs.iter_mut().map(|run| ReadRequest { offset: u64::from(run.first) * PAGE_BYTES as u64, buffer: run.bytes() }).collect();
        self.device.read(&mut requests).is_ok()
    }

    fn verify(&mut self) {
        let mut run = 0;
        for wanted in &mut self.wanted {
            // Wanted pages and runs are both in file order.
            while self.runs[run].first as usize + self.runs[run].pages <= wanted.page as usize {
                run += 1;
            }
            let id = PageId { file: self.file, page: wanted.page };
            wanted.sound = self.runs[run].page(wanted.page).is_some_and(|bytes| is_sound(id, bytes, self.written.at_least(id)));
        }
    }

    /// Lets sound pages into the pool as far as that takes no frame from others.
    fn let_in(&mut self) {
        if self.group.as_ref().is_some_and(|group| !group.has_room_for(self.wanted.len(), &self.pool)) {
            return;
        }
        // Nodes are come back to; leaves of a scan are not.
        let hint = if self.group.is_none() { AccessHint::Keep } else { AccessHint::Once };
        let mut admitted = 0;
        for wanted in self.wanted.iter().filter(|wanted| wanted.sound) {
            let Some(bytes) = self.runs.iter().find_map(|run| run.page(wanted.page)) else { continue };
            let Some(mut loading) = self.pool.begin_load_since(&self.pool_file, wanted.page, wanted.mark) else { continue };
            loading.bytes().copy_from_slice(bytes);
            loading.install(Loaded::Clean, hint, false);
            admitted += 1;
        }
        if let Some(group) = &self.group {
            group.admitted(admitted);
        }
    }
}

/// Whether bytes that were read are page `id`, whole and sound, with an LSN of `lsn_min` at least.
fn is_sound(id: PageId, bytes: &PageBytes, lsn_min: Lsn) -> bool {
    matches!(checksum::verify(bytes, id), Ok(Content::Whole))
        // Older than what was written: the pool repairs it.
        && header::lsn(bytes) >= lsn_min
        && verify::first_violation(bytes, id).is_none()
}
