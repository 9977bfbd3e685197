//! docs/FORMAT.md says what the constants say: the tables between its markers are rendered here and compared.
//!
//! With `UPDATE_FORMAT_DOC=1` the test writes them instead; reviewing the difference is the work.

use crate::page::header::{FIELDS, FORMAT_VERSION, HEADER_BYTES, PAGE_BYTES, PageType};
use crate::page::op::{MAP_BEGIN, MAP_BYTES};
use crate::page::slotted::SLOT_BYTES;
use crate::space::layout as l;
use crate::store::boot as b;
use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");

fn header_table() -> String {
    let mut out = String::from("| offset | bytes | field | meaning |\n|---|---|---|---|\n");
    for field in FIELDS {
        writeln!(out, "| {} | {} | {} | {} |", field.offset, field.bytes, field.name, field.meaning).expect("a string takes all");
    }
    out
}

fn type_table() -> String {
    let mut out = String::from("| number | type | body |\n|---|---|---|\n");
    for t in PageType::ALL {
        let body = match (t.is_slotted(), t.is_keyed()) {
            (true, true) => "slots in key order",
            (true, false) => "slots",
            _ => "plain bytes",
        };
        writeln!(out, "| {} | {t:?} | {body} |", t as u8).expect("a string takes all");
    }
    out
}

fn constant_table() -> String {
    let constants: [(&str, u64); 19] = [
        ("bytes of a page", PAGE_BYTES as u64),
        ("bytes of the header", HEADER_BYTES as u64),
        ("format version of pages", u64::from(FORMAT_VERSION)),
        ("bytes of a slot", SLOT_BYTES as u64),
        ("first byte of a map", MAP_BEGIN as u64),
        ("bytes of a map", MAP_BYTES as u64),
        ("pages of an extent", u64::from(l::EXTENT_PAGES)),
        ("pages of a PFS interval", u64::from(l::PFS_PAGES)),
        ("extents of a GAM interval", u64::from(l::INTERVAL_EXTENTS)),
        ("pages of a GAM interval", u64::from(l::INTERVAL_PAGES)),
        ("most pages of a file", u64::from(l::FILE_PAGES_MAX)),
        ("first page of the doublewrite region (file 1)", u64::from(l::DOUBLEWRITE_PAGE)),
        ("pages of the doublewrite region", u64::from(l::DOUBLEWRITE_PAGES)),
        ("boot page (file 1)", u64::from(l::BOOT.page)),
        ("boot page: first byte of the trees' part", u64::from(b::BOOT_TREES)),
        ("boot page: bytes of the trees' part", b::BOOT_TREES_BYTES as u64),
        ("boot page: first byte of the table of files", u64::from(b::BOOT_FILES)),
        ("PFS: allocated", u64::from(l::PFS_ALLOCATED)),
        ("PFS: allocated as an IAM page", u64::from(l::PFS_IAM)),
    ];
    let mut out = String::from("| constant | value |\n|---|---|\n");
    for (name, value) in constants {
        writeln!(out, "| {name} | {value} |").expect("a string takes all");
    }
    out
}

fn replaced(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let from = text.find(&begin).unwrap_or_else(|| panic!("docs/FORMAT.md lacks the marker of {name}")) + begin.len();
    let to = text.find(&end).unwrap_or_else(|| panic!("docs/FORMAT.md lacks the end marker of {name}"));
    format!("{}{table}{}", &text[..from], &text[to..])
}

#[test]
fn the_document_agrees_with_the_constants() {
    let text = std::fs::read_to_string(PATH).expect("docs/FORMAT.md is there");
    let rendered = [("header", header_table()), ("page types", type_table()), ("constants", constant_table())]
        .iter()
        .fold(text.clone(), |text, (name, table)| replaced(&text, name, table));
    if std::env::var_os("UPDATE_FORMAT_DOC").is_some() {
        std::fs::write(PATH, &rendered).expect("docs/FORMAT.md can be written");
    } else {
        assert!(text == rendered, "docs/FORMAT.md is out of date: UPDATE_FORMAT_DOC=1 writes the tables anew");
    }
}
