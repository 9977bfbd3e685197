//! The side tree's words come true in the target.
//!
//! While the table is in use, words are taken a bounded number at a time: each is locked, so that its writer has ended,
//! applied and removed by one transaction. A writer that touches the entry again leaves a new word. What is left when the
//! caller has the table to itself is applied by the caller's own transaction, which publishes the index.
//!
//! Deletions come first: a key value that moved from one row to another is no duplicate. Where the row that goes has its word in a
//! later batch, or left it meanwhile, the word of the row that comes stays: it is judged again, at last when every word is there.
//!
//! Invariants: 1. a word is removed by a transaction whose log comes behind what the word did to the target. 2. What a word does
//! needs no rollback: it stays, and so does the word, until a later one on the same entry replaces both.

use super::{OnlineBuild, WORDS_MAX, WORDS_MIN};
use crate::index_build::BuildError;
use std::ops::Bound;
use thawdb_storage::{KeyRange, ReadView, ScanDirection, StorageError, Txn};
use thawdb_types::key::range_end;

/// Log that applying and removing a word takes, and what is reserved to undo it; for a key of some dozen bytes.
const WORD_LOG_BYTES: u64 = 512;

/// One part of so many of the pool's frames takes the leaves that words are about.
const LEAVES_SHARE: usize = 16;

type Word = (Vec<u8>, Vec<u8>);

impl OnlineBuild {
    /// Applies some words and commits; false when few enough are left for the caller.
    pub(super) fn catch_up_some(&mut self) -> Result<bool, BuildError> {
        let most = self.words_now();
        let words = self.words(&self.database.read_view(None), most)?;
        if words.len() < most {
            return Ok(false);
        }
        let mut txn = self.begin_chunk();
        let mut now = Vec::with_capacity(words.len());
        for (entry, _) in words {
            // Under the lock the word is its writer's last, or gone with it.
            if let Some(word) = txn.lock_row(self.job.side, &entry)? {
                now.push((entry, word.value(0).to_vec()));
            }
        }
        let contested = self.apply(&mut txn, &now)?;
        if let Some(first) = contested.first().filter(|_| contested.len() == now.len()) {
            return Err(self.duplicate(first)?);
        }
        let mut contested = contested.into_iter().peekable();
        for (entry, _) in &now {
            if contested.next_if(|stays| *stays == entry).is_none() {
                txn.delete(self.job.side, entry)?;
            }
        }
        let progress = self.ahead.clone();
        self.commit(txn, progress)?;
        Ok(true)
    }

    /// Applies every word within the caller's transaction, which has the table to itself.
    ///
    /// # Errors
    /// 1505 for a key that two rows share, and storage's.
    pub fn catch_up_all(&mut self, txn: &mut Txn) -> Result<(), BuildError> {
        let view = self.database.read_view(Some(txn));
        let words = self.words(&view, usize::MAX)?;
        let applied = self.apply(txn, &words);
        if matches!(applied, Err(BuildError::Storage(StorageError::LogFull { .. }))) {
            // Next time fewer are left for it.
            self.fewer_words();
        }
        match applied?.first() {
            Some(duplicate) => Err(self.duplicate(duplicate)?),
            None => Ok(()),
        }
    }

    /// Has the next transaction apply fewer words: the log had no room for these.
    pub(super) fn fewer_words(&mut self) {
        self.words_max = (self.words_max / 2).max(WORDS_MIN);
    }

    /// Words of the next transaction: no more than a part of the free log takes.
    fn words_now(&self) -> usize {
        let words = usize::try_from(self.free_log_bytes() / 4 / WORD_LOG_BYTES).unwrap_or(usize::MAX);
        words.clamp(WORDS_MIN, self.words_max)
    }

    fn words(&self, view: &ReadView, most: usize) -> Result<Vec<Word>, BuildError> {
        let mut scan = view.scan(self.job.side, KeyRange::ALL, ScanDirection::Forward)?;
        let mut words = Vec::new();
        while words.len() < most
            && let Some(block) = scan.next_block()?
        {
            words.extend((0..block.len()).map(|row| (block.key(row).to_vec(), block.value(row).to_vec())));
        }
        words.truncate(most);
        Ok(words)
    }

    /// Sets what the words say in the target, which nobody else reads: for good, since a word that is still there is applied again.
    /// Entries of a unique index whose key another has there, in order.
    fn apply<'w>(&self, txn: &mut Txn, words: &'w [Word]) -> Result<Vec<&'w [u8]>, BuildError> {
        let (target, mut contested) = (self.job.index.tree, Vec::new());
        for some in words.chunks(self.words_at_once()) {
            self.prefetch(some)?;
            for (entry, _) in some.iter().filter(|(_, word)| word.first() == Some(&0)) {
                txn.set_private(target, entry, None)?;
            }
        }
        for some in words.chunks(self.words_at_once()) {
            self.prefetch(some)?;
            for (entry, word) in some {
                let Some((1, row)) = word.split_first().map(|(kind, row)| (*kind, row)) else { continue };
                txn.set_private(target, entry, Some(row))?;
                if self.job.index.unique && self.is_contested(txn, entry)? {
                    contested.push(entry.as_slice());
                }
            }
        }
        Ok(contested)
    }

    /// Whether another entry of the target has the entry's own key.
    fn is_contested(&self, txn: &mut Txn, entry: &[u8]) -> Result<bool, BuildError> {
        let own = self.own_part(entry)?;
        let range = KeyRange { start: Bound::Included(own.to_vec()), end: Bound::Excluded(range_end(own)) };
        Ok(txn.any_live_in(self.job.index.tree, &range, Some(entry))?)
    }

    /// Words whose leaves the pool can be asked to have at once.
    fn words_at_once(&self) -> usize {
        (self.database.store().pool().frame_count() / LEAVES_SHARE).clamp(1, WORDS_MAX)
    }

    /// Entries come in the order of their keys and lie all over the target: their leaves are asked for at once.
    fn prefetch(&self, words: &[Word]) -> Result<(), StorageError> {
        // The leaf that has the greatest keys below what comes right behind an entry is the entry's.
        let behind: Vec<Vec<u8>> = words.iter().map(|(entry, _)| [entry, &[0][..]].concat()).collect();
        self.database.prefetch_below(self.job.index.tree, &behind, 1)
    }
}
