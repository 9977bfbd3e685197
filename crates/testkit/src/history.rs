//! Histories of transactions over lists, and whether an isolation level allows them.
//!
//! ```text
//!   seed ─► programs: transactions that append unique numbers to lists and read lists, alone or several at once
//!   run  ─► history: what each transaction read and appended, and whether it committed
//!   check ► every list's order of appends is its own last state; so who read what tells who came before whom:
//!           ww  a appended right before b       wr  b read what a appended last       rw  a read what b appended next to
//!           so  b followed a in one session     a cycle is an anomaly, by the edges it has
//! ```
//! What a level forbids: Adya, "Weak Consistency" (1999), and for snapshots Fekete et al., "Making Snapshot Isolation
//! Serializable" (2005): every cycle there has two rw edges in a row. The method is Elle's (Kingsbury, Alvaro, 2020): a
//! list tells the order in which it was written, so nothing has to be searched for. No locks; a violation is returned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thawdb_observe::seeded::SeededRandom;

/// A step of a transaction's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Appends a number, which nobody else appends, to a list.
    Append(u64, u64),
    /// Reads the lists from the first to the second, in one statement.
    Read(u64, u64),
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// No write cycles; what is rolled back leaves nothing.
    ReadUncommitted,
    /// Besides, nothing is read that is not committed, or not final.
    ReadCommitted,
    /// Besides, no cycle through rows that were read.
    RepeatableRead,
    /// Every cycle has two rw edges in a row.
    Snapshot,
    /// No cycle.
    Serializable,
}

/// The programs of a run: for each session its transactions, each with whether it rolls back in the end.
#[derive(Debug, Clone)]
pub struct Programs(pub Vec<Vec<(Vec<Step>, bool)>>);

/// Programs of a seed over `lists` lists.
pub fn programs(seed: u64, sessions: usize, transactions: usize, lists: u64) -> Programs {
    let mut random = SeededRandom::new(seed);
    let mut number = 0;
    let mut step = || {
        let list = random.below(lists);
        if random.chance(1, 2) {
            number += 1;
            return Step::Append(list, number);
        }
        Step::Read(list, if random.chance(1, 3) { random.below(lists - list) + list } else { list })
    };
    let mut ends = SeededRandom::new(!seed);
    let mut transaction = || ((0..2 + ends.below(3)).map(|_| step()).collect(), ends.chance(1, 8));
    Programs((0..sessions).map(|_| (0..transactions).map(|_| transaction()).collect()).collect())
}

/// What a transaction did.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// Whether it committed.
    pub committed: bool,
    /// Numbers appended, by list, in order.
    pub appends: Vec<(u64, u64)>,
    /// Lists as they were read, in order, with how many of `appends` came before.
    pub reads: Vec<(u64, Vec<u64>, usize)>,
}

/// A run: each session's transactions in order, and the lists at the end.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Sessions.
    pub sessions: Vec<Vec<Transaction>>,
    /// Final state of each list.
    pub lists: BTreeMap<u64, Vec<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    /// ww, and the order of a session where the level keeps it.
    Write,
    /// wr.
    Read,
    /// rw.
    Anti,
}

struct Checker<'h> {
    transactions: Vec<&'h Transaction>,
    /// Who appended a number.
    writer: BTreeMap<u64, usize>,
    lists: &'h BTreeMap<u64, Vec<u64>>,
    edges: Vec<BTreeSet<(usize, Edge)>>,
}

/// Whether `level` allows the history; otherwise what is wrong with it.
pub fn check(level: Level, history: &History) -> Result<(), String> {
    let transactions: Vec<&Transaction> = history.sessions.iter().flatten().collect();
    let mut writer = BTreeMap::new();
    for (at, transaction) in transactions.iter().enumerate() {
        writer.extend(transaction.appends.iter().map(|(_, number)| (*number, at)));
    }
    let edges = vec![BTreeSet::new(); transactions.len()];
    let mut checker = Checker { transactions, writer, lists: &history.lists, edges };
    checker.check_lists()?;
    checker.add_writes();
    if level != Level::ReadUncommitted {
        checker.check_reads()?;
        checker.add_reads();
    }
    if matches!(level, Level::RepeatableRead | Level::Snapshot | Level::Serializable) {
        let mut first = 0;
        for session in &history.sessions {
            let committed: Vec<usize> = (first..first + session.len()).filter(|at| checker.transactions[*at].committed).collect();
            committed.windows(2).for_each(|pair| checker.add(pair[0], pair[1], Edge::Write));
            first += session.len();
        }
    }
    checker.check_cycles(level)
}

impl Checker<'_> {
    /// Each list has every committed append once, in the order of its transaction, and nothing else.
    fn check_lists(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for (list, numbers) in self.lists {
            for number in numbers {
                let writer = self.writer.get(number).ok_or_else(|| format!("list {list} has {number}, which nobody appended"))?;
                if !self.transactions[*writer].committed {
                    return Err(format!("list {list} has {number} of transaction {writer}, which was rolled back"));
                }
                if !seen.insert(*number) {
                    return Err(format!("list {list} has {number} twice"));
                }
            }
        }
        for (at, transaction) in self.transactions.iter().enumerate().filter(|(_, t)| t.committed) {
            if let Some((list, number)) = transaction.appends.iter().find(|(_, number)| !seen.contains(number)) {
                return Err(format!("list {list} has lost {number} of committed transaction {at}"));
            }
        }
        Ok(())
    }

    /// G1a, G1b, and that a transaction sees its own appends.
    fn check_reads(&self) -> Result<(), String> {
        let empty = Vec::new();
        for (at, transaction) in self.transactions.iter().enumerate() {
            for (list, numbers, before) in &transaction.reads {
                let own: Vec<u64> = transaction.appends[..*before].iter().filter(|(l, _)| l == list).map(|(_, n)| *n).collect();
                let Some(others) = numbers.strip_suffix(own.as_slice()) else {
                    return Err(format!("transaction {at} read {numbers:?} in list {list} without its own {own:?} at the end"));
                };
                let order = self.lists.get(list).unwrap_or(&empty);
                // A transaction that was rolled back may have read a state with its own appends among what came later.
                if !order.starts_with(others) {
                    return Err(format!("transaction {at} read {numbers:?} in list {list}, whose order is {order:?}"));
                }
                let cut = others.last().and_then(|last| Some((self.writer.get(last)?, order.get(others.len())?)));
                if cut.is_some_and(|(writer, next)| self.writer.get(next) == Some(writer)) {
                    return Err(format!("transaction {at} read {numbers:?} in list {list}, in the middle of a transaction"));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.edges[from].insert((to, edge));
        }
    }

    fn add_writes(&mut self) {
        for numbers in self.lists.values() {
            for pair in numbers.windows(2) {
                self.add(self.writer[&pair[0]], self.writer[&pair[1]], Edge::Write);
            }
        }
    }

    fn add_reads(&mut self) {
        let empty = Vec::new();
        for at in 0..self.transactions.len() {
            let transaction = self.transactions[at];
            if !transaction.committed {
                continue;
            }
            for (list, numbers, before) in &transaction.reads {
                let own = transaction.appends[..*before].iter().filter(|(l, _)| l == list).count();
                let others = &numbers[..numbers.len() - own];
                if let Some(last) = others.last() {
                    self.add(self.writer[last], at, Edge::Read);
                }
                let order = self.lists.get(list).unwrap_or(&empty);
                if let Some(next) = order.get(numbers.len()).filter(|next| self.writer[next] != at) {
                    self.add(at, self.writer[next], Edge::Anti);
                }
            }
        }
    }

    fn check_cycles(&self, level: Level) -> Result<(), String> {
        for start in 0..self.edges.len() {
            for &(next, edge) in &self.edges[start] {
                if let Some(path) = self.way_back(start, next, edge, level) {
                    return Err(format!("{level:?}: a cycle that begins with {edge:?} from transaction {start} and goes on {path:?}"));
                }
            }
        }
        Ok(())
    }

    /// A way from `next` back to `start` that the level forbids behind an edge from `start` to `next`.
    fn way_back(&self, start: usize, next: usize, first: Edge, level: Level) -> Option<Vec<usize>> {
        let mut visited = BTreeSet::from([(next, first == Edge::Anti)]);
        let mut paths = VecDeque::from([(vec![next], first)]);
        while let Some((path, last)) = paths.pop_front() {
            let at = *path.last().expect("paths are not empty");
            for &(to, edge) in &self.edges[at] {
                let allowed = match level {
                    Level::ReadUncommitted | Level::ReadCommitted => edge == Edge::Anti || first == Edge::Anti,
                    Level::Snapshot => edge == Edge::Anti && (last == Edge::Anti || (to == start && first == Edge::Anti)),
                    Level::RepeatableRead | Level::Serializable => false,
                };
                if allowed || (level == Level::Snapshot && to == start && edge == Edge::Anti && first == Edge::Anti) {
                    continue;
                }
                if to == start {
                    return Some(path);
                }
                if visited.insert((to, edge == Edge::Anti)) {
                    let mut longer = path.clone();
                    longer.push(to);
                    paths.push_back((longer, edge));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(appends: &[(u64, u64)], reads: &[(u64, &[u64], usize)]) -> Transaction {
        let reads = reads.iter().map(|(list, numbers, before)| (*list, numbers.to_vec(), *before)).collect();
        Transaction { committed: true, appends: appends.to_vec(), reads }
    }

    fn history(transactions: &[Transaction], lists: &[(u64, &[u64])]) -> History {
        let sessions = transactions.iter().map(|t| vec![t.clone()]).collect();
        History { sessions, lists: lists.iter().map(|(list, numbers)| (*list, numbers.to_vec())).collect() }
    }

    /// The levels that allow a history.
    fn allowed(history: &History) -> Vec<Level> {
        let levels = [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Snapshot, Level::Serializable];
        levels.into_iter().filter(|level| check(*level, history).is_ok()).collect()
    }

    #[test]
    fn anomalies_are_found_at_the_levels_that_forbid_them() {
        use Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable, Snapshot};
        let all = vec![ReadUncommitted, ReadCommitted, RepeatableRead, Snapshot, Serializable];
        let serial = [transaction(&[(1, 1)], &[(1, &[], 0)]), transaction(&[(1, 2)], &[(1, &[1, 2], 1)])];
        assert_eq!(allowed(&history(&serial, &[(1, &[1, 2])])), all);
        let write_cycle = [transaction(&[(1, 1), (2, 2)], &[]), transaction(&[(1, 3), (2, 4)], &[])];
        assert_eq!(allowed(&history(&write_cycle, &[(1, &[1, 3]), (2, &[4, 2])])), []);
        let circular = [transaction(&[(1, 1)], &[(2, &[2], 1)]), transaction(&[(2, 2)], &[(1, &[1], 1)])];
        assert_eq!(allowed(&history(&circular, &[(1, &[1]), (2, &[2])])), [ReadUncommitted]);
        let read_skew = [transaction(&[(1, 1), (2, 2)], &[]), transaction(&[], &[(1, &[], 0), (2, &[2], 0)])];
        assert_eq!(allowed(&history(&read_skew, &[(1, &[1]), (2, &[2])])), [ReadUncommitted, ReadCommitted]);
        let write_skew = [transaction(&[(1, 1)], &[(2, &[], 0)]), transaction(&[(2, 2)], &[(1, &[], 0)])];
        assert_eq!(allowed(&history(&write_skew, &[(1, &[1]), (2, &[2])])), [ReadUncommitted, ReadCommitted, Snapshot]);
        let lost_update = [transaction(&[(1, 1)], &[(1, &[], 0)]), transaction(&[(1, 2)], &[(1, &[], 0)])];
        assert_eq!(allowed(&history(&lost_update, &[(1, &[1, 2])])), [ReadUncommitted, ReadCommitted]);
        let middle = [transaction(&[(1, 1), (1, 2)], &[]), transaction(&[], &[(1, &[1], 0)])];
        assert_eq!(allowed(&history(&middle, &[(1, &[1, 2])])), [ReadUncommitted]);
    }

    #[test]
    fn what_is_rolled_back_or_lost_is_found() {
        let mut aborted = transaction(&[(1, 1)], &[]);
        aborted.committed = false;
        let reader = transaction(&[], &[(1, &[1], 0)]);
        assert_eq!(allowed(&history(&[aborted.clone(), reader], &[(1, &[])])), [Level::ReadUncommitted]);
        assert_eq!(allowed(&history(&[aborted], &[(1, &[1])])), []);
        assert_eq!(allowed(&history(&[transaction(&[(1, 1)], &[])], &[(1, &[])])), []);
    }

    #[test]
    fn programs_are_their_seeds() {
        assert_eq!(format!("{:?}", programs(7, 3, 4, 5)), format!("{:?}", programs(7, 3, 4, 5)));
        assert_ne!(format!("{:?}", programs(7, 3, 4, 5)), format!("{:?}", programs(8, 3, 4, 5)));
    }
}
