//! The bounds hold: deep and long texts end in an error or a tree, on a small stack.

use thawdb_tsql::{ParseOptions, parse_batch};

/// Parses and drops on a thread with the smallest stack a caller may have.
fn first_error(text: String) -> Option<i32> {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || parse_batch(&text, &ParseOptions::default()).errors.first().map(|e| e.number))
        .expect("a thread")
        .join()
        .expect("the parser does not panic")
}

#[test]
fn deep_nesting_is_an_error() {
    let n = 100_000;
    let deep = [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM t WHERE {}a = 1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM t WHERE {}a = 1", "NOT ".repeat(n)),
        format!("SELECT {}1", "-".chars().map(|c| format!("{c} ")).collect::<String>().repeat(n)),
        format!("SELECT {}1", "~".repeat(n)),
        format!("SELECT {}1{}", "CASE WHEN 1 = 1 THEN ".repeat(n), " END".repeat(n)),
        format!("SELECT {}1{}", "f(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "TRIM(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n)),
        format!("{}SELECT 1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM {}t{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(n), ") x".repeat(n)),
        format!("SELECT * FROM t{}", " JOIN t".repeat(n)),
        format!("{}SELECT 1{}", "BEGIN ".repeat(n), " END".repeat(n)),
        format!("{}SELECT 1", "IF 1 = 1 ".repeat(n)),
        format!("{}SELECT 1", "WHILE 1 = 1 ".repeat(n)),
        format!("CREATE TABLE t (a int DEFAULT {}1{})", "(".repeat(n), ")".repeat(n)),
        format!("ALTER DATABASE d SET x = {}a{}", "(b = ".repeat(n), ")".repeat(n)),
        format!("SELECT 1 GROUP BY {}a{}", "GROUPING SETS (".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM {}t{}", "{oj ".repeat(n), "}".repeat(n)),
        format!("SELECT {}1{}", "{fn f(".repeat(n), ")}".repeat(n)),
    ];
    for text in deep {
        let start: String = text.chars().take(60).collect();
        assert_eq!(first_error(text), Some(191), "{start}");
    }
}

#[test]
fn long_left_deep_chains_are_an_error() {
    let n = 100_000;
    let long = [
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT 1{}", " * 1".repeat(n)),
        format!("SELECT a{}", " COLLATE x".repeat(n)),
        format!("SELECT a{}", " AT TIME ZONE 'x'".repeat(n)),
        format!("SELECT f(){}", ".m()".repeat(n)),
        format!("SELECT * FROM t{}", " CROSS JOIN t".repeat(n)),
        format!("SELECT * FROM t{}", " JOIN t ON 1 = 1".repeat(n)),
        format!("SELECT 1{}", " UNION SELECT 1 EXCEPT SELECT 1".repeat(n)),
        format!("IF 1 = 1 SELECT 1{}", " ELSE IF 1 = 1 SELECT 1".repeat(n)),
    ];
    for text in long {
        let start: String = text.chars().take(60).collect();
        assert_eq!(first_error(text), Some(191), "{start}");
    }
}

#[test]
fn nested_chains_are_bounded_together() {
    let chain = " + 1".repeat(90);
    let text = format!("SELECT {}1{}", "(".repeat(50), format!("{chain})").repeat(50));
    assert_eq!(first_error(text), Some(191));
}

#[test]
fn flat_lists_may_be_long() {
    let n = 20_000;
    for text in [
        format!("SELECT 1 FROM t WHERE a = 1{}", " OR a = 1".repeat(n)),
        format!("SELECT 1 FROM t WHERE a = 1{}", " AND a = 1".repeat(n)),
        format!("SELECT 1 FROM t WHERE a IN (1{})", ", 1".repeat(n)),
        format!("INSERT t VALUES (1){}", ", (1)".repeat(n)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n)),
        "SELECT 1 ".repeat(n),
    ] {
        assert_eq!(first_error(text), None);
    }
}

#[test]
fn reasonable_depth_is_allowed() {
    for n in [10, 100] {
        assert_eq!(first_error(format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))), None);
    }
    assert_eq!(first_error(format!("SELECT 'a'{}", " + 'a'".repeat(900))), None);
    assert_eq!(first_error(format!("IF 1 = 1 SELECT 1{}", " ELSE IF 1 = 1 SELECT 1".repeat(300))), None);
    assert_eq!(first_error(format!("{}SELECT 1{}", "BEGIN ".repeat(90), " END".repeat(90))), None);
}
