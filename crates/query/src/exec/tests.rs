//! Operators over a table of storage.

use crate::expr::{Aggregate, AggregateFunction, ArithmeticOp, CompareOp, ExprKind, SubqueryKind};
use crate::phys::{Frame, FrameBound, JoinKind, NodeKind, SeekRange, SortKey, WindowFunction};
use crate::testing::*;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::{Scalar, SqlType};

const INT: SqlType = SqlType::Int;

fn i(v: i32) -> Scalar {
    Scalar::Int(v)
}

/// `t (a int primary key, b int null, s varchar(20) null)` with an index on b including s.
fn people(host: &mut TestHost) -> Arc<TableDef> {
    let definition = table("t", &[("a", INT, false), ("b", INT, true), ("s", SqlType::varchar(20), true)]);
    let table = host.make(with_index(clustered(definition, &[0], true), &[(1, false)], &[2], false));
    let row = |a: i32, b: Option<i32>, s: &str| vec![i(a), b.map_or(Scalar::Null, i), Scalar::text(s)];
    let rows: Vec<Vec<Scalar>> = (0..5000).map(|n| row(n, (n % 10 != 0).then_some(n % 7), &format!("name {n}"))).collect();
    for part in rows.chunks(1000) {
        host.run(&insert(&table, part)).unwrap();
    }
    host.commit();
    table
}

#[test]
fn scans_and_seeks() {
    let mut host = TestHost::new("scans");
    let table = people(&mut host);
    assert_eq!(host.rows(&scan(&table, 0, &[0])).len(), 5000);
    let found = host.rows(&where_(scan(&table, 0, &[2, 0]), compare(CompareOp::Equal, column(1, INT), int(42))));
    assert_eq!(found, [[Scalar::text("name 42"), i(42)]]);
    let one = SeekRange { start: bound(vec![int(7)], true), end: bound(vec![int(7)], true) };
    assert_eq!(host.rows(&within(scan(&table, 0, &[2]), vec![one.clone()])), [[Scalar::text("name 7")]]);
    assert_eq!(host.rows(&within(scan(&table, 0, &[0]), vec![one.clone(), one])), [[i(7)]]);
    let few = SeekRange { start: bound(vec![int(10)], false), end: bound(vec![int(13)], true) };
    assert_eq!(host.rows(&within(scan(&table, 0, &[0]), vec![few])), ints(&[&[11], &[12], &[13]]));
    let null = SeekRange { start: bound(vec![literal(Scalar::Null, INT)], true), end: None };
    assert!(host.rows(&within(scan(&table, 1, &[0]), vec![null])).is_empty());
}

#[test]
fn secondary_index_covers_looks_up_and_cuts_nulls() {
    let mut host = TestHost::new("secondary");
    let table = people(&mut host);
    let below_two = || SeekRange { start: None, end: bound(vec![int(2)], false) };
    let expected = (0..5000).filter(|n| n % 10 != 0 && n % 7 < 2).count();
    assert_eq!(host.rows(&within(scan(&table, 1, &[0, 1]), vec![below_two()])).len(), expected);
    let three = SeekRange { start: bound(vec![int(3)], true), end: bound(vec![int(3)], true) };
    let mut covered = host.rows(&within(scan(&table, 1, &[0, 2]), vec![three.clone()]));
    covered.sort_by_key(|row| row[0].as_i64());
    let expected: Vec<Vec<Scalar>> =
        (0..5000).filter(|n| n % 10 != 0 && n % 7 == 3).map(|n| vec![i(n), Scalar::text(format!("name {n}"))]).collect();
    assert_eq!(covered, expected);
    // Without INCLUDE the text comes from the row.
    let mut bare = (*table).clone();
    bare.indexes[1].included.clear();
    let bare = host.make(bare);
    host.run(&insert(&bare, &[vec![i(1), i(2), Scalar::text("x")], vec![i(2), Scalar::Null, Scalar::text("y")]])).unwrap();
    assert_eq!(host.rows(&scan(&bare, 1, &[2, 1])), [[Scalar::text("y"), Scalar::Null], [Scalar::text("x"), i(2)]]);
}

#[test]
fn count_without_columns() {
    let mut host = TestHost::new("count");
    let table = people(&mut host);
    let count = Aggregate { function: AggregateFunction::Count, argument: None, distinct: false, sql_type: INT, separator: None };
    let input = Box::new(scan(&table, 0, &[]));
    assert_eq!(host.rows(&node(NodeKind::HashAggregate { input, keys: vec![], aggregates: vec![count] }, &[INT])), [[i(5000)]]);
}

#[test]
fn insert_update_delete_keep_indexes_in_step() {
    let mut host = TestHost::new("dml");
    let table = people(&mut host);
    let old = vec![0, 1, 2];
    // Input: locator, a, b, s.
    let input = || where_(scan(&table, 0, &[3, 0, 1, 2]), compare(CompareOp::Equal, column(2, INT), int(5)));
    let affected = (0..5000).filter(|n| n % 10 != 0 && n % 7 == 5).count() as u64;
    let update = NodeKind::Update {
        table: table.clone(),
        input: Box::new(input()),
        assignments: vec![(1, arithmetic(ArithmeticOp::Add, column(2, INT), int(100)))],
        computed: vec![],
        old_columns: old.iter().map(|c| c + 1).collect(),
        output: vec![column(1, INT), column(4, INT)],
    };
    let (rows, count) = host.run(&node(update, &[INT, INT])).unwrap();
    assert_eq!((rows.len() as u64, count), (affected, affected));
    assert!(rows.iter().all(|row| row[0] == i(5) && row[1] == i(105)));
    let at_105 = SeekRange { start: bound(vec![int(105)], true), end: bound(vec![int(105)], true) };
    assert_eq!(host.rows(&within(scan(&table, 1, &[0]), vec![at_105.clone()])).len() as u64, affected);
    let delete = NodeKind::Delete {
        table: table.clone(),
        input: Box::new(within(scan(&table, 1, &[3, 0, 1, 2]), vec![at_105.clone()])),
        old_columns: vec![1, 2, 3],
        output: vec![],
    };
    assert_eq!(host.run(&node(delete, &[])).unwrap().1, affected);
    for index in 0..2 {
        assert_eq!(host.rows(&scan(&table, index, &[0])).len() as u64, 5000 - affected);
    }
}

#[test]
fn moving_every_key_meets_no_false_duplicate() {
    let mut host = TestHost::new("halloween");
    let table = people(&mut host);
    let update = NodeKind::Update {
        table: table.clone(),
        input: Box::new(scan(&table, 0, &[3, 0, 1, 2])),
        assignments: vec![(0, arithmetic(ArithmeticOp::Add, column(1, INT), int(1)))],
        computed: vec![],
        old_columns: vec![1, 2, 3],
        output: vec![],
    };
    assert_eq!(host.run(&node(update, &[])).unwrap().1, 5000);
    let keys: Vec<Vec<Scalar>> = host.rows(&scan(&table, 0, &[0]));
    assert_eq!(keys, (1..=5000).map(|n| vec![i(n)]).collect::<Vec<_>>());
    // INSERT ... SELECT from the table itself ends, and doubles it.
    let copy = NodeKind::Insert {
        table: table.clone(),
        input: Box::new(node(
            NodeKind::Project {
                input: Box::new(scan(&table, 0, &[0])),
                exprs: vec![arithmetic(ArithmeticOp::Add, column(0, INT), int(10_000))],
            },
            &[INT],
        )),
        targets: vec![0],
        defaults: vec![(2, text("copy"))],
        computed: vec![],
        passed: vec![],
        output: vec![],
    };
    assert_eq!(host.run(&node(copy, &[])).unwrap().1, 5000);
    assert_eq!(host.rows(&scan(&table, 0, &[0])).len(), 10_000);
}

#[test]
fn refused_rows() {
    let mut host = TestHost::new("refused");
    let definition = table("t", &[("a", INT, false), ("s", SqlType::varchar(3), true), ("u", INT, true)]);
    let table = host.make(with_index(clustered(definition, &[0], true), &[(2, false)], &[], true));
    let mut row = |a: Scalar, s: &str, u: Scalar| host.run(&insert(&table, &[vec![a, Scalar::text(s), u]])).map_err(|e| (e.number, e.text));
    row(i(1), "abc", i(1)).unwrap();
    let (number, text) = row(i(1), "x", i(2)).unwrap_err();
    assert_eq!(number, 2627);
    assert_eq!(
        text,
        "Violation of PRIMARY KEY constraint 'ix1'. Cannot insert duplicate key in object 'dbo.t'. The duplicate key value is (1)."
    );
    let (number, text) = row(i(2), "x", i(1)).unwrap_err();
    assert_eq!((number, text.contains("'dbo.t' with unique index 'ix2'"), text.ends_with("(1).")), (2601, true, true));
    let (number, text) = row(Scalar::Null, "x", i(3)).unwrap_err();
    assert_eq!(number, 515);
    assert_eq!(text, "Cannot insert the value NULL into column 'a', table 't.dbo.t'; column does not allow nulls. INSERT fails.");
}

#[test]
fn too_long_text_is_refused_with_what_would_fit() {
    let mut host = TestHost::new("truncated");
    let table = host.make(table("t", &[("s", SqlType::varchar(3), true)]));
    let from = |s: &str| {
        let input = Box::new(values(&[SqlType::varchar(50)], &[vec![Scalar::text(s)]]));
        node(
            NodeKind::Insert {
                table: table.clone(),
                input,
                targets: vec![0],
                defaults: vec![],
                computed: vec![],
                passed: vec![],
                output: vec![],
            },
            &[],
        )
    };
    let error = host.run(&from("abcdef")).unwrap_err();
    assert_eq!(error.number, 2628);
    assert_eq!(error.text, "String or binary data would be truncated in table 't.dbo.t', column 's'. Truncated value: 'abc'.");
    host.run(&from("ab   ")).unwrap();
    assert_eq!(host.rows(&scan(&table, 0, &[0])), [[Scalar::text("ab ")]]);
}

#[test]
fn identities_are_handed_out_and_heaps_keep_duplicates() {
    let mut host = TestHost::new("identity");
    let table = host.make(with_identity(table("t", &[("id", SqlType::BigInt, false), ("v", INT, true)]), 0));
    let input = Box::new(values(&[INT], &ints(&[&[7], &[7], &[8]])));
    let insert = NodeKind::Insert {
        table: table.clone(),
        input,
        targets: vec![1],
        defaults: vec![],
        computed: vec![],
        passed: vec![],
        output: vec![column(0, SqlType::BigInt)],
    };
    let plan = node(insert, &[SqlType::BigInt]);
    assert_eq!(host.rows(&plan), [[Scalar::BigInt(1)], [Scalar::BigInt(2)], [Scalar::BigInt(3)]]);
    assert_eq!(host.last_identity, Some(3));
    assert_eq!(host.rows(&scan(&table, 0, &[1, 0])).len(), 3);
}

fn join(kind: JoinKind, way: usize) -> Vec<Vec<Scalar>> {
    let mut host = TestHost::new(&format!("join{kind:?}{way}"));
    let nulls = |rows: &[&[i32]]| -> Vec<Vec<Scalar>> {
        rows.iter().map(|r| r.iter().map(|v| if *v < 0 { Scalar::Null } else { i(*v) }).collect()).collect()
    };
    let left = Box::new(values(&[INT, INT], &nulls(&[&[1, 10], &[2, 20], &[2, 21], &[-1, 30], &[4, 40]])));
    let right = Box::new(values(&[INT, INT], &nulls(&[&[2, 200], &[2, 201], &[-1, 300], &[5, 500], &[1, 5]])));
    // a.k = b.k AND a.v < b.v
    let smaller = || compare(CompareOp::Less, column(1, INT), column(3, INT));
    let equal = compare(CompareOp::Equal, column(0, INT), column(2, INT));
    let both = crate::testing::expr(ExprKind::And(vec![equal, smaller()]), SqlType::Bit);
    let kind = match way {
        0 => NodeKind::HashJoin { left, right, kind, keys: vec![(column(0, INT), column(0, INT))], residual: Some(smaller()) },
        1 => NodeKind::NestedLoopJoin { left, right, kind, predicate: Some(both) },
        _ => NodeKind::Apply { left, right, kind, predicate: Some(both) },
    };
    let columns = if matches!(kind, NodeKind::HashJoin { kind: JoinKind::LeftSemi | JoinKind::LeftAnti, .. })
        || matches!(kind, NodeKind::NestedLoopJoin { kind: JoinKind::LeftSemi | JoinKind::LeftAnti, .. })
        || matches!(kind, NodeKind::Apply { kind: JoinKind::LeftSemi | JoinKind::LeftAnti, .. })
    {
        vec![INT; 2]
    } else {
        vec![INT; 4]
    };
    host.rows(&node(kind, &columns))
}

#[test]
fn joins_agree() {
    let n = Scalar::Null;
    let row = |v: [i32; 4]| v.map(|v| if v < 0 { Scalar::Null } else { i(v) }).to_vec();
    let inner = vec![row([2, 20, 2, 200]), row([2, 20, 2, 201]), row([2, 21, 2, 200]), row([2, 21, 2, 201])];
    for way in 0..3 {
        assert_eq!(join(JoinKind::Inner, way), inner, "{way}");
        let outer = join(JoinKind::LeftOuter, way);
        assert_eq!(outer.len(), 7);
        assert_eq!(outer[0], [i(1), i(10), n.clone(), n.clone()]);
        assert_eq!(outer[5], [n.clone(), i(30), n.clone(), n.clone()]);
        assert_eq!(join(JoinKind::LeftSemi, way), ints(&[&[2, 20], &[2, 21]]));
        assert_eq!(join(JoinKind::LeftAnti, way), [vec![i(1), i(10)], vec![n.clone(), i(30)], vec![i(4), i(40)]]);
    }
    for way in 0..2 {
        let full = join(JoinKind::FullOuter, way);
        assert_eq!(full.len(), 7 + 3);
        assert_eq!(full[7], [n.clone(), n.clone(), n.clone(), i(300)]);
        assert_eq!(join(JoinKind::RightOuter, way).len(), 4 + 3);
    }
}

#[test]
fn apply_and_subqueries_see_the_outer_row() {
    let mut host = TestHost::new("apply");
    let table = people(&mut host);
    let outer = |column: usize| crate::testing::expr(ExprKind::Outer { level: 1, column }, INT);
    let seek = |column: usize| SeekRange { start: bound(vec![outer(column)], true), end: bound(vec![outer(column)], true) };
    let left = values(&[INT], &ints(&[&[3], &[4999], &[6000]]));
    let inner = within(scan(&table, 0, &[2]), vec![seek(0)]);
    let apply =
        NodeKind::Apply { left: Box::new(left.clone()), right: Box::new(inner.clone()), kind: JoinKind::LeftOuter, predicate: None };
    assert_eq!(
        host.rows(&node(apply, &[INT, SqlType::varchar(20)])),
        [[i(3), Scalar::text("name 3")], [i(4999), Scalar::text("name 4999")], [i(6000), Scalar::Null]]
    );
    let subquery = |kind| crate::testing::expr(ExprKind::Subquery { plan: Arc::new(inner.clone()), kind }, SqlType::varchar(20));
    let exists = Expr { sql_type: SqlType::Bit, ..subquery(SubqueryKind::Exists { negated: false }) };
    let project = NodeKind::Project { input: Box::new(left), exprs: vec![subquery(SubqueryKind::Scalar), exists] };
    assert_eq!(
        host.rows(&node(project, &[SqlType::varchar(20), SqlType::Bit])),
        [[Scalar::text("name 3"), Scalar::Bit(true)], [Scalar::text("name 4999"), Scalar::Bit(true)], [Scalar::Null, Scalar::Bit(false)]]
    );
}

use crate::expr::Expr;

fn aggregate(function: AggregateFunction, argument: Option<Expr>, distinct: bool, sql_type: SqlType) -> Aggregate {
    Aggregate { function, argument, distinct, sql_type, separator: Some("|".into()) }
}

#[test]
fn groups_and_aggregates() {
    let mut host = TestHost::new("groups");
    let rows: Vec<Vec<Scalar>> = [(1, Some(5), "x"), (2, None, "y"), (1, Some(6), "X"), (2, Some(1), "z"), (1, Some(5), "x")]
        .map(|(k, v, s)| vec![i(k), v.map_or(Scalar::Null, i), Scalar::text(s)])
        .to_vec();
    let input = values(&[INT, INT, SqlType::varchar(5)], &rows);
    use AggregateFunction as F;
    let aggregates = vec![
        aggregate(F::Count, None, false, INT),
        aggregate(F::Count, Some(column(1, INT)), true, INT),
        aggregate(F::Sum, Some(column(1, INT)), false, INT),
        aggregate(F::Avg, Some(column(1, INT)), false, INT),
        aggregate(F::Max, Some(column(1, INT)), false, INT),
        aggregate(F::StringAgg, Some(column(2, SqlType::varchar(5))), false, SqlType::varchar(100)),
    ];
    let types = [INT, INT, INT, INT, INT, INT, SqlType::varchar(100)];
    let expected =
        [vec![i(1), i(3), i(2), i(16), i(5), i(6), Scalar::text("x|X|x")], vec![i(2), i(2), i(1), i(1), i(1), i(1), Scalar::text("y|z")]];
    let hashed = NodeKind::HashAggregate { input: Box::new(input.clone()), keys: vec![column(0, INT)], aggregates: aggregates.clone() };
    assert_eq!(host.rows(&node(hashed, &types)), expected);
    assert_eq!(host.messages, [8153]);
    let sorted = NodeKind::Sort { input: Box::new(input.clone()), keys: vec![SortKey { expr: column(0, INT), descending: false }] };
    let sorted = node(sorted, &[INT, INT, SqlType::varchar(5)]);
    let streamed = NodeKind::StreamAggregate { input: Box::new(sorted), keys: vec![column(0, INT)], aggregates };
    assert_eq!(host.rows(&node(streamed, &types)), expected);
    // Groups by text follow its collation.
    let by_text = NodeKind::HashAggregate {
        input: Box::new(input),
        keys: vec![column(2, SqlType::varchar(5))],
        aggregates: vec![aggregate(F::CountBig, None, false, SqlType::BigInt)],
    };
    let found = host.rows(&node(by_text, &[SqlType::varchar(5), SqlType::BigInt]));
    assert_eq!(found[0], [Scalar::text("x"), Scalar::BigInt(3)]);
    assert_eq!(found.len(), 3);
}

#[test]
fn empty_input_has_one_row_without_keys() {
    let mut host = TestHost::new("empty");
    use AggregateFunction as F;
    let aggregates = vec![aggregate(F::Count, None, false, INT), aggregate(F::Sum, Some(column(0, INT)), false, INT)];
    let kind = NodeKind::HashAggregate { input: Box::new(values(&[INT], &[])), keys: vec![], aggregates };
    assert_eq!(host.rows(&node(kind, &[INT, INT])), [[i(0), Scalar::Null]]);
}

#[test]
fn sorting_and_limits() {
    let mut host = TestHost::new("sorting");
    let rows: Vec<Vec<Scalar>> = (0..10_000).map(|n| vec![i((n * 7919) % 10_007 - 5_000), i(n)]).collect();
    let input = || Box::new(values(&[INT, INT], &rows));
    let by_first = |descending| vec![SortKey { expr: column(0, INT), descending }];
    let mut expected = rows.clone();
    expected.sort_by_key(|r| r[0].as_i64());
    assert_eq!(host.rows(&node(NodeKind::Sort { input: input(), keys: by_first(false) }, &[INT, INT])), expected);
    expected.reverse();
    let top = NodeKind::TopN { input: input(), keys: by_first(true), limit: int(10), percent: false, with_ties: false };
    assert_eq!(host.rows(&node(top, &[INT, INT])), expected[..10]);
    let share = NodeKind::TopN {
        input: input(),
        keys: by_first(true),
        limit: literal(Scalar::Float(0.05), SqlType::Float),
        percent: true,
        with_ties: false,
    };
    assert_eq!(host.rows(&node(share, &[INT, INT])), expected[..5]);
    let limit = NodeKind::Limit { input: input(), offset: Some(int(4_095)), limit: Some(int(3)), percent: false };
    assert_eq!(host.rows(&node(limit, &[INT, INT])), rows[4_095..4_098]);
    let tied = Box::new(values(&[INT], &ints(&[&[1], &[2], &[2], &[2], &[3]])));
    let ties = NodeKind::TopN { input: tied, keys: by_first(false), limit: int(2), percent: false, with_ties: true };
    assert_eq!(host.rows(&node(ties, &[INT])).len(), 4);
}

#[test]
fn sorts_beyond_the_grant_give_the_same() {
    let rows: Vec<Vec<Scalar>> = (0..30_000)
        .map(|n| vec![if n % 11 == 0 { Scalar::Null } else { i((n * 7919) % 101) }, Scalar::text(format!("t{}", n % 13)), i(n)])
        .collect();
    let types = [INT, SqlType::varchar(20), INT];
    let keys = || {
        let key = |expr, descending| SortKey { expr, descending };
        vec![key(column(0, INT), true), key(column(1, types[1]), false)]
    };
    let plan = node(NodeKind::Sort { input: Box::new(values(&types, &rows)), keys: keys() }, &types);
    let mut host = TestHost::new("sort_memory");
    let expected = host.rows(&plan);
    host.memory_bytes = 256 << 10;
    assert_eq!(host.rows(&plan), expected);
    assert_eq!(expected.len(), rows.len());
}

#[test]
fn sets() {
    let mut host = TestHost::new("sets");
    let n = Scalar::Null;
    let left = || Box::new(values(&[INT], &[vec![i(1)], vec![n.clone()], vec![i(2)], vec![i(1)], vec![n.clone()]]));
    let right = || Box::new(values(&[INT], &[vec![i(2)], vec![n.clone()]]));
    assert_eq!(host.rows(&node(NodeKind::Distinct { input: left() }, &[INT])), [[i(1)], [n.clone()], [i(2)]]);
    let except = NodeKind::SetDifference { left: left(), right: right(), keep: false };
    assert_eq!(host.rows(&node(except, &[INT])), [[i(1)]]);
    let intersect = NodeKind::SetDifference { left: left(), right: right(), keep: true };
    assert_eq!(host.rows(&node(intersect, &[INT])), [[n.clone()], [i(2)]]);
    let all = NodeKind::Concatenate { inputs: vec![*left(), *right()] };
    assert_eq!(host.rows(&node(all, &[INT])).len(), 7);
    let single = |input| node(NodeKind::SingleRow { input }, &[INT]);
    assert_eq!(host.run(&single(left())).unwrap_err().number, 512);
    assert_eq!(host.rows(&single(Box::new(values(&[INT], &[])))), [[n]]);
}

#[test]
fn window_functions() {
    let mut host = TestHost::new("window");
    let long = SqlType::BigInt;
    let n = Scalar::Null;
    // partition, order, value
    let rows = ints(&[&[1, 1, 10], &[1, 2, 20], &[1, 2, 30], &[1, 3, 40], &[2, 1, 5]]);
    let input = Box::new(values(&[INT, INT, INT], &rows));
    let running = Frame { rows: false, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };
    let around = Frame { rows: true, start: FrameBound::Preceding(1), end: FrameBound::Following(1) };
    let sum = || aggregate(AggregateFunction::Sum, Some(column(2, INT)), false, INT);
    let functions = vec![
        WindowFunction::RowNumber,
        WindowFunction::Rank,
        WindowFunction::DenseRank,
        WindowFunction::Ntile(int(3)),
        WindowFunction::Lag { value: column(2, INT), offset: int(1), default: None, lead: false, ignore_nulls: false },
        WindowFunction::FirstValue { value: column(2, INT), last: true, frame: running, ignore_nulls: false },
        WindowFunction::Aggregate { aggregate: sum(), frame: running },
        WindowFunction::Aggregate { aggregate: sum(), frame: around },
    ];
    let kind = NodeKind::Window {
        input,
        partition: vec![column(0, INT)],
        order: vec![SortKey { expr: column(1, INT), descending: false }],
        functions,
    };
    let types = [INT, INT, INT, long, long, long, long, INT, INT, INT, INT];
    let found: Vec<Vec<Scalar>> = host.rows(&node(kind, &types)).into_iter().map(|row| row[3..].to_vec()).collect();
    let b = Scalar::BigInt;
    assert_eq!(
        found,
        [
            vec![b(1), b(1), b(1), b(1), n.clone(), i(10), i(10), i(30)],
            vec![b(2), b(2), b(2), b(1), i(10), i(30), i(60), i(60)],
            vec![b(3), b(2), b(2), b(2), i(20), i(30), i(60), i(90)],
            vec![b(4), b(4), b(3), b(3), i(30), i(40), i(100), i(70)],
            vec![b(1), b(1), b(1), b(1), n, i(5), i(5), i(5)],
        ]
    );
}

#[test]
fn variables_run_over_rows() {
    let mut host = TestHost::new("variables");
    host.variables = vec![i(0)];
    let variable = crate::testing::expr(ExprKind::Variable(0), INT);
    let assign = NodeKind::AssignVariables {
        input: Box::new(values(&[INT], &ints(&[&[1], &[2], &[3]]))),
        assignments: vec![(0, arithmetic(ArithmeticOp::Add, variable, column(0, INT)))],
    };
    assert_eq!(host.run(&node(assign, &[])).unwrap(), (vec![], 3));
    assert_eq!(host.variables, [i(6)]);
}

#[test]
fn bulk_loads_fill_every_index() {
    use crate::exec::{BulkInsert, BulkTarget};
    for (name, reversed, unique, before) in [("rising", false, false, 0), ("falling", true, true, 0), ("not_empty", true, false, 1)] {
        let mut host = TestHost::new(&format!("bulk_{name}"));
        let definition = table("t", &[("a", INT, false), ("b", INT, true), ("s", SqlType::varchar(20), true)]);
        let table = host.make(with_index(clustered(definition, &[0], true), &[(1, true)], &[2], unique));
        if before > 0 {
            host.run(&insert(&table, &[vec![i(-1), i(-1), Scalar::text("before")]])).unwrap();
        }
        let target = BulkTarget {
            table: table.clone(),
            targets: vec![0, 1],
            types: vec![INT, INT],
            defaults: vec![(1, int(-7)), (2, text("given"))],
            computed: vec![],
            keep_identity: true,
            keep_nulls: !unique,
        };
        let mut load = BulkInsert::begin(target, &mut host).unwrap();
        let rows = 100_000;
        for from in (0..rows).step_by(1000) {
            let values = |row: i32| if reversed { rows - 1 - row } else { row };
            let a: Vec<i32> = (from..from + 1000).map(values).collect();
            let b: Vec<Option<i32>> = a.iter().map(|v| (*v != 500).then_some(v * 2)).collect();
            let columns: Vec<arrow_array::ArrayRef> =
                vec![Arc::new(arrow_array::Int32Array::from(a)), Arc::new(arrow_array::Int32Array::from(b))];
            load.push(thawdb_types::Batch::new(columns, 1000), &mut host).unwrap();
        }
        assert_eq!(load.finish(&mut host).unwrap(), rows as u64, "{name}");
        host.commit();
        let all = host.rows(&scan(&table, 0, &[0]));
        assert_eq!(all.len(), (rows + before) as usize);
        assert!(all.windows(2).all(|pair| pair[0][0].as_i64() < pair[1][0].as_i64()));
        assert_eq!(host.rows(&scan(&table, 1, &[0])).len(), (rows + before) as usize);
        let b_of_500 = if unique { i(-7) } else { Scalar::Null };
        let of_500 = where_(scan(&table, 0, &[1, 2, 0]), compare(CompareOp::Equal, column(2, INT), int(500)));
        assert_eq!(host.rows(&of_500), [[b_of_500, Scalar::text("given"), i(500)]]);
    }
}

#[test]
fn bulk_loads_find_duplicates() {
    use crate::exec::{BulkInsert, BulkTarget};
    let mut host = TestHost::new("bulk_duplicates");
    let table = host.make(with_index(clustered(table("t", &[("a", INT, false), ("b", INT, true)]), &[0], true), &[(1, false)], &[], true));
    let load = |host: &mut TestHost, rows: &[&[i32]]| {
        let target = BulkTarget {
            table: table.clone(),
            targets: vec![0, 1],
            types: vec![INT, INT],
            defaults: vec![],
            computed: vec![],
            keep_identity: false,
            keep_nulls: true,
        };
        let mut load = BulkInsert::begin(target, host)?;
        let mut execution = values(&[INT, INT], &ints(rows));
        execution.rows_estimate = 0.0;
        let mut run = crate::exec::run(&execution, host)?;
        while let Some(batch) = run.next(host)? {
            load.push(batch, host)?;
        }
        load.finish(host)
    };
    assert_eq!(load(&mut host, &[&[1, 1], &[1, 2]]).unwrap_err().number, 2627);
    let mut host = TestHost::new("bulk_duplicates_2");
    let table = host.make((*table).clone());
    let target = BulkTarget {
        table,
        targets: vec![0, 1],
        types: vec![INT, INT],
        defaults: vec![],
        computed: vec![],
        keep_identity: false,
        keep_nulls: true,
    };
    let mut load = BulkInsert::begin(target, &mut host).unwrap();
    let column = |v: Vec<i32>| Arc::new(arrow_array::Int32Array::from(v)) as arrow_array::ArrayRef;
    load.push(thawdb_types::Batch::new(vec![column(vec![1, 2, 3]), column(vec![5, 6, 5])], 3), &mut host).unwrap();
    let error = load.finish(&mut host).unwrap_err();
    assert_eq!((error.number, error.text.ends_with("(5).")), (2601, true), "{error}");
}
