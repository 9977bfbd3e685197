//! Plans kept from one execution to the next, by everything that made them what they are.
//!
//! Invariant: a plan is given out only if every table it depends on is in a catalog of the very version it was made
//! under (`PlanCache::get`). Bounded in entries; when full, the least recently used eighth goes.
//!
//! Lock: PLAN_CACHE (rank 5), by shard, held for a look or a change of the map.

use crate::batch::parsed::ParsedTexts;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectId};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_query::compile::{Compiled, Settings};
use thawdb_types::SqlType;

static PLAN_CACHE: LockClass = LockClass::new("PLAN_CACHE", 5);

/// Plans kept a shard: with 16 shards 4,096 in all, about what a small SQL Server instance keeps.
const ENTRIES_MAX: usize = 256;
const SHARD_COUNT: usize = 16;
/// Texts longer than this are not kept: they are loads of literals, seldom said twice.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Everything besides catalogs that decides what a text compiles to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    pub(crate) text: String,
    pub(crate) database: DatabaseId,
    pub(crate) settings: Settings,
    pub(crate) quoted_identifier: bool,
    /// Lines matter to messages.
    pub(crate) line: u32,
    pub(crate) variables: Vec<(String, SqlType)>,
    /// SET IDENTITY_INSERT: which columns an INSERT names depends on it.
    pub(crate) identity_insert: Option<(DatabaseId, ObjectId)>,
}

struct Entry {
    plan: Arc<Compiled>,
    used: u64,
}

#[derive(Default)]
struct Shard {
    // Keyed by a hash first so that a look compares one text at most; order never leaves this map.
    plans: BTreeMap<u64, Vec<(PlanKey, Entry)>>,
    count: usize,
    clock: u64,
}

/// The plans of an instance.
pub(crate) struct PlanCache {
    shards: Vec<Mutex<Shard>>,
    /// Trees of texts, and plans beside them.
    pub(crate) texts: ParsedTexts,
}

fn hash_of(key: &PlanKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl PlanCache {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARD_COUNT).map(|_| Mutex::new(&PLAN_CACHE, Shard::default())).collect();
        Self { shards, texts: ParsedTexts::new() }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[usize::try_from(hash % SHARD_COUNT as u64).expect("below the shard count")]
    }

    /// The plan of `key` if it is still true under the present catalogs, whose versions `version` tells.
    pub(crate) fn get(&self, key: &PlanKey, version: impl Fn(DatabaseId) -> Option<u64>) -> Option<Arc<Compiled>> {
        // The catalogs are asked without the shard's lock: their own come before it.
        let plan = self.kept(key)?;
        plan.dependencies.iter().all(|d| version(d.database) == Some(d.catalog_version)).then_some(plan)
    }

    fn kept(&self, key: &PlanKey) -> Option<Arc<Compiled>> {
        let hash = hash_of(key);
        let mut shard = self.shard(hash).lock();
        shard.clock += 1;
        let clock = shard.clock;
        let (_, entry) = shard.plans.get_mut(&hash)?.iter_mut().find(|(kept, _)| kept == key)?;
        entry.used = clock;
        Some(entry.plan.clone())
    }

    /// Keeps a plan.
    pub(crate) fn put(&self, key: PlanKey, plan: Arc<Compiled>) {
        if key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        let hash = hash_of(&key);
        let mut shard = self.shard(hash).lock();
        if shard.count >= ENTRIES_MAX {
            shard.make_room();
        }
        shard.clock += 1;
        let used = shard.clock;
        let bucket = shard.plans.entry(hash).or_default();
        let before = bucket.len();
        bucket.retain(|(kept, _)| *kept != key);
        let removed = before - bucket.len();
        bucket.push((key, Entry { plan, used }));
        shard.count = shard.count + 1 - removed;
    }

    /// Forgets all plans (DBCC FREEPROCCACHE).
    pub(crate) fn clear(&self) {
        self.shards.iter().for_each(|shard| *shard.lock() = Shard::default());
        self.texts.clear();
    }
}

impl Shard {
    fn make_room(&mut self) {
        let mut ages: Vec<u64> = self.plans.values().flatten().map(|(_, entry)| entry.used).collect();
        ages.sort_unstable();
        let oldest_kept = ages[ages.len() / 8];
        self.plans.retain(|_, bucket| {
            bucket.retain(|(_, entry)| entry.used > oldest_kept);
            !bucket.is_empty()
        });
        self.count = self.plans.values().map(Vec::len).sum();
    }
}
