//! The external sort against a sort in memory, with runs that fit and runs that spill.

use super::*;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn temp_folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("thawdb-sort-test-{}-{name}", std::process::id()))
}

/// Sorts `rows` within `memory` and compares with the standard library's stable sort.
fn check(name: &str, rows: &[(Vec<u8>, Vec<u8>)], memory: usize, stable: bool) -> SortStatistics {
    let options = SortOptions { memory_bytes_max: memory, temp_folder: temp_folder(name), stable, ordered_bytes: 0 };
    let mut sort = ExternalSort::new(thawdb_device::os::env(), options);
    for (key, payload) in rows {
        sort.push(key, payload).unwrap();
    }
    let mut sorted = sort.finish().unwrap();
    let mut got = Vec::new();
    while let Some((key, payload)) = sorted.next().unwrap() {
        got.push((key.to_vec(), payload.to_vec()));
    }
    let mut expected = rows.to_vec();
    if stable {
        expected.sort_by(|a, b| a.0.cmp(&b.0));
    } else {
        assert!(got.is_sorted_by(|a, b| a.0 <= b.0), "{name}: keys in order");
        expected.sort();
        got.sort();
    }
    assert!(got == expected, "{name}: the same rows");
    let statistics = sorted.statistics();
    drop(sorted);
    let folder = temp_folder(name);
    let left = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{name}: the run file is gone");
    let _ = std::fs::remove_dir(folder);
    statistics
}

fn rows(seed: u64, count: usize, mut make: impl FnMut(&mut Dice) -> (Vec<u8>, Vec<u8>)) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut dice = Dice(seed * 2 + 1);
    (0..count).map(|_| make(&mut dice)).collect()
}

#[test]
fn fixed_rows_sort_in_memory_and_spilled() {
    for width in [1usize, 3, 8, 10, 16, 20, 32] {
        let payload = (32 - width).min(5);
        let input = rows(width as u64, 60_000, |dice| {
            let mut key = vec![7; width];
            for byte in key.iter_mut().rev().take(6) {
                *byte = dice.next() as u8;
            }
            (key, dice.next().to_le_bytes()[..payload].to_vec())
        });
        let name = format!("fixed{width}");
        assert_eq!(check(&name, &input, 64 << 20, false).spilled_run_count, 0);
        assert!(check(&name, &input, 100_000, false).spilled_run_count > 1);
        check(&name, &input, 70_000, true);
    }
}

#[test]
fn variable_rows_keep_the_order_of_equals() {
    let input = rows(5, 30_000, |dice| {
        let length = (dice.next() % 14) as usize;
        let key = (0..length).map(|_| b"ab\0"[(dice.next() % 3) as usize]).collect();
        (key, vec![dice.next() as u8; (dice.next() % 40) as usize])
    });
    for (memory, stable) in [(64 << 20, true), (64 << 20, false), (60_000, true), (60_000, false), (9_000, true)] {
        let statistics = check("variable", &input, memory, stable);
        assert_eq!(statistics.spilled_run_count > 0, memory < 1 << 20);
    }
}

#[test]
fn changing_shape_and_rows_larger_than_memory() {
    let mut input = rows(9, 500, |dice| (dice.next().to_be_bytes().to_vec(), vec![1, 2]));
    input.push((vec![3; 70_000], vec![4; 300_000]));
    input.push((Vec::new(), Vec::new()));
    input.extend(rows(11, 500, |dice| (dice.next().to_be_bytes().to_vec(), vec![1, 2])));
    check("shape", &input, 1 << 20, true);
    check("shape", &input, 8_192, false);
    check("none", &[], 8_192, false);
}

#[test]
fn a_flipped_bit_in_a_run_is_damage() {
    let folder = temp_folder("flip");
    let options = SortOptions { memory_bytes_max: 64 << 10, temp_folder: folder.clone(), stable: false, ordered_bytes: 0 };
    let mut sort = ExternalSort::new(thawdb_device::os::env(), options);
    for n in 0..20_000u64 {
        sort.push(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), b"x").unwrap();
    }
    let path = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[5_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let outcome = sort.finish().and_then(|mut rows| {
        while rows.next()?.is_some() {}
        Ok(())
    });
    assert!(matches!(outcome, Err(StorageError::Damage { .. })), "{outcome:?}");
    let _ = std::fs::remove_dir(folder);
}
