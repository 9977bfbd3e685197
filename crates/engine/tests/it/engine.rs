//! The engine's doors: login, cancellation, remote calls, transactions of the client's manager.

use crate::script::{fresh_engine, said};
use thawdb_engine::{LoginRequest, Secret};

fn request(user: &str, password: &str, database: &str) -> LoginRequest {
    LoginRequest { user: user.into(), password: Secret::new(password), database: database.into(), ..LoginRequest::default() }
}

#[test]
fn login_checks_name_password_and_database() {
    let (engine, _) = fresh_engine("login");
    let number = |user: &str, password: &str, database: &str| match engine.login(request(user, password, database)) {
        Ok(_) => 0,
        Err(error) => error.number,
    };
    assert_eq!(number("sa", "Right-1234", ""), 0);
    assert_eq!(number("SA", "Right-1234", "tempdb"), 0);
    assert_eq!(number("sa", "wrong", ""), 18456);
    assert_eq!(number("sa", "", ""), 18456);
    assert_eq!(number("nobody", "Right-1234", ""), 18456);
    assert_eq!(number("sa", "Right-1234", "nowhere"), 4060);
    let (session, info) = engine.login(request("sa", "Right-1234", "")).expect("right");
    assert_eq!(info.session_id, session.id());
    assert!(session.id() >= 51);
    assert_eq!(info.messages.iter().map(|m| m.number).collect::<Vec<_>>(), [5701, 5703]);
}

#[test]
fn first_query() {
    let (engine, _) = fresh_engine("first");
    let mut session = engine.internal_session();
    assert_eq!(said(&mut session, "SELECT 1 AS a, N'x' AS b"), ["[a int, b nvarchar(1)]", "1 | x", "done 1"]);
}
