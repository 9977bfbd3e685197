//! The search for a cycle among those who wait.
//!
//! Edges are read from the lock table at the moment of the search: a sleeper waits for every other owner whose grant is
//! incompatible with its wish, and for everybody who stands before it in the queue. The search is a depth-first walk
//! with a list of visited owners, so that its cost is bounded by sleepers and edges, not by paths.
//!
//! Locks: the caller holds LOCK_WAITS; each step takes one LOCK_HASH partition. It has no failure.

use super::{LockManager, Sleeper, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A cycle through `start`, if there is one.
pub(super) fn search(locks: &LockManager, sleepers: &BTreeMap<u64, Sleeper>, start: u64) -> Option<Vec<u64>> {
    let mut visited = BTreeSet::new();
    let mut path: Vec<(u64, Vec<u64>)> = vec![(start, blockers_of(locks, sleepers, start))];
    while let Some((_, untried)) = path.last_mut() {
        let Some(next) = untried.pop() else {
            path.pop();
            continue;
        };
        if next == start {
            return Some(path.into_iter().map(|(owner, _)| owner).collect());
        }
        if visited.insert(next) {
            path.push((next, blockers_of(locks, sleepers, next)));
        }
    }
    None
}

/// Owners that `waiter` waits for; none if it has been granted, chosen as victim, or does not wait.
fn blockers_of(locks: &LockManager, sleepers: &BTreeMap<u64, Sleeper>, waiter: u64) -> Vec<u64> {
    let Some(sleeper) = sleepers.get(&waiter) else { return Vec::new() };
    if *sleeper.cell.verdict.lock() != Verdict::Waiting {
        return Vec::new();
    }
    let partition = locks.partition(sleeper.resource);
    let Some(entry) = partition.get(&sleeper.resource) else { return Vec::new() };
    let Some(mine) = entry.queue().find(|w| w.owner == waiter) else { return Vec::new() };
    let granted = entry.granted().filter(|g| g.owner != waiter && !g.mode.compatible(mine.mode)).map(|g| g.owner);
    let ahead = entry.queue().take_while(|w| w.owner != waiter).map(|w| w.owner);
    let mut blockers: Vec<u64> = granted.chain(ahead).collect();
    blockers.sort_unstable();
    blockers.dedup();
    blockers
}

/// The lowest priority, then the least work lost, then the youngest.
pub(super) fn victim(sleepers: &BTreeMap<u64, Sleeper>, cycle: &[u64]) -> u64 {
    let weight = |owner: &u64| {
        let sleeper = &sleepers[owner];
        (sleeper.deadlock_priority, sleeper.cost, std::cmp::Reverse(*owner))
    };
    *cycle.iter().min_by_key(|owner| weight(owner)).expect("a cycle has members")
}
