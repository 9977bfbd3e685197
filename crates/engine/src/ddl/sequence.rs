//! CREATE and ALTER SEQUENCE; what a sequence has come to.
//!
//! A sequence's definition is in the catalog, its next value among the counters of its database, where identity values
//! are: handed out once, whatever becomes of the transaction.
//!
//! Messages: 11702 (type), 11703 (start out of range), 11700 (increment 0), 11705 (minimum not below maximum), 11728 (used
//! up), 2714, 208, 15151.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::columns::sql_type;
use crate::ddl::names::{database_of, find_object, schema_for_new, shown};
use crate::ddl::table::check_free;
use crate::ddl::{catalog_error, change_catalog, plain_error};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{ModuleFlags, ObjectDef, ObjectId, ObjectKind, SequenceDef};
use thawdb_tsql::ast::{Expr, Sequence, SequenceCache};
use thawdb_types::{Collation, SqlError, SqlType, TypeUse};

/// The values a type has room for; `None` for types no sequence is made of.
fn range_of(sql_type: &SqlType) -> Option<(i64, i64)> {
    Some(match sql_type {
        SqlType::TinyInt => (0, i64::from(u8::MAX)),
        SqlType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        SqlType::BigInt => (i64::MIN, i64::MAX),
        SqlType::Decimal { precision, scale: 0, .. } if *precision <= 18 => {
            let most = 10_i64.pow(u32::from(*precision)) - 1;
            (-most, most)
        }
        _ => return None,
    })
}

/// CREATE SEQUENCE.
pub(crate) fn create_sequence(interpreter: &mut Interpreter<'_, '_>, node: &Sequence) -> Result<(), Failure> {
    let sql_type = match &node.data_type {
        None => SqlType::BigInt,
        Some(data_type) => sql_type(data_type, TypeUse::Cast, Collation::DEFAULT)?,
    };
    let shown_name = shown(&node.name);
    let (low, high) = range_of(&sql_type).ok_or_else(|| message(11702, &[&shown_name]))?;
    let empty = SequenceDef { sql_type, start: 0, increment: 1, minimum: low, maximum: high, cycle: false, cache: Some(0) };
    let mut sequence = changed(interpreter, node, empty, (low, high))?;
    let default = if sequence.increment > 0 { sequence.minimum } else { sequence.maximum };
    sequence.start = number(interpreter, node.start.as_ref())?.unwrap_or(default);
    check(&sequence, &shown_name)?;
    if !(sequence.minimum..=sequence.maximum).contains(&sequence.start) {
        return Err(message(11703, &[&shown_name]).into());
    }
    interpreter.transactional(|this| {
        let open = database_of(this.session, &node.name)?;
        let now = this.session.engine.now_datetime();
        let schema = schema_for_new(this.session, &node.name);
        change_catalog(this.session, &open, |catalog, part| {
            let schema = catalog.schema(&schema).ok_or_else(|| message(2760, &[&schema]))?.clone();
            check_free(catalog, &schema.name, &node.name.name.text, &node.name.name.text)?;
            let object = ObjectDef {
                id: catalog.take_object_id(),
                schema: schema.id,
                schema_name: schema.name,
                name: node.name.name.text.clone(),
                kind: ObjectKind::Sequence,
                parent: None,
                definition: String::new(),
                flags: ModuleFlags::default(),
                columns: Vec::new(),
                parameters: Vec::new(),
                trigger: None,
                sequence: Some(sequence),
                created: now,
                modified: now,
                parsed: Arc::default(),
            };
            catalog.put_object(&mut part.txn, object).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// ALTER SEQUENCE.
pub(crate) fn alter_sequence(interpreter: &mut Interpreter<'_, '_>, node: &Sequence) -> Result<(), Failure> {
    let open = database_of(interpreter.session, &node.name)?;
    let missing = || message(15151, &[&"alter", &"sequence object", &shown(&node.name)]);
    let catalog = interpreter.session.definitions(open.id).ok_or_else(missing)?;
    let found = find_object(interpreter.session, &catalog, &node.name).filter(|object| object.kind == ObjectKind::Sequence);
    let mut object = (*found.ok_or_else(missing)?).clone();
    let old = object.sequence.expect("a sequence has its numbers");
    let range = range_of(&old.sql_type).expect("checked when it was made");
    let mut sequence = changed(interpreter, node, old, range)?;
    check(&sequence, &shown(&node.name))?;
    let restart = match &node.restart {
        None => None,
        Some(value) => Some(number(interpreter, value.as_ref())?.unwrap_or(old.start)),
    };
    if let Some(restart) = restart {
        if !(sequence.minimum..=sequence.maximum).contains(&restart) {
            return Err(message(11703, &[&shown(&node.name)]).into());
        }
        sequence.start = restart;
    }
    object.sequence = Some(sequence);
    object.modified = interpreter.session.engine.now_datetime();
    interpreter.transactional(|this| {
        change_catalog(this.session, &open, |catalog, part| {
            catalog.put_object(&mut part.txn, object.clone()).map_err(catalog_error(&open))
        })?;
        if restart.is_some() {
            open.counters.reset_identity(&open, object.id, None).map_err(plain_error(&open))?;
        }
        Ok(())
    })
}

fn number(interpreter: &mut Interpreter<'_, '_>, value: Option<&Expr>) -> Result<Option<i64>, Failure> {
    value.map_or(Ok(None), |value| interpreter.int_value(value))
}

/// `old` with what the statement says of it.
fn changed(interpreter: &mut Interpreter<'_, '_>, node: &Sequence, old: SequenceDef, range: (i64, i64)) -> Result<SequenceDef, Failure> {
    let mut new = old;
    new.increment = number(interpreter, node.increment.as_ref())?.unwrap_or(old.increment);
    if let Some(minimum) = &node.minimum {
        new.minimum = number(interpreter, minimum.as_ref())?.unwrap_or(range.0);
    }
    if let Some(maximum) = &node.maximum {
        new.maximum = number(interpreter, maximum.as_ref())?.unwrap_or(range.1);
    }
    new.cycle = node.cycle.unwrap_or(old.cycle);
    new.cache = match &node.cache {
        None => old.cache,
        Some(SequenceCache::NoCache) => None,
        Some(SequenceCache::Default) => Some(0),
        Some(SequenceCache::Size(size)) => {
            let size = interpreter.int_value(size)?.and_then(|size| i32::try_from(size).ok());
            Some(size.filter(|size| *size > 0).ok_or_else(|| unsupported_option("CACHE"))?)
        }
    };
    Ok(new)
}

fn check(sequence: &SequenceDef, name: &str) -> Result<(), SqlError> {
    if sequence.increment == 0 {
        return Err(message(11700, &[&name]));
    }
    if sequence.minimum >= sequence.maximum {
        return Err(message(11705, &[&name]));
    }
    Ok(())
}

/// The value a sequence has come to, and whether it has no more.
pub(crate) fn current(open: &OpenDatabase, id: ObjectId, sequence: &SequenceDef) -> (i64, bool) {
    match open.counters.sequence_state(id) {
        (None, _) => (sequence.start, false),
        (Some(last), next) => {
            let beyond = next.is_none_or(|next| !(sequence.minimum..=sequence.maximum).contains(&next));
            (last, beyond && !sequence.cycle)
        }
    }
}

/// The next value. 11728 when there is none.
pub(crate) fn next(open: &OpenDatabase, object: &ObjectDef) -> Result<i64, SqlError> {
    let sequence = object.sequence.expect("a sequence has its numbers");
    let next = open.counters.next_in_sequence(open, object.id, &sequence).map_err(plain_error(open))?;
    next.ok_or_else(|| message(11728, &[&format!("{}.{}", object.schema_name, object.name)]))
}
