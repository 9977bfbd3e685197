//! Building indexes: one narrow, one over two columns, one that includes a column; offline, one after the other. The narrow
//! one again beside the table's use, and so that it could be paused.

use crate::args::BenchArguments;
use crate::cmd::Failure;
use crate::cmd::bench::{DATABASE, with_votes};
use crate::cmd::figures::{Figures, Stopwatch, peak_memory_bytes};
use std::path::Path;

const INDEXES: [(&str, &str); 5] = [
    ("PostId", "CREATE INDEX ix1 ON dbo.Votes (PostId)"),
    ("VoteTypeId, CreationDate", "CREATE INDEX ix2 ON dbo.Votes (VoteTypeId, CreationDate)"),
    ("UserId, including PostId", "CREATE INDEX ix3 ON dbo.Votes (UserId) INCLUDE (PostId)"),
    ("PostId, online", "CREATE INDEX ix4 ON dbo.Votes (PostId) WITH (ONLINE = ON)"),
    ("PostId, resumable", "CREATE INDEX ix5 ON dbo.Votes (PostId) WITH (ONLINE = ON, RESUMABLE = ON)"),
];

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let instance = with_votes(arguments, folder)?;
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    let mut figures = Figures::default();
    for (name, statement) in INDEXES {
        let watch = Stopwatch::start();
        session.execute(statement)?;
        figures.rate("index", name, arguments.rows, watch.seconds());
    }
    figures.add("index", "peak memory", peak_memory_bytes() as f64, "bytes");
    drop(session);
    instance.close()?;
    Ok(figures)
}
