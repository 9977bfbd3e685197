//! Transaction isolation levels, by the numbers sys.dm_exec_sessions shows.

/// Isolation of a session's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the level of its name
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Snapshot,
}

impl Isolation {
    /// sys.dm_exec_sessions.transaction_isolation_level.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::ReadUncommitted => 1,
            Self::ReadCommitted => 2,
            Self::RepeatableRead => 3,
            Self::Serializable => 4,
            Self::Snapshot => 5,
        }
    }

    /// The words of SET TRANSACTION ISOLATION LEVEL.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ UNCOMMITTED",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
            Self::Snapshot => "SNAPSHOT",
        }
    }

    /// Whether storage gives what the level promises. READ UNCOMMITTED may show what is committed: it promises less.
    pub(crate) fn is_built(self) -> bool {
        matches!(self, Self::ReadUncommitted | Self::ReadCommitted)
    }
}
