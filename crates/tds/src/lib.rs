//! The wire: SQL Server's Tabular Data Stream, 7.1 to 7.4 and 8.0.
//!
//! The codec is sans-I/O: bytes in, values out, and back. [`packet`] frames messages; [`prelogin`] and [`login`] open
//! a connection; [`batch`], [`rpc`], [`transaction`] and [`bulk`] are what clients ask; [`token`] is what they are
//! answered, one file a token, each with encoder, decoder and a round-trip test. [`server`] joins the codec to an
//! engine and a socket; [`client`] is the other end, for our own shell and tests.
//!
//! ```text
//!  socket ── packet ── prelogin ─ TLS ─ login ─┬─ batch ──────┐
//!                                              ├─ rpc ────────┼─► engine session ─► token ── packet ── socket
//!                                              ├─ bulk ───────┤
//!                                              └─ transaction ┘
//! ```
//!
//! Everything a client sends is hostile: every length is checked before it is believed and before memory is taken
//! ([`buffer::Reader`]); nothing here panics on input. Specification: [MS-TDS] v36.

pub mod batch;
pub mod buffer;
pub mod bulk;
pub mod client;
pub mod login;
pub mod packet;
pub mod prelogin;
pub mod rpc;
pub mod server;
pub mod table_value;
pub mod token;
pub mod transaction;
pub mod type_info;
pub mod value;
mod variant;

/// A version of the protocol as LOGIN7 and LOGINACK carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TdsVersion(pub u32);

impl TdsVersion {
    /// 7.1, revision 1: SQL Server 2000 SP1.
    pub const V7_1: Self = Self(0x7100_0001);
    /// 7.2: SQL Server 2005. Row counts and user types widen, messages get ALL_HEADERS.
    pub const V7_2: Self = Self(0x7209_0002);
    /// 7.3: SQL Server 2008. date, time, datetime2, datetimeoffset, NBCROW.
    pub const V7_3: Self = Self(0x730B_0003);
    /// 7.4: SQL Server 2012 and later. Feature extensions.
    pub const V7_4: Self = Self(0x7400_0004);
    /// 8.0: SQL Server 2022, TLS from the first byte.
    pub const V8_0: Self = Self(0x0800_0000);

    /// What is spoken with a client that asked for `self`; `None` if it is older than anything we speak.
    pub fn negotiate(self) -> Option<Self> {
        if self == Self::V8_0 {
            return Some(self);
        }
        [Self::V7_4, Self::V7_3, Self::V7_2, Self::V7_1].into_iter().find(|known| self >= *known || (self.0 >> 24) == (known.0 >> 24))
    }

    /// Whether this is 7.2 or later (8.0 included, though its number is lower).
    pub fn since_7_2(self) -> bool {
        self == Self::V8_0 || self >= Self::V7_2
    }

    /// Whether this is 7.3 or later.
    pub fn since_7_3(self) -> bool {
        self == Self::V8_0 || self >= Self::V7_3
    }

    /// Whether this is 7.4 or later.
    pub fn since_7_4(self) -> bool {
        self == Self::V8_0 || self >= Self::V7_4
    }
}

#[cfg(test)]
mod tests {
    use super::TdsVersion;

    #[test]
    fn version_negotiation() {
        for (asked, spoken) in [
            (TdsVersion::V7_4, Some(TdsVersion::V7_4)),
            (TdsVersion(0x7400_0005), Some(TdsVersion::V7_4)),
            (TdsVersion(0x730A_0003), Some(TdsVersion::V7_3)),
            (TdsVersion(0x7100_0000), Some(TdsVersion::V7_1)),
            (TdsVersion(0x7000_0000), None),
            (TdsVersion::V8_0, Some(TdsVersion::V8_0)),
        ] {
            assert_eq!(asked.negotiate(), spoken, "{asked:?}");
        }
    }
}
