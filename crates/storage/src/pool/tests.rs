//! Frames under pressure and threads.

use super::*;
use std::sync::OnceLock;

struct Nobody;
impl WriteBack for Nobody {
    fn write_back(&self, _pages_max: usize) -> Result<usize, StorageError> {
        Ok(0)
    }
}

pub(super) fn nobody() -> Weak<dyn WriteBack> {
    static NOBODY: OnceLock<Arc<Nobody>> = OnceLock::new();
    let strong: Arc<dyn WriteBack> = NOBODY.get_or_init(|| Arc::new(Nobody)).clone();
    Arc::downgrade(&strong)
}

pub(super) fn load_number(page: u32) -> impl FnMut(&mut PageBytes) -> Result<Loaded, StorageError> {
    move |bytes| {
        bytes.fill(0);
        bytes[..4].copy_from_slice(&page.to_le_bytes());
        Ok(Loaded::Clean)
    }
}

#[test]
fn more_pages_than_frames_are_read_right() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    for round in 0..2 {
        for page in 0..2_000 {
            let read = pool.read(&file, page, AccessHint::Keep, &mut load_number(page)).expect("reads");
            assert_eq!(read[..4], page.to_le_bytes(), "round {round}");
        }
    }
    assert!((0..2_000).filter(|page| file.is_present(*page)).count() <= pool.frame_count());
    pool.forget(&file);
    assert_eq!(pool.free_count(), pool.frame_count());
}

#[test]
fn a_dirty_page_is_never_evicted_and_a_pool_of_them_is_exhausted() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    for page in 0..u32::try_from(pool.frame_count()).expect("small") {
        let mut write = pool.write_new(&file, page).expect("has a frame");
        write[0] = 1;
        assert!(write.mark_dirty(Lsn(5)));
    }
    assert!(matches!(pool.read(&file, 9_999, AccessHint::Keep, &mut load_number(1)), Err(StorageError::PoolExhausted)));
    let mut copy = [0; PAGE_BYTES];
    let BegunWrite::Begun { frame, recovery, .. } = pool.begin_write(&file, 3, &mut copy) else { panic!("it is dirty") };
    assert_eq!((copy[0], recovery), (1, Lsn(5)));
    assert_eq!(pool.begin_write(&file, 3, &mut copy), BegunWrite::Busy);
    assert!(!pool.end_write(frame, None));
    assert_eq!(pool.begin_write(&file, 3, &mut copy), BegunWrite::Clean);
    pool.read(&file, 9_999, AccessHint::Keep, &mut load_number(1)).expect("page 3 makes room");
    assert!(!file.is_present(3));
}

#[test]
fn a_page_changed_while_it_is_written_stays_dirty_and_a_failed_write_makes_it_so() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    let change = |lsn| pool.write(&file, 1, true, &mut load_number(1)).expect("latches").expect("waits").mark_dirty(Lsn(lsn));
    let mut copy = [0; PAGE_BYTES];
    assert!(change(10));
    let BegunWrite::Begun { frame, .. } = pool.begin_write(&file, 1, &mut copy) else { panic!("dirty") };
    assert!(change(20), "clean to the list, so it is listed again");
    assert!(!pool.end_write(frame, Some(Lsn(10))), "on the list already");
    let BegunWrite::Begun { recovery, .. } = pool.begin_write(&file, 1, &mut copy) else { panic!("dirty") };
    assert_eq!(recovery, Lsn(10));
    assert!(pool.end_write(frame, Some(Lsn(10))));
}

#[test]
fn a_page_made_dirty_without_a_record_is_written_behind_its_own_lsn() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    // Every frame has been another page's, whose group ended early.
    for page in 0..2 * pool.frame_count() as u32 {
        let mut load = |bytes: &mut PageBytes| {
            header::set_lsn_number(bytes, 1_000 + u64::from(page));
            Ok(Loaded::Clean)
        };
        let mut write = pool.write(&file, page, true, &mut load).expect("latches").expect("waits");
        write.mark_dirty(Lsn(5_000));
        drop(write);
        let mut copy = [0; PAGE_BYTES];
        let BegunWrite::Begun { frame, group_end, .. } = pool.begin_write(&file, page, &mut copy) else { panic!("dirty") };
        assert_eq!(group_end, header::lsn(&copy), "page {page}");
        pool.end_write(frame, None);
    }
}

#[test]
fn a_failed_load_or_an_unused_new_page_leaves_nothing() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    let failed = pool.read(&file, 1, AccessHint::Keep, &mut |_| Err(StorageError::Poisoned));
    assert!(matches!(failed, Err(StorageError::Poisoned)));
    drop(pool.write_new(&file, 1).expect("has a frame"));
    assert!(!file.is_present(1));
    assert_eq!(pool.free_count(), pool.frame_count());
}

#[test]
fn threads_read_and_change_under_eviction() {
    let pool = Pool::new(0);
    let file = pool.register(1, 1, nobody());
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (pool, file) = (&pool, &file);
            scope.spawn(move || {
                let mut page = thread;
                for _ in 0..5_000 {
                    page = (page.wrapping_mul(1_103_515_245).wrapping_add(12_345)) >> 3;
                    let page = page % 700;
                    if page % 5 == thread {
                        // Changed and restored under the exclusive latch: no reader may ever see the change.
                        let mut write = pool.write(file, page, true, &mut load_number(page)).expect("latches").expect("waits");
                        write.fill(0xee);
                        load_number(page)(&mut write).expect("restores");
                    } else {
                        let read = pool.read(file, page, AccessHint::Keep, &mut load_number(page)).expect("reads");
                        assert_eq!(read[..4], page.to_le_bytes());
                        assert_eq!(read[5], 0);
                    }
                }
            });
        }
    });
}
