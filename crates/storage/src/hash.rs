//! Hashing of keys for lock resources and of small structures for maps: fast, fixed, not for adversaries with a clock.
//!
//! `key_hash` is a 64-bit multiply-fold over eight-byte words. Lock resources compare by it, so a collision makes two
//! keys share a lock: harmless, and one in 2^64. Nothing persistent depends on either function. No locks, no failure.

use std::hash::{BuildHasher, Hasher};

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const SEED: u64 = 0x2545_F491_4F6C_DD1D;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of a byte string.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    let mut hash = SEED ^ key.len() as u64;
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        hash = fold(hash ^ u64::from_le_bytes(word.try_into().expect("chunks of eight")), MULTIPLIER);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(fold(hash ^ u64::from_le_bytes(last), MULTIPLIER), SEED)
}

/// The hasher of internal maps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FastHash;

pub(crate) struct FastHasher(u64);

impl BuildHasher for FastHash {
    type Hasher = FastHasher;
    fn build_hasher(&self) -> FastHasher {
        FastHasher(SEED)
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fold(self.0 ^ key_hash(bytes), MULTIPLIER);
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0 ^ value, MULTIPLIER);
    }
    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.0, SEED)
    }
}
