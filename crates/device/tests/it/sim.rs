//! The simulated device keeps the contract, loses only what it may, and does what is ordered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thawdb_device::sim::{CrashPoint, Fault, FaultRule, Operation, SimOptions, Simulation};
use thawdb_device::{AlignedBuf, BlockFile, DeviceErrorKind, OpenMode, ReadRequest, SECTOR_BYTES, WriteRequest};

const SECTOR: u64 = SECTOR_BYTES as u64;

fn filled(count: usize, byte: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::zeroed(count * SECTOR_BYTES);
    buffer.fill(byte);
    buffer
}

fn path() -> PathBuf {
    PathBuf::from("/data/a.mdf")
}

fn create(sim: &Simulation, sectors: u64) -> Arc<dyn BlockFile> {
    let device = sim.device();
    device.create_folder(Path::new("/data")).expect("the world stands");
    let file = device.open(&path(), OpenMode::CreateNew).expect("it is new");
    file.set_len(sectors * SECTOR).expect("there is room");
    file.sync().expect("the world stands");
    file
}

fn reopen(sim: &Simulation) -> Arc<dyn BlockFile> {
    sim.device().open(&path(), OpenMode::Existing).expect("made durably")
}

fn put(file: &dyn BlockFile, sector: u64, bytes: &AlignedBuf) {
    file.write(&[WriteRequest { offset: sector * SECTOR, buffer: bytes }]).expect("the world stands");
}

fn get(file: &dyn BlockFile, sector: u64, count: usize) -> AlignedBuf {
    let mut buffer = filled(count, 0xEE);
    file.read(&mut [ReadRequest { offset: sector * SECTOR, buffer: &mut buffer }]).expect("within the file");
    buffer
}

/// First bytes of each sector.
fn bytes_of(buffer: &AlignedBuf) -> Vec<u8> {
    buffer.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect()
}

#[test]
fn synced_writes_survive_and_unsynced_ones_may() {
    let mut unsynced_seen = [0; 2];
    for seed in 0..60 {
        let sim = Simulation::with_seed(seed);
        let file = create(&sim, 8);
        put(&*file, 0, &filled(1, 1));
        file.sync().expect("the world stands");
        put(&*file, 1, &filled(1, 2));
        put(&*file, 0, &filled(1, 1));
        sim.crash();
        assert_eq!(file.sync().expect_err("crashed").operation, "simulated crash");
        sim.restart();
        assert!(file.len_bytes().is_err(), "a handle of the former start is dead");
        let file = reopen(&sim);
        let left = bytes_of(&get(&*file, 0, 3));
        assert_eq!((left[0], left[2]), (1, 0));
        unsynced_seen[usize::from(left[1] == 2)] += 1;
        assert!(left[1] == 0 || left[1] == 2);
    }
    assert!(unsynced_seen.iter().all(|&count| count > 10), "both fates happen: {unsynced_seen:?}");
}

#[test]
fn a_write_of_two_sectors_is_torn_under_some_seeds_and_never_inside_a_sector() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let sim = Simulation::with_seed(seed);
        let file = create(&sim, 8);
        put(&*file, 0, &filled(2, 7));
        sim.crash();
        sim.restart();
        let left = get(&*reopen(&sim), 0, 2);
        assert!(left.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|&byte| byte == sector[0])), "seed {seed}");
        outcomes.insert(bytes_of(&left));
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [[0, 0], [0, 7], [7, 0], [7, 7]]);
}

#[test]
fn old_disks_tear_inside_a_sector_at_512_bytes() {
    let torn = |seed| {
        let sim = Simulation::new(SimOptions { tear_bytes: 512, ..SimOptions::new(seed) });
        let file = create(&sim, 8);
        put(&*file, 0, &filled(1, 7));
        sim.crash();
        sim.restart();
        let left = get(&*reopen(&sim), 0, 1);
        assert!(left.chunks(512).all(|piece| piece.iter().all(|&byte| byte == piece[0])));
        left.iter().any(|&byte| byte != left[0])
    };
    assert!((0..100).any(torn));
}

#[test]
fn unsynced_lengths_fall_back_or_stay_and_a_regrown_file_reads_zero() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let sim = Simulation::with_seed(seed);
        let file = create(&sim, 4);
        put(&*file, 3, &filled(1, 9));
        file.sync().expect("the world stands");
        file.set_len(2 * SECTOR).expect("shrinks");
        file.set_len(6 * SECTOR).expect("grows");
        assert_eq!(bytes_of(&get(&*file, 3, 1)), [0]);
        sim.crash();
        sim.restart();
        let file = reopen(&sim);
        let sectors = file.len_bytes().expect("it is open") / SECTOR;
        let third = if sectors > 3 { Some(bytes_of(&get(&*file, 3, 1))[0]) } else { None };
        lengths.insert((sectors, third));
    }
    // Both kept; only the first; neither. Never the growing without the shrinking before it.
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [(2, None), (4, Some(9)), (6, Some(0))]);
}

#[test]
fn names_are_durable_on_return_and_files_are_locked() {
    let sim = Simulation::with_seed(1);
    let device = sim.device();
    let no_folder = device.open(&path(), OpenMode::CreateNew).err().expect("no folder");
    assert_eq!(no_folder.kind, DeviceErrorKind::NotFound);
    let file = create(&sim, 1);
    let kind_of = |mode| device.open(&path(), mode).err().map(|error| error.kind);
    assert_eq!(kind_of(OpenMode::Existing), Some(DeviceErrorKind::Busy));
    assert_eq!(kind_of(OpenMode::CreateNew), Some(DeviceErrorKind::AlreadyExists));
    let reader = device.open(&path(), OpenMode::ReadOnly).expect("readers do not ask");
    assert_eq!(reader.set_len(0).expect_err("a reader").kind, DeviceErrorKind::Denied);
    device.rename(&path(), Path::new("/data/b.mdf")).expect("it is there");
    sim.crash();
    assert!(!device.exists(Path::new("/data/b.mdf")), "a crashed machine answers nothing");
    sim.restart();
    drop((file, reader));
    assert_eq!(device.list(Path::new("/data")).expect("it is there"), ["b.mdf"]);
    let file = device.open(Path::new("/data/b.mdf"), OpenMode::Existing).expect("the lock died with the process");
    device.remove(Path::new("/data/b.mdf")).expect("it is there");
    assert_eq!(file.len_bytes().expect("an open file lives without a name"), SECTOR);
    drop(file);
    assert_eq!(device.open(Path::new("/data/b.mdf"), OpenMode::ReadOnly).err().map(|error| error.kind), Some(DeviceErrorKind::NotFound));
}

/// Runs a small workload with a crash at each of its mutations; the world must be the same when run again.
#[test]
fn a_crash_at_every_mutation_replays_byte_for_byte() {
    let workload = |sim: &Simulation| -> Option<u64> {
        let device = sim.device();
        device.create_folder(Path::new("/data")).ok()?;
        let file = device.open(&path(), OpenMode::CreateNew).ok()?;
        file.set_len(16 * SECTOR).ok()?;
        let mut synced = 0;
        for round in 1..=3_u8 {
            file.write(&[
                WriteRequest { offset: 0, buffer: &filled(2, round) },
                WriteRequest { offset: 4 * SECTOR, buffer: &filled(3, round) },
            ])
            .ok()?;
            file.sync().ok()?;
            synced += u64::from(round);
        }
        device.rename(&path(), Path::new("/data/b.mdf")).ok()?;
        Some(synced)
    };
    let calm = Simulation::with_seed(5);
    assert_eq!(workload(&calm), Some(6));
    let counts = calm.counts();
    assert_eq!((counts.creates, counts.set_lens, counts.writes, counts.syncs, counts.renames), (1, 1, 6, 3, 1));
    assert_eq!(counts.mutations(), 12);
    for number in 1..=counts.mutations() {
        let run = || {
            let sim = Simulation::with_seed(5);
            sim.crash_at(Some(CrashPoint::Mutation(number)));
            assert_eq!(workload(&sim), None, "mutation {number} is never acknowledged");
            assert!(sim.is_crashed());
            sim.restart();
            sim.fingerprint()
        };
        assert_eq!(run(), run());
    }
    let at_sync = Simulation::with_seed(5);
    at_sync.crash_at(Some(CrashPoint::Operation(Operation::Sync, 2)));
    assert_eq!(workload(&at_sync), None);
    assert_eq!(at_sync.counts().syncs, 2);
}

#[test]
fn ordered_faults_happen_once_where_they_were_ordered() {
    let sim = Simulation::with_seed(3);
    let file = create(&sim, 8);
    for sector in 0..8_u8 {
        put(&*file, u64::from(sector), &filled(1, sector + 1));
    }
    file.sync().expect("the world stands");

    sim.add_fault(FaultRule::nth(Operation::Read, 2, Fault::FlipBit).on("a.mdf"));
    let first = get(&*file, 0, 1);
    let second = get(&*file, 0, 1);
    let wrong_bits: u32 = first.iter().zip(&second[..]).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(wrong_bits, 1);
    assert!(get(&*file, 0, 1)[..] == first[..], "the disk itself is right");

    sim.add_fault(FaultRule::nth(Operation::Write, 1, Fault::Lose));
    put(&*file, 2, &filled(1, 90));
    file.sync().expect("it lies");
    assert_eq!(bytes_of(&get(&*file, 2, 1)), [3]);

    sim.add_fault(FaultRule::nth(Operation::Write, 1, Fault::Misdirect));
    put(&*file, 2, &filled(1, 91));
    let all = bytes_of(&get(&*file, 0, 8));
    assert_eq!((all[2], all.iter().filter(|&&byte| byte == 91).count()), (3, 1));

    sim.add_fault(FaultRule::nth(Operation::Write, 1, Fault::FlipBit));
    put(&*file, 5, &filled(1, 0));
    let ones: u32 = get(&*file, 5, 1).iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(ones, 1);

    sim.add_fault(FaultRule::nth(Operation::Read, 1, Fault::IoError));
    sim.add_fault(FaultRule::nth(Operation::Read, 1, Fault::IoError).on("other"));
    let mut buffer = filled(1, 0);
    let error = file.read(&mut [ReadRequest { offset: 0, buffer: &mut buffer }]).expect_err("ordered");
    assert_eq!((error.kind, error.operation), (DeviceErrorKind::Io, "read"));
    sim.clear_faults();

    let before = sim.env().clock.monotonic_ns();
    sim.add_fault(FaultRule::nth(Operation::Read, 1, Fault::Delay(7_000_000)));
    get(&*file, 0, 1);
    assert_eq!(sim.env().clock.monotonic_ns() - before, 7_050_000);
}

#[test]
fn a_failed_sync_is_never_followed_by_a_good_one() {
    let sim = Simulation::with_seed(4);
    let file = create(&sim, 2);
    put(&*file, 0, &filled(1, 1));
    sim.add_fault(FaultRule::nth(Operation::Sync, 1, Fault::IoError));
    assert_eq!(file.sync().expect_err("ordered").kind, DeviceErrorKind::Io);
    assert_eq!(file.sync().expect_err("it stays broken").kind, DeviceErrorKind::Io);
    assert!(file.write(&[WriteRequest { offset: 0, buffer: &filled(1, 2) }]).is_err());
    assert_eq!(bytes_of(&get(&*file, 0, 1)), [1], "reading goes on");
}

#[test]
fn a_full_disk_refuses_growth_and_keeps_the_length() {
    let sim = Simulation::new(SimOptions { capacity_bytes: 10 * SECTOR, ..SimOptions::new(1) });
    let file = create(&sim, 8);
    let error = file.set_len(11 * SECTOR).expect_err("no room");
    assert_eq!((error.kind, error.operation), (DeviceErrorKind::Full, "resize"));
    assert_eq!(file.len_bytes().expect("it is open"), 8 * SECTOR);
    file.set_len(10 * SECTOR).expect("just fits");
    put(&*file, 9, &filled(1, 1));
    let past = file.write(&[WriteRequest { offset: 10 * SECTOR, buffer: &filled(1, 1) }]).expect_err("past the end and full");
    assert_eq!(past.kind, DeviceErrorKind::Full);
}

#[test]
fn gigabytes_of_length_cost_nothing_and_rot_is_durable() {
    let sim = Simulation::with_seed(9);
    let file = create(&sim, (64 << 30) / SECTOR);
    let last = (64 << 30) / SECTOR - 1;
    put(&*file, last, &filled(1, 5));
    assert_eq!(bytes_of(&get(&*file, last - 1, 2)), [0, 5]);
    sim.flip_bit(&path(), last * SECTOR, 1).expect("within the file");
    assert_eq!(bytes_of(&get(&*file, last, 1)), [7]);
    file.sync().expect("the world stands");
    sim.restart();
    assert_eq!(bytes_of(&get(&*reopen(&sim), last, 1)), [7]);
}

#[test]
fn foreign_files_time_and_randomness_come_from_the_seed() {
    let draw = |seed| {
        let sim = Simulation::with_seed(seed);
        let env = sim.env();
        env.clock.sleep(Duration::from_secs(3600));
        let mut bytes = [0; 16];
        env.random.fill(&mut bytes);
        (bytes, env.clock.utc_ns())
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1).0, draw(2).0);

    let sim = Simulation::with_seed(1);
    sim.put_foreign(Path::new("/load/votes.csv"), b"1,2,3\n4,5,6\n");
    let device = sim.device();
    let mut some = [0; 8];
    assert_eq!(device.read_foreign(Path::new("/load/votes.csv"), 6, &mut some).expect("it is there"), 6);
    let mut foreign = device.open_foreign(Path::new("/load/votes.csv")).expect("it is there");
    assert_eq!(foreign.len_bytes().expect("it is there"), 12);
    let counts: Vec<usize> = (0..3).map(|_| foreign.read_next(&mut some).expect("it is there")).collect();
    assert_eq!(counts, [8, 4, 0]);
}
