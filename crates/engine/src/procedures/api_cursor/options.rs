//! SCROLLOPT and CCOPT: what a driver asks of a cursor, and what it gets.

use crate::messages::message;
use crate::session::cursors::CursorKind;
use thawdb_types::SqlError;

pub(super) const KEYSET: i32 = 0x1;
pub(super) const DYNAMIC: i32 = 0x2;
pub(super) const FORWARD_ONLY: i32 = 0x4;
pub(super) const STATIC: i32 = 0x8;
pub(super) const FAST_FORWARD: i32 = 0x10;
const TYPES: i32 = 0x1F;
/// A declaration of parameters and their values follow.
pub(super) const PARAMETERIZED: i32 = 0x1000;
/// The first rows come with the open, as many as ROWCOUNT says.
pub(super) const AUTO_FETCH: i32 = 0x2000;
/// The cursor closes once its last row was fetched.
pub(super) const AUTO_CLOSE: i32 = 0x4000;
/// Only the types whose bits, 16 places higher, are set will do.
const CHECK_ACCEPTED_TYPES: i32 = 0x8000;

pub(super) const READ_ONLY: i32 = 0x1;
const CONCURRENCIES: i32 = 0xF;
/// What cannot be a cursor is run as it is.
pub(super) const ALLOW_DIRECT: i32 = 0x2000;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) scroll: i32,
    pub(super) concurrency: i32,
}

/// What a cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settled {
    /// One of the types.
    pub(super) scroll: i32,
    /// One of the concurrencies.
    pub(super) concurrency: i32,
}

impl Asked {
    pub(super) fn has(self, flag: i32) -> bool {
        self.scroll & flag != 0
    }

    pub(super) fn allows_direct(self) -> bool {
        self.concurrency & ALLOW_DIRECT != 0
    }

    /// What a query gets whose rows can be changed or not: what cannot be followed in its tables is a snapshot, read only.
    pub(super) fn settle(self, updatable: bool) -> Result<Settled, SqlError> {
        let asked = match self.scroll & TYPES {
            0 => KEYSET,
            types => 1 << types.trailing_zeros(),
        };
        let concurrency = match self.concurrency & CONCURRENCIES {
            0 if matches!(asked, STATIC | FAST_FORWARD) => READ_ONLY,
            0 => 0x4,
            concurrencies => 1 << concurrencies.trailing_zeros(),
        };
        if matches!(asked, STATIC | FAST_FORWARD) && concurrency != READ_ONLY {
            let word = ["scroll locks", "optimistic", "optimistic"][usize::from(concurrency > 2) + usize::from(concurrency > 4)];
            return Err(message(16_966, &[&"sp_cursoropen", &concurrency, &word]));
        }
        let follows = matches!(asked, KEYSET | DYNAMIC);
        let settled = Settled {
            scroll: if follows && !updatable { STATIC } else { asked },
            concurrency: if updatable { concurrency } else { READ_ONLY },
        };
        if self.has(CHECK_ACCEPTED_TYPES) && self.scroll & (settled.scroll << 16) == 0 {
            return Err(message(16_955, &[]));
        }
        Ok(settled)
    }
}

impl Settled {
    pub(super) fn kind(self) -> CursorKind {
        match self.scroll {
            STATIC => CursorKind::Static,
            KEYSET => CursorKind::Keyset,
            FAST_FORWARD => CursorKind::FastForward,
            _ => CursorKind::Dynamic,
        }
    }

    pub(super) fn scrolls(self) -> bool {
        !matches!(self.scroll, FORWARD_ONLY | FAST_FORWARD)
    }

    /// Whether the number of its rows is told.
    pub(super) fn counts(self) -> bool {
        matches!(self.scroll, STATIC | KEYSET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_followed_is_a_snapshot() {
        let settled = |scroll, concurrency, updatable| {
            Asked { scroll, concurrency }.settle(updatable).map(|s| (s.scroll, s.concurrency)).map_err(|error| error.number)
        };
        assert_eq!(settled(KEYSET, 1, true), Ok((KEYSET, 1)));
        assert_eq!(settled(KEYSET, 4, false), Ok((STATIC, 1)));
        assert_eq!(settled(DYNAMIC | PARAMETERIZED, 2, true), Ok((DYNAMIC, 2)));
        assert_eq!(settled(FORWARD_ONLY, 1, false), Ok((FORWARD_ONLY, 1)));
        assert_eq!(settled(FAST_FORWARD | AUTO_CLOSE, 1 | ALLOW_DIRECT, true), Ok((FAST_FORWARD, 1)));
        assert_eq!(settled(STATIC, 4, true), Err(16_966));
        assert_eq!(settled(0, 0, true), Ok((KEYSET, 4)));
        assert_eq!(settled(KEYSET | CHECK_ACCEPTED_TYPES | KEYSET << 16, 1, false), Err(16_955));
        assert_eq!(settled(KEYSET | CHECK_ACCEPTED_TYPES | STATIC << 16, 1, false), Ok((STATIC, 1)));
    }
}
