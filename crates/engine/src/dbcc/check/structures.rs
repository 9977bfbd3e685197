//! Storage's findings by SQL Server's numbers.
//!
//! A page of a tree that cannot be read is told as SQL Server tells it: 8928 (not processed), 8939 (why), 8976 (its parent
//! refers to it). Facts without a number of their own are tests that failed: 8939 for a page, 8944 for a row.

use super::report::{Place, Report};
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use thawdb_catalog::TableDef;
use thawdb_storage::PageId;
use thawdb_storage::check::{Finding, FindingKind};
use thawdb_types::SqlError;

/// The kind of allocation unit that all of a tree's pages are shown under.
const IN_ROW: &str = "In-row data";

pub(super) fn shown(page: PageId) -> String {
    format!("({}:{})", page.file, page.page)
}

pub(super) fn tell(
    interpreter: &mut Interpreter<'_, '_>,
    open: &OpenDatabase,
    finding: &Finding,
    table: Option<&TableDef>,
    report: &mut Report,
) {
    let tree = finding.tree.map_or(0, |tree| tree.0);
    let index = table.and_then(|table| table.indexes.iter().chain(table.building.as_deref()).find(|index| index.tree.0 == tree));
    let place = Place {
        object: table.map_or(0, |table| table.id.0),
        index: index.map_or(0, |index| index.id.0),
        tree,
        page: finding.page,
        slot: finding.slot.unwrap_or(0),
        is_allocation: finding.kind.is_allocation(),
    };
    for error in messages(open, finding, &place) {
        report.error(interpreter, error, place);
    }
}

fn messages(open: &OpenDatabase, finding: &Finding, place: &Place) -> Vec<SqlError> {
    let Place { object, index, tree, .. } = *place;
    let (page, parent, beside) = (shown(finding.page), shown(finding.parent), shown(finding.beside));
    let (slot, level) = (place.slot, 0);
    let test = |what: &dyn std::fmt::Display| message(8939, &[&object, &index, &tree, &tree, &IN_ROW, &page, what, &0, &0]);
    let row_test = |what: &str| message(8944, &[&object, &index, &tree, &tree, &IN_ROW, &page, &slot, &what, &0, &0]);
    let detail = &finding.detail;
    match finding.kind {
        FindingKind::Unreadable => {
            let mut told = vec![message(8928, &[&object, &index, &tree, &tree, &IN_ROW, &page]), test(detail)];
            if finding.parent != PageId::NONE {
                told.push(message(8976, &[&object, &index, &tree, &tree, &IN_ROW, &page, &parent, &beside]));
            }
            told
        }
        FindingKind::LowKey => vec![message(8933, &[&object, &index, &tree, &tree, &IN_ROW, &page, &level, &parent, &slot])],
        FindingKind::HighKey => {
            vec![message(8934, &[&object, &index, &tree, &tree, &IN_ROW, &page, &level, &parent, &slot, &beside])]
        }
        FindingKind::Previous if finding.beside != PageId::NONE => {
            vec![message(8978, &[&object, &index, &tree, &tree, &IN_ROW, &page, &beside])]
        }
        FindingKind::Next => {
            vec![message(8981, &[&object, &index, &tree, &tree, &IN_ROW, &page, &beside, &beside])]
        }
        FindingKind::Child => vec![row_test(detail)],
        FindingKind::LargePart => {
            vec![message(8929, &[&object, &index, &tree, &tree, &IN_ROW, &0, &"data", &format!("RID = {page}:{slot} ({detail})")])]
        }
        FindingKind::Version | FindingKind::Row => vec![row_test(detail)],
        FindingKind::Unreached => vec![message(2533, &[&page, &object, &index, &tree, &tree, &IN_ROW])],
        FindingKind::ExtentTwice => vec![message(8904, &[&page, &open.id.0])],
        FindingKind::ExtentLost => vec![message(8905, &[&page, &open.id.0])],
        FindingKind::Map => vec![message(8998, &[&open.id.0, &page, &page]), test(detail)],
        FindingKind::MapHeader => vec![test(detail)],
        FindingKind::Unallocated | FindingKind::Shared | FindingKind::Previous | FindingKind::Page | FindingKind::Header => {
            vec![test(detail)]
        }
        FindingKind::File | FindingKind::Unit => vec![test(detail)],
    }
}
