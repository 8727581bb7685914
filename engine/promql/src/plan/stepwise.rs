//! Whether the answer at a step depends on nothing but the step's time and samples that are not
//! newer. Then a range of the same step gives the same there, wherever it begins and ends.
//!
//! What does not: `@`, `start()`, `end()`, `range()` and `step()`, which see the whole range;
//! negative offsets and `smoothed`, which look ahead; `limitk`, `limit_ratio`, `info` and sorting;
//! and all that may make series equal that are different series at different steps. That is an
//! error in a range that holds both, and none in a shorter one. Nor do ties among the series of
//! `or`, nor sums of them that depend on their order: a series may come from either side.

use super::order::is_of_one_name;
use super::types::{FoldPlan, Kind, Leaf, Names, Node};
use crate::functions::Dropped;
use crate::syntax::{
    AggregateOp, BinaryOp, DurationExpr, DurationExprKind, DurationValue, Expr, ExprKind,
    RangeBounds, TimeShift,
};

/// Functions of the query's range.
const OF_RANGE: [&str; 4] = ["end", "range", "start", "step"];

/// Whether no part of an expression names the query's range, nor a fixed time.
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

/// Whether all nodes take each step for itself and look back only.
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

/// Of each node whether series of `or` come to it in the order in which `or` has them.
fn are_of_or(nodes: &[Node]) -> Vec<bool> {
    let mut are = vec![false; nodes.len()];
    // Inputs come before what takes them.
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
