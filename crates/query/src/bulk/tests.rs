//! Files through the reader.

use super::{BulkField, BulkFileOptions, BulkReader, CodePage};
use crate::testing::TestHost;
use std::path::PathBuf;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

fn fields() -> Vec<BulkField> {
    let field = |name: &str, sql_type, nullable| BulkField { name: name.into(), sql_type, nullable };
    vec![field("id", SqlType::Int, false), field("text", SqlType::NVARCHAR_MAX, true), field("day", SqlType::Date, true)]
}

fn csv() -> BulkFileOptions {
    BulkFileOptions { csv: true, field_terminator: b",".to_vec(), ..BulkFileOptions::default() }
}

/// Writes `bytes` to a file and reads it back as rows.
fn load(name: &str, bytes: &[u8], options: BulkFileOptions) -> (Result<Vec<Vec<Scalar>>, SqlError>, Vec<i32>) {
    let mut host = TestHost::new(&format!("bulk_{name}"));
    let path: PathBuf = host.folder().join("data.txt");
    std::fs::write(&path, bytes).unwrap();
    let device = crate::context::StatementHost::env(&host).device.clone();
    let mut rows = Vec::new();
    let result = (|| {
        let mut reader = BulkReader::open(device, &path, options, fields())?;
        while let Some(batch) = reader.next(&mut host)? {
            for row in 0..batch.rows {
                rows.push(batch.columns.iter().zip(fields()).map(|(a, f)| scalar_at(a.as_ref(), row, &f.sql_type)).collect());
            }
        }
        Ok(())
    })();
    (result.map(|()| rows), host.messages.clone())
}

fn row(id: i32, text: Option<&str>, day: Option<i32>) -> Vec<Scalar> {
    vec![Scalar::Int(id), text.map_or(Scalar::Null, Scalar::text), day.map_or(Scalar::Null, Scalar::Date)]
}

const DAY: i32 = 738_944;

#[test]
fn csv_with_line_ends_quotes_and_a_header() {
    let text = "\u{FEFF}id,text,day\r\n1,\"<p>a \"\"b\"\",\nc</p>\",2024-02-29\n2,,\r\n3,\"\",2024-02-29";
    let (rows, _) = load("csv", text.as_bytes(), BulkFileOptions { first_row: 2, ..csv() });
    assert_eq!(rows.unwrap(), [row(1, Some("<p>a \"b\",\nc</p>"), Some(DAY)), row(2, None, None), row(3, Some(""), Some(DAY))]);
}

#[test]
fn tabs_and_utf_16() {
    let text = "1\tcaf\u{e9} \u{1F600}\t2024-02-29\r\n2\t\t\r\n";
    let expected = vec![row(1, Some("caf\u{e9} \u{1F600}"), Some(DAY)), row(2, None, None)];
    assert_eq!(load("tab", text.as_bytes(), BulkFileOptions::default()).0.unwrap(), expected);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let options = BulkFileOptions { code_page: CodePage::Utf16, ..BulkFileOptions::default() };
    assert_eq!(load("wide", &wide, options).0.unwrap(), expected);
}

#[test]
fn bad_rows_are_left_out_up_to_the_limit() {
    let text = "1,a,2024-02-29\nx,b,\n2,c,2024-02-30\n,d,\n3,e,\n";
    let (rows, messages) = load("bad", text.as_bytes(), csv());
    assert_eq!(rows.unwrap(), [row(1, Some("a"), Some(DAY)), row(3, Some("e"), None)]);
    assert_eq!(messages, [4864, 4864, 4869]);
    let (rows, _) = load("too_many", text.as_bytes(), BulkFileOptions { max_errors: 2, ..csv() });
    assert_eq!(rows.unwrap_err().number, 4865);
}

#[test]
fn ends_and_ranges() {
    let (rows, _) = load("cut", b"1\ta\t2024-02-29\n2\tb", BulkFileOptions::default());
    assert_eq!(rows.unwrap_err().number, 4832);
    let rows: String = (1..=20_000).map(|n| format!("{n},t{n},\n")).collect();
    let (found, _) = load("range", rows.as_bytes(), BulkFileOptions { first_row: 9_999, last_row: Some(10_001), ..csv() });
    assert_eq!(found.unwrap(), [row(9_999, Some("t9999"), None), row(10_000, Some("t10000"), None), row(10_001, Some("t10001"), None)]);
    let device = thawdb_device::os::env().device;
    let error = BulkReader::open(device, std::path::Path::new("/no/such/file.csv"), csv(), fields()).err().unwrap();
    assert_eq!(error.text, "Cannot bulk load. The file \"/no/such/file.csv\" does not exist or you don't have file access rights.");
}

#[test]
fn rows_larger_than_a_chunk() {
    let long = "x".repeat(5 << 20);
    let text = format!("1,\"{long}\",\n2,b,\n");
    let (rows, _) = load("long", text.as_bytes(), csv());
    assert_eq!(rows.unwrap(), [row(1, Some(&long), None), row(2, Some("b"), None)]);
}
