//! SET ROWCOUNT: the same plan, stopping after so many rows returned or changed.

use thawdb_query::expr::{Expr, ExprKind};
use thawdb_query::phys::{Node, NodeKind};
use thawdb_types::{Scalar, SqlType};

/// `node` stopping after `limit` rows: of its output, or of what it changes.
pub(crate) fn limited(node: &Node, limit: u64) -> Node {
    let mut limited = node.clone();
    match &mut limited.kind {
        NodeKind::Insert { input, .. }
        | NodeKind::Update { input, .. }
        | NodeKind::Delete { input, .. }
        | NodeKind::Merge { input, .. }
        | NodeKind::Instead { input, .. } => **input = cut(input, limit),
        _ => limited = cut(node, limit),
    }
    limited
}

fn cut(node: &Node, limit: u64) -> Node {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let count = Expr { kind: ExprKind::Literal(Scalar::BigInt(limit)), sql_type: SqlType::BigInt, nullable: false };
    Node {
        columns: node.columns.clone(),
        rows_estimate: node.rows_estimate.min(limit as f64),
        kind: NodeKind::Limit { input: Box::new(node.clone()), offset: None, limit: Some(count), percent: false },
    }
}
