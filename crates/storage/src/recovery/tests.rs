//! Random mini-transactions against a model, with crashes of the simulated machine: what recovery brings back is exactly
//! a prefix of the work that holds everything acknowledged.

use super::*;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use crate::log::LogHoldup;
use crate::mini::{Mini, UnitSpec};
use crate::page::op::MAP_BEGIN;
use crate::page::{Entry, Format, PageOp, PageType, Slotted, header, verify};
use crate::pool::{Pool, WriteBack};
use crate::space::{Unit, layout};
use crate::spec::{DatabaseSpec, FileKind, FileSpec};
use crate::store::Store;
use std::sync::Arc;
use thawdb_device::sim::{CrashPoint, Fault, FaultRule, Operation, SimOptions, Simulation};
use thawdb_observe::seeded::SeededRandom;

const MIB: u64 = 1 << 20;
/// The smallest pool there is: 256 frames.
const POOL_BYTES: u64 = 0;
const LOG_BYTES: u64 = 3 * MIB / 2;
const LEAF: Format = Format { page_type: PageType::Leaf, tree: TreeId(7), object_id: 1, index_id: 1, level: 0, creator: TxnId(0) };

type Pages = BTreeMap<PageId, BTreeMap<u32, Vec<u8>>>;

/// One mini-transaction's work, as the model repeats it.
#[derive(Clone)]
enum Step {
    Make(PageId),
    Put(PageId, u32, Vec<u8>),
    Take(PageId, u32),
    Free(PageId),
    Bulk(Vec<PageId>),
}

/// What the work so far should have made.
#[derive(Clone, Default)]
struct Model {
    pages: Pages,
    steps: Vec<Vec<Step>>,
}

impl Model {
    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Make(page) => drop(self.pages.insert(*page, BTreeMap::new())),
                Step::Put(page, key, value) => drop(self.pages.get_mut(page).expect("made").insert(*key, value.clone())),
                Step::Take(page, key) => drop(self.pages.get_mut(page).expect("made").remove(key)),
                Step::Free(page) => drop(self.pages.remove(page)),
                Step::Bulk(pages) => {
                    for page in pages {
                        self.pages.insert(*page, BTreeMap::from([(page.page, b"bulk".to_vec())]));
                    }
                }
            }
        }
        self.steps.push(steps.to_vec());
    }

    /// The model after the first `count` steps.
    fn after(&self, count: usize) -> Self {
        let mut model = Self::default();
        self.steps[..count].iter().for_each(|steps| model.run(steps));
        model
    }
}

struct Counting {
    base: u64,
    last: u64,
}

impl RecoveryListener for Counting {
    fn table(&mut self, transactions: &[u8]) {
        self.base = transactions.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        self.last = self.base;
    }

    fn record(&mut self, _lsn: Lsn, payload: &[u8]) {
        let number = u64::from_le_bytes(*payload.first_chunk().expect("eight bytes"));
        assert!(number <= self.last + 1, "records come in order, some perhaps again");
        self.last = self.last.max(number);
    }
}

/// The number of steps committed, as the transactions' half would keep its table.
struct Table(Arc<std::sync::atomic::AtomicU64>);

impl crate::checkpoint::TransactionTable for Table {
    fn snapshot(&self, log_end: &dyn Fn() -> Lsn) -> (Lsn, Vec<u8>) {
        (log_end(), self.0.load(Ordering::Relaxed).to_le_bytes().to_vec())
    }
}

fn file(name: &str, kind: FileKind, size_bytes: u64, growth_bytes: u64) -> FileSpec {
    FileSpec { name: name.into(), path: format!("/{name}").into(), kind, size_bytes, size_bytes_max: Some(64 * MIB), growth_bytes }
}

fn spec(log_bytes: u64) -> DatabaseSpec {
    let files = vec![
        file("data", FileKind::Rows { filegroup: 1 }, 2 * MIB, MIB),
        file("more", FileKind::Rows { filegroup: 1 }, 2 * MIB, MIB),
        file("log", FileKind::Log, log_bytes, 0),
    ];
    DatabaseSpec { name: "crash".into(), files, temporary: false }
}

struct Run {
    simulation: Simulation,
    random: SeededRandom,
    store: Arc<Store>,
    unit: Unit,
    model: Model,
    committed: Arc<std::sync::atomic::AtomicU64>,
    acknowledged: usize,
}

impl Run {
    fn new(seed: u64, tear_bytes: usize) -> Self {
        Self::with_log(seed, tear_bytes, LOG_BYTES)
    }

    fn with_log(seed: u64, tear_bytes: usize, log_bytes: u64) -> Self {
        let simulation = Simulation::new(SimOptions { tear_bytes, ..SimOptions::new(seed) });
        let store = Store::create(&Pool::new(POOL_BYTES), &simulation.env(), 5, &spec(log_bytes)).expect("creates");
        let mut mini = Mini::begin(&store, TxnId(1));
        let unit = mini.create_unit(UnitSpec { tree: TreeId(7), object_id: 1, index_id: 1, filegroup: 1 }).expect("creates");
        mini.patch_boot(0, &[unit.0.page.to_le_bytes()[0], unit.0.file as u8]).expect("patches");
        let end = mini.commit().expect("commits");
        store.flush_log(end).expect("flushes");
        let run = Self {
            simulation,
            random: SeededRandom::new(seed),
            store,
            unit,
            model: Model::default(),
            committed: Arc::default(),
            acknowledged: 0,
        };
        run.set_table();
        run
    }

    fn set_table(&self) {
        self.store.set_transaction_table(Arc::new(Table(self.committed.clone())));
    }

    /// One mini-transaction and what surrounds it; an error is the crash.
    fn step(&mut self) -> Result<(), StorageError> {
        match self.random.below(40) {
            0 => self.store.checkpoint()?,
            1 | 2 => drop(self.store.write_back(60)?),
            3 => drop(self.store.redo_step()?),
            _ => {}
        }
        if self.random.below(60) == 0 {
            return self.bulk();
        }
        let store = self.store.clone();
        let pages: Vec<PageId> = self.model.pages.keys().copied().collect();
        let mut mini = Mini::begin(&store, TxnId(self.model.steps.len() as u64));
        let mut steps = Vec::new();
        let mut freed = None;
        if self.random.below(30) == 0
            && let Some(page) = any(&mut self.random, &pages)
        {
            mini.free(self.unit, page)?;
            steps.push(Step::Free(page));
            freed = Some(page);
        }
        for _ in 0..1 + self.random.below(4) {
            let page = any(&mut self.random, &pages).filter(|page| Some(*page) != freed);
            let make = self.random.below(12) == 0;
            match page.filter(|_| !make) {
                None => {
                    let leaf = mini.allocate(self.unit, LEAF)?;
                    steps.push(Step::Make(mini.id(leaf)));
                }
                Some(page) => steps.extend(change(&mut mini, &mut self.random, page)?),
            }
        }
        if self.random.below(10) == 0 {
            return Ok(());
        }
        self.finish(mini, &steps)
    }

    fn bulk(&mut self) -> Result<(), StorageError> {
        let store = self.store.clone();
        let mut mini = Mini::begin(&store, TxnId(0));
        let run = mini.allocate_run(self.unit, 3)?;
        mini.commit()?;
        let first = PageId { file: run.file, page: layout::page_of(run.extent) };
        let ids: Vec<PageId> = (0..run.count * 8).map(|at| PageId { page: first.page + at, ..first }).collect();
        let pages: Vec<PageBytes> = ids.iter().map(|id| bulk_page(*id)).collect();
        store.write_new_pages(first, &pages, TxnId(1))?;
        self.finish(Mini::begin(&store, TxnId(0)), &[Step::Bulk(ids)])
    }

    fn finish(&mut self, mut mini: Mini<'_>, steps: &[Step]) -> Result<(), StorageError> {
        mini.log_only(&(self.model.steps.len() as u64 + 1).to_le_bytes());
        let end = mini.commit()?;
        self.model.run(steps);
        self.committed.store(self.model.steps.len() as u64, Ordering::Relaxed);
        if self.random.below(6) == 0 {
            self.store.flush_log(end)?;
            self.acknowledged = self.model.steps.len();
        }
        Ok(())
    }

    /// Restarts the machine, opens the database and compares it with the model.
    fn recover(&mut self) {
        self.store.discard_all();
        self.simulation.restart();
        let mut heard = Counting { base: 0, last: 0 };
        let env = self.simulation.env();
        self.store = Store::open(&Pool::new(POOL_BYTES), &env, "crash", 5, "/data".as_ref(), &mut heard).expect("opens");
        let count = heard.last as usize;
        assert!((self.acknowledged..=self.model.steps.len()).contains(&count), "{} acknowledged, {count} there", self.acknowledged);
        self.model = self.model.after(count);
        self.committed.store(heard.last, Ordering::Relaxed);
        self.acknowledged = count;
        self.set_table();
        if self.random.below(2) == 0 {
            self.compare();
        }
    }

    fn compare(&self) {
        for (page, rows) in &self.model.pages {
            let bytes = self.store.read(*page).expect("reads");
            verify::verify(&bytes, *page, &mut |violation| panic!("{page:?}: {violation:?}"));
            let view = Slotted(&bytes);
            let found: BTreeMap<u32, Vec<u8>> = (0..view.len())
                .map(|slot| (u32::from_be_bytes(*view.entry(slot).suffix.first_chunk().expect("four")), view.entry(slot).payload.to_vec()))
                .collect();
            assert_eq!(found, *rows, "{page:?}");
            drop(bytes);
            self.compare_maps(*page);
        }
    }

    fn compare_maps(&self, page: PageId) {
        let (pfs, at) = layout::pfs(page.page);
        let pfs = self.store.read(PageId { page: pfs, ..page }).expect("reads");
        assert_eq!(pfs[MAP_BEGIN + at as usize], layout::PFS_ALLOCATED, "{page:?}");
        drop(pfs);
        let (interval, bit) = layout::interval(layout::extent_of(page.page));
        let gam = self.store.read(PageId { page: layout::gam(interval), ..page }).expect("reads");
        assert_eq!(gam[MAP_BEGIN + bit as usize / 8] >> (bit % 8) & 1, 1, "{page:?}");
        drop(gam);
        let mut iam = self.unit.0;
        let owned = std::iter::from_fn(|| {
            if iam == PageId::NONE {
                return None;
            }
            let map = self.store.read(iam).expect("reads");
            let facts = crate::store::boot::IamFacts::decode(&map);
            iam = header::right(&map);
            Some((facts.file, facts.interval) == (page.file, interval) && map[MAP_BEGIN + bit as usize / 8] >> (bit % 8) & 1 == 1)
        });
        assert!(owned.into_iter().any(|owned| owned), "{page:?} belongs to no IAM page of its unit");
    }
}

fn any(random: &mut SeededRandom, pages: &[PageId]) -> Option<PageId> {
    pages.get(usize::try_from(random.below(pages.len().max(1) as u64)).expect("small")).copied()
}

/// Puts or takes a row of a page.
fn change(mini: &mut Mini<'_>, random: &mut SeededRandom, page: PageId) -> Result<Option<Step>, StorageError> {
    let key = u32::try_from(random.below(60)).expect("small");
    let value = vec![random.below(256) as u8; random.below(160) as usize];
    let handle = mini.latch(page)?;
    let mut bytes = Vec::new();
    Entry::plain(&key.to_be_bytes(), &value).encode(&mut bytes);
    let view = Slotted(mini.page(handle));
    let op = match view.search(&key.to_be_bytes()) {
        Ok(slot) if random.below(3) == 0 => PageOp::SlotRemove { slot: slot as u16 },
        Ok(slot) if view.fits_instead(slot, bytes.len()) => PageOp::SlotReplace { slot: slot as u16, bytes: &bytes },
        Err(slot) if view.fits(bytes.len()) => PageOp::SlotInsert { slot: slot as u16, bytes: &bytes },
        _ => return Ok(None),
    };
    mini.apply(handle, op)?;
    Ok(Some(if matches!(op, PageOp::SlotRemove { .. }) { Step::Take(page, key) } else { Step::Put(page, key, value) }))
}

fn bulk_page(id: PageId) -> PageBytes {
    let mut page = [0; crate::page::PAGE_BYTES];
    crate::page::op::apply(&mut page, id, &PageOp::Format(LEAF)).expect("formats");
    let mut bytes = Vec::new();
    Entry::plain(&id.page.to_be_bytes(), b"bulk").encode(&mut bytes);
    crate::page::op::apply(&mut page, id, &PageOp::SlotInsert { slot: 0, bytes: &bytes }).expect("fits");
    page
}

#[test]
fn every_crash_leaves_a_prefix_with_everything_acknowledged() {
    for seed in 0..40 {
        let mut run = Run::new(seed, if seed % 2 == 0 { 4096 } else { 512 });
        for _ in 0..6 {
            let point = 1 + run.random.below(60);
            run.simulation.crash_at(Some(CrashPoint::Mutation(run.simulation.counts().mutations() + point)));
            let mut steps = 0;
            while run.step().is_ok() && steps < 600 {
                steps += 1;
            }
            run.recover();
        }
        run.compare();
        run.store.close().expect("closes");
        run.recover();
        assert!(run.store.pending.len() == 0, "nothing is left to redo after a close");
        run.compare();
    }
}

/// Rows at both ends of a page: one at the front of the entries, slots at the end, so that a torn write breaks it.
fn put(store: &Store, page: PageId, key: u32, value: &[u8]) -> Lsn {
    let mut mini = Mini::begin(store, TxnId(1));
    let handle = mini.latch(page).expect("latches");
    let mut bytes = Vec::new();
    Entry::plain(&key.to_be_bytes(), value).encode(&mut bytes);
    let op = match Slotted(mini.page(handle)).search(&key.to_be_bytes()) {
        Ok(slot) => PageOp::SlotReplace { slot: slot as u16, bytes: &bytes },
        Err(slot) => PageOp::SlotInsert { slot: slot as u16, bytes: &bytes },
    };
    mini.apply(handle, op).expect("applies");
    mini.commit().expect("commits")
}

fn make(run: &Run) -> PageId {
    let mut mini = Mini::begin(&run.store, TxnId(1));
    let handle = mini.allocate(run.unit, LEAF).expect("allocates");
    let page = mini.id(handle);
    mini.commit().expect("commits");
    page
}

/// Redo of a page whose records lie far from each other reads them, and not the log around each.
#[test]
fn records_far_apart_are_read_alone() {
    let mut run = Run::with_log(12, 4096, 64 * MIB);
    let (rare, other) = (make(&run), make(&run));
    let mut end = Lsn(0);
    for turn in 0..12_u32 {
        end = put(&run.store, rare, turn, &turn.to_le_bytes());
        for round in 0..150_u32 {
            end = put(&run.store, other, 0, &[(turn + round) as u8; 4000]).max(end);
        }
    }
    run.store.flush_log(end).expect("flushes");
    let newest = header::lsn(&run.store.read(rare).expect("reads"));
    run.recover();
    let length = run.store.chain_length(rare, newest).expect("reads the log");
    assert!(length >= 12, "{length} records");
    assert!(run.store.pending.window_count() <= 2, "{} stretches for {length} records", run.store.pending.window_count());
}

/// A page that is changed again and again between others, and never written, is in the log whole now and then: the first who
/// touches it after a crash need not go through all of the log.
#[test]
fn the_chain_of_a_page_that_is_changed_for_ever_stays_short() {
    let mut run = Run::with_log(11, 4096, 64 * MIB);
    let (hot, other) = (make(&run), make(&run));
    let mut end = Lsn(0);
    for round in 0..1500_u32 {
        put(&run.store, other, 0, &[round as u8; 4000]);
        put(&run.store, other, 1, &[round as u8; 3000]);
        end = put(&run.store, hot, round % 50, &round.to_le_bytes());
    }
    assert!(end > Lsn(10 * MIB), "the log is much longer than what a chain may lie in");
    run.store.flush_log(end).expect("flushes");
    let newest = header::lsn(&run.store.read(hot).expect("reads"));
    run.recover();
    let missing = run.store.pending.get(hot).expect("was never written");
    assert_eq!(missing.newest, newest);
    let length = run.store.chain_length(hot, newest).expect("reads the log");
    assert!((1..800).contains(&length), "{length} records");
    let bytes = run.store.read(hot).expect("redone");
    let rows: Vec<u32> =
        (0..50).map(|slot| u32::from_le_bytes(*Slotted(&bytes).entry(slot).payload.first_chunk().expect("four"))).collect();
    assert_eq!(rows, (1450..1500).collect::<Vec<_>>());
}

/// Fills the log with changes of `page` until it no longer holds what is there now.
fn churn(store: &Store, page: PageId) {
    let log = store.log().expect("logged");
    let now = log.end();
    for n in 0_u32.. {
        put(store, page, n % 7, &[n as u8; 900]);
        if n % 500 == 0 {
            store.write_all().expect("writes");
            store.checkpoint().expect("checkpoints");
        }
        // Beyond, by what the log can hold: the master record and the VLFs lag behind.
        if log.start().0 > now.0 + LOG_BYTES {
            store.checkpoint().expect("checkpoints");
            return;
        }
    }
}

#[test]
fn a_page_torn_while_it_is_written_is_whole_again() {
    for seed in 0..100 {
        let mut run = Run::new(seed, 512);
        let (page, other) = (make(&run), make(&run));
        (0..6).for_each(|key| assert!(put(&run.store, page, key, b"before") > Lsn(0)));
        churn(&run.store, other);
        let end = (0..40).map(|key| put(&run.store, page, key, &[7; 90])).last().expect("forty");
        run.store.flush_log(end).expect("flushes");
        run.simulation.crash_at(Some(CrashPoint::Mutation(run.simulation.counts().mutations() + 1 + seed % 5)));
        while run.store.write_back(10).is_ok_and(|count| count > 0) {}
        run.recover();
        let bytes = run.store.read(page).expect("the doublewrite region or the old page, and redo");
        assert_eq!(Slotted(&bytes).len(), 40, "seed {seed}");
        assert_eq!(Slotted(&bytes).entry(39).payload, [7; 90]);
    }
}

#[test]
fn a_rotten_page_is_made_anew_from_the_log_or_reported() {
    let mut run = Run::new(3, 4096);
    let page = make(&run);
    (0..6).for_each(|key| assert!(put(&run.store, page, key, b"row") > Lsn(0)));
    run.store.close().expect("closes");
    let rot = |run: &Run| {
        let offset = u64::from(page.page) * 8192 + 5000;
        run.simulation.flip_bit(if page.file == 1 { "/data" } else { "/more" }.as_ref(), offset, 3).expect("rots");
    };
    rot(&run);
    run.recover();
    assert_eq!(Slotted(&run.store.read(page).expect("repaired")).len(), 6);
    run.store.close().expect("closes, and writes the repaired page");
    run.recover();
    assert_eq!(Slotted(&run.store.read(page).expect("sound")).len(), 6);
    let other = make(&run);
    churn(&run.store, other);
    run.store.close().expect("closes");
    rot(&run);
    run.recover();
    match run.store.read(page).map(|_| ()) {
        Err(StorageError::Damage { page: told, detail, .. }) => assert!(told == page && detail.starts_with("checksum"), "{detail}"),
        other => panic!("{other:?}"),
    };
}

#[test]
fn a_failed_data_sync_stops_changes_and_loses_nothing() {
    let mut run = Run::new(4, 4096);
    let page = make(&run);
    let end = put(&run.store, page, 1, b"acknowledged");
    run.store.flush_log(end).expect("flushes");
    run.simulation.add_fault(FaultRule::nth(Operation::Sync, 1, Fault::IoError).on("data"));
    assert!(matches!(run.store.write_all(), Err(StorageError::Io(_))));
    assert!(matches!(run.store.checkpoint(), Err(StorageError::Poisoned)));
    assert!(matches!(Mini::begin(&run.store, TxnId(1)).commit(), Err(StorageError::Poisoned)));
    assert_eq!(Slotted(&run.store.read(page).expect("reads go on")).len(), 1);
    run.simulation.clear_faults();
    run.recover();
    assert_eq!(Slotted(&run.store.read(page).expect("reads")).len(), 1);
}

#[test]
fn ten_times_the_pool_is_written_and_read_through_it() {
    let run = Run::new(5, 4096);
    let pages: Vec<PageId> = (0..2_600_u32)
        .map(|n| {
            let page = make(&run);
            put(&run.store, page, n, b"row");
            if n % 300 == 0 {
                run.store.checkpoint().expect("checkpoints");
            }
            page
        })
        .collect();
    assert!(pages.len() > 10 * run.store.pool().frame_count());
    for chunk in pages.chunks(50) {
        run.store.prefetch(chunk).expect("prefetches");
        for page in chunk {
            assert_eq!(Slotted(&run.store.read(*page).expect("reads")).len(), 1);
        }
    }
}

#[test]
fn the_background_keeps_a_small_log_and_a_small_pool_going() {
    let run = Run::new(6, 4096);
    let page = make(&run);
    let mut full = 0;
    for n in 0..6_000_u32 {
        let mut mini = Mini::begin(&run.store, TxnId(1));
        let handle = mini.latch(page).expect("latches");
        let mut bytes = Vec::new();
        Entry::plain(&0_u32.to_be_bytes(), &[n as u8; 900]).encode(&mut bytes);
        let slot = Slotted(mini.page(handle)).len();
        let op = if slot == 0 { PageOp::SlotInsert { slot: 0, bytes: &bytes } } else { PageOp::SlotReplace { slot: 0, bytes: &bytes } };
        mini.apply(handle, op).expect("applies");
        match mini.commit() {
            Ok(_) => full = 0,
            // Turns of the background alone free the log, and one after another does.
            Err(StorageError::LogFull { .. }) => {
                full += 1;
                assert!(full < 4, "change {n}: the log stays full");
                run.store.background_turn().expect("checkpoints");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(run.store.log().expect("logged").start() > Lsn(2 * LOG_BYTES));
}

/// Redo that is left after a crash is not finished at once for a log that runs full because it waits for something else.
#[test]
fn a_full_log_that_is_kept_by_others_hurries_no_redo() {
    let mut run = Run::new(31, 4096);
    let pages: Vec<PageId> = (0..300).map(|_| make(&run)).collect();
    for page in &pages {
        put(&run.store, *page, 1, &[7; 100]);
    }
    let end = run.store.log_end();
    run.store.flush_log(end).expect("flushes");
    run.simulation.crash();
    run.store.discard_all();
    run.simulation.restart();
    let mut heard = Counting { base: 0, last: 0 };
    run.store = Store::open(&Pool::new(POOL_BYTES), &run.simulation.env(), "crash", 5, "/data".as_ref(), &mut heard).expect("opens");
    run.set_table();
    let log = run.store.log().expect("logged").clone();
    let hold = log.hold(log.start(), LogHoldup::LogBackup);
    while log.space().used_bytes <= log.space().size_bytes / 4 * 3 {
        put(&run.store, pages[0], 2, &[8; 1000]);
    }
    let left = run.store.pending_pages();
    run.store.background_turn().expect("turns");
    let pending = run.store.pending_pages();
    assert!(0 < pending && pending < left, "{pending} of {left}: a step, and no more");
    drop(hold);
}

#[test]
fn threads_with_checkpoints_and_eviction_lose_nothing_acknowledged() {
    for seed in 0..12 {
        let mut run = Run::new(seed, 512);
        let pages: Vec<PageId> = (0..400).map(|_| make(&run)).collect();
        let end = run.store.log_end();
        run.store.flush_log(end).expect("flushes");
        run.simulation.crash_at(Some(CrashPoint::Mutation(run.simulation.counts().mutations() + 200 + seed * 40)));
        let store = run.store.clone();
        let acknowledged: Vec<BTreeMap<PageId, u32>> = std::thread::scope(|scope| {
            let workers: Vec<_> = pages.chunks(100).map(|own| scope.spawn(|| work(&store, own))).collect();
            let keeper = scope.spawn(|| while store.write_all().and_then(|()| store.checkpoint()).is_ok() {});
            let acknowledged = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
            run.simulation.crash();
            keeper.join().expect("no panic");
            acknowledged
        });
        drop(store);
        run.model = Model::default();
        run.recover();
        let count_in = |page: PageId| {
            let bytes = run.store.read(page).expect("reads");
            let view = Slotted(&bytes);
            if view.is_empty() { 0 } else { u32::from_le_bytes(*view.entry(0).payload.first_chunk().expect("four")) }
        };
        for (page, count) in acknowledged.iter().flatten() {
            let there = count_in(*page);
            assert!(there >= *count, "seed {seed}, {page:?}: {count} acknowledged, {there} there");
        }
        for pair in pages.chunks(2) {
            assert_eq!(count_in(pair[0]), count_in(pair[1]), "seed {seed}: half a mini-transaction in {pair:?}");
        }
    }
}

/// Counts up in pages until the machine crashes; every pair of neighbours is changed by one mini-transaction.
fn work(store: &Store, pages: &[PageId]) -> BTreeMap<PageId, u32> {
    let mut acknowledged = BTreeMap::new();
    for n in 1_u32.. {
        for (at, pair) in pages.chunks(2).enumerate() {
            let mut mini = Mini::begin(store, TxnId(1));
            let changed = pair.iter().try_for_each(|page| {
                let handle = mini.latch(*page)?;
                let mut bytes = Vec::new();
                Entry::plain(&[], &[&n.to_le_bytes()[..], &[n as u8; 500]].concat()).encode(&mut bytes);
                let op = match n {
                    1 => PageOp::SlotInsert { slot: 0, bytes: &bytes },
                    _ => PageOp::SlotReplace { slot: 0, bytes: &bytes },
                };
                mini.apply(handle, op)
            });
            let flushed = changed
                .and_then(|()| mini.commit())
                .and_then(|end| if at % 8 == 0 { store.flush_log(end).map(|()| true) } else { Ok(false) });
            match flushed {
                Ok(true) => acknowledged.extend(pair.iter().map(|page| (*page, n))),
                Ok(false) => {}
                Err(StorageError::LogFull { .. }) => {
                    // The keeper is behind; the next try finds room or the crash.
                    if store.checkpoint().is_err() {
                        return acknowledged;
                    }
                }
                Err(_) => return acknowledged,
            }
        }
    }
    acknowledged
}
