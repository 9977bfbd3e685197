//! Claims: what was flushed is read back; a crash keeps a prefix of groups, whole, with everything acknowledged; a
//! flipped bit in durable log is damage, never an end; a full log says so and works again after truncation.

use super::open::{Verdict, verdict};
use super::*;
use crate::error::StorageError;
use std::path::Path;
use thawdb_device::OpenMode;
use thawdb_device::sim::{CrashPoint, Fault, FaultRule, Operation, Simulation};

static ANSWERED: LockClass = LockClass::new("TEST_ANSWERED", 5);

const STAMP: u64 = 0xC0FFEE;
const SMALL: LogConfig = LogConfig { size_bytes: 1 << 20, size_bytes_max: None, growth_bytes: 0 };

const ROOMY: LogConfig = LogConfig { size_bytes: 16 << 20, ..SMALL };

fn path() -> &'static Path {
    Path::new("/t.ldf")
}

fn create(world: &Simulation, config: LogConfig) -> Arc<Log> {
    let file = world.env().device.open(path(), OpenMode::CreateNew).unwrap();
    Log::create(file, config, STAMP).unwrap()
}

fn open(world: &Simulation, config: LogConfig) -> Result<(Arc<Log>, MasterRecord), StorageError> {
    let file = world.env().device.open(path(), OpenMode::Existing).unwrap();
    Log::open(file, config, STAMP)
}

fn group(number: u32, size: usize) -> Vec<Vec<u8>> {
    let parts = 1 + number as usize % 3;
    let part = |n: usize| [&number.to_le_bytes()[..], &[n as u8, parts as u8], &vec![number as u8; size]].concat();
    (0..parts).map(part).collect()
}

fn append(log: &Log, number: u32, size: usize) -> Result<Lsn, StorageError> {
    let records = group(number, size);
    let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    log.append(&slices, Use::Normal, &mut Vec::new())
}

/// Numbers of the groups from `from` on, each asserted whole and in order.
fn groups(log: &Arc<Log>, from: Lsn) -> Vec<u32> {
    let mut reader = log.reader(from).unwrap();
    let mut numbers = Vec::new();
    let mut expected_part = 0;
    while let Some((_, record)) = reader.next_record().unwrap() {
        let number = u32::from_le_bytes(record[..4].try_into().unwrap());
        assert_eq!(record[4], expected_part, "groups are whole");
        assert!(record[6..].iter().all(|b| *b == number as u8));
        if expected_part == 0 {
            numbers.push(number);
        }
        expected_part = if record[4] + 1 == record[5] { 0 } else { expected_part + 1 };
    }
    assert_eq!(expected_part, 0, "the last group is whole");
    numbers
}

#[test]
fn flushed_groups_are_read_back_by_walk_and_by_lsn() {
    let world = Simulation::with_seed(1);
    let log = create(&world, SMALL);
    let mut at = Vec::new();
    for number in 0..100 {
        let records = group(number, 50 * number as usize % 3000);
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let mut lsns = Vec::new();
        let end = log.append(&slices, Use::Normal, &mut lsns).unwrap();
        if number % 7 == 0 {
            log.flush(end).unwrap();
            assert!(log.durable() >= end);
        }
        at.extend(lsns.into_iter().zip(records));
    }
    let mut out = Vec::new();
    for (lsn, record) in &at {
        log.read(*lsn, &mut out).unwrap();
        assert_eq!(&out, record);
    }
    log.flush(log.end()).unwrap();
    assert_eq!(groups(&log, Lsn(0)), (0..100).collect::<Vec<_>>());
    drop(log);
    let (log, _) = open(&world, SMALL).unwrap();
    assert_eq!(groups(&log, Lsn(0)), (0..100).collect::<Vec<_>>());
    append(&log, 100, 10).unwrap();
    log.flush(log.end()).unwrap();
    assert_eq!(groups(&log, Lsn(0)).len(), 101);
}

#[test]
fn the_end_of_a_vlf_that_is_full_to_the_last_byte_can_be_read_from() {
    let world = Simulation::with_seed(11);
    let log = create(&world, SMALL);
    let end_of_vlf = append(&log, 0, 100).map(|_| log.state.lock().ring.last().unwrap().end()).unwrap();
    // Blocks are padded to sectors: small groups flushed one by one end exactly there.
    let mut end = Lsn(0);
    while end < end_of_vlf {
        end = append(&log, 3, 100).unwrap();
        log.flush(end).unwrap();
        end = log.durable();
    }
    assert_eq!(end, end_of_vlf, "this is about the last byte");
    assert!(log.state.lock().ring.locate(end).is_none(), "and no VLF begins there yet");
    assert_eq!(groups(&log, end), []);
    assert_eq!(log.copy_blocks(end, end, &mut |_, _| panic!("there is none")).unwrap(), 0);
    let next = append(&log, 6, 100).unwrap();
    log.flush(next).unwrap();
    assert_eq!(groups(&log, end), [6]);
}

#[test]
fn a_full_log_says_so_and_goes_round_after_truncation() {
    let world = Simulation::with_seed(2);
    let log = create(&world, SMALL);
    let mut number = 0;
    for round in 0..6 {
        let full = loop {
            match append(&log, number, 5000) {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, StorageError::LogFull { .. }), "{full:?}");
        assert!(log.append(&[b"end"], Use::Finish, &mut Vec::new()).is_ok(), "finishing work has room");
        let mut lsns = Vec::new();
        let end = log.append(&[b"checkpoint"], Use::Checkpoint, &mut lsns).unwrap();
        log.flush(end).unwrap();
        log.set_master(lsns[0], log.scan_start_before(lsns[0]), &[round]).unwrap();
        log.truncate_before(lsns[0], LogHoldup::Checkpoint);
    }
    assert!(number > 300, "{number} groups passed through a log of 1 MB");
    drop(log);
    let (_, master) = open(&world, SMALL).unwrap();
    assert_eq!(master.opaque, [5]);
}

#[test]
fn a_log_grows_by_its_step_up_to_its_limit() {
    let world = Simulation::with_seed(3);
    let config = LogConfig { size_bytes_max: Some(3 << 20), growth_bytes: 1 << 20, ..SMALL };
    let log = create(&world, config);
    let mut count = 0;
    while append(&log, count, 5000).is_ok() {
        count += 1;
    }
    assert_eq!(log.space().size_bytes, 3 << 20);
    log.flush(log.end()).unwrap();
    drop(log);
    let (log, _) = open(&world, config).unwrap();
    assert_eq!(groups(&log, Lsn(0)).len(), count as usize);
}

/// A crash between a growth's new length and its first VLF used to leave a gap that the next growth went on behind: what
/// was acknowledged in the VLFs there was gone at the second open.
#[test]
fn a_growth_that_a_crash_cut_short_hides_nothing_written_later() {
    let config = LogConfig { growth_bytes: 1 << 20, ..SMALL };
    for seed in 0..24 {
        let point = 1 + seed % 3;
        let world = Simulation::with_seed(seed);
        let log = create(&world, config);
        while log.space().used_bytes < 700 << 10 {
            append(&log, 0, 5000).unwrap();
        }
        log.flush(log.end()).unwrap();
        let mutations = world.counts().mutations();
        world.crash_at(Some(CrashPoint::Mutation(mutations + point)));
        while append(&log, 0, 5000).is_ok() && log.space().size_bytes == 1 << 20 {}
        world.crash();
        drop(log);
        world.restart();
        let (log, _) = open(&world, config).unwrap();
        let kept = groups(&log, Lsn(0)).len();
        let mut count = 0;
        while log.space().used_bytes < 2 << 20 {
            append(&log, 1, 5000).unwrap();
            count += 1;
        }
        log.flush(log.end()).unwrap();
        drop(log);
        let (log, _) = open(&world, config).unwrap();
        assert_eq!(groups(&log, Lsn(0)).len(), kept + count, "seed {seed}: crash at mutation {point} of the growth");
    }
}

#[test]
fn crashes_keep_a_prefix_with_everything_acknowledged() {
    for seed in 0..150 {
        let world = Simulation::with_seed(seed);
        let log = create(&world, ROOMY);
        world.crash_at(Some(if seed % 2 == 0 {
            CrashPoint::Operation(Operation::Sync, 2 + seed / 4 % 20)
        } else {
            CrashPoint::Operation(Operation::Write, 2 + seed / 4 % 20)
        }));
        let (mut acknowledged, mut appended) = (0, 0);
        while !world.is_crashed() && appended < 200 {
            let flushes = (appended ^ seed as u32) % 3 == 0;
            let Ok(end) = append(&log, appended, (appended as usize * 977 + seed as usize) % 9000) else { break };
            appended += 1;
            if flushes && log.flush(end).is_ok() {
                acknowledged = appended;
            }
        }
        drop(log);
        world.crash_at(None);
        world.restart();
        let (log, _) = open(&world, ROOMY).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let survived = groups(&log, Lsn(0));
        assert_eq!(survived, (0..survived.len() as u32).collect::<Vec<_>>(), "seed {seed}: a prefix");
        assert!(survived.len() as u32 >= acknowledged, "seed {seed}: {acknowledged} acknowledged, {} there", survived.len());
        // What is appended after the crash follows the survivors, whatever the crash left behind them.
        let next = survived.len() as u32;
        append(&log, next, 100).unwrap();
        log.flush(log.end()).unwrap();
        drop(log);
        let (log, _) = open(&world, ROOMY).unwrap();
        assert_eq!(groups(&log, Lsn(0)), (0..=next).collect::<Vec<_>>(), "seed {seed}: nothing comes back");
    }
}

#[test]
fn damage_below_what_was_durable_is_no_end() {
    let world = Simulation::with_seed(9);
    let log = create(&world, SMALL);
    let mut ends = Vec::new();
    for number in 0..20 {
        let end = append(&log, number, 3000).unwrap();
        log.flush(end).unwrap();
        ends.push(end);
    }
    let vlf = log.state.lock().ring.locate(ends[5]).unwrap();
    drop(log);
    world.flip_bit(path(), vlf.file_offset(Lsn(ends[5].0 - 100)), 3).unwrap();
    assert!(matches!(open(&world, SMALL), Err(StorageError::Damage { .. })));
}

#[test]
fn a_failed_write_closes_the_log() {
    for operation in [Operation::Write, Operation::Sync] {
        let world = Simulation::with_seed(4);
        let log = create(&world, SMALL);
        append(&log, 0, 10).unwrap();
        log.flush(log.end()).unwrap();
        world.add_fault(FaultRule::nth(operation, 1, Fault::IoError));
        let end = append(&log, 1, 10).unwrap();
        assert!(matches!(log.flush(end), Err(StorageError::Io(_))));
        assert!(matches!(log.flush(end), Err(StorageError::Poisoned)));
        assert!(matches!(append(&log, 2, 10), Err(StorageError::Poisoned)));
    }
}

#[test]
fn the_verdict_table_has_one_answer_for_every_evidence() {
    let place = Lsn(100);
    let others = [None, Some(Lsn(50)), Some(Lsn(100)), Some(Lsn(150))];
    for next in others {
        for later in others {
            let expected = match (next, later) {
                (Some(Lsn(100)), _) => Verdict::Continues,
                (Some(Lsn(150)), _) | (_, Some(Lsn(150))) => Verdict::Damage,
                _ => Verdict::End,
            };
            assert_eq!(verdict(place, next, later), expected, "{next:?} {later:?}");
        }
    }
}

#[test]
fn concurrent_committers_share_syncs() {
    let world = Simulation::with_seed(5);
    let log = create(&world, SMALL);
    let syncs_before = world.counts().syncs;
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..20 {
                    let end = append(log, thread * 100 + n, 30).unwrap();
                    log.flush(end).unwrap();
                    assert!(log.durable() >= end);
                }
            });
        }
    });
    // Beside a commit's own sync, entering a VLF takes one for what lies before it and one for its activation.
    let entered = log.space().active_count as u64;
    assert!(world.counts().syncs - syncs_before <= 160 + 2 * entered, "never more than one sync a commit");
    let mut reader = log.reader(Lsn(0)).unwrap();
    let mut count = 0;
    while reader.next_record().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, (0..8u32).flat_map(|t| (0..20).map(move |n| 1 + (t * 100 + n) % 3)).sum::<u32>());
}

/// Committers append and flush, under half of the seeds until the machine crashes; each is answered only when its group is
/// durable, and while nothing is wrong each is answered.
///
/// Seen to find: the end of a flush that wakes only those whom it has made durable (a deadlock: nobody flushes next), a
/// flush that says it is done before it writes (an answered group is lost).
#[test]
fn whatever_the_schedule_every_committer_is_answered_when_its_group_is_durable() {
    for seed in 0..200 {
        let world = Simulation::with_seed(seed);
        let log = create(&world, SMALL);
        let answered = Mutex::new(&ANSWERED, Vec::new());
        let mut bodies: Vec<thawdb_observe::explore::Body<'_>> = Vec::new();
        for committer in 0..4_u32 {
            let (log, answered) = (&log, &answered);
            bodies.push(Box::new(move || {
                for number in [committer * 10, committer * 10 + 1] {
                    let Ok(end) = append(log, number, 40) else { return };
                    if log.flush(end).is_err() {
                        return;
                    }
                    assert!(log.durable() >= end, "answered before it was durable");
                    answered.lock().push(number);
                }
            }));
        }
        if seed % 2 == 1 {
            let world = &world;
            bodies.push(Box::new(move || {
                (0..seed % 40).for_each(|_| thawdb_observe::sync::point());
                world.crash();
            }));
        }
        assert_eq!(thawdb_observe::explore::run(seed, bodies), Ok(()), "seed {seed}");
        assert!(seed % 2 == 1 || answered.lock().len() == 8, "seed {seed}: all are answered");
        drop(log);
        world.restart();
        let (log, _) = open(&world, SMALL).expect("opens");
        let there = groups(&log, log.start());
        assert!(answered.lock().iter().all(|number| there.contains(number)), "seed {seed}: {:?}, {there:?}", answered.lock());
    }
}

const LARGE: LogConfig = LogConfig { size_bytes: 64 << 20, ..SMALL };

/// Appends a group that redo begins at, and frees what lies before it.
fn checkpoint(log: &Log, number: u32) -> Result<Lsn, StorageError> {
    let end = append(log, number, 100)?;
    log.flush(end)?;
    let at = Lsn(end.0 - log.append_bytes_of(number));
    log.set_master(at, log.scan_start_before(at), &[])?;
    log.truncate_before(at, LogHoldup::Checkpoint);
    Ok(at)
}

impl Log {
    fn append_bytes_of(&self, number: u32) -> u64 {
        group(number, 100).iter().map(|record| (format::RECORD_HEADER_BYTES + record.len()) as u64).sum()
    }
}

/// What `Store::shrink_log` does, the checkpoint being a group; `number` counts them.
fn shrink(log: &Log, target_bytes: u64, number: &mut u32) -> Result<u64, StorageError> {
    for _ in 0..2 {
        log.recut_before(target_bytes)?;
        let (bytes, _) = log.cut_tail(target_bytes)?;
        if bytes <= target_bytes {
            return Ok(bytes);
        }
        log.move_before(target_bytes)?;
        checkpoint(log, *number)?;
        *number += 1;
    }
    Ok(log.cut_tail(target_bytes)?.0)
}

/// Fills `vlfs` VLFs of a large log, each with a checkpoint at its end, and tells the next number.
fn filled(log: &Log, vlfs: usize) -> u32 {
    let mut number = 0;
    while log.vlfs().iter().filter(|vlf| vlf.status != VlfStatus::Unused).count() <= vlfs {
        append(log, number, 300_000).unwrap();
        number += 1;
        checkpoint(log, number).unwrap();
        number += 1;
    }
    number
}

#[test]
fn a_log_that_was_large_becomes_as_small_as_wished() {
    // Written last: the first VLF, which is to be cut; one in the middle; the last.
    for vlfs in [0, 7, 15] {
        let world = Simulation::with_seed(11);
        let log = create(&world, LARGE);
        let mut number = filled(&log, vlfs);
        let first = number;
        assert_eq!(shrink(&log, 2 << 20, &mut number).unwrap(), 2 << 20, "after {vlfs} VLFs");
        let sizes: Vec<u64> = log.vlfs().iter().map(|vlf| vlf.size_bytes).collect();
        assert!(sizes.len() >= 4 && sizes.iter().all(|bytes| *bytes < 1 << 20), "{sizes:?}");
        for _ in 0..40 {
            append(&log, number, 30_000).unwrap();
            number += 1;
            checkpoint(&log, number).unwrap();
            number += 1;
        }
        drop(log);
        let (log, master) = open(&world, LARGE).unwrap();
        assert_eq!(log.space().size_bytes, 2 << 20);
        assert_eq!(groups(&log, master.checkpoint), [number - 1], "all {} since {first}", number - first);
    }
}

/// Shrinks with a crash at the `point`th change to the file; whether there were so many.
fn shrink_with_crash(vlfs: usize, point: u64) -> bool {
    let world = Simulation::with_seed(point);
    let log = create(&world, LARGE);
    let mut number = filled(&log, vlfs);
    let before = number - 1;
    world.crash_at(Some(CrashPoint::Mutation(world.counts().mutations() + point)));
    let shrunk = shrink(&log, 2 << 20, &mut number);
    let crashed = world.is_crashed();
    assert!(crashed || shrunk.is_ok(), "{shrunk:?}");
    drop(log);
    world.crash_at(None);
    world.restart();
    let (log, master) = open(&world, LARGE).unwrap_or_else(|error| panic!("crash at mutation {point}: {error:?}"));
    let kept = groups(&log, master.checkpoint);
    assert!(kept.first().is_some_and(|first| *first >= before), "{kept:?} of {before}..{number}, crash at {point}");
    let mut next = kept.last().unwrap() + 1;
    assert!(next >= number, "crash at {point}: {number} was acknowledged");
    assert_eq!(shrink(&log, 2 << 20, &mut next).unwrap(), 2 << 20, "crash at {point}");
    append(&log, next, 100).unwrap();
    log.flush(log.end()).unwrap();
    drop(log);
    let (log, master) = open(&world, LARGE).unwrap();
    assert_eq!(groups(&log, master.checkpoint).last(), Some(&next), "crash at {point}");
    crashed
}

#[test]
fn a_crash_while_shrinking_loses_nothing() {
    for vlfs in [0, 7, 15] {
        let crashes = (1..).take_while(|point| shrink_with_crash(vlfs, *point)).count();
        assert!(crashes >= 8, "{crashes} crashes after {vlfs} VLFs");
    }
}
