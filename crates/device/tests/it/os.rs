//! Each test runs for io_uring and threads, direct and buffered; io_uring is left out where the kernel refuses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_device::os::{Batching, OsDevice, OsOptions};
use thawdb_device::{AlignedBuf, BlockFile, Device, DeviceErrorKind, OpenMode, OwnedRequest, ReadRequest, SECTOR_BYTES, WriteRequest};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// A folder on the disk the build uses (a memory file system may not take direct I/O), removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("device-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("the build's folder takes folders");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn for_each_way(test: impl Fn(&OsDevice, &Path)) {
    for batching in [Batching::Ring, Batching::Threads] {
        for buffered in [false, true] {
            match OsDevice::new(OsOptions { batching, buffered }) {
                Ok(device) => {
                    assert_eq!(device.uses_ring(), batching == Batching::Ring);
                    test(&device, &Folder::new().0);
                }
                Err(refusal) => assert_eq!((batching, refusal.operation), (Batching::Ring, "io_uring")),
            }
        }
    }
}

fn sectors(count: usize, seed: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::zeroed(count * SECTOR_BYTES);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index / SECTOR_BYTES) as u8 ^ (index as u8) ^ seed;
    }
    buffer
}

fn create(device: &OsDevice, path: &Path, len_bytes: u64) -> Arc<dyn BlockFile> {
    let file = device.open(path, OpenMode::CreateNew).expect("it is new");
    file.set_len(len_bytes).expect("there is room");
    file
}

#[test]
fn batches_larger_than_the_queue_arrive_whole() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), 4 << 20);
        // 200 requests of one or two sectors in a scattered order, and one of 2.5 MiB that is cut into pieces.
        let small: Vec<AlignedBuf> = (0..200).map(|i| sectors(1 + i % 2, i as u8)).collect();
        let big = sectors(640, 99);
        let mut writes: Vec<_> =
            (0..200_u64).map(|i| WriteRequest { offset: (i * 77 % 200) * 2 * SECTOR, buffer: &small[i as usize] }).collect();
        writes.push(WriteRequest { offset: 400 * SECTOR, buffer: &big[..624 * SECTOR_BYTES] });
        file.write(&writes).expect("all are within the file");
        file.sync().expect("the disk takes it");

        let mut read_small: Vec<AlignedBuf> = small.iter().map(|b| AlignedBuf::zeroed(b.len())).collect();
        let mut read_big = AlignedBuf::zeroed(624 * SECTOR_BYTES);
        let mut reads: Vec<_> = read_small
            .iter_mut()
            .enumerate()
            .map(|(i, buffer)| ReadRequest { offset: (i as u64 * 77 % 200) * 2 * SECTOR, buffer })
            .collect();
        reads.push(ReadRequest { offset: 400 * SECTOR, buffer: &mut read_big });
        file.read(&mut reads).expect("all are within the file");
        assert!(small.iter().zip(&read_small).all(|(wrote, read)| wrote[..] == read[..]));
        assert!(read_big[..] == big[..624 * SECTOR_BYTES]);

        let stats = file.stats();
        assert_eq!((stats.reads, stats.writes, stats.syncs), (201, 201, 1));
        assert_eq!(stats.read_bytes, stats.write_bytes);
        assert_eq!(stats.write_bytes, (300 + 624) * SECTOR);
        assert_eq!(stats.queue_depth_max, 201);
    });
}

#[test]
fn the_end_of_a_file_is_told_from_a_failure_and_the_rest_of_the_batch_is_done() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), 3 * SECTOR);
        file.write(&[WriteRequest { offset: 0, buffer: &sectors(3, 5) }]).expect("within");
        let (mut first, mut over) = (AlignedBuf::zeroed(SECTOR_BYTES), AlignedBuf::zeroed(2 * SECTOR_BYTES));
        let mut batch = [ReadRequest { offset: 2 * SECTOR, buffer: &mut over }, ReadRequest { offset: 0, buffer: &mut first }];
        let error = file.read(&mut batch).expect_err("the second sector is beyond the end");
        assert_eq!((error.kind, error.operation, error.offset), (DeviceErrorKind::EndOfFile, "read", Some(2 * SECTOR)));
        assert!(first[..] == sectors(1, 5)[..]);
        file.read(&mut []).expect("nothing was asked");
    });
}

#[test]
fn lengths_grow_as_zeroes_and_shrink() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), 2 * SECTOR);
        file.write(&[WriteRequest { offset: 0, buffer: &sectors(2, 1) }]).expect("within");
        file.set_len(SECTOR).expect("shrinks");
        file.set_len(64 << 20).expect("grows");
        assert_eq!(file.len_bytes().expect("it is open"), 64 << 20);
        let mut read = sectors(2, 3);
        file.read(&mut [ReadRequest { offset: 0, buffer: &mut read }]).expect("within");
        assert!(read[..SECTOR_BYTES] == sectors(1, 1)[..]);
        assert!(read[SECTOR_BYTES..].iter().all(|&byte| byte == 0));
    });
}

#[test]
fn no_room_is_reported_by_the_change_of_length_which_changes_nothing() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), SECTOR);
        // An exabyte: no disk has it (ENOSPC), no file system takes it (EFBIG); both are `Full`.
        let error = file.set_len(1 << 60).expect_err("no disk is that large");
        assert_eq!((error.kind, error.operation), (DeviceErrorKind::Full, "resize"));
        assert_eq!(file.len_bytes().expect("it is open"), SECTOR);
    });
}

/// As the files of a killed process are, once the kernel has carried out what was in flight.
#[test]
fn a_file_that_is_let_go_meanwhile_is_opened() {
    for_each_way(|device, folder| {
        let path = folder.join("a");
        let held = create(device, &path, SECTOR);
        let (opening, begins) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let opened = scope.spawn(move || {
                opening.send(()).expect("somebody hears it");
                device.open(&path, OpenMode::Existing).map(drop)
            });
            begins.recv().expect("it begins");
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
            opened.join().expect("no panic").expect("the lock is waited for");
        });
    });
}

#[test]
fn a_file_is_open_once_but_for_readers() {
    for_each_way(|device, folder| {
        let path = folder.join("a");
        let missing = device.open(&path, OpenMode::Existing).err().expect("not made yet");
        assert_eq!(missing.kind, DeviceErrorKind::NotFound);
        let file = create(device, &path, SECTOR);
        let kind_of = |mode| device.open(&path, mode).err().map(|error| error.kind);
        assert_eq!(kind_of(OpenMode::Existing), Some(DeviceErrorKind::Busy));
        assert_eq!(kind_of(OpenMode::CreateNew), Some(DeviceErrorKind::AlreadyExists));
        let other = OsDevice::new(OsOptions { batching: Batching::Threads, buffered: true }).expect("threads need nothing");
        assert_eq!(other.open(&path, OpenMode::Existing).err().map(|error| error.kind), Some(DeviceErrorKind::Busy));
        let reader = device.open(&path, OpenMode::ReadOnly).expect("readers do not ask for the lock");
        assert!(reader.write(&[WriteRequest { offset: 0, buffer: &sectors(1, 0) }]).is_err());
        drop(file);
        assert_eq!(kind_of(OpenMode::Existing), None);
    });
}

#[test]
fn tickets_give_buffers_back_filled_and_may_be_forgotten() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), 1 << 20);
        let tickets: Vec<_> = (0..8_u64)
            .map(|i| {
                let requests = (0..4).map(|j| OwnedRequest::new((i * 4 + j) * SECTOR, sectors(1, (i * 4 + j) as u8))).collect();
                file.start_write(requests)
            })
            .collect();
        for ticket in tickets {
            let (requests, result) = ticket.wait();
            assert_eq!((requests.len(), result.is_ok()), (4, true));
        }
        drop(file.start_read(vec![OwnedRequest::new(0, AlignedBuf::zeroed(SECTOR_BYTES))]));
        let beyond = file.start_read(vec![OwnedRequest::new(1 << 20, AlignedBuf::zeroed(SECTOR_BYTES))]);
        let (requests, result) = file.start_read(vec![OwnedRequest::new(7 * SECTOR, AlignedBuf::zeroed(SECTOR_BYTES))]).wait();
        result.expect("within the file");
        let buffers: Vec<_> = requests.into_iter().map(OwnedRequest::into_aligned).collect();
        assert!(buffers[0][..] == sectors(1, 7)[..]);
        assert_eq!(beyond.wait().1.expect_err("beyond the end").kind, DeviceErrorKind::EndOfFile);
    });
}

#[test]
fn folders_names_and_foreign_files() {
    for_each_way(|device, folder| {
        let deep = folder.join("x/y/z");
        device.create_folder(&deep).expect("parents come along");
        device.create_folder(&deep).expect("again is no error");
        drop(create(device, &deep.join("b"), SECTOR));
        drop(create(device, &deep.join("a"), 2 * SECTOR));
        assert_eq!(device.list(&deep).expect("it is there"), ["a", "b"]);
        device.rename(&deep.join("a"), &folder.join("b")).expect("across folders");
        device.rename(&deep.join("b"), &folder.join("b")).expect("over another");
        assert!(device.exists(&folder.join("b")) && !device.exists(&deep.join("b")));
        let file = device.open(&folder.join("b"), OpenMode::Existing).expect("it is there");
        assert_eq!(file.len_bytes().expect("it is open"), SECTOR);
        drop(file);
        device.remove(&folder.join("b")).expect("nobody has it");
        assert_eq!(device.remove(&folder.join("b")).expect_err("gone").kind, DeviceErrorKind::NotFound);

        let text = folder.join("votes.csv");
        std::fs::write(&text, b"1,2,3\n4,5,6\n").expect("the folder takes files");
        let mut some = [0; 5];
        assert_eq!(device.read_foreign(&text, 3, &mut some).expect("it is there"), 5);
        assert_eq!(&some, b",3\n4,");
        let mut foreign = device.open_foreign(&text).expect("it is there");
        assert_eq!(foreign.len_bytes().expect("it is open"), 12);
        let mut all = Vec::new();
        loop {
            match foreign.read_next(&mut some).expect("it is open") {
                0 => break,
                count => all.extend_from_slice(&some[..count]),
            }
        }
        assert_eq!(all, b"1,2,3\n4,5,6\n");
    });
}

#[test]
fn many_threads_use_one_file() {
    for_each_way(|device, folder| {
        let file = create(device, &folder.join("a"), 64 * 8 * SECTOR);
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let file = &file;
                scope.spawn(move || {
                    let buffers: Vec<_> = (0..64).map(|i| sectors(1, (thread * 64 + i) as u8)).collect();
                    let at = |i: usize| (i as u64 * 8 + thread) * SECTOR;
                    let writes: Vec<_> = buffers.iter().enumerate().map(|(i, buffer)| WriteRequest { offset: at(i), buffer }).collect();
                    file.write(&writes).expect("within");
                    let mut read = vec![AlignedBuf::zeroed(SECTOR_BYTES); 64];
                    let mut reads: Vec<_> = read.iter_mut().enumerate().map(|(i, buffer)| ReadRequest { offset: at(i), buffer }).collect();
                    file.read(&mut reads).expect("within");
                    assert!(buffers.iter().zip(&read).all(|(wrote, read)| wrote[..] == read[..]));
                });
            }
        });
        assert_eq!(file.stats().writes, 512);
    });
}

#[test]
#[should_panic(expected = "not whole sectors")]
fn a_request_that_is_not_whole_sectors_is_our_mistake() {
    let device = OsDevice::new(OsOptions::default()).expect("falls back");
    let folder = Folder::new();
    let file = create(&device, &folder.0.join("a"), SECTOR);
    let _ = file.write(&[WriteRequest { offset: 0, buffer: &sectors(1, 0)[..512] }]);
}
