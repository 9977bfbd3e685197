//! A page as people read it: DBCC PAGE and `thawdb dump-page`.
//!
//! The bytes are taken as hostile: what does not verify is said and shown as bytes only.

use super::{Entry, PageBytes, PageType, Slotted, header};
use crate::ids::PageId;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The header.
    Header,
    /// And each entry, key and payload as bytes.
    Entries,
    /// And the whole page as bytes.
    Bytes,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines of 32 bytes, with their offsets.
fn dump(bytes: &[u8], lines: &mut Vec<String>) {
    for (at, part) in bytes.chunks(32).enumerate() {
        let words: Vec<String> = part.chunks(4).map(hex).collect();
        let text: String = part.iter().map(|byte| if (32..127).contains(byte) { char::from(*byte) } else { '.' }).collect();
        lines.push(format!("{:04x}:  {:<72} {text}", at * 32, words.join(" ")));
    }
}

fn header_lines(page: &PageBytes, lines: &mut Vec<String>) {
    let shown = |id: PageId| format!("({}:{})", id.file, id.page);
    let page_type = header::page_type(page).map_or("unknown".to_owned(), |known| format!("{known:?}"));
    lines.push("PAGE HEADER:".into());
    lines.push(format!(
        "m_pageId = {}  m_headerVersion = {}  m_type = {} ({page_type})",
        shown(header::page_id(page)),
        header::format_version(page),
        page[5]
    ));
    lines.push(format!("m_level = {}  m_flags = {:#x}  m_lsn = {:#x}", header::level(page), header::flags(page), header::lsn(page).0));
    lines.push(format!(
        "tree = {}  m_objId = {}  m_indexId = {}  creator = {}",
        header::tree(page).0,
        header::object_id(page),
        header::index_id(page),
        header::creator(page).0
    ));
    lines.push(format!("m_prevPage = {}  m_nextPage = {}", shown(header::left(page)), shown(header::right(page))));
    lines.push(format!(
        "m_slotCnt = {}  m_freeData = {}  garbage = {}  prefix = {}  dictionary = {}  tagged = {}  ghosts = {}",
        header::slot_count(page),
        header::free_begin(page),
        header::garbage_bytes(page),
        header::prefix_bytes(page),
        header::dictionary_bytes(page),
        header::tagged_count(page),
        header::ghost_count(page)
    ));
}

fn entry_lines(slot: usize, place: (usize, usize), key: &[u8], entry: &Entry<'_>, lines: &mut Vec<String>) {
    let tag = entry.tag.map_or_else(String::new, |tag| format!("  version {tag:?}"));
    lines.push(format!("Slot {slot} Offset {:#x} Length {}{}{tag}", place.0, place.1, if entry.ghost { "  ghost" } else { "" }));
    lines.push(format!("  key     {}", hex(key)));
    if entry.large_count() > 0 {
        lines.push(format!("  large parts {}", entry.large_count()));
    }
    lines.push(format!("  {} {}", if entry.packed { "packed " } else { "payload" }, hex(entry.payload)));
}

/// The lines of a page that stands at `id`.
pub fn lines(page: &PageBytes, id: PageId, detail: Detail) -> Vec<String> {
    let mut lines = vec![format!("PAGE: ({}:{})", id.file, id.page)];
    if header::is_blank(page) {
        lines.push("The page was never written.".into());
        return lines;
    }
    header_lines(page, &mut lines);
    let violation = super::verify::first_violation(page, id);
    if let Some(violation) = &violation {
        lines.push(format!("The page does not verify: {violation:?}"));
    }
    let slotted = matches!(header::page_type(page), Some(PageType::Leaf | PageType::Inner | PageType::Version));
    if detail != Detail::Header && slotted && violation.is_none() {
        let view = Slotted(page);
        let mut key = Vec::new();
        for slot in 0..view.len() {
            key.clear();
            view.key(slot, &mut key);
            entry_lines(slot, view.place(slot), &key, &view.entry(slot), &mut lines);
        }
    }
    if detail == Detail::Bytes || violation.is_some() {
        lines.push("DATA:".into());
        dump(page, &mut lines);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_shown_and_none_panics() {
        let id = PageId { file: 1, page: 9 };
        let mut page = [0; header::PAGE_BYTES];
        assert_eq!(lines(&page, id, Detail::Bytes).len(), 2);
        for seed in 0..200_u32 {
            let mut state = seed;
            for byte in &mut page {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
            assert!(lines(&page, id, Detail::Entries).len() > 256, "what does not verify is shown as bytes");
        }
    }
}
