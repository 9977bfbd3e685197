//! The order of inner joins.
//!
//! Before: a tree of inner joins as written. After: the tree with the fewest rows in between, found by dynamic programming
//! over subsets up to [`EXACT_MAX`] relations, greedily beyond.
//!
//! Sound because inner join is associative and commutative and each predicate is applied at the first join that has all
//! its columns. Outer joins, semi joins and Apply are leaves, as are joins with a hint. The cost is the sum of
//! intermediate sizes (C_out: Cluet and Moerkotte, ICDT 1995); methods are chosen later, by lowering.
//! Subsets are bit masks; ties go to the order written, so plans are stable.

use crate::algebra::{BoundExpr, Rel};
use crate::bind::table_ref::join;
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

struct Graph {
    sizes: Vec<f64>,
    edges: Vec<Edge>,
}

impl Graph {
    fn new(leaves: &[Rel], predicates: Vec<BoundExpr>, estimator: &Estimator, cx: &RuleCx<'_>) -> Self {
        let columns: Vec<_> = leaves.iter().map(Rel::columns).collect();
        let mask_of = |p: &BoundExpr| {
            let free = p.free_columns();
            let uses = |own: &Vec<_>| own.iter().any(|c| free.contains(c));
            columns.iter().enumerate().filter(|(_, own)| uses(own)).fold(0, |mask, (i, _)| mask | 1u64 << i)
        };
        let edges = predicates
            .into_iter()
            .map(|predicate| Edge { mask: mask_of(&predicate), selectivity: estimator.selectivity(&predicate), predicate })
            .collect();
        Self { sizes: leaves.iter().map(|l| estimator.rows(l, cx)).collect(), edges }
    }

    fn rows(&self, mask: u64) -> f64 {
        let base: f64 = self.sizes.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, s)| *s).product();
        let kept: f64 = self.edges.iter().filter(|e| e.mask & !mask == 0 && e.mask.count_ones() > 1).map(|e| e.selectivity).product();
        (base * kept).max(1.0)
    }

    fn connected(&self, a: u64, b: u64) -> bool {
        self.edges.iter().any(|e| e.mask & a != 0 && e.mask & b != 0 && e.mask & !(a | b) == 0)
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
            Order::Leaf(at) => (leaves[*at].take().unwrap_or(Rel::OneRow), 1 << at),
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
                (join(left, right, JoinKind::Inner, own, None), mask)
            }
        }
    }
}
