//! Decides whether the answer at a step depends only on the step's time and on samples up to it.
//! Such a step has the same answer in every range query of the same step width, wherever the range
//! begins and ends.
//!
//! Not stepwise are: `@`, `start()`, `end()`, `range()` and `step()`, which see the whole range;
//! negative offsets and `smoothed`, which look ahead; `limitk`, `limit_ratio`, `info` and sorting;
//! and all operations that may make two series equal, because a range that contains both fails, but
//! not a range that contains only one. After `or`, operations that depend on the order of series
//! (ties, rounding of sums) are not stepwise, because a series may come from either side.

use super::order::is_of_one_name;
use super::types::{FoldPlan, Kind, Leaf, Names, Node};
use crate::functions::Dropped;
use crate::syntax::{
    AggregateOp, BinaryOp, DurationExpr, DurationExprKind, DurationValue, Expr, ExprKind,
    RangeBounds, TimeShift,
};

const OF_RANGE: [&str; 4] = ["end", "range", "start", "step"];

/// Returns whether no part of an expression refers to the query's range or to a fixed time.
pub(super) fn names_no_range(expr: &Expr) -> bool {
    let is_free = match &expr.kind {
        ExprKind::Vector(selector) => is_moving(&selector.shift),
        ExprKind::Matrix(matrix) => is_moving(&matrix.selector.shift) && !has_range(&matrix.range),
        ExprKind::Subquery(subquery) => {
            is_moving(&subquery.shift)
                && !has_range(&subquery.range)
                && !subquery.step.as_ref().is_some_and(has_range)
        }
        ExprKind::Call(call) => !OF_RANGE.contains(&call.function.name),
        _ => true,
    };
    is_free && expr.children().into_iter().all(names_no_range)
}

fn is_moving(shift: &TimeShift) -> bool {
    shift.at.is_none() && !shift.offset.as_ref().is_some_and(has_range)
}

fn has_range(duration: &DurationValue) -> bool {
    fn names_range(expr: &DurationExpr) -> bool {
        match &expr.kind {
            // Ranges that are compared have the same step, so a duration may use `step()`.
            DurationExprKind::Number(_) | DurationExprKind::Step => false,
            DurationExprKind::Range => true,
            DurationExprKind::Unary(_, inner) => names_range(inner),
            DurationExprKind::Binary(_, left, right) => names_range(left) || names_range(right),
        }
    }
    match duration {
        DurationValue::Ms(_) => false,
        DurationValue::Expr(expr) => names_range(expr),
    }
}

/// Returns whether all nodes treat each step on its own and look back only.
pub(super) fn look_back(nodes: &[Node], leaves: &[Leaf]) -> bool {
    let has_known_names = |id: usize| {
        let inputs = nodes.iter().filter(|node| node.parent.is_some_and(|(to, _)| to == id));
        let mut inputs = inputs.peekable();
        inputs.peek().is_some() && inputs.all(|node| node.names != Names::Any)
    };
    let is_of_one_name = |fold: usize| {
        let mut scans = leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Scan(scan) if scan.consumers.contains(&fold) => Some(scan),
            _ => None,
        });
        scans.next().is_some_and(is_of_one_name)
    };
    let is_of_or = are_of_or(nodes);
    nodes.iter().enumerate().all(|(id, node)| match &node.kind {
        Kind::Fold(fold) => {
            // Series of several names could become equal in a long range, but not in a short range.
            looks_back(fold) && (fold.dropped == Dropped::Nothing || is_of_one_name(id))
        }
        Kind::Subquery(fold, _) => {
            looks_back(fold) && (fold.dropped == Dropped::Nothing || has_known_names(id))
        }
        Kind::Call(entry, _) => entry.dropped == Dropped::Nothing || has_known_names(id),
        Kind::Negate | Kind::TimestampOfValues | Kind::WithoutName | Kind::VectorScalar(_) => {
            has_known_names(id)
        }
        Kind::Aggregate(plan) => match plan.op {
            AggregateOp::Limitk | AggregateOp::LimitRatio => false,
            // Ties and rounding errors depend on the order of the series.
            AggregateOp::Topk
            | AggregateOp::Bottomk
            | AggregateOp::Stddev
            | AggregateOp::Stdvar => !is_of_or[id],
            _ => true,
        },
        Kind::LabelReplace(_)
        | Kind::LabelJoin { .. }
        | Kind::Sort(_)
        | Kind::Info(_)
        | Kind::Cleanup => false,
        _ => true,
    })
}

/// Returns for each node whether the order of its series depends on `or`.
fn are_of_or(nodes: &[Node]) -> Vec<bool> {
    let mut are = vec![false; nodes.len()];
    // The inputs of a node come before the node, so one pass suffices.
    for (id, node) in nodes.iter().enumerate() {
        let orders_anew = match &node.kind {
            Kind::Aggregate(plan) => !matches!(plan.op, AggregateOp::Topk | AggregateOp::Bottomk),
            Kind::CountValues(..) | Kind::Buckets(_) => true,
            _ => false,
        };
        let gives = are[id] && !orders_anew || matches!(node.kind, Kind::Set(BinaryOp::Or, _));
        if let Some((parent, _)) = node.parent.filter(|_| gives) {
            are[parent] = true;
        }
    }
    are
}

fn looks_back(fold: &FoldPlan) -> bool {
    fold.at_ms.is_none()
        && fold.offset_ms >= 0
        && fold.margin_ms.1 <= 0
        && fold.bounds != RangeBounds::Smoothed
}
