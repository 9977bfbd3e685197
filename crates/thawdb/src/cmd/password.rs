//! The password of sa: where it comes from, and what it must be like.
//!
//! There is none built in and an empty one is refused; a first start without one is refused too. The rule is SQL
//! Server's own (its documentation, "Password policy"): 8 to 128 characters, of at least three of the four kinds upper
//! case letters, lower case letters, digits, and others.

use crate::cmd::Failure;
use std::path::Path;
use thawdb_engine::Secret;

/// The variable looked at, the one SQL Server's own images use.
pub const VARIABLE: &str = "MSSQL_SA_PASSWORD";
/// Fewest and most characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=128;
/// Kinds of characters of which there must be some.
const KINDS_MIN: usize = 3;

/// The password in `file`, or else in the environment; `None` if neither is given.
pub fn find(file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    let text = match file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| Failure::of(format_args!("the password file {}", path.display()), e))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) => text,
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(Failure::of(VARIABLE, error)),
        },
    };
    check(&text)?;
    Ok(Some(Secret::new(text)))
}

/// Whether a password is good enough.
pub fn check(password: &str) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure(format!("the password of sa does not meet SQL Server's password policy: {why}")));
    let length = password.chars().count();
    if length < *LENGTHS.start() {
        return refused("it is too short; it must be at least 8 characters");
    }
    if length > *LENGTHS.end() {
        return refused("it is too long; it must be at most 128 characters");
    }
    let kinds: [fn(char) -> bool; 4] = [char::is_uppercase, char::is_lowercase, |c| c.is_ascii_digit(), |c| !c.is_alphanumeric()];
    if kinds.iter().filter(|kind| password.contains(**kind)).count() < KINDS_MIN {
        return refused(
            "it must contain characters of three of these four kinds: upper case letters, lower case letters, digits, and symbols",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_sql_servers() {
        for (password, fine) in [
            ("", false),
            ("Aa1!", false),
            ("Aa1!Aa1!", true),
            ("Password1", true),
            ("password1", false),
            ("PASSWORD!1", true),
            ("only letters here", false),
            ("Zwölf-ß-ähm", true),
        ] {
            assert_eq!(check(password).is_ok(), fine, "{password}");
        }
        assert!(check(&"Aa1!".repeat(32)).is_ok());
        assert!(check(&"Aa1!".repeat(33)).is_err());
    }

    #[test]
    fn a_file_gives_its_first_line() {
        let path = std::env::temp_dir().join(format!("thawdb-password-{}", std::process::id()));
        std::fs::write(&path, "Right-1-Horse\nnot this\n").unwrap();
        assert_eq!(find(Some(&path)).unwrap().unwrap().reveal(), "Right-1-Horse");
        std::fs::write(&path, "\n").unwrap();
        assert!(find(Some(&path)).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(find(Some(&path)).is_err());
    }
}
