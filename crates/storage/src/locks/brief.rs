//! Brief reads: an object kept from changing its definition for the time of one look, without an entry in the lock table.
//!
//! ```text
//! reader:  slot := object ── fence ── gate of the object shut?  no: look, slot := 0      yes: slot := 0, use the lock table
//! Sch-M:   gate of the object + 1 ── fence ── lock table grants ── every slot naming the object becomes 0 ── granted
//!          ... release: gate - 1
//! ```
//! A look is a descent of one tree: its reader waits for pages and latches, never for a lock. So who wants Sch-M waits for
//! it without being part of any circle, and a point read costs two stores to a line of its own instead of two visits
//! to the lock table.
//!
//! Invariants: 1. While Sch-M on an object is held, no slot names the object: either the reader's store to the slot comes
//! first and [`BriefReads::drain`] sees it, or the shutting of the gate does and [`BriefReader::enter`] sees that; both are
//! sequentially consistent, so one of the two holds. 2. A gate counts those who hold or ask for Sch-M on objects of its
//! hash: it is opened as often as it was shut (`LockManager` does both). Two objects of one gate only cost time.
//!
//! Locks: BRIEF_READERS (rank 5), for the list of slots. Brief reads are not in `sys.dm_tran_locks`. Failure: none; a reader
//! that panics gives its slot back while unwinding.

use super::{Resource, ResourceKind};
use crate::hash::FastHash;
use observe::sync::{LockClass, Mutex};
use observe::wait::{self, WaitKind};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use thawdb_device::Env;
use thawdb_observe as observe;

static BRIEF_READERS: LockClass = LockClass::new("BRIEF_READERS", 5);

/// A power of two: with so many, two tables that change at the same time seldom share one.
const GATE_COUNT: usize = 1024;
/// Turns of looking again before the waiter sleeps: a look at pages in memory takes about a microsecond.
const TURNS: u32 = 200;
/// Then a page is being read from a device.
const SLEEP: Duration = Duration::from_micros(50);

/// A slot on a cache line of its own: 0, or the name of the object being looked at.
#[repr(align(64))]
struct Slot(AtomicU64);

/// All brief readers of an instance.
pub(super) struct BriefReads {
    gates: Box<[AtomicU32]>,
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// One who reads briefly: a session. It looks at one object at a time.
pub struct BriefReader {
    reads: Arc<BriefReads>,
    slot: Arc<Slot>,
}

/// While it lives, the object does not change its definition.
#[must_use = "the object may change once this is dropped"]
pub struct BriefRead<'r>(&'r Slot);

/// What a slot says for a resource: never 0.
fn name_of(resource: Resource) -> u64 {
    FastHash.hash_one(resource) | 1
}

impl BriefReads {
    pub(super) fn new() -> Self {
        Self { gates: (0..GATE_COUNT).map(|_| AtomicU32::new(0)).collect(), slots: Mutex::new(&BRIEF_READERS, Vec::new()) }
    }

    fn gate(&self, name: u64) -> &AtomicU32 {
        &self.gates[(name >> 40) as usize % GATE_COUNT]
    }

    /// Who asks for Sch-M shuts the gate before the lock table is asked.
    pub(super) fn shut(&self, resource: Resource) {
        debug_assert_eq!(resource.kind, ResourceKind::Object, "only objects are read briefly");
        // SeqCst: before the looks at the slots in `drain`, in the one order that readers are in too.
        self.gate(name_of(resource)).fetch_add(1, Ordering::SeqCst);
    }

    /// Sch-M is given back, or was not granted.
    pub(super) fn open(&self, resource: Resource) {
        let before = self.gate(name_of(resource)).fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a gate is opened by who has shut it");
    }

    /// Waits until nobody looks at the object any more; its gate is shut.
    pub(super) fn drain(&self, resource: Resource, env: &Env) {
        let name = name_of(resource);
        let busy: Vec<Arc<Slot>> = self.slots.lock().iter().filter(|slot| slot.0.load(Ordering::SeqCst) == name).cloned().collect();
        if busy.is_empty() {
            return;
        }
        let waiting = wait::enter(WaitKind::LockSchemaModification);
        for slot in busy {
            let mut turn = 0;
            while slot.0.load(Ordering::SeqCst) == name {
                observe::sync::point();
                turn += 1;
                if turn < TURNS { std::thread::yield_now() } else { env.clock.sleep(SLEEP) }
            }
        }
        drop(waiting);
    }
}

impl BriefReader {
    pub(super) fn new(reads: &Arc<BriefReads>) -> Self {
        let slot = Arc::new(Slot(AtomicU64::new(0)));
        reads.slots.lock().push(slot.clone());
        Self { reads: reads.clone(), slot }
    }

    /// Begins to look at an object; `None` if somebody changes its definition or is about to: then the lock table decides.
    #[inline]
    pub fn enter(&self, object: Resource) -> Option<BriefRead<'_>> {
        let name = name_of(object);
        debug_assert_eq!(self.slot.0.load(Ordering::Relaxed), 0, "a reader looks at one object at a time");
        // SeqCst: before the look at the gate, in the one order that `shut` and `drain` are in too.
        self.slot.0.store(name, Ordering::SeqCst);
        observe::sync::point();
        let read = BriefRead(&self.slot);
        (self.reads.gate(name).load(Ordering::SeqCst) == 0).then_some(read)
    }
}

impl Drop for BriefReader {
    fn drop(&mut self) {
        self.reads.slots.lock().retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

impl Drop for BriefRead<'_> {
    fn drop(&mut self) {
        // Release: what was looked at was looked at before.
        self.0.0.store(0, Ordering::Release);
    }
}

impl std::fmt::Debug for BriefReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BriefReader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::locks::{LockManager, LockMode, LockWait, Resource, ResourceKind};
    use observe::explore;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use thawdb_device::os;
    use thawdb_observe as observe;

    fn table() -> Resource {
        Resource { database: 1, kind: ResourceKind::Object, container: 77, item: 0 }
    }

    #[test]
    fn a_gate_is_shut_while_a_definition_changes_and_open_again_after() {
        let locks = LockManager::new(os::env());
        let reader = locks.brief_reader();
        let mut owner = locks.owner();
        drop(reader.enter(table()).expect("nobody changes it"));
        locks.acquire(&mut owner, table(), LockMode::SchM, LockWait::default()).unwrap();
        assert!(reader.enter(table()).is_none());
        locks.acquire(&mut owner, table(), LockMode::SchM, LockWait::default()).unwrap();
        locks.release_all(&mut owner);
        drop(reader.enter(table()).expect("given back"));
        locks.acquire(&mut owner, table(), LockMode::SchS, LockWait::default()).unwrap();
        locks.acquire(&mut owner, table(), LockMode::SchM, LockWait::default()).unwrap();
        assert!(reader.enter(table()).is_none());
        locks.release(&mut owner, table());
        assert!(reader.enter(table()).is_some());
    }

    #[test]
    fn a_request_that_fails_opens_the_gate_again() {
        let locks = LockManager::new(os::env());
        let reader = locks.brief_reader();
        let (mut one, mut two) = (locks.owner(), locks.owner());
        locks.acquire(&mut one, table(), LockMode::IX, LockWait::default()).unwrap();
        let no_wait = LockWait { timeout: Some(std::time::Duration::ZERO), ..LockWait::default() };
        assert!(locks.acquire(&mut two, table(), LockMode::SchM, no_wait).is_err());
        assert!(reader.enter(table()).is_some(), "IX and a failed request change nothing for readers");
        locks.release_all(&mut one);
        locks.release_all(&mut two);
    }

    /// Two hundred schedules of a reader and one who changes the definition: never both inside.
    #[test]
    fn no_look_falls_into_a_change() {
        let outcome = explore::search(0..200, || {
            let locks = Arc::new(LockManager::new(os::env()));
            let changing = Arc::new(AtomicBool::new(false));
            let (theirs, flag) = (locks.clone(), changing.clone());
            let mut owner = locks.owner();
            let reader = locks.brief_reader();
            let look: explore::Body<'_> = Box::new(move || {
                for _ in 0..2 {
                    if let Some(read) = reader.enter(table()) {
                        assert!(!flag.load(Ordering::SeqCst), "a look in the middle of a change");
                        observe::sync::point();
                        assert!(!flag.load(Ordering::SeqCst), "a change in the middle of a look");
                        drop(read);
                    }
                }
            });
            let change: explore::Body<'_> = Box::new(move || {
                theirs.acquire(&mut owner, table(), LockMode::SchM, LockWait::default()).unwrap();
                changing.store(true, Ordering::SeqCst);
                observe::sync::point();
                changing.store(false, Ordering::SeqCst);
                theirs.release_all(&mut owner);
            });
            vec![look, change]
        });
        assert_eq!(outcome, Ok(()));
    }
}
