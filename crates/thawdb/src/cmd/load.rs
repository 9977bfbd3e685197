//! Votes on their way into a table: as columns for the bulk path, as CSV for BULK INSERT.

use crate::cmd::Failure;
use crate::embed::{BulkColumn, Session};
use crate::votes::{CREATE_TABLE, DateTexts, Votes};
use arrow_array::builder::{Int32Builder, Int64Builder};
use arrow_array::{ArrayRef, Int32Array, Int64Array};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use thawdb_types::calendar::{DATETIME_UNITS_PER_DAY, days_from_civil};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Rows made and pushed at a time: enough to make the cost of a push disappear, a megabyte of memory.
const ROWS_PER_PUSH: u64 = 32_768;
/// Rows between two reports of progress while a file is written.
const ROWS_PER_REPORT: u64 = 1 << 16;
/// How Votes are declared to the bulk path; Id is left to IDENTITY, which counts as Votes do.
const TABLE: &str = "dbo.Votes";

/// Makes a database, an empty dbo.Votes in it, and leaves the session there.
pub fn create(session: &mut Session, database: &str) -> Result<(), SqlError> {
    session.execute(&format!("IF DB_ID(N'{database}') IS NOT NULL DROP DATABASE [{database}]"))?;
    session.execute(&format!("CREATE DATABASE [{database}]"))?;
    session.execute(&format!("USE [{database}]"))?;
    session.execute(CREATE_TABLE)?;
    Ok(())
}

fn columns() -> [BulkColumn; 5] {
    [
        BulkColumn::new("PostId", SqlType::Int),
        BulkColumn::new("UserId", SqlType::Int),
        BulkColumn::new("BountyAmount", SqlType::Int),
        BulkColumn::new("VoteTypeId", SqlType::Int),
        BulkColumn::new("CreationDate", SqlType::DateTime),
    ]
}

fn signed(value: u32) -> i32 {
    i32::try_from(value).expect("the values of Votes are below 2^31")
}

/// Rows `first..first + count` as the arrays of [`columns`].
fn arrays(votes: Votes, first: u64, count: u64) -> Vec<ArrayRef> {
    let rows = usize::try_from(count).expect("a push is small");
    let (mut posts, mut types) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let (mut users, mut bounties) = (Int32Builder::with_capacity(rows), Int32Builder::with_capacity(rows));
    let mut dates = Int64Builder::with_capacity(rows);
    for id in first..first + count {
        let vote = votes.row(id);
        posts.push(signed(vote.post_id));
        types.push(signed(vote.vote_type_id));
        users.append_option(vote.user_id.map(signed));
        bounties.append_option(vote.bounty_amount.map(signed));
        dates.append_value(i64::from(vote.datetime_day()) * DATETIME_UNITS_PER_DAY);
    }
    let dates: Int64Array = dates.finish();
    vec![
        Arc::new(Int32Array::from(posts)),
        Arc::new(users.finish()),
        Arc::new(bounties.finish()),
        Arc::new(Int32Array::from(types)),
        Arc::new(dates),
    ]
}

/// Loads all of Votes through the bulk path; `progress` hears how many rows are in.
pub fn bulk(session: &mut Session, votes: Votes, mut progress: impl FnMut(u64)) -> Result<u64, SqlError> {
    let mut load = session.bulk(TABLE, &columns(), "TABLOCK")?;
    let mut next = 1;
    while next <= votes.rows() {
        let count = ROWS_PER_PUSH.min(votes.rows() + 1 - next);
        load.push(arrays(votes, next, count))?;
        next += count;
        progress(next - 1);
    }
    load.finish()
}

/// Writes all of Votes as CSV, as `votes.md` describes it.
pub fn write_csv(votes: Votes, path: &Path, mut progress: impl FnMut(u64)) -> Result<u64, Failure> {
    let file = File::create(path).map_err(|e| Failure::of(path.display(), e))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let dates = DateTexts::new();
    let mut line = Vec::with_capacity(64);
    let mut bytes = 0;
    for id in 1..=votes.rows() {
        line.clear();
        votes.csv_row(id, &dates, &mut line);
        out.write_all(&line)?;
        bytes += line.len() as u64;
        if id.is_multiple_of(ROWS_PER_REPORT) {
            progress(id);
        }
    }
    out.flush()?;
    Ok(bytes)
}

/// The BULK INSERT of that file.
pub fn bulk_insert_statement(path: &Path) -> String {
    let path = path.display().to_string().replace('\'', "''");
    format!(
        "BULK INSERT {TABLE} FROM '{path}' WITH (FORMAT = 'CSV', FIELDTERMINATOR = ',', ROWTERMINATOR = '0x0a', KEEPIDENTITY, KEEPNULLS, TABLOCK)"
    )
}

/// What the demo's questions must be answered with, worked out from the generator alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Rows.
    pub rows: i64,
    /// Rows of each VoteTypeId there is, in order.
    pub by_type: Vec<(i64, i64)>,
    /// The ten posts with most votes, most first; of equals the lower PostId first.
    pub top_posts: Vec<(i64, i64)>,
    /// Sum of the bounties of 2012; `None` if there were none.
    pub bounties_2012: Option<i64>,
}

impl Answers {
    /// Works them out: one pass over the rows, four bytes of memory a post.
    pub fn of(votes: Votes) -> Self {
        let posts_max = usize::try_from(votes.rows() * 39 / 100).expect("32-bit").max(1);
        let mut posts = vec![0u32; posts_max + 1];
        let (first_day, end_day) = (day_of(2012), day_of(2013));
        let mut bounties = None;
        for id in 1..=votes.rows() {
            let vote = votes.row(id);
            posts[vote.post_id as usize] += 1;
            if let Some(amount) = vote.bounty_amount.filter(|_| (first_day..end_day).contains(&vote.day)) {
                *bounties.get_or_insert(0) += i64::from(amount);
            }
        }
        let mut ranked: Vec<(i64, i64)> = (0..).zip(posts).filter(|(_, n)| *n > 0).map(|(post, n)| (post, i64::from(n))).collect();
        let most_first = |(post, n): &(i64, i64)| (std::cmp::Reverse(*n), *post);
        if ranked.len() > 10 {
            ranked.select_nth_unstable_by_key(9, most_first);
            ranked.truncate(10);
        }
        ranked.sort_unstable_by_key(most_first);
        let by_type = (1..).zip(votes.count_by_type()).filter(|(_, n)| *n > 0).map(|(t, n)| (t, n.cast_signed())).collect();
        Self { rows: votes.rows().cast_signed(), by_type, top_posts: ranked, bounties_2012: bounties }
    }
}

/// Days from the first vote's day to the first of January.
fn day_of(year: i32) -> u32 {
    u32::try_from(days_from_civil(year, 1, 1) - days_from_civil(2008, 7, 31)).expect("votes began in 2008")
}

/// The questions, each with its name.
pub const QUESTIONS: [(&str, &str); 4] = [
    ("COUNT(*)", "SELECT COUNT(*) FROM dbo.Votes"),
    ("GROUP BY VoteTypeId", "SELECT VoteTypeId, COUNT(*) FROM dbo.Votes GROUP BY VoteTypeId ORDER BY VoteTypeId"),
    ("top 10 posts", "SELECT TOP (10) PostId, COUNT(*) AS n FROM dbo.Votes GROUP BY PostId ORDER BY n DESC, PostId"),
    ("SUM of 2012's bounties", "SELECT SUM(BountyAmount) FROM dbo.Votes WHERE CreationDate >= '20120101' AND CreationDate < '20130101'"),
];

/// Whether the answer to question `at` is right.
pub fn is_right(at: usize, rows: &[Vec<Scalar>], answers: &Answers) -> bool {
    let pairs = || rows.iter().map(|row| Some((row.first()?.as_i64()?, row.get(1)?.as_i64()?))).collect::<Option<Vec<_>>>();
    let single = || rows.first().and_then(|row| row.first()).filter(|_| rows.len() == 1);
    match at {
        0 => single().and_then(Scalar::as_i64) == Some(answers.rows),
        1 => pairs().as_deref() == Some(&answers.by_type),
        2 => pairs().as_deref() == Some(&answers.top_posts),
        _ => single().is_some_and(|value| value.as_i64() == answers.bounties_2012),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};

    #[test]
    fn arrays_hold_the_rows() {
        let votes = Votes::new(1000);
        let arrays = arrays(votes, 501, 300);
        for (row, id) in (501..=800).enumerate() {
            let vote = votes.row(id);
            let optional = |at: usize| {
                let array = arrays[at].as_primitive::<Int32Type>();
                (!array.is_null(row)).then(|| array.value(row).cast_unsigned())
            };
            assert_eq!(
                [optional(0), optional(1), optional(2), optional(3)],
                [Some(vote.post_id), vote.user_id, vote.bounty_amount, Some(vote.vote_type_id)]
            );
            assert_eq!(arrays[4].as_primitive::<Int64Type>().value(row) / DATETIME_UNITS_PER_DAY, i64::from(vote.datetime_day()));
        }
    }

    #[test]
    fn answers_agree_with_a_plain_count() {
        let votes = Votes::new(20_000);
        let answers = Answers::of(votes);
        let mut counts = std::collections::BTreeMap::new();
        (1..=20_000).for_each(|id| *counts.entry(i64::from(votes.row(id).post_id)).or_insert(0i64) += 1);
        let mut ranked: Vec<_> = counts.into_iter().collect();
        ranked.sort_by_key(|(post, n)| (-n, *post));
        assert_eq!(answers.top_posts, ranked[..10]);
        assert_eq!(answers.by_type.iter().map(|(_, n)| n).sum::<i64>(), 20_000);
        assert!(answers.bounties_2012.unwrap() > 0);
        assert_eq!((day_of(2009), day_of(2013)), (154, 1615));
    }

    #[test]
    fn wrong_answers_are_seen() {
        let answers = Answers::of(Votes::new(2000));
        assert!(is_right(0, &[vec![Scalar::Int(2000)]], &answers));
        for wrong in [vec![], vec![vec![Scalar::Int(1999)]], vec![vec![Scalar::Null]], vec![vec![Scalar::Int(2000)]; 2]] {
            assert!(!is_right(0, &wrong, &answers));
        }
        let pairs = |pairs: &[(i64, i64)]| -> Vec<Vec<Scalar>> {
            pairs.iter().map(|(a, b)| vec![Scalar::Int(i32::try_from(*a).unwrap()), Scalar::BigInt(*b)]).collect()
        };
        assert!(is_right(1, &pairs(&answers.by_type), &answers) && is_right(2, &pairs(&answers.top_posts), &answers));
        assert!(!is_right(1, &pairs(&answers.by_type[1..]), &answers));
        let mut swapped = pairs(&answers.top_posts);
        swapped.swap(0, 1);
        assert!(!is_right(2, &swapped, &answers));
    }
}
