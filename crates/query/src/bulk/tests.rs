//! Files to tables and back: cases, random round trips, and loads against row-by-row inserts.

use crate::bulk::{BulkOptions, BulkReader, CodePage, LoadOptions, bulk_insert};
use crate::testing::{TestHost, clustered, insert, int, scan, table, with_identity, with_index};
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::{Batch, Scalar, SqlError, SqlType, scalar_at};

/// A file that goes away with its folder.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("thawdb-bulk-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn options(table_locked: bool) -> LoadOptions {
    let temp_folder = std::env::temp_dir().join(format!("thawdb-bulk-sort-{}", std::process::id()));
    LoadOptions { keep_identity: false, keep_nulls: false, table_locked, defaults: Vec::new(), temp_folder, progress: None }
}

/// id int not null, a int null, t varchar(10) null
fn people() -> TableDef {
    table("p", &[("id", SqlType::Int, false), ("a", SqlType::Int, true), ("t", SqlType::varchar(10), true)])
}

fn read_all(host: &mut TestHost, bytes: &[u8], how: &BulkOptions, table: &TableDef) -> Result<Vec<Vec<Scalar>>, SqlError> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = TestFile::new(&format!("read{number}"), bytes);
    let (mut reader, targets) = BulkReader::open(&thawdb_device::os::env(), file.path(), how, table)?;
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch(host)? {
        rows.extend(scalars(&batch, &targets.iter().map(|t| table.columns[*t].sql_type).collect::<Vec<_>>()));
    }
    assert!(reader.is_ended());
    Ok(rows)
}

fn scalars(batch: &Batch, types: &[SqlType]) -> Vec<Vec<Scalar>> {
    let row = |row| batch.columns.iter().zip(types).map(|(a, t)| scalar_at(a.as_ref(), row, t)).collect();
    (0..batch.rows).map(row).collect()
}

fn person(id: i32, a: Option<i32>, t: Option<&str>) -> Vec<Scalar> {
    vec![Scalar::Int(id), a.map_or(Scalar::Null, Scalar::Int), t.map_or(Scalar::Null, Scalar::text)]
}

fn csv() -> BulkOptions {
    BulkOptions { csv: true, ..BulkOptions::default() }
}

fn commas(row_terminator: &str) -> BulkOptions {
    BulkOptions { field_terminator: Some(",".into()), row_terminator: row_terminator.into(), ..BulkOptions::default() }
}

#[test]
fn files_and_their_rows() {
    let mut host = TestHost::new("bulk-files");
    let table = people();
    let two = vec![person(1, Some(2), Some("x")), person(3, None, Some("y"))];
    let utf8 = BulkOptions { code_page: Some(CodePage::Utf8), ..commas("0x0a") };
    let utf16 = |text: &str| [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect::<Vec<u8>>();
    for (name, bytes, how, expected) in [
        ("tabs and crlf", &b"1\t2\tx\r\n3\t\ty\r\n"[..], BulkOptions::default(), two.clone()),
        ("no last terminator", b"1,2,x\n3,,y", commas("0x0a"), two.clone()),
        (
            "long terminators",
            b"1|~|2|~|x#*#3|~||~|y#*#",
            BulkOptions { field_terminator: Some("|~|".into()), ..commas("#*#") },
            two.clone(),
        ),
        ("csv takes both ends", b"1,2,x\r\n3,,\"y\"\n", csv(), two.clone()),
        ("csv blank end", b"1,2,x\n3,,y\n\r\n\n", csv(), two.clone()),
        ("mark", b"\xEF\xBB\xBF1,2,x\n3,,y\n", commas("0x0a"), two.clone()),
        ("first row", b"id,a,t\n1,2,x\n3,,y\n", BulkOptions { first_row: 2, ..commas("0x0a") }, two.clone()),
        ("last row", b"1,2,x\n3,,y\nrubbish", BulkOptions { last_row: Some(2), ..commas("0x0a") }, two.clone()),
        ("wide", &utf16("1,2,x\r\n3,,y\r\n"), BulkOptions { wide: true, ..commas("\\n") }, two.clone()),
        ("empty file", b"", csv(), vec![]),
        (
            "quotes",
            b"1,,\"a\"\"b\"\n2,,\"c,\r\nd\"\r\n3,,\"\"\n4,,",
            csv(),
            vec![person(1, None, Some("a\"b")), person(2, None, Some("c,\r\nd")), person(3, None, Some("")), person(4, None, None)],
        ),
        ("quotes are data", b"1,,\"a\"\n", commas("0x0a"), vec![person(1, None, Some("\"a\""))]),
        ("a line end within", b"1,,a\rb\n", commas("0x0a"), vec![person(1, None, Some("a\rb"))]),
        ("utf-8", "1,,\u{E9}\u{20AC}\n".as_bytes(), utf8, vec![person(1, None, Some("\u{E9}\u{20AC}"))]),
        ("oem", b"1,,\x82\n", commas("0x0a"), vec![person(1, None, Some("\u{E9}"))]),
        (
            "wide text",
            &utf16("1,,\u{E9}\u{20AC}\r\n"),
            BulkOptions { wide: true, ..commas("\\n") },
            vec![person(1, None, Some("\u{E9}\u{20AC}"))],
        ),
    ] {
        assert_eq!(read_all(&mut host, bytes, &how, &table), Ok(expected), "{name}");
    }
}

#[test]
fn errors_have_their_numbers_rows_and_columns() {
    let table = people();
    for (name, bytes, how, told, ends, rows) in [
        ("type", &b"1,x,a\n2,2,b\n"[..], commas("0x0a"), &[4864][..], None, 1),
        ("overflow and length", b"3000000000,2,a\n2,2,bcdefghijkl\n3,3,c\n", commas("0x0a"), &[4867, 4863], None, 1),
        ("null", b",1,a\n", commas("0x0a"), &[4869], None, 0),
        ("too many errors", b"1,x,a\n2,y,b\n3,,\n", BulkOptions { errors_max: 1, ..commas("0x0a") }, &[4864, 4864], Some((4865, "(1)")), 0),
        ("end of file", b"1,2,x\n3,", commas("0x0a"), &[], Some((4832, "end of file")), 0),
        ("no terminator at all", &[b'x'; 40_000], commas("0x0a"), &[], Some((4866, "row 1, column 1")), 0),
        ("quote within", b"1,2,x\n1,\"2\"3,x\n", csv(), &[], Some((4879, "row 2, column 2")), 0),
        ("too few fields", b"1,2,x\n1,2\n3,3,c\n", csv(), &[], Some((4879, "row 2, column 2")), 0),
        ("open quote", b"1,2,\"x\n", csv(), &[], Some((4832, "end of file")), 0),
    ] {
        let mut host = TestHost::new(&format!("bulk-errors-{}", name.replace(' ', "-")));
        let result = read_all(&mut host, bytes, &how, &table);
        assert_eq!(host.messages, told, "{name}");
        match ends {
            None => assert_eq!(result.map(|r| r.len()), Ok(rows), "{name}"),
            Some((number, part)) => {
                let error = result.unwrap_err();
                assert_eq!(error.number, number, "{name}: {error}");
                assert!(error.text.contains(part), "{name}: {error}");
            }
        }
    }
    let missing = BulkReader::open(&thawdb_device::os::env(), "/no/such/file.csv", &csv(), &table).map(|_| ()).unwrap_err();
    assert_eq!((missing.number, missing.text.contains("/no/such/file.csv")), (4860, true));
}

#[test]
fn pieces_of_the_file_do_not_show() {
    let mut host = TestHost::new("bulk-pieces");
    let collation = thawdb_types::Collation::DEFAULT;
    let max = SqlType::NVarChar { length: thawdb_types::MaxLength::Max, collation };
    let table = table("w", &[("i", SqlType::Int, false), ("t", max, true), ("j", SqlType::Int, true)]);
    let long = "x\u{1F600}".repeat(600_000);
    let (mut text, mut expected) = (String::new(), Vec::new());
    for i in 0..130_000 {
        let t = if i == 70_000 { long.clone() } else { "\u{E9}\u{1F600}"[..[0, 2, 6][i % 3]].to_owned() };
        text.push_str(&format!("{i}|~|{t}|~|{}\r\n", i % 7));
        let t = if t.is_empty() { Scalar::Null } else { Scalar::Text(t) };
        expected.push(vec![Scalar::Int(i as i32), t, Scalar::Int(i as i32 % 7)]);
    }
    let how = BulkOptions { field_terminator: Some("|~|".into()), code_page: Some(CodePage::Utf8), ..BulkOptions::default() };
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, how) in [
        ("char", text.as_bytes(), how.clone()),
        ("csv", text.as_bytes(), BulkOptions { csv: true, ..how.clone() }),
        ("wide", &wide, BulkOptions { wide: true, ..how }),
    ] {
        let found = read_all(&mut host, bytes, &how, &table).unwrap();
        assert!(found == expected, "{name}");
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn random_csv_round_trips() {
    let table = table(
        "r",
        &[
            ("i", SqlType::BigInt, true),
            ("t", SqlType::NVarChar { length: thawdb_types::MaxLength::Max, collation: Default::default() }, true),
            ("d", SqlType::decimal(18, 4), true),
            ("w", SqlType::DateTime2 { scale: 7 }, true),
        ],
    );
    let mut host = TestHost::new("bulk-random");
    for seed in 1..=6 {
        let mut dice = Dice(seed * 7919);
        let (mut text, mut expected) = (String::new(), Vec::new());
        for _ in 0..6_000 {
            let i = (dice.below(4) > 0).then(|| dice.below(u64::MAX) as i64 >> dice.below(60));
            let length = if dice.below(1500) == 0 { 300_000 } else { dice.below(12) };
            let pieces = ["a", "\"", ",", "\n", "\r\n", "\u{E9}", "\u{1F600}", " "];
            let t: String = (0..length).map(|_| pieces[dice.below(8) as usize]).collect();
            let d = (dice.below(4) > 0).then(|| dice.below(1 << 50) as i128 - (1 << 49));
            let w = (dice.below(4) > 0).then(|| dice.below(3_155_378_975_999_999_999) as i64);
            let show = |value: Scalar, sql_type: SqlType| crate::exec::table_writer::shown(value, &sql_type).replace("<NULL>", "");
            text.push_str(&show(i.map_or(Scalar::Null, Scalar::BigInt), SqlType::BigInt));
            text.push_str(&format!(",\"{}\",", t.replace('"', "\"\"")));
            text.push_str(&show(d.map_or(Scalar::Null, Scalar::Decimal), SqlType::decimal(18, 4)));
            text.push(',');
            text.push_str(&show(w.map_or(Scalar::Null, Scalar::DateTime2), SqlType::DateTime2 { scale: 7 }));
            text.push_str(if dice.below(2) == 0 { "\n" } else { "\r\n" });
            expected.push(vec![
                i.map_or(Scalar::Null, Scalar::BigInt),
                Scalar::Text(t),
                d.map_or(Scalar::Null, Scalar::Decimal),
                w.map_or(Scalar::Null, Scalar::DateTime2),
            ]);
        }
        let how = BulkOptions { code_page: Some(CodePage::Utf8), ..csv() };
        let found = read_all(&mut host, text.as_bytes(), &how, &table).unwrap();
        assert!(found == expected, "seed {seed}");
    }
}

/// All trees of a table, entry by entry.
fn trees(host: &mut TestHost, table: &TableDef) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    host.commit();
    let view = host.database.read_view(None);
    let all = |tree| {
        let mut scan = view.scan(tree, thawdb_storage::KeyRange::ALL, thawdb_storage::ScanDirection::Forward).unwrap();
        let mut rows = Vec::new();
        while let Some(block) = scan.next_block().unwrap() {
            rows.extend((0..block.len()).map(|row| (block.key(row).to_vec(), block.value(row).to_vec())));
        }
        rows
    };
    table.indexes.iter().map(|index| all(index.tree)).collect()
}

/// Loads rows of `people` in batches of `size`.
fn load(host: &mut TestHost, table: &Arc<TableDef>, rows: &[Vec<Scalar>], size: usize, options: LoadOptions) -> Result<u64, SqlError> {
    let types: Vec<SqlType> = table.columns.iter().map(|c| c.sql_type).collect();
    let mut chunks = rows.chunks(size);
    let batch = |rows: &[Vec<Scalar>]| {
        let column = |at: usize| thawdb_types::column::array_from_scalars(&types[at], rows.iter().map(|row| &row[at]));
        Batch::new((0..types.len()).map(column).collect(), rows.len())
    };
    let targets: Vec<usize> = (0..types.len()).collect();
    bulk_insert(table, &mut |_| Ok(chunks.next().map(batch)), &targets, options, host)
}

#[test]
fn a_load_leaves_what_inserts_leave() {
    let indexed = |table| with_index(with_index(table, &[(1, true), (2, false)], &[], false), &[(2, false)], &[1], false);
    let shapes: [(&str, TableDef); 3] = [
        ("heap", indexed(people())),
        ("unique", indexed(clustered(people(), &[0], true))),
        ("not unique", indexed(clustered(people(), &[1], false))),
    ];
    let mut dice = Dice(4242);
    let mut rows: Vec<Vec<Scalar>> = Vec::new();
    for id in 0..900 {
        let t = ["x", "yy", "\u{E9}z", ""][dice.below(4) as usize];
        rows.push(person(id * 3, (dice.below(5) > 0).then(|| dice.below(40) as i32), Some(t)));
    }
    let mut shuffled = rows.clone();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let mut late = rows.clone();
    late.swap(700, 880);
    for (shape, definition) in shapes {
        for (order, input) in [("rising", &rows), ("shuffled", &shuffled), ("late", &late)] {
            for before in [0, 300] {
                let mut found = Vec::new();
                for locked in [None, Some(false), Some(true)] {
                    let mut host = TestHost::new(&format!("bulk-same-{}-{order}-{before}-{}", shape.replace(' ', "-"), found.len()));
                    host.memory_bytes = 60_000;
                    let table = host.make(definition.clone());
                    let (first, rest) = input.split_at(before);
                    if before > 0 {
                        host.run(&insert(&table, first)).unwrap();
                        host.commit();
                    }
                    match locked {
                        None => assert_eq!(host.run(&insert(&table, rest)).unwrap().1, rest.len() as u64),
                        Some(locked) => assert_eq!(load(&mut host, &table, rest, 128, options(locked)), Ok(rest.len() as u64)),
                    }
                    found.push(trees(&mut host, &table));
                }
                assert!(found[0] == found[1], "{shape} {order} {before}: not locked");
                assert!(found[0] == found[2], "{shape} {order} {before}: locked");
                assert_eq!(found[0][0].len(), 900);
            }
        }
    }
}

#[test]
fn duplicates_are_told_with_their_keys() {
    let pk = clustered(people(), &[0], true);
    let unique_text = with_index(pk.clone(), &[(2, false)], &[], true);
    let there = [person(5, Some(1), Some("five"))];
    for (name, definition, rows, number, values) in [
        ("neighbours rising", &pk, vec![person(6, None, None), person(6, None, None)], 2627, "(6)"),
        ("of the table", &pk, vec![person(5, None, None)], 2627, "(5)"),
        ("falling, of the table", &pk, vec![person(9, None, None), person(5, None, None)], 2627, "(5)"),
        ("falling, of each other", &pk, vec![person(9, None, None), person(2, None, None), person(9, None, None)], 2627, "(9)"),
        ("text of each other", &unique_text, vec![person(6, None, Some("ab")), person(7, None, Some("AB"))], 2601, "("),
        ("text of the table", &unique_text, vec![person(6, None, Some("Five"))], 2601, "("),
        ("nulls", &unique_text, vec![person(6, None, None), person(7, None, None)], 2601, "(<NULL>)"),
    ] {
        for locked in [false, true] {
            let mut host = TestHost::new(&format!("bulk-dup-{}-{locked}", name.replace([' ', ','], "-")));
            let table = host.make(definition.clone());
            host.run(&insert(&table, &there)).unwrap();
            let error = load(&mut host, &table, &rows, 1, options(locked)).unwrap_err();
            assert_eq!(error.number, number, "{name} {locked}: {error}");
            assert!(error.text.contains(values), "{name} {locked}: {error}");
        }
    }
}

#[test]
fn identities_defaults_and_nulls() {
    let definition = with_identity(clustered(people(), &[0], true), 0);
    let rows = [person(50, None, Some("a")), person(40, Some(2), None)];
    for locked in [false, true] {
        for (keep_identity, keep_nulls, expected) in [
            (false, false, [person(1, Some(7), Some("a")), person(2, Some(2), None)]),
            (false, true, [person(1, None, Some("a")), person(2, Some(2), None)]),
            (true, true, [person(40, Some(2), None), person(50, None, Some("a"))]),
        ] {
            let mut host = TestHost::new(&format!("bulk-identity-{locked}-{keep_identity}-{keep_nulls}"));
            let table = host.make(definition.clone());
            let options = LoadOptions { keep_identity, keep_nulls, defaults: vec![(1, int(7))], ..options(locked) };
            assert_eq!(load(&mut host, &table, &rows, 10, options), Ok(2));
            assert_eq!(host.rows(&scan(&table, 0, &[0, 1, 2])), expected);
            assert_eq!(host.last_identity, Some(if keep_identity { 40 } else { 2 }));
        }
    }
    let mut host = TestHost::new("bulk-not-null");
    let table = host.make(people());
    assert_eq!(load(&mut host, &table, &[vec![Scalar::Null, Scalar::Null, Scalar::Null]], 1, options(true)).unwrap_err().number, 515);
    assert_eq!(load(&mut host, &table, &[person(1, None, Some("12345678901"))], 1, options(true)).unwrap_err().number, 2628);
}

#[test]
fn a_file_in_transactions_of_batchsize() {
    let file = TestFile::new("batches", (1..=10).map(|id| format!("{id},,t{id}\n")).collect::<String>().as_bytes());
    let mut host = TestHost::new("bulk-batches");
    let table = host.make(clustered(people(), &[0], true));
    let (mut reader, targets) = BulkReader::open(&thawdb_device::os::env(), file.path(), &commas("0x0a"), &table).unwrap();
    let mut counts = Vec::new();
    while !reader.is_ended() {
        let mut left = 4;
        let mut next = |host: &mut dyn crate::context::StatementHost| reader.next_batch_within(host, &mut left);
        counts.push(bulk_insert(&table, &mut next, &targets, options(true), &mut host).unwrap());
        host.commit();
    }
    assert_eq!(counts, [4, 4, 2]);
    assert_eq!(host.rows(&scan(&table, 0, &[0])).len(), 10);
}
