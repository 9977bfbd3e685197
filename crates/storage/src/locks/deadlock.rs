//! The search for a cycle among those who wait.
//!
//! Edges are read from the lock table at the moment of the search: a sleeper waits for every other party whose grant is
//! incompatible with its wish, and for everybody who stands before it in the queue. The search is a depth-first walk
//! with a list of visited parties, so that its cost is bounded by sleepers and edges, not by paths.
//!
//! Locks: the caller holds LOCK_WAITS; each step takes one LOCK_HASH partition. It has no failure.

use super::{LockManager, Party, Sleeper, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A cycle through `start`, if there is one.
pub(super) fn search(locks: &LockManager, sleepers: &BTreeMap<Party, Sleeper>, start: Party) -> Option<Vec<Party>> {
    let mut visited = BTreeSet::new();
    let mut path: Vec<(Party, Vec<Party>)> = vec![(start, blockers_of(locks, sleepers, start))];
    while let Some((_, untried)) = path.last_mut() {
        let Some(next) = untried.pop() else {
            path.pop();
            continue;
        };
        if next == start {
            return Some(path.into_iter().map(|(party, _)| party).collect());
        }
        if visited.insert(next) {
            path.push((next, blockers_of(locks, sleepers, next)));
        }
    }
    None
}

/// Parties that `waiter` waits for; none if it has been granted, chosen as victim, or does not wait.
fn blockers_of(locks: &LockManager, sleepers: &BTreeMap<Party, Sleeper>, waiter: Party) -> Vec<Party> {
    let Some(sleeper) = sleepers.get(&waiter) else { return Vec::new() };
    if sleeper.cell.verdict() != Verdict::Waiting {
        return Vec::new();
    }
    let partition = locks.partition(sleeper.resource);
    let Some(entry) = partition.get(&sleeper.resource) else { return Vec::new() };
    let Some(mine) = entry.queue().find(|w| w.owner == sleeper.owner) else { return Vec::new() };
    let mut blockers: Vec<Party> = entry.blockers(waiter, mine.owner, mine.mode).collect();
    blockers.sort_unstable();
    blockers.dedup();
    blockers
}

/// The lowest priority, then the least work lost, then who began to wait last: who closed the circle.
pub(super) fn victim(sleepers: &BTreeMap<Party, Sleeper>, cycle: &[Party]) -> Party {
    let weight = |party: &Party| {
        let sleeper = &sleepers[party];
        (sleeper.deadlock_priority, sleeper.cost, std::cmp::Reverse(sleeper.wait))
    };
    *cycle.iter().min_by_key(|party| weight(party)).expect("a cycle has members")
}
