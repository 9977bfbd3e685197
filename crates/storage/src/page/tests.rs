//! Pages against a model, and operations against hostile bytes.

use super::op::{MAP_BEGIN, apply};
use super::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageOpError, PageType, Slotted, VersionTag, header, verify};
use crate::ids::{PageId, TreeId, TxnId};

const ID: PageId = PageId { file: 1, page: 42 };

/// Steele's SplitMix64: enough randomness for tests, from one seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

fn leaf() -> PageBytes {
    page_of(PageType::Leaf)
}

fn page_of(page_type: PageType) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    let format = Format { page_type, tree: TreeId(9), object_id: 5, index_id: 1, level: 0, creator: TxnId(0) };
    apply(&mut page, ID, &PageOp::Format(format)).expect("formats");
    page
}

fn bytes_of(entry: &Entry<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    bytes
}

fn check(page: &PageBytes, model: &[(Vec<u8>, Vec<u8>, bool)]) {
    verify::verify(page, ID, &mut |violation| panic!("{violation:?}"));
    let view = Slotted(page);
    assert_eq!(view.len(), model.len());
    for (slot, (key, payload, ghost)) in model.iter().enumerate() {
        let mut found = Vec::new();
        view.key(slot, &mut found);
        assert_eq!((&found, view.entry(slot).payload, view.entry(slot).ghost), (key, payload.as_slice(), *ghost));
        assert_eq!(view.search(key), Ok(slot));
    }
}

/// Applies `op` and its decoded copy to a copy of the page; both must agree.
fn apply_both_ways(page: &mut PageBytes, op: &PageOp<'_>) -> Result<(), PageOpError> {
    let mut bytes = Vec::new();
    op.encode(&mut bytes);
    let mut rest = bytes.as_slice();
    assert_eq!(PageOp::decode(&mut rest).as_ref(), Ok(op));
    assert!(rest.is_empty());
    let before = *page;
    let result = apply(page, ID, op);
    assert!(result.is_ok() || before == *page, "a failed operation changes nothing");
    result
}

#[test]
fn random_changes_agree_with_a_model() {
    for seed in 0..40 {
        let mut random = Seeded(seed);
        let mut page = leaf();
        let mut model: Vec<(Vec<u8>, Vec<u8>, bool)> = Vec::new();
        for _ in 0..600 {
            let key = format!("key{:0width$}", random.below(300), width = 3 + random.below(2) * 4).into_bytes();
            let payload = vec![b'x'; random.below(200)];
            let place = model.binary_search_by(|(k, _, _)| k.cmp(&key));
            assert_eq!(Slotted(&page).search(&key), place);
            let prefix = usize::from(header::prefix_bytes(&page));
            let tag = (random.below(3) == 0).then_some(VersionTag { txn: TxnId(7), version: 1 });
            let ghost = random.below(5) == 0;
            let bytes = bytes_of(&Entry { ghost, tag, ..Entry::plain(&key[prefix..], &payload) });
            let result = match (place, random.below(8)) {
                (Ok(at), 0 | 1) => {
                    model.remove(at);
                    apply_both_ways(&mut page, &PageOp::SlotRemove { slot: at as u16 })
                }
                (Ok(at), 2) => {
                    let flags = [page[Slotted(&page).place(at).0] | super::entry::GHOST];
                    model[at].2 = true;
                    apply_both_ways(&mut page, &PageOp::SlotPatch { slot: at as u16, at: 0, bytes: &flags })
                }
                (Ok(at), _) => {
                    let result = apply_both_ways(&mut page, &PageOp::SlotReplace { slot: at as u16, bytes: &bytes });
                    if result.is_ok() {
                        model[at] = (key, payload, ghost);
                    }
                    result
                }
                (Err(at), 0) => {
                    let result = apply_both_ways(&mut page, &PageOp::SetPrefix([&b""[..], b"k", b"key"][random.below(3)]));
                    let _ = at;
                    result
                }
                (Err(at), 1) if random.below(20) == 0 => {
                    model.truncate(at);
                    apply_both_ways(&mut page, &PageOp::Truncate { from_slot: at as u16 })
                }
                (Err(at), _) => {
                    assert_eq!(Slotted(&page).fits(bytes.len()), model_fits(&model, &page, bytes.len()));
                    let result = apply_both_ways(&mut page, &PageOp::SlotInsert { slot: at as u16, bytes: &bytes });
                    if result.is_ok() {
                        model.insert(at, (key, payload, ghost));
                    }
                    result
                }
            };
            assert!(matches!(result, Ok(()) | Err(PageOpError::NoRoom)), "{result:?}");
            check(&page, &model);
        }
    }
}

fn model_fits(model: &[(Vec<u8>, Vec<u8>, bool)], page: &PageBytes, bytes: usize) -> bool {
    let used: usize = (0..model.len()).map(|slot| Slotted(page).bytes(slot).len() + 8).sum();
    96 + Slotted(page).prefix().len() + used + bytes + 8 <= PAGE_BYTES
}

#[test]
fn an_image_is_the_page_again() {
    let mut page = leaf();
    for n in 0..150_u32 {
        let bytes = bytes_of(&Entry::plain(&n.to_be_bytes(), &[n as u8; 25]));
        apply(&mut page, ID, &PageOp::SlotInsert { slot: n as u16, bytes: &bytes }).expect("fits");
    }
    let lz4 = PageOp::compress(&page);
    let mut other = [0xee; PAGE_BYTES];
    apply_both_ways(&mut other, &PageOp::Image { lz4: &lz4 }).expect("loads");
    assert_eq!(other, page);
    assert_eq!(
        apply(&mut other, PageId { file: 1, page: 43 }, &PageOp::Image { lz4: &lz4 }),
        Err(PageOpError::Malformed("image is no page of this name"))
    );
}

#[test]
fn a_row_of_votes_takes_less_than_45_bytes() {
    let row = bytes_of(&Entry::plain(&[0; 4], &[0; 25]));
    assert!(row.len() + super::slotted::SLOT_BYTES < 45);
}

#[test]
fn maps_set_runs_of_bits_and_bytes() {
    let mut page = page_of(PageType::Gam);
    apply_both_ways(&mut page, &PageOp::MapBits { first: 5, count: 20, value: 1, width: 1 }).expect("sets");
    apply_both_ways(&mut page, &PageOp::MapBits { first: 8, count: 1, value: 0, width: 1 }).expect("clears");
    assert_eq!(page[MAP_BEGIN..MAP_BEGIN + 5], [0xe0, 0xfe, 0xff, 0x01, 0]);
    for op in [
        PageOp::MapBits { first: u32::MAX, count: u32::MAX, value: 1, width: 1 },
        PageOp::MapBits { first: 0, count: 8065, value: 1, width: 8 },
        PageOp::MapBits { first: 0, count: 1, value: 1, width: 3 },
        PageOp::RawPatch { offset: 95, bytes: b"x" },
        PageOp::RawPatch { offset: 8190, bytes: b"xyz" },
        PageOp::SlotRemove { slot: 0 },
    ] {
        assert!(matches!(apply_both_ways(&mut page, &op), Err(PageOpError::Malformed(_))), "{op:?}");
    }
}

#[test]
fn hostile_operations_are_errors() {
    let mut random = Seeded(1);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.below(40)).map(|_| random.below(20) as u8).collect();
        let mut rest = bytes.as_slice();
        let mut page = leaf();
        while let Ok(op) = PageOp::decode(&mut rest) {
            if apply(&mut page, ID, &op).is_ok() && header::page_type(&page).is_some_and(PageType::is_slotted) {
                verify::verify(&page, ID, &mut |v| assert_eq!(v.invariant, "P8", "only the order is the caller's: {v:?}"));
            }
        }
    }
}

#[test]
fn each_violation_is_reported() {
    let mut page = leaf();
    for (slot, key) in [b"a", b"b"].into_iter().enumerate() {
        apply(&mut page, ID, &PageOp::SlotInsert { slot: slot as u16, bytes: &bytes_of(&Entry::plain(key, b"row")) }).expect("fits");
    }
    let swap = |page: &mut PageBytes| (0..8).for_each(|i| page.swap(PAGE_BYTES - 16 + i, PAGE_BYTES - 8 + i));
    let cases: [(&str, &dyn Fn(&mut PageBytes)); 11] = [
        ("P1", &|p| p[5] = 99),
        ("P2", &|p| p[8] ^= 1),
        ("P3", &|p| p[80] = 1),
        ("P4", &|p| header::set_free_begin(p, 8185)),
        ("P5", &|p| p[PAGE_BYTES - 7] = 0xff),
        ("P6", &|p| header::set_garbage_bytes(p, 3)),
        ("P7", &|p| p[PAGE_BYTES - 4] ^= 1),
        ("P8", &swap),
        ("P9", &|p| header::set_ghost_count(p, 1)),
        ("P10", &|p| header::set_dictionary_bytes(p, 3)),
        // The first entry: packed, and nothing to make it whole with.
        ("P10", &|p| p[96] |= super::entry::PACKED),
    ];
    for (invariant, break_it) in cases {
        let mut broken = page;
        break_it(&mut broken);
        let mut found = Vec::new();
        verify::verify(&broken, ID, &mut |v| found.push(v.invariant));
        assert!(found.contains(&invariant), "{invariant}: {found:?}");
    }
}

/// Two prefixes, the second empty, and a symbol.
const DICTIONARY: &[u8] = b"\x02\0\x01\0\x02\0\x02\0\x07\0beoften";

#[test]
fn a_dictionary_moves_with_the_prefix_and_stays_while_a_row_needs_it() {
    let mut page = leaf();
    let packed = |suffix: &[u8]| bytes_of(&Entry { packed: true, ..Entry::plain(suffix, b"\x02\x13gin\x07") });
    let (first, second) = (packed(b"key1"), bytes_of(&Entry::plain(b"key2", b"as it is")));
    let insert_first = PageOp::SlotInsert { slot: 0, bytes: &first };
    assert!(apply_both_ways(&mut page, &insert_first).is_err(), "there is no dictionary");
    assert!(apply_both_ways(&mut page, &PageOp::SetDictionary(&DICTIONARY[..9])).is_err(), "it is none");
    apply_both_ways(&mut page, &PageOp::SetDictionary(DICTIONARY)).expect("an empty leaf takes it");
    apply_both_ways(&mut page, &insert_first).expect("it fits");
    apply_both_ways(&mut page, &PageOp::SlotInsert { slot: 1, bytes: &second }).expect("it fits");
    assert!(apply_both_ways(&mut page, &PageOp::SetDictionary(&[])).is_err(), "a row needs it");
    for prefix in [&b"key"[..], b"k", b"", b"key"] {
        apply_both_ways(&mut page, &PageOp::SetPrefix(prefix)).expect("it fits");
        verify::verify(&page, ID, &mut |violation| panic!("{violation:?}"));
        let view = Slotted(&page);
        assert_eq!((view.prefix(), view.dictionary()), (prefix, DICTIONARY));
        let mut whole = Vec::new();
        let row = view.row(0, &mut whole).expect("it can be made whole");
        // "be" and "gin"; the empty prefix and one byte.
        assert_eq!((row.packed, row.payload), (false, &b"\x02\x15begin\x07"[..]));
        assert_eq!(view.row(1, &mut Vec::new()).map(|row| row.payload.to_vec()).expect("it is"), b"as it is");
    }
    apply_both_ways(&mut page, &PageOp::SlotRemove { slot: 0 }).expect("it is there");
    apply_both_ways(&mut page, &PageOp::SetDictionary(&[])).expect("nothing needs it");
    verify::verify(&page, ID, &mut |violation| panic!("{violation:?}"));
    assert_eq!(Slotted(&page).entry(0).payload, b"as it is");
}
