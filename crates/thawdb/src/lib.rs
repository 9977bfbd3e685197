//! ThawDB in your own process: open a folder, get a session, execute T-SQL, take the results as Arrow batches.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("thawdb-doc-{}", std::process::id()));
//! let instance = thawdb::open(&folder, thawdb::Options::default())?;
//! let mut session = instance.session();
//! let results = session.execute("SELECT 6 * 7 AS answer")?;
//! assert_eq!(results.sets[0].row_count(), 1);
//! assert_eq!(results.sets[0].value(0, 0), thawdb::Scalar::Int(42));
//! # drop(session);
//! # instance.close()?;
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`embed`] | instances, sessions, results, streams |
//! | [`text`] | values as text, as sqlcmd shows them |
//! | [`votes`] | the workload of the demo and the benchmarks |
//! | `cmd`, `shell`, `args` | the commands of the `thawdb` binary |
//!
//! The engine itself is below, in `thawdb-engine`; nothing here knows pages or plans.

pub mod args;
pub mod cmd;
pub mod embed;
pub mod shell;
pub mod text;
pub mod votes;

pub use embed::{BulkColumn, BulkLoad, Instance, Options, ResultSet, Results, Session, Stream, StreamItem, open};
pub use thawdb_engine::{CancelToken, OutputColumn, Parameter, Secret};
pub use thawdb_types::{Scalar, SqlError, SqlType};
