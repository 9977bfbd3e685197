//! What SET changes for a session, with SQL Server's defaults for a client of today's drivers.

use crate::session::isolation::Isolation;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectId};
use thawdb_types::convert::DateOrder;

/// The settings of a session. A procedure or sp_executesql gets a copy; what it sets ends with it.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) nocount: bool,
    pub(crate) xact_abort: bool,
    /// SET ROWCOUNT; 0 is no limit.
    pub(crate) row_count: u64,
    pub(crate) identity_insert: Option<(DatabaseId, ObjectId)>,
    pub(crate) isolation: Isolation,
    /// SET LOCK_TIMEOUT; -1 waits for ever.
    pub(crate) lock_timeout_ms: i32,
    pub(crate) deadlock_priority: i8,
    pub(crate) date_first: u8,
    pub(crate) date_order: DateOrder,
    pub(crate) text_size: i32,
    pub(crate) ansi_nulls: bool,
    pub(crate) ansi_padding: bool,
    pub(crate) ansi_warnings: bool,
    pub(crate) ansi_null_default_on: bool,
    pub(crate) arithmetic_abort: bool,
    pub(crate) concat_null_yields_null: bool,
    pub(crate) quoted_identifier: bool,
    pub(crate) numeric_round_abort: bool,
    pub(crate) implicit_transactions: bool,
    pub(crate) cursor_close_on_commit: bool,
    pub(crate) no_exec: bool,
    pub(crate) parse_only: bool,
    pub(crate) format_only: bool,
    pub(crate) showplan_text: bool,
    pub(crate) showplan_all: bool,
    pub(crate) statistics_io: bool,
    pub(crate) statistics_time: bool,
    pub(crate) context_info: Arc<[u8]>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nocount: false,
            xact_abort: false,
            row_count: 0,
            identity_insert: None,
            isolation: Isolation::ReadCommitted,
            lock_timeout_ms: -1,
            deadlock_priority: 0,
            date_first: 7,
            date_order: DateOrder::Mdy,
            text_size: i32::MAX,
            ansi_nulls: true,
            ansi_padding: true,
            ansi_warnings: true,
            ansi_null_default_on: true,
            arithmetic_abort: true,
            concat_null_yields_null: true,
            quoted_identifier: true,
            numeric_round_abort: false,
            implicit_transactions: false,
            cursor_close_on_commit: false,
            no_exec: false,
            parse_only: false,
            format_only: false,
            showplan_text: false,
            showplan_all: false,
            statistics_io: false,
            statistics_time: false,
            context_info: Arc::from([]),
        }
    }
}

impl Options {
    /// `@@OPTIONS`: the bits of sp_configure 'user options'.
    pub(crate) fn bits(&self) -> i32 {
        let bit = |on: bool, value: i32| if on { value } else { 0 };
        bit(self.implicit_transactions, 2)
            | bit(self.cursor_close_on_commit, 4)
            | bit(self.ansi_warnings, 8)
            | bit(self.ansi_padding, 16)
            | bit(self.ansi_nulls, 32)
            | bit(self.arithmetic_abort, 64)
            | bit(self.quoted_identifier, 256)
            | bit(self.nocount, 512)
            | bit(self.ansi_null_default_on, 1024)
            | bit(self.concat_null_yields_null, 4096)
            | bit(self.numeric_round_abort, 8192)
            | bit(self.xact_abort, 16384)
    }

    /// Whether statements are only looked at, not run.
    pub(crate) fn shows_plan(&self) -> bool {
        self.showplan_text || self.showplan_all
    }
}
