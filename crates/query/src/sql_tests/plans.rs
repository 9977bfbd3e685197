//! Golden plans.

use super::Db;
use super::rows::shop;

fn big(name: &str) -> Db {
    let mut db = shop(name);
    db.table(
        "votes",
        &["id int", "post int", "kind tinyint", "user_id int null", "made datetime"],
        &["pk_votes:id unique", "ix_post:post include kind", "ix_user:user_id"],
    );
    db.table("posts", &["id int", "owner int null", "score int", "title nvarchar(250) null"], &["pk_posts:id unique", "ix_owner:owner"]);
    db.count("votes", 10_000_000).count("posts", 1_000_000).count("customers", 50_000).count("orders", 500_000).count("items", 2_000_000);
    db
}

/// The statements whose plans are recorded in `plans.golden`. After a change run
/// `GOLDEN=write cargo test -p thawdb-query plans`, and read the difference before committing it.
const STATEMENTS: &[&str] = &[
    "SELECT * FROM votes WHERE id = 5",
    "SELECT post, kind FROM votes WHERE post = 5",
    "SELECT * FROM votes WHERE post = 5",
    "SELECT * FROM votes WHERE post > 5",
    "SELECT id FROM votes WHERE id > 5 AND id <= 10 ORDER BY id DESC",
    "SELECT COUNT(*) FROM votes",
    "SELECT MAX(post) FROM votes",
    "SELECT post, COUNT(*) FROM votes GROUP BY post",
    "SELECT TOP 10 post, COUNT(*) c FROM votes GROUP BY post ORDER BY c DESC",
    "SELECT TOP 10 * FROM votes ORDER BY post",
    "SELECT TOP 10 * FROM votes ORDER BY made",
    "SELECT p.title, v.kind FROM posts p JOIN votes v ON v.post = p.id WHERE p.id = 7",
    "SELECT p.title, v.kind FROM posts p JOIN votes v ON v.post = p.id WHERE p.owner = 7",
    "SELECT p.title, COUNT(*) FROM posts p JOIN votes v ON v.post = p.id GROUP BY p.title",
    "SELECT p.id FROM posts p WHERE EXISTS (SELECT 1 FROM votes v WHERE v.post = p.id)",
    "SELECT p.id FROM posts p WHERE p.owner = 3 AND NOT EXISTS (SELECT 1 FROM votes v WHERE v.post = p.id AND v.kind = 2)",
    "SELECT p.id, (SELECT COUNT(*) FROM votes v WHERE v.post = p.id) FROM posts p WHERE p.owner = 3",
    "SELECT p.id, (SELECT COUNT(*) FROM votes v WHERE v.post = p.id) FROM posts p",
    "SELECT c.name FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id WHERE c.id = 3 AND i.line = 2",
    "SELECT c.name FROM items i JOIN orders o ON i.order_id = o.id JOIN customers c ON o.customer = c.id WHERE c.city = 'Oslo'",
    "SELECT line FROM items WHERE order_id = 3 AND line IN (1, 2, 5)",
    "SELECT id FROM votes WHERE id NOT IN (SELECT user_id FROM votes)",
    "UPDATE votes SET kind = 3 WHERE id = 9",
    "DELETE FROM votes WHERE post = 9",
    "INSERT INTO customers (id, name) VALUES (1, 'x')",
    "SELECT TOP 5 id FROM votes WHERE post = 5 ORDER BY id",
    "SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.total < 10",
    "SELECT * FROM customers WHERE 1 = 0",
    "SELECT x.a FROM (SELECT id AS a, name FROM customers UNION ALL SELECT id, 'x' FROM orders) x WHERE x.a = 5",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY city ORDER BY id) FROM customers",
    "SELECT o.id FROM orders o CROSS APPLY (SELECT TOP 1 * FROM items i WHERE i.order_id = o.id ORDER BY line DESC) x",
    "UPDATE c SET city = 'x' FROM customers c JOIN orders o ON o.customer = c.id WHERE o.id = 3",
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE city = 'Oslo')",
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
    "SELECT * FROM orders WHERE id = (SELECT MAX(order_id) FROM items)",
    "SELECT DISTINCT customer FROM orders",
    "SELECT kind, COUNT(*) FROM votes WHERE made >= '20200101' GROUP BY kind ORDER BY kind",
    // What all branches of an OR say is a join's key, what each says of one table is asked there.
    "SELECT SUM(o.total) FROM orders o, customers c WHERE (o.customer = c.id AND c.city = 'Oslo' AND o.total > 5) OR (o.customer = c.id AND c.city = 'Rome' AND o.total < 2)",
    // A semi join with a unique key is an inner join, which may begin at its right side.
    "SELECT v.id FROM votes v WHERE v.post IN (SELECT id FROM posts WHERE owner = 3)",
    // Votes and items meet by what both are equal to.
    "SELECT COUNT(*) FROM posts p JOIN votes v ON v.post = p.id JOIN items i ON i.order_id = p.id WHERE i.line = 2 AND v.kind = 3",
    // The scalar subquery is asked of the rows that the semi join leaves.
    "SELECT p.id FROM posts p WHERE p.owner IN (SELECT user_id FROM votes WHERE post = 9) AND p.score > (SELECT COUNT(*) FROM votes v WHERE v.post = p.id)",
];

#[test]
fn golden() {
    let db = big("golden");
    let shown: String = STATEMENTS.iter().map(|sql| format!("-- {sql}\n{}\n\n", db.plan(sql))).collect();
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql_tests/plans.golden"), &shown).unwrap();
        return;
    }
    for (want, have) in include_str!("plans.golden").split("\n\n").zip(shown.split("\n\n")) {
        assert_eq!(have, want, "\nthis plan is another than the recorded one:\n{have}\n");
    }
    assert_eq!(include_str!("plans.golden").len(), shown.len(), "statements were added: record them");
}
