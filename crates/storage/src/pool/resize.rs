//! Fewer or more frames in service: how the pool gives memory back to the system, and takes it again.
//!
//! ```text
//! frames:  0 ........ serving ........ all        below: in service        from there on: emptied, one by one
//!                                                 page clean, unused: dropped; else moved to a free frame below
//! ```
//! Pages that are in use by others meanwhile stay where they are; their frames go out of service when they become free
//! ([`Pool::put_back`]). Nothing is read or written to make the pool smaller, unless all of it is dirty.
//!
//! Invariants: 1. a frame from `serving` on is never in the free list, and one below never in the retired list
//! ([`FreeFrames`], all under its lock). 2. Memory is released while the frame belongs to nobody but the caller. 3. A page
//! moves under its exclusive latch, dirty or not, with all that is known of it, and never while it is being written: the
//! writer knows it by its frame.
//!
//! Locks: page latches are only tried, `BUFFER_TABLES` and `BUFFER_FREE_LIST` (5) one at a time or under a latch. Callers
//! hold no latch. Failure: a write of dirty pages that fails leaves the pool larger than it should be.

use super::{CLEAN, DIRTY, FRAME_BYTES, FRAMES_MIN, Pool, PoolFile, WRITING};
use crate::memory::Yielding;
use crate::page::PAGE_BYTES;
use crate::pool::word::Tried;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Turns of emptying, with a write of dirty pages between them.
const TURNS: usize = 3;
/// Dirty pages that are written between two turns.
const WRITE_PAGES: usize = 256;

/// Frames that hold no page.
pub(super) struct FreeFrames {
    /// Of those in service; popped from the end, so that the arena is touched from its start as it is needed.
    free: Vec<u32>,
    /// Out of service, and without memory.
    retired: Vec<u32>,
    /// How many are in service.
    serving: u32,
    /// How many were ever used: the first ones.
    touched: u32,
}

impl FreeFrames {
    pub(super) fn all(frames: usize) -> Self {
        let serving = u32::try_from(frames).expect("28 bits");
        Self { free: (0..serving).rev().collect(), retired: Vec::new(), serving, touched: 0 }
    }

    pub(super) fn serving(&self) -> usize {
        self.serving as usize
    }

    pub(super) fn len(&self) -> usize {
        self.free.len()
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        let frame = self.free.pop()?;
        self.touched = self.touched.max(frame + 1);
        Some(frame)
    }

    /// Whether so many serve, of `all`, and the others hold no page and no memory.
    fn is_settled(&self, serving: u32, all: u32) -> bool {
        self.serving == serving && self.retired.len() == (all - serving) as usize
    }

    /// Changes how many serve. Returns free frames that do so no longer.
    fn set_serving(&mut self, serving: u32) -> Vec<u32> {
        self.serving = serving;
        let (back, retired): (Vec<u32>, Vec<u32>) = self.retired.drain(..).partition(|frame| *frame < serving);
        self.retired = retired;
        let (free, gone): (Vec<u32>, Vec<u32>) = self.free.drain(..).partition(|frame| *frame < serving);
        self.free = free;
        self.free.extend(back);
        // As at first: low frames first.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        gone
    }
}

impl Pool {
    /// Gives frames back that hold no page; those out of service lose their memory.
    pub(super) fn put_back(&self, frames: &[u32]) {
        let mut free = self.free.lock();
        let serving = free.serving;
        free.free.extend(frames.iter().filter(|frame| **frame < serving));
        drop(free);
        for frame in frames.iter().filter(|frame| **frame >= serving) {
            self.retire(vec![*frame]);
        }
    }

    /// Takes frames that belong to the caller out of service. Some may be in service again by now.
    fn retire(&self, mut frames: Vec<u32>) {
        frames.sort_unstable();
        for run in frames.chunk_by(|a, b| a + 1 == *b) {
            self.arena.release(run[0], run.len());
        }
        let mut free = self.free.lock();
        for frame in frames {
            if frame < free.serving {
                free.free.push(frame);
            } else {
                free.retired.push(frame);
            }
        }
    }

    /// Serves with `frames` frames from now on.
    pub(super) fn serve(&self, frames: usize) {
        let frames = u32::try_from(frames.clamp(FRAMES_MIN, self.frames.len())).expect("28 bits");
        let all = u32::try_from(self.frames.len()).expect("28 bits");
        let mut free = self.free.lock();
        // Asked at every turn of the background: going through the free frames then would cost what the machine's size makes of it.
        if free.is_settled(frames, all) {
            return;
        }
        let gone = free.set_serving(frames);
        drop(free);
        self.retire(gone);
        for turn in 0..TURNS {
            let (mut emptied, mut left) = (Vec::new(), false);
            // Once nothing can be freed below, what is left waits for the next turn.
            let mut room = true;
            for frame in frames..all {
                match self.vacate(frame, &mut room) {
                    Vacated::Nothing => {}
                    Vacated::Frame => emptied.push(frame),
                    Vacated::InUse => left = true,
                }
            }
            self.retire(emptied);
            if !left || turn + 1 == TURNS {
                return;
            }
            self.write_some();
        }
    }

    /// Empties a frame; it belongs to the caller then.
    fn vacate(&self, frame: u32, room: &mut bool) -> Vacated {
        let place = self.meta(frame).place.load(Ordering::Relaxed);
        let file = (place >> 32).checked_sub(1).and_then(|number| self.files.read().get(usize::try_from(number).ok()?)?.clone());
        let Some(file) = file else { return Vacated::Nothing };
        let word = file.table.word(place as u32);
        let Tried::Latched(found) = word.try_exclusive(false) else { return Vacated::InUse };
        if found != frame {
            word.leave(Some(found), false);
            return Vacated::Nothing;
        }
        let meta = self.meta(frame);
        let state = meta.state.load(Ordering::Acquire);
        if state == CLEAN && !meta.referenced.load(Ordering::Relaxed) {
            self.release(frame);
            word.leave(None, false);
            return Vacated::Frame;
        }
        if state & WRITING != 0 {
            word.leave(Some(frame), false);
            return Vacated::InUse;
        }
        let below = if *room { self.free_frame() } else { None };
        *room = below.is_some();
        match below {
            Some(below) => {
                self.move_page(frame, below);
                word.leave(Some(below), false);
                Vacated::Frame
            }
            None if state == CLEAN => {
                self.release(frame);
                word.leave(None, false);
                Vacated::Frame
            }
            None => {
                word.leave(Some(frame), false);
                Vacated::InUse
            }
        }
    }

    /// Moves a page, whose exclusive latch is held, from one frame to another.
    #[allow(unsafe_code)]
    fn move_page(&self, from: u32, to: u32) {
        assert!(from != to, "a page moves to another frame");
        // SAFETY: `from` is the page's, whose exclusive latch the caller holds; `to` came from the free list.
        unsafe { std::ptr::copy_nonoverlapping(self.arena.frame(from), self.arena.frame(to), 1) };
        let (old, new) = (self.meta(from), self.meta(to));
        for (old, new) in
            [(&old.place, &new.place), (&old.recovery, &new.recovery), (&old.group_end, &new.group_end), (&old.afresh, &new.afresh)]
        {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        new.changes.store(old.changes.load(Ordering::Relaxed), Ordering::Relaxed);
        new.referenced.store(old.referenced.load(Ordering::Relaxed), Ordering::Relaxed);
        let state = old.state.load(Ordering::Acquire);
        assert!(state == CLEAN || state == DIRTY, "a page that is being written stays");
        new.state.store(state, Ordering::Release);
        self.release(from);
    }

    /// Has dirty pages of every database written, so that frames become clean.
    fn write_some(&self) {
        let owners: Vec<_> = self.files.read().iter().flatten().filter_map(|file: &Arc<PoolFile>| file.owner.upgrade()).collect();
        for owner in owners {
            // Who needs the page or the log meets the error; here the pool only stays larger.
            let _ = owner.write_back(WRITE_PAGES);
        }
    }
}

enum Vacated {
    /// There was no page in it.
    Nothing,
    /// It is the caller's now.
    Frame,
    /// Somebody uses the page, or there is no place for it.
    InUse,
}

impl Yielding for Pool {
    fn serving_bytes(&self) -> u64 {
        (self.frame_count() * FRAME_BYTES) as u64
    }

    fn resident_bytes(&self) -> u64 {
        let free = self.free.lock();
        u64::from(free.touched.min(free.serving)) * PAGE_BYTES as u64
    }

    fn serve_with(&self, bytes: u64) {
        self.serve(usize::try_from(bytes).unwrap_or(usize::MAX) / FRAME_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{load_number, nobody};
    use super::*;
    use crate::ids::Lsn;
    use crate::pool::AccessHint;

    fn retired(pool: &Pool) -> usize {
        pool.free.lock().retired.len()
    }

    fn read(pool: &Pool, file: &PoolFile, page: u32) -> [u8; 4] {
        let read = pool.read(file, page, AccessHint::Keep, &mut load_number(page)).expect("reads");
        *read.first_chunk().expect("a page is longer")
    }

    #[test]
    fn a_smaller_pool_keeps_what_is_dirty_and_a_larger_one_serves_again() {
        let pool = Pool::new(4 << 20);
        let (file, all) = (pool.register(1, 1, nobody()), pool.frame_count());
        assert!(all > FRAMES_MIN, "{all}");
        for page in 0..all as u32 {
            assert_eq!(read(&pool, &file, page), page.to_le_bytes());
        }
        for page in (0..all as u32).step_by(5) {
            let mut write = pool.write(&file, page, true, &mut load_number(page)).expect("latches").expect("waits");
            write[4] = 77;
            assert!(write.mark_dirty(Lsn(u64::from(page) + 1)));
            write.set_group_end(Lsn(u64::from(page) + 2), None);
        }
        pool.serve(FRAMES_MIN);
        assert_eq!(pool.frame_count(), FRAMES_MIN);
        {
            let free = pool.free.lock();
            assert!(free.is_settled(FRAMES_MIN as u32, all as u32) && !free.is_settled(all as u32, all as u32));
            assert_eq!(free.retired.len(), all - FRAMES_MIN, "every frame beyond is out of service");
            assert!(free.free.iter().all(|frame| (*frame as usize) < FRAMES_MIN));
        }
        assert!((0..all as u32).filter(|page| file.is_present(*page)).count() <= FRAMES_MIN);
        for page in (0..all as u32).step_by(5) {
            assert!(file.is_present(page), "a dirty page is not lost");
            let read = pool.read(&file, page, AccessHint::Once, &mut load_number(0)).expect("is there");
            assert_eq!((read[..4].to_vec(), read[4]), (page.to_le_bytes().to_vec(), 77));
            let mut out = [0; PAGE_BYTES];
            drop(read);
            let begun = pool.begin_write(&file, page, &mut out);
            let crate::pool::BegunWrite::Begun { frame, recovery, group_end, .. } = begun else { panic!("{begun:?}") };
            assert_eq!((recovery.0, group_end.0), (u64::from(page) + 1, u64::from(page) + 2));
            pool.end_write(frame, None);
        }
        pool.serve(all);
        assert_eq!((pool.frame_count(), retired(&pool)), (all, 0));
        for page in 0..all as u32 {
            assert_eq!(read(&pool, &file, page), page.to_le_bytes());
        }
        pool.forget(&file);
        assert_eq!(pool.free_count(), all);
    }

    #[test]
    fn a_latched_page_stays_and_its_frame_goes_later() {
        let pool = Pool::new(4 << 20);
        let (file, all) = (pool.register(1, 1, nobody()), pool.frame_count());
        (0..all as u32).for_each(|page| assert_eq!(read(&pool, &file, page), page.to_le_bytes()));
        let last = all as u32 - 1;
        let held = pool.read(&file, last, AccessHint::Keep, &mut load_number(last)).expect("reads");
        pool.serve(FRAMES_MIN);
        assert_eq!(held[..4], last.to_le_bytes());
        assert_eq!(retired(&pool), all - FRAMES_MIN - 1);
        assert!(!pool.free.lock().is_settled(FRAMES_MIN as u32, all as u32), "the next turn tries again");
        drop(held);
        pool.serve(FRAMES_MIN);
        assert!(pool.free.lock().is_settled(FRAMES_MIN as u32, all as u32));
        pool.forget(&file);
        assert_eq!((retired(&pool), pool.free_count()), (all - FRAMES_MIN, FRAMES_MIN));
    }

    #[test]
    fn threads_read_and_change_while_the_size_changes() {
        let pool = Pool::new(4 << 20);
        let (file, all) = (pool.register(1, 1, nobody()), pool.frame_count());
        std::thread::scope(|scope| {
            for thread in 0..3_u32 {
                let (pool, file) = (&pool, &file);
                scope.spawn(move || {
                    for step in 0..6_000_u32 {
                        let page = (step * 7 + thread * 131) % 600;
                        assert_eq!(read(pool, file, page), page.to_le_bytes());
                    }
                });
            }
            for turn in 0..60 {
                pool.serve(if turn % 2 == 0 { FRAMES_MIN } else { all });
            }
        });
        pool.serve(all);
        pool.forget(&file);
        assert_eq!(pool.free_count(), all);
    }
}
