//! Names and what they mean: databases' objects, columns, indexes, as immutable definitions.
//!
//! A [`Catalog`] is a snapshot: DDL makes a new one. The tree it is kept in is one of `storage` like any other:
//! [`DatabaseCatalog`] reads and writes a database's, [`InstanceCatalog`] what master knows of the instance.

pub mod defs;
pub mod filter;
pub mod instance;
pub mod jobs;
pub mod key_text;
pub mod layout;
pub mod module;
pub mod objects;
pub mod record;
pub mod security;
pub mod sort_row;
pub mod statistics;
pub mod store;
pub mod temporal;

pub use defs::{
    Catalog, ColumnDef, ColumnId, Compression, ComputedDef, DatabaseId, IdentityDef, IndexDef, IndexId, IndexKey, IndexOptions,
    LockEscalation, ObjectId, SchemaId, TableDef,
};
pub use filter::{FilterConjunct, FilterOp, FilterTest, IndexFilter};
pub use instance::{DatabaseRecord, DatabaseState, LoginRecord};
pub use jobs::{IndexJob, JobProgress, JobPurpose};
pub use key_text::key_text;
pub use layout::{ColumnPlace, TreeLayout};
pub use module::{ModuleFlags, ObjectDef, ObjectKind, ParameterDef, SequenceDef, TriggerDef};
pub use objects::{CheckDef, ConstraintDef, ConstraintKind, ForeignKeyDef, Properties, ReferentialAction, SchemaDef, UserDef};
pub use security::{Grant, GrantState, ObjectSecurity, Security};
pub use statistics::{HistogramStep, Statistics, StatisticsData, StatisticsOrigin, TableStatistics};
pub use store::{CatalogError, Counters, DatabaseCatalog, InstanceCatalog, Related};
pub use temporal::{Period, RetentionUnit, Temporal, Versioning};
