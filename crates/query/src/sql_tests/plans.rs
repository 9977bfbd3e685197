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

#[test]
fn show() {
    let db = big("show");
    for sql in [
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
    ] {
        println!("-- {sql}\n{}\n", db.plan(sql));
    }
}
