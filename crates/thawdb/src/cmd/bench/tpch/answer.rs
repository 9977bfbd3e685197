//! Answers of different databases to one query, compared.
//!
//! A number agrees with another up to [`TOLERANCE`], in absolute terms or as a part of the larger: averages and quotients
//! have other digits after the point in each database. Anything else agrees as text without trailing blanks. Rows are
//! compared in the order they came, and as a sorted set if that fails: an ORDER BY may leave equals in any order.

use crate::embed::Results;
use crate::text;

/// Half of the last digit that every database gives.
const TOLERANCE: f64 = 2e-6;

/// Rows as text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer(Vec<Vec<String>>);

impl Answer {
    /// Of the first result set.
    pub(super) fn of(results: &Results) -> Self {
        let Some(set) = results.sets.first() else { return Self(Vec::new()) };
        let cell = |(value, column): (&thawdb_types::Scalar, &thawdb_engine::OutputColumn)| {
            text::display(value, &column.sql_type).trim_end().to_owned()
        };
        Self(set.rows().map(|row| row.iter().zip(&set.columns).map(cell).collect()).collect())
    }

    /// As psql prints rows without alignment: NULL is nothing there, and no answer has an empty text.
    pub(super) fn parse(text: &str) -> Self {
        let cell = |cell: &str| if cell.is_empty() { "NULL".to_owned() } else { cell.trim_end().to_owned() };
        Self(text.split_terminator('\n').map(|line| line.split('|').map(cell).collect()).collect())
    }

    pub(super) fn row_count(&self) -> usize {
        self.0.len()
    }

    /// A line a row, with tabs.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|row| row.join("\t") + "\n").collect()
    }

    /// Whether both say the same.
    pub(super) fn agrees(&self, other: &Self) -> Result<(), String> {
        if self.0.len() != other.0.len() {
            return Err(format!("{} rows here, {} there", self.0.len(), other.0.len()));
        }
        let (mut ours, mut theirs) = (self.0.clone(), other.0.clone());
        if first_difference(&ours, &theirs).is_some() {
            ours.sort();
            theirs.sort();
        }
        match first_difference(&ours, &theirs) {
            Some(row) => Err(format!("row {row} is {:?} here and {:?} there", ours[row], theirs[row])),
            None => Ok(()),
        }
    }
}

fn first_difference(ours: &[Vec<String>], theirs: &[Vec<String>]) -> Option<usize> {
    let same = |(a, b): (&Vec<String>, &Vec<String>)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b));
    (0..ours.len()).find(|&row| !same((&ours[row], &theirs[row])))
}

fn is_same(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_seen() {
        let ours = Answer::parse("1|a  |0.333333\n2|b|7\n");
        assert!(ours.agrees(&Answer::parse("1|a|0.3333333333\n2|b|7.00\n")).is_ok());
        assert!(ours.agrees(&Answer::parse("2|b|7\n1|a|0.333333\n")).is_ok());
        for wrong in ["1|a|0.333333\n", "1|a|0.3334\n2|b|7\n", "1|A|0.333333\n2|b|7\n", "1|a\n2|b|7\n", "1|a|0.333333\n1|a|0.333333\n"] {
            assert!(ours.agrees(&Answer::parse(wrong)).is_err(), "{wrong}");
        }
    }
}
