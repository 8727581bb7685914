//! Selectors: what is read of the store, and what is made of it.

use super::build::{Builder, Path, When};
use super::types::*;
use super::{PlanError, duration};
use crate::functions::Dropped;
use crate::source::Hints;
use crate::syntax::{
    At, Expr, ExprKind, MatchOp, Matcher, MatrixSelector, RangeBounds, Span, TimeShift, ValueType,
    VectorSelector,
};
use std::collections::HashMap;

use super::invariant::bare;

/// How many scans a selector is compared with, and most consumers of a scan: expressions of
/// thousands of selectors would take long to plan.
const SHARED_MAX: usize = 100;

/// How long a chunk is, roughly: 120 samples, one each 15 seconds.
const CHUNK_MS: i64 = 30 * 60_000;

/// Bytes of a path to a consumer beside its steps, roughly.
const PATH_BYTES: usize = 64;

impl Builder<'_> {
    /// An instant vector selector.
    pub(super) fn instant(
        &mut self,
        selector: &VectorSelector,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let kind = match selector.bounds {
            RangeBounds::Smoothed => FoldKind::Smoothed,
            _ => FoldKind::Value,
        };
        self.last(selector, kind, grid, span, span)
    }

    /// Something of the last sample of each series; `call` is the place of what takes it.
    pub(super) fn last(
        &mut self,
        selector: &VectorSelector,
        kind: FoldKind,
        grid: Grid,
        span: Span,
        call: Span,
    ) -> Result<NodeId, PlanError> {
        let when = self.when(&selector.shift)?;
        let lookback_ms = self.options.lookback_ms;
        let dropped = match kind {
            FoldKind::Timestamp | FoldKind::StartTimestamp if names_of(selector) != Names::Any => {
                Dropped::Metadata
            }
            _ => Dropped::Nothing,
        };
        let fold = FoldPlan {
            kind,
            at_ms: when.at_ms,
            offset_ms: when.offset_ms,
            range_ms: lookback_ms,
            margin_ms: match kind {
                FoldKind::Smoothed => (0, lookback_ms),
                _ => (0, 0),
            },
            bounds: selector.bounds,
            args: Vec::new(),
            arg_spans: vec![span],
            dropped,
            is_counted: self.subqueries == 0,
            counter_check: None,
        };
        self.scan(selector, fold, grid, (span, call), Vec::new())
    }

    /// The samples of a range, as the answer.
    pub(super) fn samples(
        &mut self,
        matrix: &MatrixSelector,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let fold = self.range(matrix, FoldKind::Samples, Dropped::Nothing, vec![span])?;
        self.scan(&matrix.selector, fold, grid, (span, span), Vec::new())
    }

    /// What is made of a range vector selector.
    pub(super) fn range(
        &self,
        matrix: &MatrixSelector,
        kind: FoldKind,
        dropped: Dropped,
        arg_spans: Vec<Span>,
    ) -> Result<FoldPlan, PlanError> {
        let when = self.when(&matrix.selector.shift)?;
        let range_ms = duration::positive(&matrix.range, self.options)?;
        let lookback_ms = self.options.lookback_ms;
        let margin_ms = match matrix.selector.bounds {
            RangeBounds::Samples => (0, 0),
            RangeBounds::Anchored => (lookback_ms, 0),
            RangeBounds::Smoothed => (lookback_ms, lookback_ms),
        };
        Ok(FoldPlan {
            kind,
            at_ms: when.at_ms,
            offset_ms: when.offset_ms,
            range_ms,
            margin_ms,
            bounds: matrix.selector.bounds,
            args: Vec::new(),
            arg_spans,
            dropped,
            is_counted: self.subqueries == 0,
            counter_check: None,
        })
    }

    /// Adds a fold, and the scan that it needs, unless there is one. The places are those of the
    /// selector and of what is made of it.
    pub(super) fn scan(
        &mut self,
        selector: &VectorSelector,
        fold: FoldPlan,
        grid: Grid,
        (span, call): (Span, Span),
        inputs: Vec<NodeId>,
    ) -> Result<NodeId, PlanError> {
        let path_bytes = PATH_BYTES + size_of_val(&*self.path);
        self.take(size_of::<Scan>() + path_bytes + matchers_bytes(&selector.matchers), span)?;
        let when = When { at_ms: fold.at_ms, offset_ms: fold.offset_ms, range_ms: fold.range_ms };
        let (before, behind) = fold.margin_ms;
        let oldest = when.of(grid.start_ms).saturating_sub(fold.range_ms.saturating_add(before));
        let scan = Scan {
            matchers: selector.matchers.clone(),
            start_ms: oldest.saturating_add(1),
            end_ms: when.of(grid.last()).saturating_add(behind),
            hints: Hints {
                step_ms: if grid.steps > 1 && fold.at_ms.is_none() { grid.step_ms } else { 0 },
                range_ms: fold.range_ms.saturating_add(before).saturating_add(behind),
                start_times: self.options.start_timestamps,
                without_buckets: self.is_without_buckets(),
                ..Hints::default()
            },
            consumers: Vec::new(),
            is_lockstep: false,
            span,
        };
        let names = self.dropped(fold.dropped, names_of(selector));
        let may_share = inputs.is_empty();
        let node = self.add(Kind::Fold(fold), grid, call, names, &inputs);
        self.nodes[node].ports = inputs.len() + 1;
        self.consume(scan, node, may_share);
        Ok(node)
    }

    fn consume(&mut self, mut scan: Scan, node: NodeId, may_share: bool) {
        let path = self.path.clone();
        let paths = &self.paths;
        let shared = self.leaves.iter_mut().take(SHARED_MAX).find_map(|leaf| match leaf {
            Leaf::Scan(other)
                if may_share
                    && other.consumers.len() < SHARED_MAX
                    && other.matchers == scan.matchers
                    && other.hints.without_buckets == scan.hints.without_buckets
                    && are_read_at_once(other, &scan)
                    && other.consumers.iter().all(|with| may_join(paths, *with, &path)) =>
            {
                Some(other)
            }
            _ => None,
        });
        match shared {
            Some(other) => {
                other.consumers.push(node);
                widen(other, &scan);
            }
            None => {
                scan.consumers.push(node);
                self.leaves.push(Leaf::Scan(scan));
            }
        }
        self.paths.insert(node, path);
    }

    /// Series of info metrics for the series of an expression.
    pub(super) fn info_series(
        &mut self,
        base: &Expr,
        selector: VectorSelector,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let (at_ms, offset_ms) = info_reference(base, self.options).unwrap_or((None, 0));
        let offset = crate::syntax::DurationValue::Ms(offset_ms);
        let shift = TimeShift { offset: Some(offset), at: at_ms.map(At::Time) };
        let selector = VectorSelector { shift, ..selector };
        self.last(&selector, FoldKind::InfoTime, grid, span, span)
    }
}

/// Whether reading what two scans need at once is no more than reading one after the other. Chunks
/// between windows are left out if all windows end at the times of one grid; else all are read.
pub(super) fn are_read_at_once(a: &Scan, b: &Scan) -> bool {
    let span_ms = |start_ms: i64, end_ms: i64| end_ms.saturating_sub(start_ms) as f64 + 1.0;
    let read_ms = |scan: &Scan| {
        let window_ms = scan.hints.range_ms.saturating_add(CHUNK_MS) as f64;
        let part = window_ms / scan.hints.step_ms.max(1) as f64;
        let is_whole = scan.hints.step_ms == 0;
        span_ms(scan.start_ms, scan.end_ms) * if is_whole { 1.0 } else { part.min(1.0) }
    };
    let (start_ms, end_ms) = (a.start_ms.min(b.start_ms), a.end_ms.max(b.end_ms));
    let end_together = a.end_ms == b.end_ms && a.hints.step_ms == b.hints.step_ms;
    end_together || span_ms(start_ms, end_ms) <= read_ms(a) + read_ms(b)
}

/// Makes a scan one for the windows of another one, too.
pub(super) fn widen(scan: &mut Scan, other: &Scan) {
    let (hints, more) = (&mut scan.hints, &other.hints);
    // Windows are told by the last one and the step; if these differ, all samples are needed.
    if scan.end_ms != other.end_ms || hints.step_ms != more.step_ms {
        hints.step_ms = 0;
    }
    hints.range_ms = hints.range_ms.max(more.range_ms);
    scan.start_ms = scan.start_ms.min(other.start_ms);
    scan.end_ms = scan.end_ms.max(other.end_ms);
}

/// What the texts of conditions take, roughly.
fn matchers_bytes(matchers: &[Matcher]) -> usize {
    let texts = matchers.iter().map(|matcher| matcher.name.len() + matcher.value.len());
    texts.sum::<usize>() + size_of_val(matchers)
}

/// Whether two consumers may share a scan: what the second one gives must not wait in full for what
/// the first one gives, so there is an aggregation on its way to where both meet.
fn may_join(paths: &HashMap<NodeId, Path>, with: NodeId, path: &Path) -> bool {
    let Some(other) = paths.get(&with) else { return false };
    let common = path.iter().zip(other).take_while(|(a, b)| a.0 == b.0).count();
    path[common..].iter().any(|(_, is_aggregate)| *is_aggregate)
}

/// What a selector says of the names of its series.
fn names_of(selector: &VectorSelector) -> Names {
    let is_name = |m: &&crate::syntax::Matcher| m.name == "__name__" && m.op == MatchOp::Equal;
    match selector.matchers.iter().find(is_name) {
        Some(matcher) if matcher.value.is_empty() => Names::Absent,
        Some(_) => Names::Same,
        None => Names::Any,
    }
}

/// A time of reference: `@` and `offset`.
type Reference = (Option<i64>, i64);

/// `@` and offset that all selectors of a vector have in common; none if they differ, or if a part
/// of the vector has no selector.
pub fn info_reference(expr: &Expr, options: &Options) -> Option<Reference> {
    let mut references = Vec::new();
    let is_complete = references_of(expr, options, &mut Vec::new(), &mut references);
    let first = *references.first()?;
    let is_same = |other: &Reference| match (first.0, other.0) {
        (Some(a), Some(b)) => a.saturating_sub(first.1) == b.saturating_sub(other.1),
        (None, None) => first.1 == other.1,
        _ => false,
    };
    (is_complete && references.iter().all(is_same)).then_some(first)
}

/// Finds the references of all selectors; gives whether each part of the vector has one.
fn references_of<'e>(
    expr: &'e Expr,
    options: &Options,
    shifts: &mut Vec<&'e TimeShift>,
    found: &mut Vec<Reference>,
) -> bool {
    let mut each = |exprs: &mut dyn Iterator<Item = &'e Expr>, shifts: &mut Vec<&'e TimeShift>| {
        let mut is_found = false;
        let mut is_complete = true;
        for child in exprs.filter(|child| is_series(child)) {
            let before = found.len();
            is_complete &= references_of(child, options, shifts, found);
            is_found |= found.len() > before;
        }
        is_found && is_complete
    };
    match &expr.kind {
        ExprKind::Vector(selector) => {
            found.push(reference(&selector.shift, options, shifts));
            true
        }
        ExprKind::Matrix(matrix) => {
            found.push(reference(&matrix.selector.shift, options, shifts));
            true
        }
        ExprKind::Subquery(subquery) => {
            shifts.push(&subquery.shift);
            let is_complete = each(&mut std::iter::once(&subquery.expr), shifts);
            shifts.pop();
            is_complete
        }
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => {
            each(&mut std::iter::once(&**inner), shifts)
        }
        ExprKind::Aggregate(aggregate) => each(&mut std::iter::once(&aggregate.expr), shifts),
        ExprKind::Binary(_) => references_of_chain(expr, options, shifts, found),
        ExprKind::Call(call) if call.function.name == "info" => {
            each(&mut call.args.iter().take(1), shifts)
        }
        ExprKind::Call(call) => each(&mut call.args.iter(), shifts),
        ExprKind::Number(_) | ExprKind::String(_) => false,
    }
}

/// The same for a chain of operators, from the first one on.
fn references_of_chain<'e>(
    expr: &'e Expr,
    options: &Options,
    shifts: &mut Vec<&'e TimeShift>,
    found: &mut Vec<Reference>,
) -> bool {
    let chain = expr.chain();
    let Some((_, first)) = chain.last() else { return false };
    let before = found.len();
    let mut is_complete = !is_series(&first.lhs)
        || references_of(&first.lhs, options, shifts, found) && found.len() > before;
    for (_, binary) in chain.into_iter().rev() {
        if is_series(&binary.rhs) {
            is_complete &= references_of(&binary.rhs, options, shifts, found);
        }
        is_complete &= found.len() > before || binary.value_type == ValueType::Scalar;
    }
    is_complete && found.len() > before
}

fn is_series(expr: &Expr) -> bool {
    matches!(bare(expr).value_type(), ValueType::Vector | ValueType::Matrix)
}

/// The offsets of a selector and of the subqueries around it add up until an `@`.
fn reference(shift: &TimeShift, options: &Options, around: &[&TimeShift]) -> Reference {
    let mut offset_ms = 0i64;
    for shift in std::iter::once(shift).chain(around.iter().rev().copied()) {
        let offset = shift.offset.as_ref().map(|offset| duration::any(offset, options));
        offset_ms = offset_ms.saturating_add(offset.and_then(Result::ok).unwrap_or(0));
        match shift.at {
            Some(At::Time(time_ms)) => return (Some(time_ms), offset_ms),
            Some(At::Start) => return (Some(options.start_ms), offset_ms),
            Some(At::End) => return (Some(options.end_ms), offset_ms),
            None => {}
        }
    }
    (None, offset_ms)
}
