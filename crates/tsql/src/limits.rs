//! The bounds of the parser. Reaching one is a syntax error with a number, never a hang or a lost stack.

/// Bytes of one batch. SQL Server's bound is 65,536 network packets, 256 MiB at the default packet size.
pub const TEXT_BYTES_MAX: usize = 256 << 20;

/// Tokens of one batch: enough for a batch of 64 MiB of short tokens, and a bound on the memory they take.
pub const TOKENS_MAX: usize = 16 << 20;

/// Levels of nesting: parentheses, subqueries, blocks, CASE within CASE. The deepest chain of parser functions takes
/// under 7 KiB of stack a level in a build without optimisation (test `deep_nesting_is_an_error`), so that this fits
/// a thread of 2 MiB with room for the caller. SQL Server reports error 191 at a depth that depends on its stack.
pub const NESTING_MAX: u32 = 200;

/// Levels of the tree: nesting, and each operator of a left-deep chain (`a + b + c ...`, `a JOIN b JOIN c ...`). AND, OR,
/// UNION, IN and VALUES are flat lists and count once. It bounds the recursion of whoever walks, compares or drops a tree.
pub const HEIGHT_MAX: u32 = 1000;

/// Characters of an identifier (`sysname`), in UTF-16 units.
pub const IDENTIFIER_UNITS_MAX: usize = 128;
