//! Objects that are not tables: procedures, functions, views, triggers, sequences, synonyms, types.
//!
//! ```text
//! ObjectDef ── kind ── definition: the text of the batch that made it (a synonym: the name it stands for)
//!           ├─ parameters, columns: what callers and catalog views ask
//!           └─ parsed: what a floor above made of the text, once; shared by all who hold the definition
//! ```
//!
//! 1. A definition is immutable; ALTER makes another with the same number (`DatabaseCatalog::put_object`).
//! 2. `parsed` depends on the definition alone, so that whoever fills it first fills it right.
//!
//! It parses nothing and locks nothing itself.

use crate::defs::{ColumnDef, ObjectId, SchemaId};
use crate::objects::{SchemaDef, read_column, write_column};
use crate::record::{Reader, RecordError, Writer};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use thawdb_types::SqlType;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the object of its name
pub enum ObjectKind {
    Procedure,
    View,
    ScalarFunction,
    InlineFunction,
    TableFunction,
    Trigger,
    Synonym,
    Sequence,
    TableType,
    AliasType,
}

/// The kinds and their tags, which are part of the format.
const KINDS: [(ObjectKind, u8); 10] = [
    (ObjectKind::Procedure, 1),
    (ObjectKind::View, 2),
    (ObjectKind::ScalarFunction, 3),
    (ObjectKind::InlineFunction, 4),
    (ObjectKind::TableFunction, 5),
    (ObjectKind::Trigger, 6),
    (ObjectKind::Synonym, 7),
    (ObjectKind::Sequence, 8),
    (ObjectKind::TableType, 9),
    (ObjectKind::AliasType, 10),
];

impl ObjectKind {
    /// sys.objects.type and type_desc.
    pub fn code(self) -> (&'static str, &'static str) {
        match self {
            Self::Procedure => ("P ", "SQL_STORED_PROCEDURE"),
            Self::View => ("V ", "VIEW"),
            Self::ScalarFunction => ("FN", "SQL_SCALAR_FUNCTION"),
            Self::InlineFunction => ("IF", "SQL_INLINE_TABLE_VALUED_FUNCTION"),
            Self::TableFunction => ("TF", "SQL_TABLE_VALUED_FUNCTION"),
            Self::Trigger => ("TR", "SQL_TRIGGER"),
            Self::Synonym => ("SN", "SYNONYM"),
            Self::Sequence => ("SO", "SEQUENCE_OBJECT"),
            Self::TableType | Self::AliasType => ("TT", "TYPE_TABLE"),
        }
    }

    /// Whether its definition is a text of T-SQL.
    pub fn is_module(self) -> bool {
        !matches!(self, Self::Synonym | Self::Sequence | Self::TableType | Self::AliasType)
    }

    /// Whether it is a type: types have names of their own beside objects.
    pub fn is_type(self) -> bool {
        matches!(self, Self::TableType | Self::AliasType)
    }
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterDef {
    /// Its name with the `@`; empty for the value a function returns.
    pub name: String,
    /// Its type; of a table-valued parameter meaningless.
    pub sql_type: SqlType,
    /// Number of its table type, if it is of one.
    pub table_type: Option<ObjectId>,
    /// OUTPUT.
    pub output: bool,
    /// Whether a call may leave it out.
    pub has_default: bool,
    /// READONLY.
    pub read_only: bool,
}

/// What makes a trigger fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the word of its name
pub struct TriggerDef {
    pub instead_of: bool,
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    pub disabled: bool,
    /// Statements whose first (bits 0 to 2: INSERT, UPDATE, DELETE) or last (bits 4 to 6) AFTER trigger it is.
    pub order: u8,
}

impl TriggerDef {
    /// Where it fires among the triggers of a statement (0 INSERT, 1 UPDATE, 2 DELETE): 0 first, 1 anywhere, 2 last.
    pub fn place(&self, statement: usize) -> u8 {
        match (self.order >> statement & 1, self.order >> (statement + 4) & 1) {
            (1, _) => 0,
            (_, 1) => 2,
            _ => 1,
        }
    }
}

/// A sequence's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceDef {
    /// Type of the values.
    pub sql_type: SqlType,
    /// START WITH.
    pub start: i64,
    /// INCREMENT BY.
    pub increment: i64,
    /// MINVALUE.
    pub minimum: i64,
    /// MAXVALUE.
    pub maximum: i64,
    /// CYCLE.
    pub cycle: bool,
    /// CACHE: `None` is NO CACHE, 0 the server's choice.
    pub cache: Option<i32>,
}

/// The options a module was made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // each field is the option of its name
pub struct ModuleFlags {
    pub quoted_identifier: bool,
    pub ansi_nulls: bool,
    pub encrypted: bool,
    pub schema_bound: bool,
    pub recompiled: bool,
    pub null_on_null_input: bool,
    /// WITH CHECK OPTION of a view.
    pub check_option: bool,
}

/// An object that is not a table.
#[derive(Debug, Clone)]
pub struct ObjectDef {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// Its schema's name.
    pub schema_name: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// The table or view a trigger belongs to.
    pub parent: Option<ObjectId>,
    /// Text of the batch that made it, its first word CREATE; of a synonym the name it stands for.
    pub definition: String,
    /// The options it was made under.
    pub flags: ModuleFlags,
    /// Columns of a view, table-valued function or table type.
    pub columns: Vec<ColumnDef>,
    /// Parameters; of a scalar function the value it returns comes first, without a name.
    pub parameters: Vec<ParameterDef>,
    /// Of a trigger.
    pub trigger: Option<TriggerDef>,
    /// Of a sequence.
    pub sequence: Option<SequenceDef>,
    /// Creation, as in `TableDef`.
    pub created: i64,
    /// Last change, as in `TableDef`.
    pub modified: i64,
    /// What a floor above made of the definition.
    pub parsed: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

fn write_parameter(w: &mut Writer, parameter: &ParameterDef) {
    w.text(&parameter.name).sql_type(&parameter.sql_type).i32(parameter.table_type.map_or(0, |id| id.0));
    w.flag(parameter.output).flag(parameter.has_default).flag(parameter.read_only);
}

fn read_parameter(r: &mut Reader<'_>) -> Result<ParameterDef, RecordError> {
    let (name, sql_type, table_type) = (r.text()?, r.sql_type()?, r.i32()?);
    let table_type = (table_type != 0).then_some(ObjectId(table_type));
    Ok(ParameterDef { name, sql_type, table_type, output: r.flag()?, has_default: r.flag()?, read_only: r.flag()? })
}

fn write_flags(w: &mut Writer, flags: &ModuleFlags) {
    w.flag(flags.quoted_identifier).flag(flags.ansi_nulls).flag(flags.encrypted).flag(flags.schema_bound);
    w.flag(flags.recompiled).flag(flags.null_on_null_input).flag(flags.check_option);
}

fn read_flags(r: &mut Reader<'_>) -> Result<ModuleFlags, RecordError> {
    Ok(ModuleFlags {
        quoted_identifier: r.flag()?,
        ansi_nulls: r.flag()?,
        encrypted: r.flag()?,
        schema_bound: r.flag()?,
        recompiled: r.flag()?,
        null_on_null_input: r.flag()?,
        check_option: r.flag()?,
    })
}

/// Format of an object's record: 1 had neither computed columns nor an order of triggers.
const OBJECT_VERSION: u8 = 2;

pub(crate) fn write_object(object: &ObjectDef) -> Vec<u8> {
    let tag = KINDS.iter().find(|(kind, _)| *kind == object.kind).expect("every kind has a tag").1;
    let mut w = Writer::new(OBJECT_VERSION);
    w.i32(object.id.0).i32(object.schema.0).text(&object.name).u8(tag).i32(object.parent.map_or(0, |id| id.0));
    w.text(&object.definition).i64(object.created).i64(object.modified);
    write_flags(&mut w, &object.flags);
    w.count(object.columns.len());
    object.columns.iter().for_each(|column| write_column(&mut w, column));
    w.count(object.parameters.len());
    object.parameters.iter().for_each(|parameter| write_parameter(&mut w, parameter));
    w.flag(object.trigger.is_some());
    if let Some(t) = object.trigger {
        w.flag(t.instead_of).flag(t.insert).flag(t.update).flag(t.delete).flag(t.disabled).u8(t.order);
    }
    w.flag(object.sequence.is_some());
    if let Some(s) = object.sequence {
        w.sql_type(&s.sql_type).i64(s.start).i64(s.increment).i64(s.minimum).i64(s.maximum).flag(s.cycle);
        w.i32(s.cache.unwrap_or(-1));
    }
    w.finish()
}

fn read_sequence(r: &mut Reader<'_>) -> Result<SequenceDef, RecordError> {
    let sql_type = r.sql_type()?;
    let (start, increment, minimum, maximum, cycle, cache) = (r.i64()?, r.i64()?, r.i64()?, r.i64()?, r.flag()?, r.i32()?);
    Ok(SequenceDef { sql_type, start, increment, minimum, maximum, cycle, cache: (cache >= 0).then_some(cache) })
}

pub(crate) fn read_object(record: &[u8], schemas: &BTreeMap<i32, SchemaDef>) -> Result<ObjectDef, RecordError> {
    let mut r = Reader::of_versions(record, 1, OBJECT_VERSION)?;
    let (id, schema, name, tag, parent) = (ObjectId(r.i32()?), SchemaId(r.i32()?), r.text()?, r.u8()?, r.i32()?);
    let kind = KINDS.iter().find(|(_, known)| *known == tag).ok_or_else(|| RecordError(format!("object of tag {tag}")))?.0;
    let (definition, created, modified) = (r.text()?, r.i64()?, r.i64()?);
    let flags = read_flags(&mut r)?;
    let extended = r.version() > 1;
    let columns = r.list(|r| read_column(r, extended))?;
    let parameters = r.list(read_parameter)?;
    let trigger = match r.flag()? {
        false => None,
        true => Some(TriggerDef {
            instead_of: r.flag()?,
            insert: r.flag()?,
            update: r.flag()?,
            delete: r.flag()?,
            disabled: r.flag()?,
            order: if extended { r.u8()? } else { 0 },
        }),
    };
    let sequence = if r.flag()? { Some(read_sequence(&mut r)?) } else { None };
    r.finish()?;
    let schema_name = schemas.get(&schema.0).ok_or_else(|| RecordError(format!("object {} is of unknown schema {}", id.0, schema.0)))?;
    Ok(ObjectDef {
        id,
        schema,
        schema_name: schema_name.name.clone(),
        name,
        kind,
        parent: (parent != 0).then_some(ObjectId(parent)),
        definition,
        flags,
        columns,
        parameters,
        trigger,
        sequence,
        created,
        modified,
        parsed: Arc::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back() {
        let sequence =
            SequenceDef { sql_type: SqlType::BigInt, start: 5, increment: -1, minimum: -9, maximum: 9, cycle: true, cache: None };
        let object = ObjectDef {
            id: ObjectId(77),
            schema: SchemaId(1),
            schema_name: "dbo".into(),
            name: "p".into(),
            kind: ObjectKind::Trigger,
            parent: Some(ObjectId(5)),
            definition: "CREATE TRIGGER p".into(),
            flags: ModuleFlags { quoted_identifier: true, check_option: true, ..ModuleFlags::default() },
            columns: Vec::new(),
            parameters: vec![ParameterDef {
                name: "@a".into(),
                sql_type: SqlType::Int,
                table_type: Some(ObjectId(9)),
                output: true,
                has_default: false,
                read_only: true,
            }],
            trigger: Some(TriggerDef { instead_of: true, insert: false, update: true, delete: false, disabled: true, order: 0x12 }),
            sequence: Some(sequence),
            created: 1,
            modified: 2,
            parsed: Arc::default(),
        };
        let schemas = BTreeMap::from([(1, SchemaDef { id: SchemaId(1), name: "dbo".into(), owner: 1 })]);
        let record = write_object(&object);
        let back = read_object(&record, &schemas).expect("reads what was written");
        assert_eq!(format!("{back:?}"), format!("{object:?}"));
        for cut in 0..record.len() {
            assert!(read_object(&record[..cut], &schemas).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn every_kind_has_its_tag() {
        for (at, (kind, tag)) in KINDS.iter().enumerate() {
            assert_eq!(usize::from(*tag), at + 1);
            assert_eq!(kind.code().0.len(), 2);
        }
    }
}
