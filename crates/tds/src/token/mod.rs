//! Tokens of a response (MS-TDS 2.2.7), one file each: encoder, decoder and round-trip test together.
//!
//! A response is a stream of tokens in packets of type [`crate::packet::PacketType::TabularResult`]. The rows between
//! them are written by [`crate::value::RowEncoder`].

pub mod browse;
mod col_metadata;
mod done;
mod env_change;
mod feature_ext_ack;
mod login_ack;
mod message;
mod return_status;
mod return_value;

pub use col_metadata::{ColMetadata, ColumnMeta};
pub use done::{Done, DoneToken};
pub use env_change::EnvChange;
pub use feature_ext_ack::FeatureExtAck;
pub use login_ack::LoginAck;
pub use message::Message;
pub use return_status::ReturnStatus;
pub use return_value::ReturnValue;

/// Codes of the tokens we write or read.
#[allow(missing_docs)] // each is the token of its name in MS-TDS 2.2.7
pub mod code {
    pub const RETURN_STATUS: u8 = 0x79;
    pub const COL_METADATA: u8 = 0x81;
    pub const TABLE_NAME: u8 = 0xA4;
    pub const COLUMN_INFO: u8 = 0xA5;
    pub const ORDER: u8 = 0xA9;
    pub const ERROR: u8 = 0xAA;
    pub const INFO: u8 = 0xAB;
    pub const RETURN_VALUE: u8 = 0xAC;
    pub const LOGIN_ACK: u8 = 0xAD;
    pub const FEATURE_EXT_ACK: u8 = 0xAE;
    pub const ROW: u8 = 0xD1;
    pub const NBC_ROW: u8 = 0xD2;
    pub const ENV_CHANGE: u8 = 0xE3;
    pub const DONE: u8 = 0xFD;
    pub const DONE_PROC: u8 = 0xFE;
    pub const DONE_IN_PROC: u8 = 0xFF;
}
