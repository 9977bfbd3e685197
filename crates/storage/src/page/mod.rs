//! Pages as bytes: the header, slots and entries, the operations that change them, and the checks that trust nothing.
//!
//! ```text
//! header -- offsets of the 96 bytes          op      -- PageOp, encode, decode, apply: the only way to change a page
//! entry  -- what a slot points to            verify  -- P1 to P10, every violation
//! slotted-- slots, search, room              checksum-- sealed before a write, verified after a read
//! packing -- what rows of a leaf share        whole   -- leaves made at once, and packed for the log
//! dictionary -- where that is kept, and rows made whole again
//! ```
//!
//! docs/FORMAT.md is the same for people. No input or output, no locks, no knowledge of trees: pure functions of bytes.

pub mod checksum;
pub mod describe;
pub(crate) mod dictionary;
pub mod entry;
pub mod header;
pub mod op;
pub(crate) mod packing;
pub mod slotted;
#[cfg(test)]
mod tests;
pub mod verify;
pub(crate) mod whole;

pub use entry::{Entry, VersionTag};
pub use header::{PAGE_BYTES, PageBytes, PageType};
pub use op::{Format, PageOp, PageOpError};
pub use slotted::Slotted;
