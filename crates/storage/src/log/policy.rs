//! Recovery models, and the chain of log backups: what the log itself remembers of them, in its master record.
//!
//! ```text
//!            SET RECOVERY FULL               BACKUP DATABASE              BACKUP LOG ...
//!  SIMPLE ───────────────────► FULL, no chain ──────────────► FULL, chain ───┐
//!    ▲                          (reuses log as SIMPLE)            ▲  └────────┘ backed up to rises
//!    └────────────── SET RECOVERY SIMPLE ends the chain ──────────┘
//! ```
//!
//! 1. Log is kept for backup only while a chain exists ([`LogPolicy::keeps_from`]): until the first full backup after
//!    creation or after leaving SIMPLE, a database reuses log as if SIMPLE.
//! 2. FULL and BULK_LOGGED change into each other without breaking the chain ([`LogPolicy::set_model`]).
//! 3. `backed_up_to` never goes back while the chain lasts ([`LogPolicy::backed_up`]).

use crate::ids::Lsn;
use crate::log::format::{get_u64, put_u64};

/// Recovery model of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecoveryModel {
    /// Everything is logged and kept until a log backup.
    Full,
    /// As `Full`, but bulk work may be logged by its extents only.
    BulkLogged,
    /// Log is used again after a checkpoint.
    #[default]
    Simple,
}

impl RecoveryModel {
    /// sys.databases.recovery_model.
    pub fn number(self) -> u8 {
        match self {
            Self::Full => 1,
            Self::BulkLogged => 2,
            Self::Simple => 3,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Full, Self::BulkLogged, Self::Simple].into_iter().find(|model| model.number() == number)
    }
}

/// Log backups since a full backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupChain {
    /// Where the log needed by the full backup that began it starts.
    pub begins_at: Lsn,
    /// Everything before is in a log backup, or before the chain.
    pub backed_up_to: Lsn,
}

/// What log backups have to do with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogPolicy {
    /// The recovery model.
    pub model: RecoveryModel,
    /// The chain, if one was begun. None under `Simple`.
    pub chain: Option<BackupChain>,
    /// When the last log backup ended, in the unit of whoever asked for it; 0 is never.
    pub backup_time: i64,
}

impl LogPolicy {
    /// Where log must be kept from for the next log backup.
    pub fn keeps_from(&self) -> Option<Lsn> {
        self.chain.map(|chain| chain.backed_up_to)
    }

    /// Changes the model. SIMPLE ends the chain.
    pub fn set_model(&mut self, model: RecoveryModel) {
        self.model = model;
        if model == RecoveryModel::Simple {
            self.chain = None;
        }
    }

    /// A full backup that needs log from `begins_at` and whose log ends at `end` is complete: a chain begins, unless one
    /// goes on or the model has none.
    pub fn begin_chain(&mut self, begins_at: Lsn, end: Lsn) {
        if self.model != RecoveryModel::Simple && self.chain.is_none() {
            self.chain = Some(BackupChain { begins_at, backed_up_to: begins_at.min(end) });
        }
    }

    /// A log backup up to `end` is complete.
    pub fn backed_up(&mut self, end: Lsn, time: i64) {
        if let Some(chain) = &mut self.chain {
            assert!(end >= chain.backed_up_to, "log backups go forward");
            chain.backed_up_to = end;
            self.backup_time = time;
        }
    }

    pub(super) fn encode(&self, out: &mut [u8]) {
        out[0] = self.model.number();
        out[1] = u8::from(self.chain.is_some());
        let chain = self.chain.unwrap_or(BackupChain { begins_at: Lsn(0), backed_up_to: Lsn(0) });
        put_u64(out, 8, chain.backed_up_to.0);
        put_u64(out, 16, chain.begins_at.0);
        put_u64(out, 24, self.backup_time.cast_unsigned());
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let chain = BackupChain { begins_at: Lsn(get_u64(bytes, 16)), backed_up_to: Lsn(get_u64(bytes, 8)) };
        Some(Self {
            model: RecoveryModel::from_number(bytes[0])?,
            chain: (bytes[1] == 1).then_some(chain),
            backup_time: get_u64(bytes, 24).cast_signed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_begins_with_a_full_backup_and_ends_with_simple() {
        let mut policy = LogPolicy::default();
        policy.begin_chain(Lsn(5), Lsn(9));
        assert_eq!(policy.keeps_from(), None, "SIMPLE has no chain");
        policy.set_model(RecoveryModel::Full);
        assert_eq!(policy.keeps_from(), None, "FULL acts as SIMPLE before the first full backup");
        policy.begin_chain(Lsn(5), Lsn(9));
        policy.backed_up(Lsn(20), 1);
        policy.begin_chain(Lsn(30), Lsn(40));
        policy.set_model(RecoveryModel::BulkLogged);
        assert_eq!(policy.keeps_from(), Some(Lsn(20)), "a later full backup and the other model keep the chain");
        let mut bytes = [0; 40];
        policy.encode(&mut bytes);
        assert_eq!(LogPolicy::decode(&bytes), Some(policy));
        policy.set_model(RecoveryModel::Simple);
        assert_eq!(policy.keeps_from(), None);
    }
}
