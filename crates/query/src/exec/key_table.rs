//! Hash tables that number keys in the order they first came: grouping, duplicates, joins.
//!
//! ```text
//! IntTable   slots: | value i64 | number u32 | ...            one integer column
//! KeyTable   slots: | hash u32, number + 1 u32 | ...          any columns, as equality-key bytes
//!            arena: key 0 | key 1 | ...     ends: end of key n
//! ```
//! Invariants: 1. numbers are dense and rise by first appearance, so output in number order never depends on the hash
//! function. 2. At most 7 of 8 slots are taken (`grow_if_full`), so a probe always ends. 3. Numbers stay below 2^32 - 1
//! (`next_number`).

const EMPTY: u32 = 0;
/// No number yet.
pub(crate) const NONE: u32 = u32::MAX;
const FIRST_SLOTS: usize = 64;

/// Mixes 64 bits so that high bits depend on all of them: the fold of a 128-bit product, as wyhash does.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9E37_79B9_7F4A_7C15) * u128::from(0xD6E8_FEB8_6659_FD93u64);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of a key's bytes.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = mix(hash ^ u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(last));
    }
    hash
}

fn next_number(len: usize) -> u32 {
    u32::try_from(len).ok().filter(|n| *n < u32::MAX - 1).expect("the memory grant ends before 2^32 keys")
}

/// Numbers of integers.
pub(crate) struct IntTable {
    slots: Vec<(i64, u32)>,
    len: usize,
}

impl IntTable {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(0, NONE); FIRST_SLOTS], len: 0 }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<(i64, u32)>()
    }

    #[inline]
    fn slot_of(&self, value: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = mix(value as u64) as usize & mask;
        loop {
            let (found, number) = self.slots[at];
            if number == NONE || found == value {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    pub(crate) fn find(&self, value: i64) -> Option<u32> {
        match self.slots[self.slot_of(value)].1 {
            NONE => None,
            number => Some(number),
        }
    }

    /// The value's number, and whether it is new. `number` is what a new one gets.
    #[inline]
    pub(crate) fn insert(&mut self, value: i64, number: u32) -> (u32, bool) {
        let at = self.slot_of(value);
        if self.slots[at].1 != NONE {
            return (self.slots[at].1, false);
        }
        self.slots[at] = (value, number);
        self.len += 1;
        if self.len * 8 > self.slots.len() * 7 {
            self.grow();
        }
        (number, true)
    }

    /// The place of the value's number, `u32::MAX` while it has none; the caller gives it one before the next call.
    #[inline]
    pub(crate) fn number_of(&mut self, value: i64) -> &mut u32 {
        if (self.len + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        let at = self.slot_of(value);
        let slot = &mut self.slots[at];
        if slot.1 == NONE {
            slot.0 = value;
            self.len += 1;
        }
        &mut slot.1
    }

    fn grow(&mut self) {
        let bigger = vec![(0, NONE); self.slots.len() * 2];
        for (value, number) in std::mem::replace(&mut self.slots, bigger) {
            if number != NONE {
                let at = self.slot_of(value);
                self.slots[at] = (value, number);
            }
        }
    }
}

/// Numbers of byte strings.
pub(crate) struct KeyTable {
    slots: Vec<(u32, u32)>,
    arena: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyTable {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(0, EMPTY); FIRST_SLOTS], arena: Vec::new(), ends: Vec::new() }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<(u32, u32)>() + self.arena.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.arena[start..self.ends[number]]
    }

    #[inline]
    fn slot_of(&self, key: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let (found, number) = self.slots[at];
            if number == EMPTY || (found == tag && self.key(number - 1) == key) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        match self.slots[self.slot_of(key, hash_bytes(key))].1 {
            EMPTY => None,
            number => Some(number - 1),
        }
    }

    /// The key's number, and whether it is new.
    pub(crate) fn insert(&mut self, key: &[u8]) -> (u32, bool) {
        let hash = hash_bytes(key);
        let at = self.slot_of(key, hash);
        if self.slots[at].1 != EMPTY {
            return (self.slots[at].1 - 1, false);
        }
        let number = next_number(self.ends.len());
        self.slots[at] = ((hash >> 32) as u32, number + 1);
        self.arena.extend_from_slice(key);
        self.ends.push(self.arena.len());
        if self.ends.len() * 8 > self.slots.len() * 7 {
            self.grow();
        }
        (number, true)
    }

    fn grow(&mut self) {
        let mut bigger = vec![(0, EMPTY); self.slots.len() * 2];
        let mask = bigger.len() - 1;
        for number in 0..self.ends.len() as u32 {
            let hash = hash_bytes(self.key(number));
            let mut at = hash as usize & mask;
            while bigger[at].1 != EMPTY {
                at = (at + 1) & mask;
            }
            bigger[at] = ((hash >> 32) as u32, number + 1);
        }
        self.slots = bigger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut ints = IntTable::new();
        let mut keys = KeyTable::new();
        let mut expected: Vec<i64> = Vec::new();
        let mut seed = 1u64;
        for _ in 0..5_000 {
            seed = mix(seed);
            let value = (seed % 700) as i64 - 350;
            let number = expected.iter().position(|v| *v == value);
            let new = number.is_none();
            let number = number.unwrap_or_else(|| {
                expected.push(value);
                expected.len() - 1
            }) as u32;
            assert_eq!(ints.insert(value, ints.len() as u32), (number, new));
            assert_eq!(keys.insert(format!("key{value}").as_bytes()), (number, new));
        }
        assert_eq!((ints.len(), keys.len()), (expected.len(), expected.len()));
        for (number, value) in expected.iter().enumerate() {
            assert_eq!(ints.find(*value), Some(number as u32));
            assert_eq!(keys.find(format!("key{value}").as_bytes()), Some(number as u32));
        }
        assert_eq!((ints.find(9_999), keys.find(b"nothing")), (None, None));
    }
}
