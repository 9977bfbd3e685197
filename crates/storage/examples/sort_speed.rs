//! Sorts as many (8-byte key, 4-byte payload) rows as asked for and prints what each phase took:
//! `cargo run --release -p thawdb-storage --example sort_speed -- 52928720 2048`.

use std::time::Instant;
use thawdb_storage::sort::{ExternalSort, SortOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let row_count = arguments.first().copied().unwrap_or(10_000_000);
    let memory_bytes_max = usize::try_from(arguments.get(1).copied().unwrap_or(2048) << 20)?;
    let options =
        SortOptions { memory_bytes_max, temp_folder: std::env::temp_dir().join("thawdb-sort-speed"), stable: false, ordered_bytes: 0 };
    let start = Instant::now();
    let mut sort = ExternalSort::new(thawdb_device::os::env(), options);
    let mut dice = 88_172_645_463_325_252u64;
    for id in 0..row_count {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let post = u32::try_from(dice % 40_000_000)?;
        let key = (u64::from(post) << 32) | (id & 0xFFFF_FFFF);
        sort.push(&key.to_be_bytes(), &[0; 4])?;
    }
    let pushed = start.elapsed();
    let mut rows = sort.finish()?;
    let sorted = start.elapsed();
    let (mut count, mut sum) = (0u64, 0u64);
    while let Some((key, payload)) = rows.next()? {
        count += 1;
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(key[7]) + u64::from(payload[0]));
    }
    let read = start.elapsed();
    println!("{count} rows: push {pushed:.2?}, sort {:.2?}, read {:.2?}, total {read:.2?} ({sum:x})", sorted - pushed, read - sorted);
    println!("{:?}", rows.statistics());
    Ok(())
}
