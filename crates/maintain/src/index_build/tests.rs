//! Built trees against trees filled row by row, scalar by scalar.

use super::*;
use thawdb_catalog::filter::constant;
use thawdb_catalog::{ColumnDef, ColumnId, DatabaseId, IndexDef, IndexId, IndexKey, ObjectId, SchemaId};
use thawdb_catalog::{FilterConjunct, FilterTest, IndexFilter};
use thawdb_storage::{Database, DatabaseSpec, FileKind, FileSpec, Storage, StorageConfig, TreeSpec};
use thawdb_types::key::encode_key;
use thawdb_types::{Collation, MaxLength, Scalar, SqlType};

pub(crate) struct Place {
    pub(crate) database: Arc<Database>,
    env: Env,
    folder: PathBuf,
}

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let env = thawdb_device::os::env();
        let folder = std::env::temp_dir().join(format!("thawdb-maintain-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let storage = Storage::new(env.clone(), StorageConfig { memory_bytes_max: 128 << 20 });
        let file = |name: &str, kind| FileSpec {
            name: name.into(),
            path: folder.join(name),
            kind,
            size_bytes: 16 << 20,
            size_bytes_max: None,
            growth_bytes: 16 << 20,
        };
        let files = vec![file("t.mdf", FileKind::Rows { filegroup: 1 }), file("t.ldf", FileKind::Log)];
        let database = storage.create_database(&DatabaseSpec { name: "t".into(), files, temporary: false }).unwrap();
        Self { database, env, folder }
    }

    fn options(&self, memory_bytes_max: usize) -> IndexBuildOptions {
        IndexBuildOptions { memory_bytes_max, temp_folder: self.folder.join("sort"), rows_expected: None }
    }

    /// The table with trees for all its indexes.
    pub(crate) fn make(&self, mut table: TableDef) -> Arc<TableDef> {
        let mut txn = self.database.begin();
        for index in &mut table.indexes {
            index.tree = txn.create_tree(TreeSpec { object_id: 100, index_id: index.id.0 as u32, filegroup: 1 }).unwrap();
        }
        txn.commit().unwrap();
        Arc::new(table)
    }

    /// Everything in a tree, large parts read.
    pub(crate) fn contents(&self, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>, Vec<Vec<u8>>)> {
        let view = self.database.read_view(None);
        let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
        let mut all = Vec::new();
        while let Some(block) = scan.next_block().unwrap() {
            for row in 0..block.len() {
                let large = block.large(row).iter().map(|part| view.read_large(*part).unwrap()).collect();
                all.push((block.key(row).to_vec(), block.value(row).to_vec(), large));
            }
        }
        all
    }

    /// Inserts rows into every index from `first` on, as the definitions say and without this crate's help.
    pub(crate) fn insert(&self, table: &TableDef, rows: &[Vec<Scalar>], indexes: std::ops::Range<usize>) {
        let mut txn = self.database.begin();
        let layouts: Vec<TreeLayout> = (0..table.indexes.len()).map(|index| TreeLayout::new(table, index)).collect();
        let of = |row: &[Scalar], columns: &[usize]| columns.iter().map(|c| row[*c].clone()).collect::<Vec<_>>();
        for (at, row) in rows.iter().enumerate() {
            let mut row_key = Vec::new();
            encode_key(&of(row, &layouts[0].key_columns), &layouts[0].key, &mut row_key);
            if layouts[0].row_number {
                row_key.extend_from_slice(&(at as u64 + 1).to_be_bytes());
            }
            for index in indexes.clone() {
                let (layout, mut key) = (&layouts[index], Vec::new());
                if index > 0 {
                    encode_key(&of(row, &layout.key_columns[..layout.own_key_count]), layout.own_key(), &mut key);
                }
                key.extend_from_slice(&row_key);
                let mut buffer = RowBuffer::default();
                layout.row.encode(&of(row, &layout.row_columns), &mut buffer).unwrap();
                let large: Vec<&[u8]> = buffer.large().iter().map(Vec::as_slice).collect();
                txn.insert(table.indexes[index].tree, &key, Row { inline: buffer.inline(), large: &large }).unwrap();
            }
        }
        txn.commit().unwrap();
    }

    pub(crate) fn build(&self, source: &TableDef, table: &Arc<TableDef>, index: usize, memory: usize) -> Result<BuildProgress, BuildError> {
        self.build_by(1, source, table, index, memory)
    }

    fn build_by(
        &self,
        threads: usize,
        source: &TableDef,
        table: &Arc<TableDef>,
        index: usize,
        memory: usize,
    ) -> Result<BuildProgress, BuildError> {
        let mut txn = self.database.begin();
        let view = self.database.read_view(Some(&txn));
        let mut build = IndexBuild::new(&self.env, source, table, index, view, self.options(memory))?;
        build.use_threads(threads)?;
        let mut phases = Vec::new();
        build.run(&mut txn, &mut |progress| {
            phases.push(progress.phase);
            Ok(())
        })?;
        assert!(phases.is_sorted_by_key(|phase| *phase as u8), "{phases:?}");
        txn.commit().unwrap();
        Ok(build.progress())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.database.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn index(id: i32, keys: &[(usize, bool)], included: &[usize], unique: bool) -> IndexDef {
    let keys = keys.iter().map(|(column_index, descending)| IndexKey { column_index: *column_index, descending: *descending }).collect();
    IndexDef {
        id: IndexId(id),
        name: Some(format!("i{id}")),
        keys,
        included: included.to_vec(),
        unique,
        primary_key: false,
        unique_constraint: false,
        filter: None,
        options: Default::default(),
        tree: TreeId(0),
    }
}

/// id int, a int null, t varchar(20) null, w varchar(max) null, with these indexes.
pub(crate) fn table(indexes: Vec<IndexDef>) -> TableDef {
    let collation = Collation::DEFAULT;
    let types = [
        ("id", SqlType::Int, false),
        ("a", SqlType::Int, true),
        ("t", SqlType::varchar(20), true),
        ("w", SqlType::VarChar { length: MaxLength::Max, collation }, true),
    ];
    let column = |(at, (name, sql_type, nullable)): (usize, &(&str, SqlType, bool))| ColumnDef {
        id: ColumnId(at as i32 + 1),
        name: (*name).into(),
        sql_type: *sql_type,
        nullable: *nullable,
        identity: None,
        default: None,
        default_name: None,
        computed: None,
        user_type: None,
    };
    TableDef {
        database: DatabaseId(5),
        id: ObjectId(100),
        schema: SchemaId(1),
        schema_name: "dbo".into(),
        name: "t".into(),
        columns: types.iter().enumerate().map(column).collect(),
        indexes,
        lock_escalation: Default::default(),
        disabled: Vec::new(),
        rows_disabled: false,
        temporal: Default::default(),
        building: None,
        created: 0,
        modified: 0,
    }
}

/// Rows in the order of `id`; every `a` and `t` differs from its neighbours', some `w` are large.
pub(crate) fn rows(count: i32) -> Vec<Vec<Scalar>> {
    let mut dice = 88_172_645_463_325_252_u64;
    let mut draw = move |limit: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % limit
    };
    let row = |id: i32| {
        let a = if draw(9) == 0 { Scalar::Null } else { Scalar::Int(draw(5_000) as i32 - 2_500) };
        let t = if draw(9) == 0 { Scalar::Null } else { Scalar::Text(format!("t{}", draw(700))) };
        let w = if draw(50) == 0 { Scalar::Text("w".repeat(5_000)) } else { Scalar::text("w") };
        vec![Scalar::Int(id * 2), a, t, w]
    };
    (1..=count).map(row).collect()
}

#[test]
fn a_build_equals_inserts() {
    let others = || {
        vec![
            index(2, &[(1, false)], &[], false),
            index(3, &[(2, true), (1, false)], &[], false),
            index(4, &[(2, false)], &[3, 1], false),
            index(5, &[(0, true)], &[], true),
        ]
    };
    let heap = IndexDef { name: None, ..index(0, &[], &[], false) };
    for (name, first) in [("heap", heap), ("unique", index(1, &[(0, false)], &[], true)), ("loose", index(1, &[(0, true)], &[], false))] {
        let place = Place::new(name);
        let all: Vec<IndexDef> = std::iter::once(first).chain(others()).collect();
        let rows = rows(6_000);
        let (filled, built) = (place.make(table(all.clone())), place.make(table(all)));
        place.insert(&filled, &rows, 0..5);
        place.insert(&built, &rows, 0..1);
        for index in 1..5 {
            for (memory, threads) in [(64 << 20, 1), (40_000, 1), (64 << 20, 2), (90_000, 3)] {
                let mut txn = place.database.begin();
                let tree = txn.create_tree(TreeSpec { object_id: 100, index_id: 9, filegroup: 1 }).unwrap();
                txn.commit().unwrap();
                let mut again = (*built).clone();
                again.indexes[index].tree = tree;
                let progress = place.build_by(threads, &built, &Arc::new(again), index, memory).unwrap();
                let done = BuildProgress { phase: BuildPhase::Done, rows_scanned: 6_000, rows_appended: 6_000, percent: 100.0 };
                assert_eq!(progress, done);
                let (got, expected) = (place.contents(tree), place.contents(filled.indexes[index].tree));
                assert!(got == expected, "{name} {index}, {memory} bytes, {threads} threads");
            }
        }
    }
}

#[test]
fn threads_divide_the_table() {
    let place = Place::new("threads");
    let table = place.make(table(vec![index(1, &[(0, false)], &[], true), index(2, &[(1, false)], &[], false)]));
    place.insert(&table, &rows(6_000), 0..1);
    let txn = place.database.begin();
    let view = place.database.read_view(Some(&txn));
    let mut build = IndexBuild::new(&place.env, &table, &table, 1, view.clone(), place.options(1 << 20)).unwrap();
    build.use_threads(3).unwrap();
    let State::Scan(parts) = &mut build.state else { panic!("it has not begun") };
    assert_eq!(parts.len(), 3);
    let counts: Vec<u64> = parts.iter_mut().map(|part| part.read(&table, &view, u64::MAX).map(|()| part.rows).unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 6_000);
    assert!(counts.iter().all(|count| (1_000..3_000).contains(count)), "{counts:?}");
}

#[test]
fn a_clustered_index_takes_whole_rows() {
    let place = Place::new("clustered");
    let heap = place.make(table(vec![IndexDef { name: None, ..index(0, &[], &[], false) }]));
    let rows = rows(3_000);
    place.insert(&heap, &rows, 0..1);
    for (keys, unique) in [(vec![(0, false)], true), (vec![(0, true)], false), (vec![(2, false)], false)] {
        let clustered = place.make(table(vec![index(1, &keys, &[], unique)]));
        let filled = place.make(table(vec![index(1, &keys, &[], unique)]));
        place.build(&heap, &clustered, 0, 50_000).unwrap();
        place.insert(&filled, &rows, 0..1);
        assert!(place.contents(clustered.indexes[0].tree) == place.contents(filled.indexes[0].tree), "{keys:?} {unique}");
    }
}

#[test]
fn keys_of_two_rows_are_1505() {
    let place = Place::new("duplicate");
    let all = vec![index(1, &[(0, false)], &[], true), index(2, &[(2, false), (1, false)], &[], true)];
    let table = place.make(table(all));
    let row = |id: i32, t: Option<&str>, a: i32| vec![Scalar::Int(id), Scalar::Int(a), t.map_or(Scalar::Null, Scalar::text), Scalar::Null];
    place.insert(&table, &[row(1, Some("b"), 7), row(2, Some("a"), 7), row(3, Some("B "), 7), row(4, None, 7)], 0..1);
    let Err(BuildError::Sql(error)) = place.build(&table, &table, 1, 1 << 20) else { panic!("two rows have one key") };
    assert_eq!(error.number, 1505);
    for part in ["'dbo.t'", "'i2'", "(B, 7)"] {
        assert!(error.text.contains(part), "{error}");
    }
    assert!(place.contents(table.indexes[1].tree).is_empty(), "the transaction rolled back");
    let mut filtered = (*table).clone();
    // Only rows inside the filter are judged: of the two with the key (b, 7) the one of id 3 is outside.
    let test = FilterTest::In([1, 2].map(|id| constant(&Scalar::Int(id), SqlType::Int)).to_vec());
    let filter = IndexFilter { text: "([id] IN ((1), (2)))".into(), conjuncts: vec![FilterConjunct { column_index: 0, test }] };
    filtered.indexes[1].filter = Some(Arc::new(filter));
    let filtered = Arc::new(filtered);
    place.build(&table, &filtered, 1, 1 << 20).unwrap();
    assert_eq!(place.contents(filtered.indexes[1].tree).len(), 2);
}

#[test]
fn it_ends_when_told_to_and_says_how_far_it_is() {
    let place = Place::new("progress");
    let table = place.make(table(vec![index(1, &[(0, false)], &[], true), index(2, &[(1, false)], &[], false)]));
    place.insert(&table, &rows(1_000), 0..1);
    let mut txn = place.database.begin();
    let options = IndexBuildOptions { rows_expected: Some(1_000), ..place.options(1 << 20) };
    let mut build = IndexBuild::new(&place.env, &table, &table, 1, place.database.read_view(None), options).unwrap();
    assert_eq!((build.progress().phase, build.progress().percent), (BuildPhase::Scan, 0.0));
    let stop = build.run(&mut txn, &mut |progress| if progress.phase == BuildPhase::Append { Err(message(3617, &[])) } else { Ok(()) });
    assert!(matches!(stop, Err(BuildError::Sql(_))));
    assert_eq!((build.progress().phase, build.progress().percent), (BuildPhase::Append, 50.0));
    assert!(!build.step(&mut txn).unwrap());
    assert_eq!(build.progress().percent, 100.0);
    txn.commit().unwrap();
    assert_eq!(place.contents(table.indexes[1].tree).len(), 1_000);
    let mut txn = place.database.begin();
    let empty = place.make(super::tests::table(vec![index(1, &[(0, false)], &[], true), index(2, &[(1, false)], &[], true)]));
    let mut build = IndexBuild::new(&place.env, &empty, &empty, 1, place.database.read_view(None), place.options(1 << 20)).unwrap();
    build.run(&mut txn, &mut |_| Ok(())).unwrap();
    assert_eq!((build.progress().rows_appended, build.sort_statistics().row_count), (0, 0));
}

#[test]
fn a_check_finds_what_an_index_lacks_and_what_it_has_too_much() {
    use crate::check::{IndexFinding, check_table};
    let place = Place::new("check");
    let table = place.make(table(vec![
        index(1, &[(0, false)], &[], true),
        index(2, &[(1, false)], &[2, 3], false),
        index(3, &[(2, true)], &[], false),
    ]));
    place.insert(&table, &rows(5_000), 0..3);
    let check = |place: &Place| check_table(&table, &place.database.read_view(None), &mut || Ok(())).unwrap();
    let whole = check(&place);
    assert_eq!(whole.rows, 5_000);
    assert!(whole.indexes.iter().all(|index| index.entries == 5_000 && index.findings.is_empty()));
    // One entry goes, one comes that no row has, and one keeps its key and gets another row's INCLUDE values.
    let entries = place.contents(table.indexes[1].tree);
    let (gone, changed) = (&entries[7], &entries[11]);
    let other = entries.iter().find(|entry| entry.1 != changed.1 && entry.2.is_empty()).expect("values differ");
    let extra = [gone.0.as_slice(), &[1]].concat();
    let mut txn = place.database.begin();
    assert!(txn.delete(table.indexes[1].tree, &gone.0).unwrap());
    txn.insert(table.indexes[1].tree, &extra, Row::inline(&changed.1)).unwrap();
    assert!(txn.update(table.indexes[1].tree, &changed.0, Row::inline(&other.1)).unwrap());
    txn.commit().unwrap();
    let found = check(&place);
    let findings = &found.indexes[0].findings;
    assert!(findings.contains(&IndexFinding::Missing(gone.0.clone())), "{findings:?}");
    assert!(findings.contains(&IndexFinding::Extra(extra)), "{findings:?}");
    assert!(findings.contains(&IndexFinding::Extra(changed.0.clone())), "{findings:?}");
    assert_eq!(found.indexes[0].finding_count, 3);
    assert!(found.indexes[1].findings.is_empty());
}
