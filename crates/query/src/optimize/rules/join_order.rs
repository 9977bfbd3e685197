//! The order of inner joins.
//!
//! Before: a tree of inner joins as written. After: the tree with the fewest rows in between, found by dynamic programming
//! over subsets up to [`EXACT_MAX`] relations, greedily beyond.
//!
//! Sound because inner join is associative and commutative and each predicate is applied at the first join that has all
//! its columns. Equality of columns of one type is transitive, so of the columns that predicates make equal any two are
//! compared where their leaves meet first, once for each leaf that comes to them. Outer joins, semi joins and Apply are leaves, as are joins with a hint. The cost is the sum of
//! intermediate sizes (C_out: Cluet and Moerkotte, ICDT 1995); methods are chosen later, by lowering.
//! Subsets are bit masks; ties go to the order written, so plans are stable.

use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Get, Rel};
use crate::bind::table_ref::join;
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use crate::optimize::cardinality::Estimator;
use crate::phys::JoinKind;

/// Above this, 3^n splits take longer than they save.
const EXACT_MAX: usize = 10;

/// Applies the rule everywhere.
pub(crate) fn join_order(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    let estimator = Estimator::of(&rel, cx);
    descend(rel, &estimator, cx)
}

fn descend(rel: Rel, estimator: &Estimator, cx: &RuleCx<'_>) -> Rel {
    if !is_free_join(&rel) {
        let mut rel = rel;
        for input in rel.inputs_mut() {
            let inner = std::mem::replace(input, Rel::OneRow);
            *input = descend(inner, estimator, cx);
        }
        return rel;
    }
    let (mut leaves, mut predicates) = (Vec::new(), Vec::new());
    flatten(rel, &mut leaves, &mut predicates);
    let leaves: Vec<Rel> = leaves.into_iter().map(|l| descend(l, estimator, cx)).collect();
    if leaves.len() < 3 || leaves.len() > 60 {
        return in_order(leaves, predicates);
    }
    let graph = Graph::new(&leaves, predicates, estimator, cx);
    let order = if leaves.len() <= EXACT_MAX { graph.exact() } else { graph.greedy() };
    graph.build(&order, &mut leaves.into_iter().map(Some).collect())
}

fn is_free_join(rel: &Rel) -> bool {
    matches!(rel, Rel::Join { kind: JoinKind::Inner, hint: None, .. })
}

fn flatten(rel: Rel, leaves: &mut Vec<Rel>, predicates: &mut Vec<BoundExpr>) {
    match rel {
        Rel::Join { left, right, kind: JoinKind::Inner, predicates: own, hint: None } => {
            flatten(*left, leaves, predicates);
            flatten(*right, leaves, predicates);
            predicates.extend(own);
        }
        // What only leaves columns out above a join is in nobody's way: pruning leaves them out anew.
        Rel::Project { input, exprs } if is_free_join(&input) && exprs.iter().all(|(c, e)| e.as_column() == Some(*c)) => {
            flatten(*input, leaves, predicates);
        }
        other => leaves.push(other),
    }
}

fn in_order(leaves: Vec<Rel>, predicates: Vec<BoundExpr>) -> Rel {
    let last = leaves.len().saturating_sub(1);
    let mut rest = Some(predicates);
    let mut leaves = leaves.into_iter().enumerate();
    let mut rel = leaves.next().map_or(Rel::OneRow, |(_, r)| r);
    for (at, leaf) in leaves {
        let own = if at == last { rest.take().unwrap_or_default() } else { Vec::new() };
        rel = join(rel, leaf, JoinKind::Inner, own, None);
    }
    rel
}

/// A join tree over leaves by number.
#[derive(Clone)]
enum Order {
    Leaf(usize),
    Join(Box<Order>, Box<Order>),
}

struct Edge {
    predicate: BoundExpr,
    /// Leaves whose columns it uses.
    mask: u64,
    selectivity: f64,
}

/// Columns that the predicates make equal: any two of them may be compared wherever two of their leaves meet.
struct Class {
    members: Vec<Member>,
}

struct Member {
    leaf: usize,
    column: BoundExpr,
    distinct: f64,
}

impl Class {
    /// The member of a leaf of `mask`, the one with most values.
    fn of_mask(&self, mask: u64) -> Option<&Member> {
        let within = self.members.iter().filter(|member| mask & (1 << member.leaf) != 0);
        within.max_by(|a, b| a.distinct.total_cmp(&b.distinct))
    }

    /// The part of all combinations of the leaves of `mask` in which its columns are equal: each leaf but that with the
    /// fewest values divides by its own.
    fn selectivity(&self, mask: u64) -> f64 {
        let mut leaves = 0;
        let (mut product, mut fewest) = (1.0, f64::INFINITY);
        for member in &self.members {
            let bit = 1u64 << member.leaf;
            if mask & bit != 0 && leaves & bit == 0 {
                leaves |= bit;
                product *= member.distinct;
                fewest = fewest.min(member.distinct);
            }
        }
        if leaves.count_ones() > 1 { fewest / product } else { 1.0 }
    }
}

/// A leaf's unique key of several columns is equal to columns of another leaf: the values of these belong together, and
/// the product of the columns' selectivities is too small by this factor.
struct WholeKey {
    leaf: usize,
    other: usize,
    factor: f64,
}

struct Graph {
    sizes: Vec<f64>,
    edges: Vec<Edge>,
    classes: Vec<Class>,
    keys: Vec<WholeKey>,
}

impl Graph {
    fn new(leaves: &[Rel], predicates: Vec<BoundExpr>, estimator: &Estimator, cx: &RuleCx<'_>) -> Self {
        let columns: Vec<_> = leaves.iter().map(Rel::columns).collect();
        let leaf_of = |column: ColumnRef| columns.iter().position(|own| own.contains(&column));
        let mask_of = |p: &BoundExpr| {
            let free = p.free_columns();
            let uses = |own: &Vec<_>| own.iter().any(|c| free.contains(c));
            columns.iter().enumerate().filter(|(_, own)| uses(own)).fold(0, |mask, (i, _)| mask | 1u64 << i)
        };
        let (mut edges, mut classes) = (Vec::new(), Vec::new());
        for predicate in predicates {
            let Some((left, right)) = equal_columns(&predicate, &leaf_of, estimator) else {
                edges.push(Edge { mask: mask_of(&predicate), selectivity: estimator.selectivity(&predicate), predicate });
                continue;
            };
            join_classes(&mut classes, left, right);
        }
        let mut graph = Self { sizes: leaves.iter().map(|l| estimator.rows(l, cx)).collect(), edges, classes, keys: Vec::new() };
        graph.keys = leaves.iter().enumerate().flat_map(|(at, leaf)| graph.whole_keys(at, leaf, estimator, cx)).collect();
        graph
    }

    /// The leaves that a unique key of several columns of leaf `at` is equal to, whole.
    fn whole_keys(&self, at: usize, leaf: &Rel, estimator: &Estimator, cx: &RuleCx<'_>) -> Vec<WholeKey> {
        let Some(get) = table_of(leaf) else { return Vec::new() };
        let rows = estimator.table_rows(get, cx);
        let mut found: Vec<WholeKey> = Vec::new();
        for index in get.table.indexes.iter().filter(|i| i.unique && i.filter.is_none() && i.keys.len() > 1) {
            let id_of = |position: usize| get.columns.iter().find(|(i, _)| *i == position).map(|(_, c)| *c);
            let class_of = |column: ColumnRef| {
                let is_own = |member: &Member| member.leaf == at && member.column.as_column() == Some(column);
                self.classes.iter().find(|class| class.members.iter().any(is_own))
            };
            let Some(classes) = index.keys.iter().map(|k| id_of(k.column_index).and_then(class_of)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            for other in (0..self.sizes.len()).filter(|other| *other != at) {
                let both = 1u64 << at | 1u64 << other;
                let product: f64 = classes.iter().map(|class| class.selectivity(both)).product();
                let is_whole = classes.iter().all(|class| class.of_mask(1 << other).is_some());
                let factor = 1.0 / (rows * product);
                if is_whole && factor > 1.0 && !found.iter().any(|key| key.other == other) {
                    found.push(WholeKey { leaf: at, other, factor });
                }
            }
        }
        found
    }

    fn rows(&self, mask: u64) -> f64 {
        let base: f64 = self.sizes.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, s)| *s).product();
        let kept: f64 = self.edges.iter().filter(|e| e.mask & !mask == 0 && e.mask.count_ones() > 1).map(|e| e.selectivity).product();
        let equal: f64 = self.classes.iter().map(|class| class.selectivity(mask)).product();
        // Each leaf's key once: what it is equal to elsewhere is equal to that already.
        let (mut whole, mut done) = (1.0, 0u64);
        for key in self.keys.iter().filter(|key| mask & (1 << key.leaf) != 0 && mask & (1 << key.other) != 0) {
            let pair = 1u64 << key.leaf | 1u64 << key.other;
            if done & (1 << key.leaf) == 0 && done & pair != pair {
                whole *= key.factor;
                done |= pair;
            }
        }
        (base * kept * equal * whole).max(1.0)
    }

    fn connected(&self, a: u64, b: u64) -> bool {
        self.edges.iter().any(|e| e.mask & a != 0 && e.mask & b != 0 && e.mask & !(a | b) == 0)
            || self.classes.iter().any(|class| class.of_mask(a).is_some() && class.of_mask(b).is_some())
    }

    fn exact(&self) -> Order {
        let count = self.sizes.len();
        let full = (1u64 << count) - 1;
        let mut best: Vec<Option<(f64, Order)>> = vec![None; 1 << count];
        for leaf in 0..count {
            best[1 << leaf] = Some((0.0, Order::Leaf(leaf)));
        }
        for mask in 1..=full {
            if mask.count_ones() < 2 {
                continue;
            }
            let rows = self.rows(mask);
            let mut found: Option<(f64, u64)> = None;
            // Connected splits first; a cross product only where nothing else is.
            for crossing in [false, true] {
                let mut left = (mask - 1) & mask;
                while left > 0 {
                    let right = mask & !left;
                    if left > right && (crossing || self.connected(left, right)) {
                        if let (Some((a, _)), Some((b, _))) = (&best[left as usize], &best[right as usize]) {
                            let cost = a + b + rows;
                            if found.is_none_or(|(least, _)| cost <= least) {
                                found = Some((cost, left));
                            }
                        }
                    }
                    left = (left - 1) & mask;
                }
                if found.is_some() {
                    break;
                }
            }
            if let Some((cost, left)) = found {
                let part = |m: u64| best[m as usize].as_ref().map(|(_, o)| o.clone()).unwrap_or(Order::Leaf(0));
                let order = self.larger_first(part(left), left, part(mask & !left), mask & !left);
                best[mask as usize] = Some((cost, order));
            }
        }
        best[full as usize].take().map_or(Order::Leaf(0), |(_, o)| o)
    }

    fn larger_first(&self, a: Order, a_mask: u64, b: Order, b_mask: u64) -> Order {
        let composite = |m: u64| m.count_ones() > 1;
        // A composite side goes left, so that loops can seek the single table on the right.
        if composite(b_mask) && !composite(a_mask)
            || (composite(a_mask) == composite(b_mask) && b_mask.trailing_zeros() < a_mask.trailing_zeros())
        {
            return Order::Join(Box::new(b), Box::new(a));
        }
        Order::Join(Box::new(a), Box::new(b))
    }

    fn greedy(&self) -> Order {
        let mut parts: Vec<(u64, Order)> = (0..self.sizes.len()).map(|i| (1u64 << i, Order::Leaf(i))).collect();
        while parts.len() > 1 {
            let mut choice: Option<(bool, f64, usize, usize)> = None;
            for i in 0..parts.len() {
                for j in i + 1..parts.len() {
                    let crossing = !self.connected(parts[i].0, parts[j].0);
                    let rows = self.rows(parts[i].0 | parts[j].0);
                    let better = choice.is_none_or(|(c, r, ..)| (crossing, rows) < (c, r));
                    if better {
                        choice = Some((crossing, rows, i, j));
                    }
                }
            }
            let Some((_, _, i, j)) = choice else { break };
            let (right_mask, right) = parts.remove(j);
            let (left_mask, left) = parts.remove(i);
            parts.push((left_mask | right_mask, self.larger_first(left, left_mask, right, right_mask)));
        }
        parts.pop().map_or(Order::Leaf(0), |(_, o)| o)
    }

    fn build(&self, order: &Order, leaves: &mut Vec<Option<Rel>>) -> Rel {
        let mut used = vec![false; self.edges.len()];
        let (rel, mask) = self.build_part(order, leaves, &mut used);
        let rest: Vec<BoundExpr> =
            self.edges.iter().zip(&used).filter(|(e, used)| !**used && e.mask & !mask == 0).map(|(e, _)| e.predicate.clone()).collect();
        rel.filter(rest)
    }

    fn build_part(&self, order: &Order, leaves: &mut Vec<Option<Rel>>, used: &mut [bool]) -> (Rel, u64) {
        match order {
            Order::Leaf(at) => {
                // Columns of one leaf that are equal to the same elsewhere are equal here.
                let own = |class: &Class| class.members.iter().filter(|m| m.leaf == *at).map(|m| m.column.clone()).collect::<Vec<_>>();
                let pairs = |columns: Vec<BoundExpr>| {
                    let (first, rest) = columns.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
                    rest.iter().filter_map(|c| Some(BoundExpr::compare(CompareOp::Equal, first?.clone(), c.clone()))).collect::<Vec<_>>()
                };
                let equal = self.classes.iter().flat_map(|class| pairs(own(class))).collect();
                (leaves[*at].take().unwrap_or(Rel::OneRow).filter(equal), 1 << at)
            }
            Order::Join(left, right) => {
                let (left, left_mask) = self.build_part(left, leaves, used);
                let (right, right_mask) = self.build_part(right, leaves, used);
                let mask = left_mask | right_mask;
                let mut own = Vec::new();
                for (edge, used) in self.edges.iter().zip(used.iter_mut()) {
                    if !*used && edge.mask & !mask == 0 && edge.mask != 0 {
                        *used = true;
                        own.push(edge.predicate.clone());
                    }
                }
                for class in &self.classes {
                    if let (Some(left), Some(right)) = (class.of_mask(left_mask), class.of_mask(right_mask)) {
                        own.push(BoundExpr::compare(CompareOp::Equal, left.column.clone(), right.column.clone()));
                    }
                }
                (join(left, right, JoinKind::Inner, own, None), mask)
            }
        }
    }
}

/// The two columns that a predicate makes equal, of different leaves and one type, and whose values are counted.
fn equal_columns(predicate: &BoundExpr, leaf_of: &dyn Fn(ColumnRef) -> Option<usize>, estimator: &Estimator) -> Option<(Member, Member)> {
    let BoundExprKind::Compare { op: CompareOp::Equal, left, right } = &predicate.kind else { return None };
    let member = |side: &BoundExpr| {
        let column = side.as_column()?;
        Some(Member { leaf: leaf_of(column)?, column: side.clone(), distinct: estimator.distinct(column)?.max(1.0) })
    };
    let (one, other) = (member(left)?, member(right)?);
    (one.leaf != other.leaf && left.sql_type == right.sql_type).then_some((one, other))
}

/// Puts two equal columns into one class, with all that either is equal to.
fn join_classes(classes: &mut Vec<Class>, one: Member, other: Member) {
    let mut joined = Class { members: Vec::new() };
    for member in [one, other] {
        let has = |class: &Class| class.members.iter().any(|known| known.column.as_column() == member.column.as_column());
        if has(&joined) {
            continue;
        }
        match classes.iter().position(has) {
            Some(at) => joined.members.extend(classes.remove(at).members),
            None => joined.members.push(member),
        }
    }
    classes.push(joined);
}

/// The table that a leaf reads, perhaps filtered.
fn table_of(leaf: &Rel) -> Option<&Get> {
    match leaf {
        Rel::Get(get) => Some(get),
        Rel::Filter { input, .. } => table_of(input),
        _ => None,
    }
}
