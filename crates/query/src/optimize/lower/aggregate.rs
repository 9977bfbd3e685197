//! Aggregates and DISTINCT: over sorted input if it comes sorted, by hashing otherwise.

use super::{Lowered, Lowerer, Want};
use crate::algebra::{BoundAggregate, BoundExpr, ColumnRef, Rel};
use crate::optimize::cost;
use crate::phys::NodeKind;
use thawdb_types::SqlError;

/// Whether equal values of `keys` come together in rows of this order.
fn grouped(below: &Lowered, keys: &[ColumnRef]) -> bool {
    let open: Vec<&ColumnRef> = keys.iter().filter(|k| !below.constants.contains(k)).collect();
    let leading: Vec<&ColumnRef> =
        below.order.iter().map(|(c, _)| c).filter(|c| !below.constants.contains(c)).take(open.len()).collect();
    leading.len() == open.len() && open.iter().all(|k| leading.contains(k))
}

impl Lowerer<'_, '_> {
    pub(super) fn aggregate(
        &mut self,
        input: &Rel,
        keys: &[(ColumnRef, BoundExpr)],
        aggregates: &[(ColumnRef, BoundAggregate)],
        rel: &Rel,
    ) -> Result<Lowered, SqlError> {
        let plain: Option<Vec<ColumnRef>> = keys.iter().map(|(_, e)| e.as_column()).collect();
        // STRING_AGG WITHIN GROUP takes its rows in that order: a sort below, groups first.
        let within = aggregates.iter().map(|(_, a)| &a.order).find(|o| !o.is_empty());
        let below = match within {
            Some(order) => {
                let group = keys.iter().map(|(_, e)| crate::algebra::BoundSortKey { expr: e.clone(), descending: false });
                let sort: Vec<_> = group.chain(order.iter().cloned()).collect();
                self.sort(input, &sort, None)?
            }
            None => {
                let order = match &plain {
                    Some(plain) if self.cx.rewrite => plain.iter().map(|c| (*c, false)).collect(),
                    _ => Vec::new(),
                };
                let unordered = self.lower(input, &Want::default())?;
                let ordered = if order.is_empty() { None } else { Some(self.lower(input, &Want { order, goal: None })?) };
                match ordered {
                    // An order is worth what hashing would have cost.
                    Some(ordered)
                        if plain.as_ref().is_some_and(|p| grouped(&ordered, p))
                            && ordered.cost <= unordered.cost + unordered.node.rows_estimate * cost::BUILD =>
                    {
                        ordered
                    }
                    _ => unordered,
                }
            }
        };
        let mut lowered_keys = Vec::with_capacity(keys.len());
        for (_, key) in keys {
            lowered_keys.push(self.expr(key, &below.columns)?);
        }
        let mut lowered_aggregates = Vec::with_capacity(aggregates.len());
        for (_, aggregate) in aggregates {
            lowered_aggregates.push(self.lower_aggregate(aggregate, &below.columns)?);
        }
        let stream = keys.is_empty() || within.is_some() || plain.as_ref().is_some_and(|p| self.cx.rewrite && grouped(&below, p));
        let rows = self.estimator.rows(rel, self.cx);
        let cost = below.cost + below.node.rows_estimate * if stream { 0.3 } else { cost::BUILD };
        let columns = rel.columns();
        let input = Box::new(below.node);
        let kind = if stream {
            NodeKind::StreamAggregate { input, keys: lowered_keys, aggregates: lowered_aggregates }
        } else {
            NodeKind::HashAggregate { input, keys: lowered_keys, aggregates: lowered_aggregates }
        };
        let mut lowered = self.over(kind, columns, rows, cost);
        if stream {
            let renamed = |c: &ColumnRef| keys.iter().find(|(_, e)| e.as_column() == Some(*c)).map(|(id, _)| *id);
            lowered.order = below.order.iter().map_while(|(c, d)| renamed(c).map(|id| (id, *d))).collect();
            lowered.constants = below.constants.iter().filter_map(renamed).collect();
        }
        Ok(lowered)
    }

    pub(super) fn distinct(&mut self, input: &Rel, rel: &Rel) -> Result<Lowered, SqlError> {
        let columns = input.columns();
        let below = self.lower(input, &Want::default())?;
        let below = self.exactly(below, &columns)?;
        let rows = self.estimator.rows(rel, self.cx);
        let cost = below.cost + below.node.rows_estimate * cost::BUILD;
        Ok(self.over(NodeKind::Distinct { input: Box::new(below.node) }, columns, rows, cost))
    }
}
