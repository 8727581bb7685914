//! Planning of selectors: scans of the store, and the folds that use them.

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

/// Maximum number of scans that a selector is compared with, and of consumers of a scan; without
/// this limit, planning of thousands of selectors would be quadratic.
const SHARED_MAX: usize = 100;

/// Approximate duration of a chunk: 120 samples, one each 15 seconds.
const CHUNK_MS: i64 = 30 * 60_000;

/// Approximate memory of a path to a consumer in bytes, without the entries of the path.
const PATH_BYTES: usize = 64;

impl Builder<'_> {
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

    /// Plans a function of the last sample of each series; `call` is the position of the function.
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
            // Series of one name stay distinct without it; other names stay until `WithoutName`.
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
                // Interpolation needs the next sample, too, which is at most one lookback ahead.
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

    pub(super) fn samples(
        &mut self,
        matrix: &MatrixSelector,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let fold = self.range(matrix, FoldKind::Samples, Dropped::Nothing, vec![span])?;
        self.scan(&matrix.selector, fold, grid, (span, span), Vec::new())
    }

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
            // A boundary value comes from a sample at most one lookback outside the window.
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

    /// Adds a fold and its scan, unless an existing scan can be shared. The positions are of the
    /// selector and of the expression that uses it.
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
            // Windows are left-open: a sample at exactly `oldest` is never used.
            start_ms: oldest.saturating_add(1),
            end_ms: when.of(grid.last()).saturating_add(behind),
            hints: Hints {
                // With a fixed time all steps share one window, which is read whole.
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
        // Inputs have to be complete before the scan; an existing scan may run too early.
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

    /// Plans the selector of info metrics for the series of `base`.
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

/// Returns whether one read for both scans costs no more than two reads. Chunks between windows are
/// skipped if all windows end at the times of one grid; otherwise all chunks are read.
pub(super) fn are_read_at_once(a: &Scan, b: &Scan) -> bool {
    let span_ms = |start_ms: i64, end_ms: i64| end_ms.saturating_sub(start_ms) as f64 + 1.0;
    let read_ms = |scan: &Scan| {
        // Chunks that a window touches are read whole, so a chunk's duration is added.
        let window_ms = scan.hints.range_ms.saturating_add(CHUNK_MS) as f64;
        let part = window_ms / scan.hints.step_ms.max(1) as f64;
        let is_whole = scan.hints.step_ms == 0;
        span_ms(scan.start_ms, scan.end_ms) * if is_whole { 1.0 } else { part.min(1.0) }
    };
    let (start_ms, end_ms) = (a.start_ms.min(b.start_ms), a.end_ms.max(b.end_ms));
    let end_together = a.end_ms == b.end_ms && a.hints.step_ms == b.hints.step_ms;
    end_together || span_ms(start_ms, end_ms) <= read_ms(a) + read_ms(b)
}

/// Extends a scan to the windows of another scan.
pub(super) fn widen(scan: &mut Scan, other: &Scan) {
    let (hints, more) = (&mut scan.hints, &other.hints);
    // Hints describe windows by the last end and the step; if either differs, all samples are used.
    if scan.end_ms != other.end_ms || hints.step_ms != more.step_ms {
        hints.step_ms = 0;
    }
    hints.range_ms = hints.range_ms.max(more.range_ms);
    scan.start_ms = scan.start_ms.min(other.start_ms);
    scan.end_ms = scan.end_ms.max(other.end_ms);
}

fn matchers_bytes(matchers: &[Matcher]) -> usize {
    let texts = matchers.iter().map(|matcher| matcher.name.len() + matcher.value.len());
    texts.sum::<usize>() + size_of_val(matchers)
}

/// Returns whether two consumers may share a scan. Results of the second wait for the first, so an
/// aggregation must reduce them on the second's path to the point where both meet.
fn may_join(paths: &HashMap<NodeId, Path>, with: NodeId, path: &Path) -> bool {
    let Some(other) = paths.get(&with) else { return false };
    // Numbers of expressions are unique, so equal numbers mean the same expression.
    let common = path.iter().zip(other).take_while(|(a, b)| a.0 == b.0).count();
    path[common..].iter().any(|(_, is_aggregate)| *is_aggregate)
}

/// Returns whether the series of a selector have no name, the same name or any names.
fn names_of(selector: &VectorSelector) -> Names {
    let is_name = |m: &&crate::syntax::Matcher| m.name == "__name__" && m.op == MatchOp::Equal;
    match selector.matchers.iter().find(is_name) {
        Some(matcher) if matcher.value.is_empty() => Names::Absent,
        Some(_) => Names::Same,
        None => Names::Any,
    }
}

/// A reference time: `@` in milliseconds, and `offset`.
type Reference = (Option<i64>, i64);

/// Returns `@` and offset if all selectors of a vector have the same values; `None` if selectors
/// differ, or if a part of the vector has no selector.
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

/// Collects the references of all selectors; returns whether each part of the vector has any.
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
        // The second argument of `info` selects labels and has no time of its own.
        ExprKind::Call(call) if call.function.name == "info" => {
            each(&mut call.args.iter().take(1), shifts)
        }
        ExprKind::Call(call) => each(&mut call.args.iter(), shifts),
        ExprKind::Number(_) | ExprKind::String(_) => false,
    }
}

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

/// Returns the reference of a selector: offsets of enclosing subqueries add up until an `@`.
fn reference(shift: &TimeShift, options: &Options, around: &[&TimeShift]) -> Reference {
    let mut offset_ms = 0i64;
    for shift in std::iter::once(shift).chain(around.iter().rev().copied()) {
        let offset = shift.offset.as_ref().map(|offset| duration::any(offset, options));
        // Invalid durations are reported where the selector is planned.
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
