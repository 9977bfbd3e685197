//! Plans kept from one execution to the next, by everything that made them what they are.
//!
//! Invariant: a plan is given out only if every table it depends on is in a catalog of the very version it was made
//! under, and if no statistics it was made of have aged (`PlanCache::get`). Bounded in entries; when full, the least recently used eighth goes.
//!
//! Lock: PLAN_CACHE (rank 5), by shard, held for a look or a change of the map.

use crate::batch::parsed::ParsedTexts;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    number: u64,
    made: i64,
}

/// A plan as views show it.
pub(crate) struct ShownPlan {
    /// A number no other plan of this process has.
    pub(crate) number: u64,
    /// When it was made, 1/300 s since 1900-01-01.
    pub(crate) made: i64,
    /// The shard it is in.
    pub(crate) bucket: usize,
    pub(crate) key: PlanKey,
    pub(crate) plan: Arc<Compiled>,
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
    number_next: AtomicU64,
    /// Rises when all plans are forgotten: what was kept elsewhere is forgotten with them.
    generation: AtomicU64,
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
        Self { shards, number_next: AtomicU64::new(1), generation: AtomicU64::new(0), texts: ParsedTexts::new() }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[usize::try_from(hash % SHARD_COUNT as u64).expect("below the shard count")]
    }

    /// The plan of `key` if it is still true under the present catalogs, whose versions `version` tells.
    pub(crate) fn get(&self, key: &PlanKey, version: impl Fn(DatabaseId) -> Option<u64>) -> Option<Arc<Compiled>> {
        // The catalogs are asked without the shard's lock: their own come before it.
        let plan = self.kept(key)?;
        (plan.is_fresh() && plan.dependencies.iter().all(|d| version(d.database) == Some(d.catalog_version))).then_some(plan)
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

    /// Keeps a plan made at this moment.
    pub(crate) fn put(&self, key: PlanKey, plan: Arc<Compiled>, made: i64) {
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
        // Relaxed: only uniqueness matters.
        let number = self.number_next.fetch_add(1, Ordering::Relaxed);
        bucket.push((key, Entry { plan, used, number, made }));
        shard.count = shard.count + 1 - removed;
    }

    /// Every plan, by number.
    pub(crate) fn shown(&self) -> Vec<ShownPlan> {
        let mut all = Vec::new();
        for (bucket, shard) in self.shards.iter().enumerate() {
            let shown = |(key, entry): &(PlanKey, Entry)| {
                let (key, plan) = (key.clone(), entry.plan.clone());
                ShownPlan { number: entry.number, made: entry.made, bucket, key, plan }
            };
            all.extend(shard.lock().plans.values().flatten().map(shown));
        }
        all.sort_by_key(|plan| plan.number);
        all
    }

    /// How often all plans were forgotten.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Forgets all plans (DBCC FREEPROCCACHE).
    pub(crate) fn clear(&self) {
        // Relaxed: a statement that runs meanwhile uses what it found.
        self.generation.fetch_add(1, Ordering::Relaxed);
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
