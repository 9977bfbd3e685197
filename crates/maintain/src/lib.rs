//! Long work on tables as jobs: plan, phases, progress.
//!
//! A job is an explicit state machine that the caller drives step by step with its transaction; between steps it may be
//! watched and given up. It knows definitions, trees and codecs, never plans or sessions.

pub mod backup;
pub mod check;
mod columns;
mod entries;
pub mod index_build;
pub mod online;
mod rows;

pub use backup::{BackupMedium, BackupOf};
pub use check::{ColumnFinding, IndexCheck, IndexFinding, TableCheck, check_indexes, check_table};
pub use index_build::{BuildError, BuildPhase, BuildProgress, IndexBuild, IndexBuildOptions};
pub use online::{OnlineBuild, OnlineOptions, Step};
