//! docs/FORMAT.md is enough for a stranger: a Python program written from it alone reads the data file of a database made
//! here, and finds what SELECT says.

use crate::support::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;
use thawdb::{Options, Scalar, Session};

fn reader() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/format/read_table.py")
}

fn read(file: &Path, table: &str) -> Vec<String> {
    let output = Command::new("python3").arg(reader()).arg(file).arg(table).output().expect("python3 is there");
    assert!(output.status.success(), "{table}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the reader prints UTF-8").lines().map(str::to_owned).collect()
}

fn shown(value: &Scalar) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Bit(on) => u8::from(*on).to_string(),
        Scalar::Text(text) => text.clone(),
        Scalar::Binary(bytes) => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        other => other.as_i64().expect("the questions convert what is no integer").to_string(),
    }
}

fn asked(session: &mut Session, question: &str) -> Vec<String> {
    let results = session.execute(question).expect("answers");
    results.sets[0].rows().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect()
}

/// Tables of every shape: columns as the reader prints them, and what comes after CREATE TABLE.
const TABLES: [(&str, &str, &str); 6] = [
    (
        "plain",
        "(id int PRIMARY KEY, name nvarchar(60) NULL, price decimal(18,4) NULL, day date NULL, flag bit NOT NULL, code varbinary(20) NULL)",
        "id, name, CONVERT(varchar(30), price), CONVERT(varchar(10), day), flag, code",
    ),
    (
        "keyed",
        "(price decimal(9,2) NOT NULL, word varchar(20) NULL, day date NULL, n bigint NOT NULL, PRIMARY KEY CLUSTERED (n DESC, price))",
        "CONVERT(varchar(30), price), word, CONVERT(varchar(10), day), n",
    ),
    (
        "worded",
        "(word nvarchar(40) NOT NULL, id int NOT NULL, note nvarchar(max) NULL, PRIMARY KEY CLUSTERED (word, id))",
        "word, id, note",
    ),
    ("heap", "(id int NULL, data varbinary(max) NULL, word varchar(max) NULL)", "id, data, word"),
    (
        "short",
        "(id int PRIMARY KEY, name char(20) NULL, price decimal(38,4) NULL, day date NULL, data varchar(max) NULL) WITH (DATA_COMPRESSION = ROW)",
        "id, name, CONVERT(varchar(50), price), CONVERT(varchar(10), day), data",
    ),
    (
        "packed",
        "(id int NULL, name nvarchar(60) NULL, flag bit NULL, n bigint NULL, data varchar(max) NULL, code binary(30) NULL) \
         WITH (DATA_COMPRESSION = PAGE)",
        "id, name, flag, n, data, code",
    ),
];

fn fill(session: &mut Session) {
    for (name, columns, _) in TABLES {
        session.execute(&format!("CREATE TABLE {name} {columns}")).expect("made");
    }
    session.execute("ALTER TABLE plain ADD added int NULL").expect("added");
    for n in 0..700 {
        let price = f64::from(n) * 12.25 - 400.0;
        let day = format!("DATEADD(day, {n}, CONVERT(date, '1999-12-31'))");
        session
            .execute(&format!(
                "INSERT plain VALUES ({0}, {1}, {price}, {day}, {2}, 0x{n:06X}, NULL); \
                 INSERT keyed VALUES ({price}, 'word {n}', {day}, {0}); INSERT worded VALUES (N'Wörter {n}', {n}, NULL); \
                 INSERT heap VALUES ({n}, 0x{n:04X}, NULL); INSERT short VALUES ({n}, 'name {n}', {price}, {day}, NULL); \
                 INSERT packed VALUES ({n}, N'the name of {n}', {2}, CONVERT(bigint, {n} / 50) * 1000000007, NULL, 0x{n:04X})",
                n * 7 - 300,
                if n % 3 == 0 { "NULL".into() } else { format!("N'name of {n}'") },
                n % 2
            ))
            .expect("inserted");
    }
    session.execute("UPDATE plain SET added = id * 2, name = NULL WHERE id % 5 = 0").expect("changed");
    session.execute("DELETE plain WHERE id % 11 = 3; DELETE heap WHERE id BETWEEN 100 AND 400").expect("deleted");
    session.execute("UPDATE worded SET note = REPLICATE(CONVERT(nvarchar(max), N'lang '), 30000) WHERE id IN (5, 600)").expect("long");
    session
        .execute("UPDATE heap SET data = CONVERT(varbinary(max), REPLICATE(CONVERT(varchar(max), 'z'), 12000)) WHERE id = 50")
        .expect("long");
    for sql in [
        "UPDATE packed SET data = REPLICATE(CONVERT(varchar(max), 'long '), 3000) WHERE id = 7",
        "UPDATE packed SET name = NULL WHERE id % 50 = 3",
        "UPDATE short SET data = REPLICATE(CONVERT(varchar(max), 'long '), 3000), name = NULL WHERE id = 7",
        "DELETE packed WHERE id BETWEEN 30 AND 60",
    ] {
        session.execute(sql).expect("changed");
    }
}

#[test]
fn a_reader_made_of_the_document_finds_what_select_says() {
    let folder = Folder::new("format");
    let instance = thawdb::open(folder.path(), Options::default()).expect("opens");
    let mut session = instance.session();
    session.execute("CREATE DATABASE [read]").expect("made");
    session.execute("USE [read]").expect("used");
    fill(&mut session);
    let expected: Vec<_> = TABLES
        .iter()
        .map(|(name, _, columns)| {
            let added = if *name == "plain" { ", added" } else { "" };
            asked(&mut session, &format!("SELECT {columns}{added} FROM {name}"))
        })
        .collect();
    drop(session);
    instance.close().expect("closes");
    for ((name, ..), mut expected) in TABLES.iter().zip(expected) {
        let mut found = read(&folder.path().join("read.mdf"), name);
        assert!(expected.len() > 300, "{name} has rows");
        found.sort();
        expected.sort();
        assert_eq!(found.len(), expected.len(), "{name}");
        let wrong = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "{name}");
    }
    let lines = std::fs::read_to_string(reader()).expect("there").lines().count();
    assert!(lines < 300, "the reader has {lines} lines: the document is not short enough to follow");
}
