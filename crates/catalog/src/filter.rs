//! The condition of a filtered index: which rows of the table have an entry in it.
//!
//! ```text
//! WHERE Closed IS NULL AND Score >= 10      conjuncts, each of one column and constants; a row is in when all are TRUE
//! ```
//! Constants are kept as key bytes of the column's type (`types::key`), so a test is a comparison of bytes in the very order
//! the column has in indexes, whatever its type or collation; and every floor that writes, builds or checks an index tests
//! rows by the same function, [`IndexFilter::kept`].
//!
//! Invariants: 1. A test of NULL is TRUE only for IS NULL. 2. [`FilterTest::is_implied_by`] answers true only if every value
//! for which the other test is TRUE passes this one: the optimizer rests on it, so it may say no too often, never yes.
//! It knows no expressions: what a filter may hold is the engine's to refuse (`engine::ddl::index_filter`).

use crate::defs::{ColumnDef, IndexDef};
use crate::record::{Reader, RecordError, Writer};
use arrow_array::ArrayRef;
use thawdb_types::key::{KeyColumn, encode_array_value, encode_value};
use thawdb_types::{Scalar, SqlType};

/// A comparison with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is what it is called
pub enum FilterOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl FilterOp {
    const ALL: [Self; 6] = [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    fn holds(self, value: &[u8], constant: &[u8]) -> bool {
        match self {
            Self::Equal => value == constant,
            Self::NotEqual => value != constant,
            Self::Less => value < constant,
            Self::LessOrEqual => value <= constant,
            Self::Greater => value > constant,
            Self::GreaterOrEqual => value >= constant,
        }
    }
}

/// What one conjunct asks of its column. Constants are what [`constant`] makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterTest {
    /// IS NULL.
    IsNull,
    /// IS NOT NULL; also a comparison that every value passes.
    IsNotNull,
    /// A comparison that no value passes.
    Never,
    /// A comparison with a constant.
    Compare(FilterOp, Vec<u8>),
    /// IN: equal to one of the constants.
    In(Vec<Vec<u8>>),
}

/// One conjunct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterConjunct {
    /// The column, as a position in `TableDef::columns`.
    pub column_index: usize,
    /// What is asked of it.
    pub test: FilterTest,
}

/// The condition of a filtered index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFilter {
    /// As sys.indexes.filter_definition shows it.
    pub text: String,
    /// All of them must hold.
    pub conjuncts: Vec<FilterConjunct>,
}

fn key_column(sql_type: SqlType) -> KeyColumn {
    KeyColumn::ascending(sql_type, true)
}

/// A constant of a column's type as filters keep it; NULL is less than every other.
pub fn constant(value: &Scalar, sql_type: SqlType) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_value(value, &key_column(sql_type), &mut bytes);
    bytes
}

impl FilterTest {
    /// Whether a value, encoded as [`constant`] does, passes.
    pub fn holds(&self, value: &[u8], is_null: bool) -> bool {
        match self {
            Self::IsNull => is_null,
            _ if is_null => false,
            Self::IsNotNull => true,
            Self::Never => false,
            Self::Compare(op, constant) => op.holds(value, constant),
            Self::In(constants) => constants.iter().any(|constant| constant == value),
        }
    }

    /// Whether every value that passes `known` passes this test. False where that is not seen.
    pub fn is_implied_by(&self, known: &Self) -> bool {
        use FilterOp as Op;
        match (known, self) {
            (Self::Never, _) => true,
            (Self::IsNull, test) => *test == Self::IsNull,
            (_, Self::IsNull | Self::Never) => false,
            (_, Self::IsNotNull) => true,
            (Self::IsNotNull, _) => false,
            (Self::Compare(Op::Equal, value), test) => test.holds(value, false),
            (Self::In(values), test) => values.iter().all(|value| test.holds(value, false)),
            (Self::Compare(..), Self::In(_)) => false,
            (Self::Compare(op, value), Self::Compare(wanted, constant)) => match (op, wanted) {
                (Op::NotEqual, Op::NotEqual) => value == constant,
                (Op::Greater, Op::Greater | Op::GreaterOrEqual | Op::NotEqual) | (Op::GreaterOrEqual, Op::GreaterOrEqual) => {
                    value >= constant
                }
                (Op::GreaterOrEqual, Op::Greater | Op::NotEqual) => value > constant,
                (Op::Less, Op::Less | Op::LessOrEqual | Op::NotEqual) | (Op::LessOrEqual, Op::LessOrEqual) => value <= constant,
                (Op::LessOrEqual, Op::Less | Op::NotEqual) => value < constant,
                _ => false,
            },
        }
    }
}

impl IndexFilter {
    /// Columns the condition looks at; one may come twice.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.conjuncts.iter().map(|conjunct| conjunct.column_index)
    }

    /// For each of `rows` rows whether it is in the index. `array` gives a column of the table by its position.
    pub fn kept<E>(&self, columns: &[ColumnDef], rows: usize, mut array: impl FnMut(usize) -> Result<ArrayRef, E>) -> Result<Vec<bool>, E> {
        let mut kept = vec![true; rows];
        let mut bytes = Vec::new();
        for conjunct in &self.conjuncts {
            let values = array(conjunct.column_index)?;
            let column = key_column(columns[conjunct.column_index].sql_type);
            for (row, kept) in kept.iter_mut().enumerate().filter(|(_, kept)| **kept) {
                let is_null = values.is_null(row);
                bytes.clear();
                if !is_null {
                    encode_array_value(&values, row, &column, &mut bytes);
                }
                *kept = conjunct.test.holds(&bytes, is_null);
            }
        }
        Ok(kept)
    }
}

impl IndexDef {
    /// Whether what the index holds of a row depends on the table's column: as a key, included, or by the filter.
    pub fn depends_on(&self, column_index: usize) -> bool {
        self.keys.iter().any(|key| key.column_index == column_index)
            || self.included.contains(&column_index)
            || self.filter.as_ref().is_some_and(|filter| filter.columns().any(|column| column == column_index))
    }
}

pub(crate) fn write_filter(w: &mut Writer, filter: &IndexFilter) {
    w.text(&filter.text).count(filter.conjuncts.len());
    for conjunct in &filter.conjuncts {
        w.count(conjunct.column_index);
        match &conjunct.test {
            FilterTest::IsNull => _ = w.u8(1),
            FilterTest::IsNotNull => _ = w.u8(2),
            FilterTest::Never => _ = w.u8(3),
            FilterTest::In(constants) => {
                w.u8(4).count(constants.len());
                for constant in constants {
                    w.bytes(constant);
                }
            }
            FilterTest::Compare(op, constant) => _ = w.u8(16 + *op as u8).bytes(constant),
        }
    }
}

pub(crate) fn read_filter(r: &mut Reader<'_>) -> Result<IndexFilter, RecordError> {
    let text = r.text()?;
    let conjuncts = r.list(|r| {
        let column_index = r.count()?;
        let test = match r.u8()? {
            1 => FilterTest::IsNull,
            2 => FilterTest::IsNotNull,
            3 => FilterTest::Never,
            4 => FilterTest::In(r.list(|r| r.bytes().map(<[u8]>::to_vec))?),
            tag => {
                let op = usize::from(tag).checked_sub(16).and_then(|at| FilterOp::ALL.get(at));
                let op = op.ok_or_else(|| RecordError(format!("filter test of tag {tag}")))?;
                FilterTest::Compare(*op, r.bytes()?.to_vec())
            }
        };
        Ok(FilterConjunct { column_index, test })
    })?;
    Ok(IndexFilter { text, conjuncts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i32) -> Vec<u8> {
        constant(&Scalar::Int(value), SqlType::Int)
    }

    fn all_tests() -> Vec<FilterTest> {
        let mut tests = vec![FilterTest::IsNull, FilterTest::IsNotNull, FilterTest::Never, FilterTest::In(vec![int(-1), int(2)])];
        for op in FilterOp::ALL {
            tests.extend((-2..=2).map(|value| FilterTest::Compare(op, int(value))));
        }
        tests
    }

    /// Against every value of a small world: what is said to follow does follow.
    #[test]
    fn an_implication_holds_for_every_value() {
        let passes = |test: &FilterTest, value: Option<i32>| test.holds(&value.map(int).unwrap_or_default(), value.is_none());
        let world: Vec<Option<i32>> = std::iter::once(None).chain((-5..=5).map(Some)).collect();
        let mut implied = 0;
        for known in all_tests() {
            for test in all_tests() {
                let follows = world.iter().all(|value| !passes(&known, *value) || passes(&test, *value));
                if test.is_implied_by(&known) {
                    assert!(follows, "{known:?} does not imply {test:?}");
                    implied += 1;
                }
                // Whoever says the same must be understood.
                assert!(known != test || test.is_implied_by(&known), "{known:?} implies itself");
            }
        }
        assert!(implied > 300, "{implied} implications seen");
    }

    #[test]
    fn a_filter_comes_back_from_its_record() {
        let conjuncts = all_tests().into_iter().enumerate().map(|(column_index, test)| FilterConjunct { column_index, test }).collect();
        let filter = IndexFilter { text: "([a] IS NULL)".into(), conjuncts };
        let mut writer = Writer::new(1);
        write_filter(&mut writer, &filter);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes, 1).expect("same version");
        assert_eq!(read_filter(&mut reader), Ok(filter));
        assert_eq!(reader.finish(), Ok(()));
        (1..bytes.len()).for_each(|cut| assert!(read_filter(&mut Reader::new(&bytes[..cut], 1).expect("a version")).is_err()));
    }
}
