//! Methods of hierarchyid, over the bytes of its values ([`thawdb_types::hierarchy`]). A NULL among the arguments gives NULL, but
//! for the children of GetDescendant.

use super::call::Call;
use thawdb_types::error::message;
use thawdb_types::hierarchy::{Path, decode, encode, parse};
use thawdb_types::{Scalar, SqlError};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// The path of an argument, `None` for NULL.
fn path(call: &Call<'_>, at: usize) -> Result<Option<Path>> {
    match call.value(at) {
        Scalar::Binary(bytes) => decode(bytes).map(Some),
        _ => Ok(None),
    }
}

/// The path of an argument; a NULL ends the function with NULL.
macro_rules! path_or_null {
    ($call:expr, $at:expr) => {
        match path($call, $at)? {
            Some(path) => path,
            None => return Ok(Scalar::Null),
        }
    };
}

fn bytes(path: Option<&Path>) -> Scalar {
    path.map_or(Scalar::Null, |path| Scalar::Binary(encode(path)))
}

pub(super) fn ancestor(call: &Call<'_>) -> Result {
    let path = path_or_null!(call, 0);
    let Some(levels) = call.integer(1) else { return Ok(Scalar::Null) };
    let levels = usize::try_from(levels).map_err(|_| {
        let text = "24011: SqlHierarchyId.GetAncestor failed because 'n' was negative.";
        message(6522, &[&"hierarchyid", &format!("Microsoft.SqlServer.Types.HierarchyIdException: {text}")])
    })?;
    Ok(bytes(path.ancestor(levels).as_ref()))
}

pub(super) fn descendant(call: &Call<'_>) -> Result {
    let parent = path_or_null!(call, 0);
    let (first, second) = (path(call, 1)?, path(call, 2)?);
    parent.descendant(first.as_ref(), second.as_ref()).map(|child| bytes(Some(&child)))
}

pub(super) fn level(call: &Call<'_>) -> Result {
    Ok(Scalar::SmallInt(path_or_null!(call, 0).level() as i16))
}

pub(super) fn reparent(call: &Call<'_>) -> Result {
    let (node, old, new) = (path_or_null!(call, 0), path_or_null!(call, 1), path_or_null!(call, 2));
    match node.reparented(&old, &new) {
        Some(moved) => Ok(bytes(Some(&moved))),
        None => {
            let text = format!(
                "24009: SqlHierarchyId.GetReparentedValue failed because 'oldRoot' was not an ancestor node of 'this'.  'oldRoot' was '{old}', and 'this' was '{node}'."
            );
            Err(message(6522, &[&"hierarchyid", &format!("Microsoft.SqlServer.Types.HierarchyIdException: {text}")]))
        }
    }
}

pub(super) fn below(call: &Call<'_>) -> Result {
    let (node, other) = (path_or_null!(call, 0), path_or_null!(call, 1));
    Ok(Scalar::Bit(node.is_descendant_of(&other)))
}

pub(super) fn text(call: &Call<'_>) -> Result {
    Ok(Scalar::Text(path_or_null!(call, 0).to_string()))
}

pub(super) fn root(_call: &Call<'_>) -> Result {
    Ok(bytes(Some(&Path::default())))
}

pub(super) fn parsed(call: &Call<'_>) -> Result {
    match call.text(0) {
        Some(text) => parse(text).map(|path| bytes(Some(&path))),
        None => Ok(Scalar::Null),
    }
}
