//! Building of a plan from the syntax tree.

use super::call::noted_at;
use super::grid::number_of_steps;
use super::invariant::{Invariance, bare};
use super::order::{Order, Safety};
use super::types::*;
use super::{PlanError, constant, duration, lockstep, stepwise};
use crate::error::EvalError;
use crate::functions::Dropped;
use crate::limits::Limit;
use crate::model::KeyLabels;
use crate::syntax::{
    Aggregate, AggregateOp, Expr, ExprKind, Span, Subquery, Text, TimeShift, UnaryOp, ValueType,
};
use std::collections::HashMap;

/// Builds the plan of an expression that has passed the type check.
pub fn plan(expr: &Expr, options: &Options) -> Result<Plan, PlanError> {
    let returns = expr.value_type();
    let root = bare(expr);
    let mut builder = Builder {
        options,
        invariance: Invariance::default(),
        nodes: Vec::new(),
        leaves: Vec::new(),
        path: Vec::new(),
        paths: HashMap::new(),
        bytes: expr.bytes(),
        steps_down: 0,
        without_buckets: 0,
        with_buckets: 0,
        subqueries: 0,
    };
    // Everything below recurses into the tree, so its depth is limited first.
    depth(expr, 1, options.limits.depth_max)?;
    builder.check_bytes(expr.span)?;
    builder.invariance = Invariance::of(expr, options);
    let steps = match options.step_ms {
        Some(step_ms) => number_of_steps(options.start_ms, options.end_ms, step_ms),
        None => 1,
    };
    let step_ms = options.step_ms.unwrap_or(1);
    let whole = builder.grid(options.start_ms, step_ms, steps, expr.span)?;
    let grid = whole;
    if let ExprKind::String(text) = &root.kind {
        return Ok(Plan {
            nodes: Vec::new(),
            leaves: Vec::new(),
            grid,
            sorts: Vec::new(),
            returns,
            text: Some(text.as_str().to_owned()),
            is_stepwise: false,
            is_sorted: false,
        });
    }
    let top = match &root.kind {
        ExprKind::Matrix(matrix) => builder.samples(matrix, grid, root.span)?,
        ExprKind::Subquery(subquery) => builder.subquery(subquery, grid, root.span)?.0,
        _ => builder.build(expr, grid)?,
    };
    let mut sorts = Vec::new();
    // Upstream warns of sorting only if the range has more than one time.
    let is_spread = options.step_ms.is_some() && options.start_ms != options.end_ms;
    builder.add_sorts(expr, grid, is_spread, &mut sorts);
    let (grid, names) = (builder.nodes[top].grid, builder.nodes[top].names);
    let top = match options.delayed_name_removal {
        true => builder.add(Kind::Cleanup, grid, expr.span, names, &[top]),
        false => top,
    };
    // `lockstep` moves scans, so `Order` examines the leaves afterwards.
    lockstep::merge(&mut builder.nodes, &mut builder.leaves);
    // Upstream sorts ranges by labels; instant vectors keep the order of evaluation.
    let is_range = options.step_ms.is_some() || returns == ValueType::Matrix;
    let order = Order::new(&builder.nodes, &builder.leaves, options.delayed_name_removal);
    let sorting = match is_range {
        false => Sorting::None,
        true if order.is_by_labels(top) => Sorting::IfHeld,
        true => Sorting::All,
    };
    let (may_fail, checks) = match order.safety(top) {
        Safety::Whole => (false, Vec::new()),
        // An instant vector has one sample per series, so waiting for all costs less than checks.
        Safety::If(checks) if is_range => (false, checks),
        Safety::If(checks) => (!checks.is_empty(), Vec::new()),
        Safety::Unknown => (true, Vec::new()),
    };
    let is_sorted = sorting != Sorting::None;
    builder.add(Kind::Root(Root { sorting, may_fail }), grid, expr.span, names, &[top]);
    builder.check_bytes(expr.span)?;
    let Builder { nodes, mut leaves, .. } = builder;
    // Checks run first: a finding must be known before the first series is delivered.
    leaves.splice(..0, checks.into_iter().map(Leaf::Check));
    let is_stepwise = !options.delayed_name_removal
        && stepwise::names_no_range(expr)
        && stepwise::look_back(&nodes, &leaves);
    Ok(Plan { nodes, leaves, grid: whole, sorts, returns, text: None, is_stepwise, is_sorted })
}

/// Refuses trees deeper than `max` before any other function recurses into them.
fn depth(expr: &Expr, level: usize, max: usize) -> Result<(), PlanError> {
    if level > max {
        return Err(EvalError::limit(Limit::Depth, max as u64, expr.span).into());
    }
    expr.children().into_iter().try_for_each(|child| depth(child, level + 1, max))
}

/// Path from the root: for each level a unique number, and whether the level is an aggregation.
pub(super) type Path = Vec<(u32, bool)>;

pub(super) struct Builder<'a> {
    pub(super) options: &'a Options,
    pub(super) invariance: Invariance,
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) path: Path,
    /// Paths from the root to the folds, the nodes that consume the samples of scans.
    pub(super) paths: HashMap<NodeId, Path>,
    /// Memory of the tree, the nodes and compiled expressions in bytes.
    bytes: usize,
    steps_down: u32,
    /// Enclosing parts: `without_buckets` of them ignore buckets, `with_buckets` need buckets.
    without_buckets: u32,
    pub(super) with_buckets: u32,
    pub(super) subqueries: u32,
}

/// Functions that use only count and sum of histograms.
const WITHOUT_BUCKETS: [&str; 3] = ["histogram_avg", "histogram_count", "histogram_sum"];

/// Functions that use the buckets of histograms.
const WITH_BUCKETS: [&str; 5] = [
    "histogram_fraction",
    "histogram_quantile",
    "histogram_quantiles",
    "histogram_stddev",
    "histogram_stdvar",
];

impl Builder<'_> {
    /// Returns a grid, or an error if the number of steps exceeds a limit.
    pub(super) fn grid(
        &self,
        start_ms: i64,
        step_ms: i64,
        steps: u64,
        span: Span,
    ) -> Result<Grid, PlanError> {
        let limits = &self.options.limits;
        if steps > limits.steps_max {
            return Err(EvalError::limit(Limit::Steps, limits.steps_max, span).into());
        }
        // Even one column of floats (8 bytes a step) would exceed the memory limit.
        if steps.saturating_mul(8) > limits.bytes_max as u64 {
            return Err(EvalError::limit(Limit::Bytes, limits.bytes_max as u64, span).into());
        }
        Ok(Grid { start_ms, step_ms, steps: steps as usize })
    }

    /// Adds memory of the plan; an error names `span`, the part that needs the memory.
    pub(super) fn take(&mut self, bytes: usize, span: Span) -> Result<(), PlanError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.check_bytes(span)
    }

    /// Compares the counted memory with the limit; the error names the part that was planned last.
    pub(super) fn check_bytes(&self, span: Span) -> Result<(), PlanError> {
        let bytes_max = self.options.limits.bytes_max;
        match self.bytes > bytes_max {
            true => Err(EvalError::limit(Limit::Bytes, bytes_max as u64, span).into()),
            false => Ok(()),
        }
    }

    pub(super) fn constant(&self, expr: &Expr) -> Option<f64> {
        constant::value(expr, self.options)
    }

    pub(super) fn add(
        &mut self,
        kind: Kind,
        grid: Grid,
        span: Span,
        names: Names,
        inputs: &[NodeId],
    ) -> NodeId {
        let id = self.nodes.len();
        self.bytes = self.bytes.saturating_add(NODE_BYTES);
        for (port, input) in inputs.iter().enumerate() {
            self.nodes[*input].parent = Some((id, port));
        }
        let (ports, lockstep) = (inputs.len(), Lockstep::None);
        self.nodes.push(Node { kind, grid, span, parent: None, ports, names, lockstep });
        id
    }

    /// Adds a node that needs no series, and the leaf that starts it.
    pub(super) fn generate(&mut self, kind: Kind, grid: Grid, span: Span) -> NodeId {
        let id = self.add(kind, grid, span, Names::Absent, &[]);
        self.nodes[id].ports = 1;
        self.leaves.push(Leaf::Generate(id));
        id
    }

    pub(super) fn build(&mut self, expr: &Expr, grid: Grid) -> Result<NodeId, PlanError> {
        // A number is never used twice, so that `may_join` can compare paths by their numbers.
        self.steps_down += 1;
        self.path.push((self.steps_down, matches!(expr.kind, ExprKind::Aggregate(_))));
        let (without, with) = buckets_of(expr);
        self.without_buckets += u32::from(without);
        self.with_buckets += u32::from(with);
        let node = self.build_here(expr, grid)?;
        self.check_bytes(expr.span)?;
        self.without_buckets -= u32::from(without);
        self.with_buckets -= u32::from(with);
        self.path.pop();
        Ok(node)
    }

    fn build_here(&mut self, expr: &Expr, grid: Grid) -> Result<NodeId, PlanError> {
        let span = expr.span;
        if let Some(value) = self.constant(expr) {
            return Ok(self.generate(Kind::Number(value), grid, span));
        }
        // `@` fixes all times of this part, so one step is evaluated and repeated.
        if grid.steps > 1 && self.invariance.get(expr).is_repeated {
            let once = Grid { steps: 1, ..grid };
            let node = self.build(expr, once)?;
            let names = self.nodes[node].names;
            return Ok(self.add(Kind::Repeat, grid, span, names, &[node]));
        }
        match &expr.kind {
            ExprKind::Paren(inner) => self.build(inner, grid),
            ExprKind::Unary(UnaryOp::Plus, inner) => self.build(inner, grid),
            ExprKind::Unary(UnaryOp::Minus, inner) => {
                let node = self.build(inner, grid)?;
                let names = self.dropped(Dropped::Metadata, self.nodes[node].names);
                Ok(self.add(Kind::Negate, grid, span, names, &[node]))
            }
            ExprKind::Vector(selector) => self.instant(selector, grid, span),
            ExprKind::Binary(_) => self.chain(expr, grid),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate, grid, span),
            ExprKind::Call(call) => self.call(call, grid, span),
            ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Matrix(_)
            | ExprKind::Subquery(_) => {
                Err(PlanError::invalid("a range or a text stands where a vector is needed", span))
            }
        }
    }

    /// Plans a scalar argument; an argument that is not constant is added to the inputs.
    pub(super) fn scalar(
        &mut self,
        expr: &Expr,
        grid: Grid,
        inputs: &mut Vec<NodeId>,
    ) -> Result<ScalarArg, PlanError> {
        if let Some(value) = self.constant(expr) {
            return Ok(ScalarArg::Constant(value));
        }
        inputs.push(self.build(expr, grid)?);
        Ok(ScalarArg::Port(inputs.len() - 1))
    }

    pub(super) fn dropped(&self, dropped: Dropped, names: Names) -> Names {
        match dropped {
            Dropped::Nothing => names,
            // With delayed removal the name stays a label until `Cleanup` drops it.
            _ if self.options.delayed_name_removal => names,
            _ => Names::Absent,
        }
    }

    fn aggregate(
        &mut self,
        aggregate: &Aggregate,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let expr = bare(&aggregate.expr);
        let keys = |names: &[String]| match aggregate.is_without {
            true => KeyLabels::without(names),
            false => KeyLabels::with(names),
        };
        if aggregate.op == AggregateOp::CountValues {
            return self.count_values(aggregate, &keys, grid, span);
        }
        let mut inputs = Vec::new();
        let param = aggregate.param.as_ref().map(bare);
        let param_span = param.map(|param| noted_at(param.span, span)).unwrap_or_default();
        let param = param.map(|param| self.scalar(param, grid, &mut inputs)).transpose()?;
        let node = self.build(expr, grid)?;
        inputs.push(node);
        let names = match aggregate.op {
            AggregateOp::Topk
            | AggregateOp::Bottomk
            | AggregateOp::Limitk
            | AggregateOp::LimitRatio => self.nodes[node].names,
            // All other operators make new series, which have a name only with `by (__name__)`.
            _ if aggregate.is_without => Names::Absent,
            _ if !aggregate.grouping.iter().any(|name| name == "__name__") => Names::Absent,
            _ => self.nodes[node].names,
        };
        let kind = Kind::Aggregate(AggregatePlan {
            op: aggregate.op,
            by: keys(&aggregate.grouping),
            param,
            param_span,
            expr_span: expr.span,
        });
        Ok(self.add(kind, grid, span, names, &inputs))
    }

    fn count_values(
        &mut self,
        aggregate: &Aggregate,
        keys: &dyn Fn(&[String]) -> KeyLabels,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let label = match aggregate.param.as_ref().map(|param| &bare(param).kind) {
            Some(ExprKind::String(label)) => label.clone(),
            _ => Text::default(),
        };
        let Some(label) = label.label_name().map(str::to_owned) else {
            let text = format!("invalid label name {}", label.quoted());
            return Err(EvalError::execution(text).into());
        };
        let mut grouping = aggregate.grouping.clone();
        // With `by`, the label of the values has to be part of the key.
        if !aggregate.is_without {
            grouping.push(label.clone());
        }
        let node = self.build(bare(&aggregate.expr), grid)?;
        // The values may be written to `__name__`, so that names differ.
        let names = match grouping.iter().any(|name| name == "__name__") || label == "__name__" {
            true => Names::Any,
            false => Names::Absent,
        };
        Ok(self.add(Kind::CountValues(keys(&grouping), label), grid, span, names, &[node]))
    }

    /// Adds the inner expression of a subquery; returns its node and its window.
    pub(super) fn subquery(
        &mut self,
        subquery: &Subquery,
        grid: Grid,
        span: Span,
    ) -> Result<(NodeId, When), PlanError> {
        let (when, times) = self.subquery_times(subquery, grid)?;
        let SubqueryTimes { start_ms, last_ms, step_ms } = times;
        let steps = match grid.steps {
            0 => 0,
            _ => number_of_steps(start_ms, last_ms, step_ms),
        };
        let inner = self.grid(start_ms, step_ms, steps, span)?;
        // Functions over a subquery use histograms as values, so buckets must be read.
        self.with_buckets += 1;
        self.subqueries += 1;
        let node = match inner.steps {
            // Selectors in an empty subquery would be read in vain.
            0 => self.generate(Kind::Nothing, inner, subquery.expr.span),
            _ => self.build(&subquery.expr, inner)?,
        };
        self.with_buckets -= 1;
        self.subqueries -= 1;
        Ok((node, when))
    }

    /// Returns the window of a subquery, and the absolute times at which it is evaluated.
    pub(super) fn subquery_times(
        &self,
        subquery: &Subquery,
        grid: Grid,
    ) -> Result<(When, SubqueryTimes), PlanError> {
        let when = self.when(&subquery.shift)?;
        let range_ms = duration::positive(&subquery.range, self.options)?;
        let step_ms = match &subquery.step {
            Some(step) => duration::positive(step, self.options)?,
            None => 0,
        };
        let step_ms = if step_ms == 0 { self.options.subquery_step_ms } else { step_ms };
        // Steps of subqueries are multiples of the step, whatever the query's start.
        let first = when.of(grid.start_ms).saturating_sub(range_ms);
        // The range is left-open, so a multiple of the step at its very start is excluded.
        let start_ms = (first.div_euclid(step_ms) + 1).saturating_mul(step_ms);
        let last_ms = when.of(grid.last());
        Ok((When { range_ms, ..when }, SubqueryTimes { start_ms, last_ms, step_ms }))
    }

    /// Returns whether a selector here needs no buckets: an enclosing function ignores buckets, and
    /// no enclosing part needs buckets, not even to detect counter resets.
    pub(super) fn is_without_buckets(&self) -> bool {
        self.without_buckets > 0 && self.with_buckets == 0
    }

    /// Resolves the modifiers `@` and `offset`; they are applied in this order.
    pub(super) fn when(&self, shift: &TimeShift) -> Result<When, PlanError> {
        use crate::syntax::At;
        let at_ms = shift.at.map(|at| match at {
            At::Time(time_ms) => time_ms,
            At::Start => self.options.start_ms,
            At::End => self.options.end_ms,
        });
        let offset_ms = match &shift.offset {
            Some(offset) => duration::any(offset, self.options)?,
            None => 0,
        };
        Ok(When { at_ms, offset_ms, range_ms: 0 })
    }
}

/// Returns whether an expression ignores the buckets of its argument, and whether it needs them.
fn buckets_of(expr: &Expr) -> (bool, bool) {
    match &expr.kind {
        ExprKind::Call(call) => {
            let name = call.function.name;
            (WITHOUT_BUCKETS.contains(&name), WITH_BUCKETS.contains(&name))
        }
        _ => (false, false),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SubqueryTimes {
    /// First time; greater than `last_ms` if the range contains no multiple of the step.
    pub start_ms: i64,
    pub last_ms: i64,
    pub step_ms: i64,
}

/// A time window relative to the step.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    /// Fixed evaluation time of the `@` modifier, in place of the step's time.
    pub at_ms: Option<i64>,
    pub offset_ms: i64,
    pub range_ms: i64,
}

impl When {
    /// End of the window for the step at `time_ms`.
    pub fn of(&self, time_ms: i64) -> i64 {
        self.at_ms.unwrap_or(time_ms).saturating_sub(self.offset_ms)
    }
}
