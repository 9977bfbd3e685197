//! Decoders against bytes that nobody wrote: valid input, mutated by a seed, must end in a value or an error, never a panic.
//!
//! Each target makes a valid input, looks whether it comes back as it was, changes some of its bytes and decodes again.
//! Ordinary tests run some thousand seeds of each; `thawdb fuzz TARGET --seconds N` is the same code for as long as one
//! likes. No coverage feedback: inputs begin valid, so that mutations reach behind the first check.

mod wire;

use thawdb_observe::seeded::SeededRandom;
use thawdb_storage::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted, VersionTag, header, op, verify};
use thawdb_storage::{Lsn, PageId, TreeId, TxnId, log, record};
use thawdb_tsql::{ParseOptions, parse_batch};
use thawdb_types::key::{Damage, KeyColumn, decode_value, encode_key, is_lossless, skip_value};
use thawdb_types::row::{RowBuffer, RowForm, RowLayout, RowSource, StoredColumn};
use thawdb_types::{Scalar, SqlType};

/// A target: what it is called and what it does with a seed's randomness.
pub type Target = (&'static str, fn(&mut SeededRandom));

/// All targets.
pub const TARGETS: [Target; 13] = [
    ("page", page),
    ("record", log_record),
    ("block", log_block),
    ("row", row),
    ("key", key),
    ("tsql", tsql),
    ("packet", wire::packet),
    ("prelogin", wire::prelogin),
    ("login", wire::login),
    ("request", wire::request),
    ("rpc", wire::rpc),
    ("bulk", wire::bulk),
    ("token", wire::token),
];

const PAGE: PageId = PageId { file: 1, page: 77 };

fn below(random: &mut SeededRandom, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a usize")
}

/// Changes, cuts, repeats or inserts some bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut SeededRandom) {
    for _ in 0..1 + random.below(6) {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let at = below(random, bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][below(random, 6)],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, u8::try_from(random.below(256)).expect("a byte")),
            4 => {
                let end = (at + 1 + below(random, 16)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => drop(bytes.remove(at)),
        }
    }
}

fn some_bytes(random: &mut SeededRandom, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; below(random, most)];
    random.fill(&mut bytes);
    bytes
}

/// A dictionary of two prefixes, the second empty, and a symbol.
const DICTIONARY: &[u8] = b"\x02\0\x01\0\x02\0\x02\0\x07\0beoften";

/// A leaf of random entries.
fn leaf(random: &mut SeededRandom) -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_BYTES]);
    let format = Format { page_type: PageType::Leaf, tree: TreeId(100), object_id: 5, index_id: 1, level: 0, creator: TxnId(9) };
    op::apply(&mut page, PAGE, &PageOp::Format(format)).expect("a blank page is formatted");
    let has_dictionary = random.chance(1, 2);
    if has_dictionary {
        op::apply(&mut page, PAGE, &PageOp::SetDictionary(DICTIONARY)).expect("an empty leaf takes a dictionary");
    }
    let mut keys: Vec<Vec<u8>> = (0..1 + below(random, 40)).map(|_| some_bytes(random, 20)).filter(|key| !key.is_empty()).collect();
    keys.sort();
    keys.dedup();
    for (slot, key) in keys.iter().enumerate() {
        let payload = some_bytes(random, 100);
        let tag = random.chance(1, 3).then_some(VersionTag { txn: TxnId(12), version: 4711 });
        let mut bytes = Vec::new();
        let packed = has_dictionary && random.chance(1, 2);
        Entry { tag, packed, ghost: tag.is_some() && random.chance(1, 4), ..Entry::plain(key, &payload) }.encode(&mut bytes);
        let insert = PageOp::SlotInsert { slot: u16::try_from(slot).expect("few"), bytes: &bytes };
        op::apply(&mut page, PAGE, &insert).expect("forty small entries fit");
    }
    assert!(verify::first_violation(&page, PAGE).is_none(), "what was made is sound");
    page
}

/// Pages: what the verifier lets pass can be read and changed; nothing panics.
fn page(random: &mut SeededRandom) {
    let mut page = leaf(random);
    for _ in 0..1 + random.below(8) {
        // Most of the damage goes where it hurts: header, slots, first entries.
        let at = match random.below(3) {
            0 => below(random, 128),
            1 => PAGE_BYTES - 1 - below(random, 300),
            _ => below(random, PAGE_BYTES),
        };
        page[at] = u8::try_from(random.below(256)).expect("a byte");
    }
    // A page of another type is not looked at as slots: whoever descends a tree asks for the type first.
    let is_slotted = header::page_type(&page).is_some_and(PageType::is_slotted);
    if !is_slotted || verify::first_violation(&page, PAGE).is_some() {
        return;
    }
    let view = Slotted(&page);
    let mut key = Vec::new();
    for slot in 0..view.len() {
        key.clear();
        view.key(slot, &mut key);
        let entry = view.entry(slot);
        (0..entry.large_count()).for_each(|index| _ = entry.large(index));
        let _ = view.search(&key);
    }
    verify::unpack_all(&page, &mut |_, _| {});
    let operations = some_bytes(random, 60);
    let mut rest = operations.as_slice();
    while let Ok(operation) = PageOp::decode(&mut rest) {
        if op::apply(&mut page, PAGE, &operation).is_err() {
            break;
        }
    }
}

/// Log records and the operations in them, applied to a page.
fn log_record(random: &mut SeededRandom) {
    let mut bytes = Vec::new();
    match random.below(4) {
        0 => bytes = record::logical(&some_bytes(random, 60)),
        1 => {
            let transactions = some_bytes(random, 60);
            bytes = record::checkpoint(&record::Checkpoint { redo_from: Lsn(5), logical_from: Lsn(6), transactions: &transactions });
        }
        2 => bytes = record::loose(record::LooseChange::Loose, &[(PAGE, TreeId(100)), (PAGE, TreeId(101))]),
        _ => {
            record::begin_page(&mut bytes, PAGE, Lsn(44), TxnId(random.next_u64() >> 8));
            let image = PageOp::compress(&leaf(random));
            let payload = some_bytes(random, 40);
            let mut entry = Vec::new();
            Entry::plain(b"key", &payload).encode(&mut entry);
            let operations = [
                PageOp::SlotInsert { slot: 0, bytes: &entry },
                PageOp::SlotReplace { slot: 1, bytes: &entry },
                PageOp::SlotPatch { slot: 2, at: 3, bytes: &payload },
                PageOp::Truncate { from_slot: 5 },
                PageOp::SetPrefix(b"k"),
                PageOp::SetDictionary(DICTIONARY),
                PageOp::MapBits { first: 3, count: 9, value: 1, width: 1 },
                PageOp::RawPatch { offset: 200, bytes: &payload },
                PageOp::Image { lz4: &image },
            ];
            let chosen = below(random, operations.len());
            operations[chosen].encode(&mut bytes);
            operations[below(random, operations.len())].encode(&mut bytes);
        }
    }
    assert!(record::decode(&bytes).is_ok(), "what was made is decoded");
    mutate(&mut bytes, random);
    match record::decode(&bytes) {
        Ok(record::Record::Page(record)) => {
            let mut page = leaf(random);
            let _ = record.starts_afresh();
            for operation in record.ops() {
                if operation.and_then(|operation| op::apply(&mut page, PAGE, &operation)).is_err() {
                    break;
                }
            }
        }
        Ok(record::Record::Loose(parts)) => parts.parts().for_each(drop),
        Ok(_) | Err(_) => {}
    }
}

/// Headers of the log's blocks and records.
fn log_block(random: &mut SeededRandom) {
    let mut bytes = some_bytes(random, 9000);
    bytes.resize(bytes.len().next_multiple_of(4096).max(4096), 0);
    if random.chance(1, 2) {
        // Begins as a record does, so that lengths are looked at.
        let header = log::format::record_header(below(random, 9000), 0, Lsn(4096));
        bytes[..header.len()].copy_from_slice(&header);
    }
    for _ in 0..random.below(8) {
        let at = below(random, 200);
        bytes[at] = u8::try_from(random.below(256)).expect("a byte");
    }
    let _ = log::format::record_length(&bytes);
    let _ = log::format::BlockHeader::decode(1, Lsn(4096), &bytes);
}

/// Types that codecs are tried with.
const TYPES: [SqlType; 14] = [
    SqlType::Bit,
    SqlType::TinyInt,
    SqlType::Int,
    SqlType::BigInt,
    SqlType::decimal(9, 2),
    SqlType::decimal(38, 10),
    SqlType::Float,
    SqlType::Date,
    SqlType::DateTime2 { scale: 7 },
    SqlType::UniqueIdentifier,
    SqlType::varchar(20),
    SqlType::nvarchar(40),
    SqlType::varbinary(30),
    SqlType::NVARCHAR_MAX,
];

fn value(random: &mut SeededRandom, sql_type: &SqlType) -> Scalar {
    let small = i64::try_from(random.below(200)).expect("small") - 100;
    match sql_type {
        _ if random.chance(1, 6) => Scalar::Null,
        SqlType::Bit => Scalar::Bit(small > 0),
        SqlType::TinyInt => Scalar::TinyInt(small.unsigned_abs() as u8),
        SqlType::Int => Scalar::Int(small as i32),
        SqlType::BigInt => Scalar::BigInt(small << 33),
        SqlType::Decimal { .. } => Scalar::Decimal(i128::from(small) * 1_000),
        SqlType::Float => Scalar::Float(small as f64 / 3.0),
        SqlType::Date => Scalar::Date(738_000 + small as i32),
        SqlType::DateTime2 { .. } => Scalar::DateTime2(638_000_000_000_000_000 + small),
        SqlType::UniqueIdentifier => {
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            Scalar::Guid(bytes)
        }
        SqlType::VarBinary { .. } => Scalar::Binary(some_bytes(random, 30)),
        _ if sql_type.is_large() => Scalar::text("long ".repeat(below(random, 1_200))),
        _ => Scalar::text("Wörter"[..below(random, 2)].to_owned() + &"abc ".repeat(below(random, 4))),
    }
}

fn typed(random: &mut SeededRandom, most: usize) -> (Vec<SqlType>, Vec<Scalar>) {
    let types: Vec<_> = (0..1 + below(random, most)).map(|_| TYPES[below(random, TYPES.len())]).collect();
    let values = types.iter().map(|sql_type| value(random, sql_type)).collect();
    (types, values)
}

struct OneRow(Vec<u8>, Vec<Vec<u8>>);

impl RowSource for OneRow {
    type Error = Damage;

    fn len(&self) -> usize {
        1
    }

    fn row(&self, _index: usize) -> &[u8] {
        &self.0
    }

    fn large(&self, _index: usize, ordinal: usize) -> Result<Vec<u8>, Damage> {
        self.1.get(ordinal).cloned().ok_or_else(|| Damage::new("no such large part"))
    }
}

/// Rows.
fn row(random: &mut SeededRandom) {
    let (types, values) = typed(random, 8);
    let form = if random.chance(1, 2) { RowForm::Compact } else { RowForm::Plain };
    let layout = RowLayout::new(types.iter().map(|sql_type| StoredColumn::new(*sql_type, true)).collect()).with_form(form);
    let mut buffer = RowBuffer::default();
    layout.encode(&values, &mut buffer).expect("small rows fit");
    let mut stored = OneRow(buffer.inline().to_vec(), buffer.large().to_vec());
    assert_eq!(layout.decode_row(&stored, 0).expect("what was made is decoded"), values);
    mutate(&mut stored.0, random);
    if let Some(part) = stored.1.first_mut().filter(|_| random.chance(1, 2)) {
        mutate(part, random);
    }
    let _ = layout.decode_row(&stored, 0);
}

/// Keys.
fn key(random: &mut SeededRandom) {
    let (types, values) = typed(random, 4);
    let columns: Vec<_> =
        types.iter().map(|sql_type| KeyColumn { sql_type: *sql_type, nullable: true, descending: random.chance(1, 3) }).collect();
    let mut bytes = Vec::new();
    encode_key(&values, &columns, &mut bytes);
    let walk = |bytes: &[u8]| -> Result<Vec<Option<Scalar>>, Damage> {
        let mut rest = bytes;
        let step = |column: &KeyColumn| {
            if is_lossless(&column.sql_type) {
                decode_value(&mut rest, column).map(Some)
            } else {
                skip_value(&mut rest, column).map(|()| None)
            }
        };
        columns.iter().map(step).collect()
    };
    let back = walk(&bytes).expect("what was made is decoded");
    assert!(back.iter().zip(&values).all(|(back, value)| back.as_ref().is_none_or(|back| back == value)), "{back:?} of {values:?}");
    mutate(&mut bytes, random);
    let _ = walk(&bytes);
}

/// Batches the parser's mutations begin with.
const BATCHES: [&str; 6] = [
    "SELECT TOP (5) a.b, COUNT(*) AS n FROM dbo.t AS a LEFT JOIN u ON u.id = a.id WHERE a.c LIKE N'x%' AND a.d IN (1, 2.5, 0xFF) GROUP BY a.b",
    "CREATE TABLE t (id int IDENTITY(1, 1) NOT NULL PRIMARY KEY, v decimal(18, 4) NULL DEFAULT (0), s nvarchar(max))",
    "BEGIN TRY INSERT t (a) VALUES (1), (NULL); END TRY BEGIN CATCH THROW; END CATCH",
    "DECLARE @v int = 3; WHILE @v > 0 BEGIN SET @v -= 1; IF @v = 2 CONTINUE ELSE PRINT 'x' END",
    "WITH c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c) UPDATE t SET a = CASE WHEN b IS NULL THEN 1 ELSE CAST(c AS int) END FROM c",
    "/* outer /* inner */ */ EXEC sp_executesql N'SELECT @p', N'@p int', @p = -1 -- end",
];

/// The parser.
fn tsql(random: &mut SeededRandom) {
    let mut bytes = BATCHES[below(random, BATCHES.len())].as_bytes().to_vec();
    mutate(&mut bytes, random);
    if random.chance(1, 4) {
        bytes.extend_from_slice(BATCHES[below(random, BATCHES.len())].as_bytes());
        mutate(&mut bytes, random);
    }
    let _ = parse_batch(&String::from_utf8_lossy(&bytes), &ParseOptions::default());
}
