//! The logical algebra: what a statement means, before anybody decides how to run it.
//!
//! ```text
//! bind ──► Rel (columns by id) ── rules ──► Rel ── lower ──► phys::Node (columns by position)
//! ```
//!
//! Invariants:
//! 1. A column has one [`ColumnRef`] for the whole statement and keeps it through every rewrite, so that moving an
//!    operator can never make an expression mean another column. [`verify::verify`] checks that every reference has a
//!    producer below it or in an enclosing query.
//! 2. A reference to a column that nothing below produces is a correlation: it must be produced by the left side of an
//!    enclosing [`rel::Rel::Apply`] or by the row over which an enclosing subquery expression is evaluated.
//! 3. Nothing here knows pages, indexes' contents or operators.

pub mod columns;
pub mod expr;
pub mod refresh;
pub mod rel;
pub mod verify;

pub use columns::{ColumnInfo, ColumnRef, Columns};
pub use expr::{BoundAggregate, BoundExpr, BoundExprKind, BoundSortKey, BoundSubquery, BoundWindow};
pub use rel::{Get, Rel, Top};
