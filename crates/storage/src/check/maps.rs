//! The check of the maps: pages and extents as PFS, IAM and GAM pages tell them, against what was reached.
//!
//! Every unit's extents are read from its IAM chain, the system's own included (IAM pages are its pages). An extent must
//! have one owner and its GAM bit; a page in use by its PFS byte must have been reached, and the other way round.

use super::{FindingKind, Findings, Reached, Units};
use crate::database::Database;
use crate::ids::{PageId, TreeId};
use crate::page::{PageType, header};
use crate::space::layout::{self, EXTENT_PAGES, INTERVAL_EXTENTS, PRIMARY_EXTENTS};
use crate::space::{Unit, map_bits};
use crate::store::boot::IamFacts;
use crate::units::TreeInfo;
use std::collections::{BTreeMap, BTreeSet};

/// Whose extents are whose.
#[derive(Default)]
struct Owners {
    extents: BTreeMap<(u16, u32), TreeId>,
    iam_pages: BTreeSet<PageId>,
}

fn is_set(bits: &[u64], bit: u32) -> bool {
    bits[bit as usize / 64] & (1 << (bit % 64)) != 0
}

pub(super) fn check(database: &Database, units: &Units, reached: &Reached, findings: &mut Findings) {
    let mut owners = Owners::default();
    let mut allocated = BTreeSet::new();
    // Trees with maps that cannot be read: nothing is said of their other pages.
    let mut unknown = BTreeSet::new();
    for info in &units.here {
        for unit in [Some(info.unit), info.large_unit()].into_iter().flatten() {
            own(database, unit, info.id, &mut owners, findings);
            match crate::units::pages_of(&database.store, unit) {
                Ok(pages) => allocated.extend(pages),
                Err(error) => {
                    unknown.insert(info.id);
                    findings.add(FindingKind::Map, Some(info.id), unit.0, None, error.to_string());
                }
            }
        }
    }
    own_gone(database, &units.gone, &mut owners, findings);
    let mut system = BTreeSet::new();
    let mut is_known = unknown.is_empty();
    for map in system_maps(database) {
        own_map(database, map, TreeId(0), &mut owners, findings);
        match crate::units::pages_of_map(&database.store, map) {
            Ok((pages, _)) => system.extend(pages),
            Err(error) => {
                is_known = false;
                findings.add(FindingKind::Map, None, map, None, error.to_string());
            }
        }
    }
    if is_known {
        check_iam_pages(&owners, &system, findings);
    }
    for page in allocated.iter().filter(|page| !reached.pages.contains_key(page)) {
        let tree = owners.extents.get(&(page.file, layout::extent_of(page.page))).copied();
        findings.add(FindingKind::Unreached, tree, *page, None, "allocated, and nothing leads to it");
    }
    for (page, tree) in reached.pages.iter().filter(|(page, tree)| !allocated.contains(page) && !unknown.contains(tree)) {
        findings.add(FindingKind::Unallocated, Some(*tree), *page, None, "in use and not allocated");
    }
    check_extents(database, &owners, unknown.is_empty(), findings);
}

/// IAM pages against what the system's own maps have.
fn check_iam_pages(owners: &Owners, system: &BTreeSet<PageId>, findings: &mut Findings) {
    for page in system.difference(&owners.iam_pages) {
        findings.add(FindingKind::Unreached, None, *page, None, "allocated as a map and part of no chain");
    }
    for page in owners.iam_pages.difference(system) {
        findings.add(FindingKind::Unallocated, None, *page, None, "part of a chain of maps and not allocated");
    }
}

/// The system's own maps: not a chain, each has its place in an interval of a file.
fn system_maps(database: &Database) -> Vec<PageId> {
    let of_file = |number: u16, pages: u32| {
        let intervals = (pages / EXTENT_PAGES).div_ceil(INTERVAL_EXTENTS);
        (0..intervals).map(move |interval| PageId { file: number, page: layout::system_iam(interval) })
    };
    database.store.files().flat_map(|file| of_file(file.number, file.pages())).collect()
}

/// The extents of a unit, by its chain of maps.
fn own(database: &Database, unit: Unit, tree: TreeId, owners: &mut Owners, findings: &mut Findings) {
    let mut next = unit.0;
    while next != PageId::NONE {
        if !owners.iam_pages.insert(next) {
            findings.add(FindingKind::Shared, Some(tree), next, None, "part of two chains of maps, or of a circle");
            break;
        }
        next = own_map(database, next, tree, owners, findings);
    }
}

/// The extents that one map says are a tree's; returns the next map of its chain.
fn own_map(database: &Database, map: PageId, tree: TreeId, owners: &mut Owners, findings: &mut Findings) -> PageId {
    // A page that cannot be read is told by who asks for the unit's pages.
    let Ok(page) = database.store.read(map).map(|page| *page) else { return PageId::NONE };
    if header::page_type(&page) != Some(PageType::Iam) || header::tree(&page) != tree {
        let detail = format!("expected a map of tree {}, found {:?} of {}", tree.0, header::page_type(&page), header::tree(&page).0);
        findings.add(FindingKind::MapHeader, Some(tree), map, None, detail);
        return PageId::NONE;
    }
    let facts = IamFacts::decode(&page);
    let bits = map_bits(&page);
    for bit in (0..INTERVAL_EXTENTS).filter(|bit| is_set(&bits, *bit)) {
        let extent = facts.interval * INTERVAL_EXTENTS + bit;
        if let Some(other) = owners.extents.insert((facts.file, extent), tree) {
            let first = PageId { file: facts.file, page: layout::page_of(extent) };
            findings.add(FindingKind::ExtentTwice, Some(tree), first, None, format!("the extent is tree {}'s too", other.0));
        }
    }
    header::right(&page)
}

/// What units that were dropped still own: one that has been given back wholly owns nothing.
fn own_gone(database: &Database, gone: &[TreeInfo], owners: &mut Owners, findings: &mut Findings) {
    for info in gone {
        for unit in [Some(info.unit), info.large_unit()].into_iter().flatten() {
            // A map that cannot be read is told by who asks for the system's pages.
            if database.has_unit(unit, info.id).unwrap_or(false) {
                own(database, unit, info.id, owners, findings);
            }
        }
    }
}

/// Every extent against its GAM bit; `all_known` says whether all owners are known.
fn check_extents(database: &Database, owners: &Owners, all_known: bool, findings: &mut Findings) {
    for file in database.store.files() {
        let extents = file.pages() / EXTENT_PAGES;
        for interval in 0..extents.div_ceil(INTERVAL_EXTENTS) {
            let gam = PageId { file: file.number, page: layout::gam(interval) };
            let taken = match database.store.read(gam) {
                Ok(page) => map_bits(&page),
                Err(error) => {
                    findings.add(FindingKind::Map, None, gam, None, error.to_string());
                    continue;
                }
            };
            let base = interval * INTERVAL_EXTENTS;
            for extent in base..extents.min(base + INTERVAL_EXTENTS) {
                let own = layout::is_map_extent(extent) || (file.number == 1 && extent < PRIMARY_EXTENTS);
                let owner = owners.extents.get(&(file.number, extent));
                let first = PageId { file: file.number, page: layout::page_of(extent) };
                let mut add = |kind, tree: Option<&TreeId>, detail| findings.add(kind, tree.copied(), first, None, detail);
                match (is_set(&taken, extent - base), owner, own) {
                    (false, Some(tree), _) => add(FindingKind::ExtentTwice, Some(tree), "owned and marked free"),
                    (true, None, false) if all_known => add(FindingKind::ExtentLost, None, "marked taken and owned by none"),
                    (_, Some(tree), true) => add(FindingKind::ExtentTwice, Some(tree), "owned and the file's own"),
                    _ => {}
                }
            }
        }
    }
}
