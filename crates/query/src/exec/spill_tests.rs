//! Operators with a grant far too small give what they give with a large one, keep within it, and go through files.

use crate::expr::{Aggregate, AggregateFunction, CompareOp};
use crate::phys::{JoinKind, Node, NodeKind, SortKey, WindowFunction};
use crate::testing::*;
use thawdb_types::{Scalar, SqlType};

const INT: SqlType = SqlType::Int;
const SMALL: usize = 256 << 10;
const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::LeftOuter, JoinKind::RightOuter, JoinKind::FullOuter, JoinKind::LeftSemi, JoinKind::LeftAnti];

fn text() -> SqlType {
    SqlType::varchar(20)
}

fn i(v: usize) -> Scalar {
    Scalar::Int(v as i32)
}

/// Rows (k, s, v): keys up to `keys` in no order, some NULL, texts that differ in case only.
fn rows(count: usize, keys: usize, seed: usize) -> Vec<Vec<Scalar>> {
    let row = |n: usize| {
        let k = (n * 7919 + seed) % keys;
        let s = if n % 2 == 0 { format!("Name {k}") } else { format!("name {k}") };
        vec![if k % 97 == 13 { Scalar::Null } else { i(k) }, if k % 89 == 7 { Scalar::Null } else { Scalar::text(s) }, i(n)]
    };
    (0..count).map(row).collect()
}

fn types() -> [SqlType; 3] {
    [INT, text(), INT]
}

fn sorted(mut rows: Vec<Vec<Scalar>>) -> Vec<String> {
    let mut texts: Vec<String> = rows.drain(..).map(|row| format!("{row:?}")).collect();
    texts.sort_unstable();
    texts
}

/// Runs the plan with much memory, then with little; what they give may differ in order only.
fn check(name: &str, plan: &Node) {
    let mut host = TestHost::new(&format!("spill_{name}"));
    let expected = sorted(host.rows(plan));
    assert_eq!(host.spilled_bytes, 0, "{name}: the large grant is large");
    assert!(host.memory_bytes_peak > SMALL / 4, "{name}: {} bytes are not worth spilling", host.memory_bytes_peak);
    host.memory_bytes = SMALL;
    let found = sorted(host.rows(plan));
    assert!(host.spilled_bytes > 0, "{name}: nothing was spilled");
    assert!(host.memory_bytes_peak <= SMALL, "{name}: {} bytes of {SMALL}", host.memory_bytes_peak);
    assert!(found == expected, "{name}: {} rows, expected {}", found.len(), expected.len());
}

fn aggregates() -> Vec<Aggregate> {
    let of = |function, sql_type| Aggregate { function, argument: Some(column(2, INT)), distinct: false, sql_type, separator: None };
    vec![
        Aggregate { function: AggregateFunction::Count, argument: None, distinct: false, sql_type: INT, separator: None },
        of(AggregateFunction::Sum, SqlType::BigInt),
        of(AggregateFunction::Min, INT),
        of(AggregateFunction::Max, INT),
    ]
}

#[test]
fn groups_by_an_integer_by_text_and_by_both() {
    let results = [INT, SqlType::BigInt, INT, INT];
    for (name, keys) in [("int", vec![0]), ("text", vec![1]), ("both", vec![0, 1])] {
        let input = Box::new(values(&types(), &rows(40_000, 15_000, 0)));
        let key_types: Vec<SqlType> = keys.iter().map(|k| types()[*k]).collect();
        let keys = keys.into_iter().map(|k| column(k, types()[k])).collect();
        let kind = NodeKind::HashAggregate { input, keys, aggregates: aggregates() };
        check(&format!("group_{name}"), &node(kind, &[&key_types[..], &results].concat()));
    }
}

#[test]
fn distinct_rows() {
    let few_columns = |rows: Vec<Vec<Scalar>>| rows.into_iter().map(|row| row[..1].to_vec()).collect::<Vec<_>>();
    let input = Box::new(values(&[INT], &few_columns(rows(60_000, 30_000, 3))));
    check("distinct", &node(NodeKind::Distinct { input }, &[INT]));
}

fn output(kind: JoinKind) -> Vec<SqlType> {
    let one_side = matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
    if one_side { types().to_vec() } else { [types(), types()].concat() }
}

#[test]
fn hash_joins_of_every_kind() {
    for kind in KINDS {
        let left = Box::new(values(&types(), &rows(9_000, 5_000, 1)));
        let right = Box::new(values(&types(), &rows(8_000, 6_000, 2)));
        let residual = compare(CompareOp::Less, column(2, INT), column(5, INT));
        let keys = vec![(column(0, INT), column(0, INT)), (column(1, text()), column(1, text()))];
        let join = NodeKind::HashJoin { left, right, kind, keys, residual: Some(residual) };
        check(&format!("join_{kind:?}"), &node(join, &output(kind)));
    }
}

#[test]
fn merge_joins_give_what_hash_joins_do_in_left_order() {
    for kind in KINDS {
        for (left_keys, right_keys) in [(5_000, 6_000), (40, 3_000), (3_000, 30)] {
            let by_key = |count, keys, seed| {
                let mut rows = rows(count, keys, seed);
                rows.sort_by_key(|row| row[0].as_i64());
                rows
            };
            let side = |rows: &[Vec<Scalar>]| Box::new(values(&types(), rows));
            let (left, right) = (by_key(3_000, left_keys, 1), by_key(2_500, right_keys, 2));
            let residual = || Some(compare(CompareOp::NotEqual, column(2, INT), column(5, INT)));
            let keys = vec![(column(0, INT), column(0, INT))];
            let hash = NodeKind::HashJoin { left: side(&left), right: side(&right), kind, keys, residual: residual() };
            let merge = NodeKind::MergeJoin { left: side(&left), right: side(&right), kind, keys: vec![(0, 0)], residual: residual() };
            let mut host = TestHost::new(&format!("merge_{kind:?}_{left_keys}"));
            let found = host.rows(&node(merge, &output(kind)));
            let order: Vec<Option<i64>> = found.iter().filter(|row| !row[2].is_null()).map(|row| row[0].as_i64()).collect();
            assert!(order.is_sorted(), "{kind:?}");
            assert!(sorted(found) == sorted(host.rows(&node(hash, &output(kind)))), "{kind:?} {left_keys} {right_keys}");
        }
    }
}

#[test]
fn the_first_of_many_with_ties_and_by_percent() {
    for (name, limit, percent, with_ties) in [("ties", 9_000, false, true), ("percent", 40, true, false), ("many", 20_000, false, false)] {
        let input = Box::new(values(&types(), &rows(30_000, 500, 0)));
        let key = |at: usize| SortKey { expr: column(at, types()[at]), descending: true };
        // Without ties only a total order makes the answer one and the same.
        let keys = if with_ties { vec![key(0)] } else { vec![key(0), key(2)] };
        let limit = literal(Scalar::BigInt(limit), SqlType::BigInt);
        check(&format!("top_{name}"), &node(NodeKind::TopN { input, keys, limit, percent, with_ties }, &types()));
    }
}

#[test]
fn a_few_with_ties_need_little_memory() {
    let input = Box::new(values(&types(), &rows(60_000, 20_000, 0)));
    let keys = vec![SortKey { expr: column(0, INT), descending: true }];
    let limit = literal(Scalar::BigInt(10), SqlType::BigInt);
    let plan = node(NodeKind::TopN { input, keys, limit, percent: false, with_ties: true }, &types());
    let mut host = TestHost::new("few_ties");
    host.memory_bytes = 4 << 20;
    let found = host.rows(&plan);
    assert_eq!((found.len(), host.spilled_bytes), (12, 0));
    assert!(found[9..].iter().all(|row| row[0] == found[9][0]));
}

#[test]
fn row_numbers_and_ranks_hold_no_partition() {
    let mut rows = rows(40_000, 300, 0);
    rows.sort_by_key(|row| (row[2].as_i64().map(|n| n % 2), row[0].as_i64()));
    let input = Box::new(values(&types(), &rows));
    // The partition is NULL everywhere, the order is k: 300 sets of peers, begun anew at the second half.
    let functions = vec![WindowFunction::RowNumber, WindowFunction::Rank, WindowFunction::DenseRank];
    let order = vec![SortKey { expr: column(0, INT), descending: false }];
    let window = NodeKind::Window { input, partition: vec![literal(Scalar::Null, INT)], order, functions };
    let plan = node(window, &[INT, text(), INT, SqlType::BigInt, SqlType::BigInt, SqlType::BigInt]);
    let mut host = TestHost::new("ranks");
    host.memory_bytes = SMALL;
    let found = host.rows(&plan);
    let (mut rank, mut dense_rank) = (0, 0);
    for (at, row) in found.iter().enumerate() {
        if at == 0 || row[0] != found[at - 1][0] {
            (rank, dense_rank) = (at as i64 + 1, dense_rank + 1);
        }
        let expected = [at as i64 + 1, rank, dense_rank].map(Scalar::BigInt);
        assert_eq!(row[3..], expected, "row {at}");
    }
    assert_eq!((found.len(), host.spilled_bytes, host.memory_bytes_peak), (40_000, 0, 0));
}
