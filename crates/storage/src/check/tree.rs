//! The check of one tree: from the root level by level, left to right.
//!
//! Each level is the list of children that the level above names, with the separators around each. So order, separators
//! and siblings are checked in one pass over the level, and a wrong sibling pointer cannot lead the walk astray.
//! Rows of aborted transactions count like others: they are there until they are given back.

use super::{FindingKind, Findings, Reached};
use crate::database::Database;
use crate::ids::{LargeRef, PageId, TreeId};
use crate::page::{PageBytes, PageType, Slotted, header, verify};
use crate::units::TreeInfo;
use crate::versions::store::VersionStore;
use crate::versions::version::{SAME, Version, decode_record};

/// A node as its parent names it.
struct Named {
    page: PageId,
    parent: PageId,
    /// Keys are at or above this.
    low: Vec<u8>,
    /// Keys are below this.
    high: Option<Vec<u8>>,
}

pub(super) fn check(database: &Database, info: &TreeInfo, reached: &mut Reached, findings: &mut Findings) {
    let mut level_nodes = vec![Named { page: info.root, parent: PageId::NONE, low: Vec::new(), high: None }];
    let mut level = None;
    while !level_nodes.is_empty() {
        let mut below = Vec::new();
        let mut found_level = None;
        for index in 0..level_nodes.len() {
            let node = &level_nodes[index];
            reached.add(node.page, info.id, findings);
            let beside = |at: Option<usize>| at.and_then(|at| level_nodes.get(at)).map_or(PageId::NONE, |named| named.page);
            let (left, right) = (beside(index.checked_sub(1)), beside(Some(index + 1)));
            let Some(page) = read(database, info, node.page, findings) else {
                findings.hangs(node.parent, left);
                continue;
            };
            let expected = level.or(found_level).unwrap_or_else(|| header::level(&page));
            if !check_header(info, &page, node.page, expected, findings) {
                continue;
            }
            found_level = Some(expected);
            check_siblings(info, &page, node.parent, (left, right), findings);
            check_keys(info, &page, node, findings);
            if expected == 0 {
                check_rows(database, info, &page, reached, findings);
            } else {
                name_children(info, &page, node, &mut below, findings);
            }
        }
        level = found_level.and_then(|level: u8| level.checked_sub(1));
        level_nodes = if level.is_some() { below } else { Vec::new() };
    }
}

fn read(database: &Database, info: &TreeInfo, page: PageId, findings: &mut Findings) -> Option<Box<PageBytes>> {
    match database.store.read(page) {
        Ok(bytes) => Some(Box::new(*bytes)),
        Err(error) => {
            findings.add(FindingKind::Unreadable, Some(info.id), page, None, error.to_string());
            None
        }
    }
}

fn check_header(info: &TreeInfo, page: &PageBytes, id: PageId, level: u8, findings: &mut Findings) -> bool {
    verify::verify(page, id, &mut |violation| {
        findings.add(FindingKind::Page, Some(info.id), id, None, format!("{}: {}", violation.invariant, violation.detail));
    });
    let expected_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
    let found = (header::page_type(page), header::tree(page), header::object_id(page), header::index_id(page), header::level(page));
    let expected = (Some(expected_type), info.id, info.object_id, info.index_id, level);
    if found != expected {
        findings.add(FindingKind::Header, Some(info.id), id, None, format!("expected {expected:?}, found {found:?}"));
    }
    found == expected
}

fn check_siblings(info: &TreeInfo, page: &PageBytes, parent: PageId, (left, right): (PageId, PageId), findings: &mut Findings) {
    let id = header::page_id(page);
    if header::left(page) != left {
        findings.add(FindingKind::Previous, Some(info.id), id, None, format!("expected {left:?}, found {:?}", header::left(page)));
        findings.hangs(parent, left);
    }
    if header::right(page) != right {
        findings.add(FindingKind::Next, Some(info.id), id, None, format!("expected {right:?}, found {:?}", header::right(page)));
        findings.hangs(parent, header::right(page));
    }
}

fn check_keys(info: &TreeInfo, page: &PageBytes, node: &Named, findings: &mut Findings) {
    let view = Slotted(page);
    if view.is_empty() {
        return;
    }
    let key = |slot: usize| {
        let mut key = Vec::new();
        view.key(slot, &mut key);
        key
    };
    // Order within the page is P8's.
    let (first, last) = (key(0), key(view.len() - 1));
    if header::level(page) > 0 && first > node.low {
        // A first child stands for everything down to the separator above, whatever it holds now.
        findings.add(FindingKind::LowKey, Some(info.id), node.page, Some(0), "the first key is above the separator above");
        findings.hangs(node.parent, PageId::NONE);
    }
    if header::level(page) == 0 && first < node.low {
        findings.add(FindingKind::LowKey, Some(info.id), node.page, Some(0), "key below the separator above");
        findings.hangs(node.parent, PageId::NONE);
    }
    if node.high.as_ref().is_some_and(|high| last >= *high) {
        findings.add(FindingKind::HighKey, Some(info.id), node.page, Some(view.len() - 1), "key not below the next separator above");
        findings.hangs(node.parent, header::right(page));
    }
}

fn name_children(info: &TreeInfo, page: &PageBytes, node: &Named, below: &mut Vec<Named>, findings: &mut Findings) {
    let view = Slotted(page);
    if view.is_empty() {
        findings.add(FindingKind::Child, Some(info.id), node.page, None, "inner node without children");
    }
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(view.len());
    for slot in 0..view.len() {
        let mut key = Vec::new();
        view.key(slot, &mut key);
        keys.push(key);
    }
    for slot in 0..view.len() {
        let Some(child) = crate::btree::child_of(view, slot) else {
            findings.add(FindingKind::Child, Some(info.id), node.page, Some(slot), "no child reference");
            continue;
        };
        let low = if slot == 0 { node.low.clone() } else { keys[slot].clone() };
        let high = keys.get(slot + 1).cloned().or_else(|| node.high.clone());
        below.push(Named { page: child, parent: node.page, low, high });
    }
}

fn check_rows(database: &Database, info: &TreeInfo, page: &PageBytes, reached: &mut Reached, findings: &mut Findings) {
    let view = Slotted(page);
    let id = header::page_id(page);
    let creator = header::creator_number(page);
    crate::page::verify::unpack_all(page, &mut |slot, detail| findings.add(FindingKind::Row, Some(info.id), id, Some(slot), detail));
    for slot in 0..view.len() {
        let entry = view.entry(slot);
        let version = Version::of(&entry, creator);
        reach_large(database, info.id, version.large, (id, slot), reached, findings);
        if version.pointer == SAME && !version.ghost {
            findings.add(FindingKind::Version, Some(info.id), id, Some(slot), "a row that lives points to itself as the version before");
        }
        if version.pointer != 0 && version.pointer != SAME && !database.commits.seen_by_all(version.writer) {
            check_version(database, info, id, slot, version.pointer, findings);
        }
    }
}

fn check_version(database: &Database, info: &TreeInfo, page: PageId, slot: usize, pointer: u64, findings: &mut Findings) {
    let mut record = Vec::new();
    if let Err(error) = VersionStore::read(&database.store, pointer, &mut record) {
        findings.add(FindingKind::Version, Some(info.id), page, Some(slot), error.to_string());
        return;
    }
    match decode_record(&record) {
        Ok((key, _)) if key.tree == info.id.0 => {}
        Ok((key, _)) => findings.add(FindingKind::Version, Some(info.id), page, Some(slot), format!("the version is of tree {}", key.tree)),
        Err(why) => findings.add(FindingKind::Version, Some(info.id), page, Some(slot), why),
    }
}

/// Reaches the pages of large parts.
pub(super) fn reach_large(
    database: &Database,
    tree: TreeId,
    refs: &[u8],
    (page, slot): (PageId, usize),
    reached: &mut Reached,
    findings: &mut Findings,
) {
    for part in LargeRef::all(refs) {
        let mut pages = Vec::new();
        let outcome = crate::large::pages(&database.store, part, &mut |page| pages.push(page));
        match outcome {
            Ok(()) => pages.into_iter().for_each(|page| reached.add(page, tree, findings)),
            Err(error) => findings.add(FindingKind::LargePart, Some(tree), page, Some(slot), error.to_string()),
        }
    }
}
