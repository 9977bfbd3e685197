//! Whole-table queries: the median of three runs each, after one that is not counted.

use crate::args::BenchArguments;
use crate::cmd::bench::{DATABASE, median, with_votes};
use crate::cmd::figures::{Figures, Stopwatch};
use crate::cmd::{Failure, load};
use std::path::Path;

/// Runs counted.
const RUN_COUNT: usize = 3;
/// Questions besides the demo's.
const QUESTIONS: [(&str, &str); 3] = [
    ("SUM of an int", "SELECT SUM(CAST(PostId AS bigint)) FROM dbo.Votes"),
    ("filter, 1 % pass", "SELECT COUNT(*) FROM dbo.Votes WHERE VoteTypeId IN (4, 6, 7, 8, 13) AND PostId % 2 = 0"),
    ("sort, top 100", "SELECT TOP (100) Id, PostId FROM dbo.Votes ORDER BY PostId DESC, Id"),
];

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let instance = with_votes(arguments, folder)?;
    let mut session = instance.session();
    session.execute(&format!("USE [{DATABASE}]"))?;
    let mut figures = Figures::default();
    for (name, question) in load::QUESTIONS.into_iter().chain(QUESTIONS) {
        session.execute(question)?;
        let mut seconds = Vec::with_capacity(RUN_COUNT);
        for _ in 0..RUN_COUNT {
            let watch = Stopwatch::start();
            session.execute(question)?;
            seconds.push(watch.seconds());
        }
        figures.rate("scan", name, arguments.rows, median(seconds));
    }
    drop(session);
    instance.close()?;
    Ok(figures)
}
