//! Planning of function calls: one node for each call, after the nodes of its arguments.

use super::PlanError;
use super::build::Builder;
use super::invariant::bare;
use super::types::*;
use crate::error::EvalError;
use crate::functions::{Body, Dropped, Entry, lookup};
use crate::model::Labels;
use crate::syntax::{
    Call, Expr, ExprKind, MatchOp, Matcher, RangeBounds, Span, ValueType, VectorSelector,
};
use tidepool_model::sort;
use tidepool_relabel::Replacer;

/// Functions whose window may have the modifier `anchored`.
const ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];

/// Functions whose window may have the modifier `smoothed`.
const SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        call: &Call,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let args: Vec<&Expr> = call.args.iter().map(bare).collect();
        let is_range = |arg: &&Expr| arg.value_type() == ValueType::Matrix;
        if let Some(place) = args.iter().position(is_range) {
            return self.range_call(call, &args, place, grid, span);
        }
        match call.function.name {
            "time" => Ok(self.generate(Kind::Time, grid, span)),
            "vector" => self.of_scalar(Kind::Pass, args[0], grid, span),
            "scalar" => self.unary(Kind::Scalar, args[0], grid, span, Names::Absent),
            "absent" => {
                let labels = absent_labels(args[0]);
                self.unary(Kind::Absent(labels), args[0], grid, span, Names::Absent)
            }
            "timestamp" | "start_timestamp" => {
                self.timestamp(args[0], call.function.name == "timestamp", grid, span)
            }
            "sort" => self.sort(&args, None, false, grid, span),
            "sort_desc" => self.sort(&args, None, true, grid, span),
            "sort_by_label" => self.sort(&args, Some(strings(&args[1..])), false, grid, span),
            "sort_by_label_desc" => self.sort(&args, Some(strings(&args[1..])), true, grid, span),
            "label_replace" => self.label_replace(&args, grid, span),
            "label_join" => self.label_join(&args, grid, span),
            "histogram_quantile" => self.buckets(BucketsOf::Quantile, &args, 1, grid, span),
            "histogram_fraction" => self.buckets(BucketsOf::Fraction, &args, 2, grid, span),
            "histogram_quantiles" => {
                let what = BucketsOf::Quantiles(text(args[1]));
                self.buckets(what, &args, 0, grid, span)
            }
            "info" => self.info(&args, grid, span),
            name => {
                let entry = lookup(name).ok_or_else(|| unknown(name, span))?;
                self.simple(entry, &args, grid, span)
            }
        }
    }

    fn simple(
        &mut self,
        entry: &'static Entry,
        args: &[&Expr],
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let mut inputs = Vec::new();
        if let Body::Scalar(_) = entry.body {
            let scalars = self.scalars(args, grid, &mut inputs)?;
            return Ok(self.add(
                Kind::ScalarCall(entry, scalars),
                grid,
                span,
                Names::Absent,
                &inputs,
            ));
        }
        let Some((series, scalars)) = args.split_first() else {
            return Ok(self.generate(Kind::Date(entry), grid, span));
        };
        let scalars = self.scalars(scalars, grid, &mut inputs)?;
        let node = self.build(series, grid)?;
        inputs.push(node);
        let names = self.dropped(entry.dropped, self.nodes[node].names);
        Ok(self.add(Kind::Call(entry, scalars), grid, span, names, &inputs))
    }

    fn scalars(
        &mut self,
        args: &[&Expr],
        grid: Grid,
        inputs: &mut Vec<NodeId>,
    ) -> Result<Vec<ScalarArg>, PlanError> {
        args.iter().map(|arg| self.scalar(arg, grid, inputs)).collect()
    }

    fn unary(
        &mut self,
        kind: Kind,
        arg: &Expr,
        grid: Grid,
        span: Span,
        names: Names,
    ) -> Result<NodeId, PlanError> {
        let node = self.build(arg, grid)?;
        Ok(self.add(kind, grid, span, names, &[node]))
    }

    fn of_scalar(
        &mut self,
        kind: Kind,
        arg: &Expr,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        self.unary(kind, arg, grid, span, Names::Absent)
    }

    fn range_call(
        &mut self,
        call: &Call,
        args: &[&Expr],
        place: usize,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let name = call.function.name;
        let is_absent = name == "absent_over_time";
        let entry = lookup(if is_absent { "present_over_time" } else { name });
        let entry = entry.ok_or_else(|| unknown(name, span))?;
        let Body::Range(function) = entry.body else { return Err(unknown(name, span)) };
        let mut arg_spans: Vec<Span> = args.iter().map(|arg| noted_at(arg.span, span)).collect();
        let others: Vec<&Expr> =
            args.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, arg)| *arg).collect();
        let mut inputs = Vec::new();
        let scalars = self.scalars(&others, grid, &mut inputs)?;
        let counter_check = match (name, self.options.type_and_unit_labels) {
            ("rate" | "increase", true) => Some(CounterCheck::Type),
            ("rate" | "increase", false) => Some(CounterCheck::Name),
            _ => None,
        };
        // `absent_over_time` uses only presence, so series keep their labels and never collide.
        let dropped = if is_absent { Dropped::Nothing } else { entry.dropped };
        let kind = FoldKind::Range(function);
        let node = match &args[place].kind {
            ExprKind::Matrix(matrix) => {
                check_bounds(name, matrix.selector.bounds)?;
                let fold = self.range(matrix, kind, dropped, arg_spans)?;
                let fold = FoldPlan { args: scalars, counter_check, ..fold };
                self.scan(&matrix.selector, fold, grid, (args[place].span, span), inputs)?
            }
            ExprKind::Subquery(subquery) => {
                // Upstream loses the position of a subquery and annotates the start of the text.
                arg_spans[place] = Span { start: 0, end: span.end };
                let (node, when) = self.subquery(subquery, grid, args[place].span)?;
                let fold = FoldPlan {
                    kind,
                    at_ms: when.at_ms,
                    offset_ms: when.offset_ms,
                    range_ms: when.range_ms,
                    margin_ms: (0, 0),
                    // The parser refuses `anchored` and `smoothed` on subqueries.
                    bounds: RangeBounds::Samples,
                    args: scalars,
                    arg_spans,
                    dropped,
                    // Samples are counted in the windows of the outermost function only.
                    is_counted: self.subqueries == 0,
                    counter_check,
                };
                inputs.push(node);
                let inner = self.nodes[node].grid;
                let names = self.dropped(dropped, self.nodes[node].names);
                self.add(Kind::Subquery(fold, inner), grid, span, names, &inputs)
            }
            _ => return Err(unknown(name, span)),
        };
        match is_absent {
            true => {
                let kind = Kind::Absent(absent_labels(args[place]));
                Ok(self.add(kind, grid, span, Names::Absent, &[node]))
            }
            false => Ok(node),
        }
    }

    fn timestamp(
        &mut self,
        arg: &Expr,
        is_of_sample: bool,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        // `timestamp` of a selector returns times of samples, of other expressions the step's time.
        if let ExprKind::Vector(selector) = &arg.kind {
            let kind = match is_of_sample {
                true => FoldKind::Timestamp,
                false => FoldKind::StartTimestamp,
            };
            let node = self.last(selector, kind, grid, arg.span, span)?;
            if self.nodes[node].names != Names::Any {
                return Ok(node);
            }
            // Series of several names may become one series if they have values at different steps.
            let names = self.dropped(Dropped::Metadata, Names::Any);
            return Ok(self.add(Kind::WithoutName, grid, span, names, &[node]));
        }
        let node = self.build(arg, grid)?;
        let names = self.dropped(Dropped::Metadata, self.nodes[node].names);
        let kind = if is_of_sample { Kind::TimestampOfValues } else { Kind::Nothing };
        Ok(self.add(kind, grid, span, names, &[node]))
    }

    fn sort(
        &mut self,
        args: &[&Expr],
        labels: Option<Vec<String>>,
        is_descending: bool,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let node = self.build(args[0], grid)?;
        let kind = Kind::Sort(Sort { labels, is_descending });
        Ok(self.add(kind, grid, span, self.nodes[node].names, &[node]))
    }

    fn label_replace(
        &mut self,
        args: &[&Expr],
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let replacement = text(args[2]);
        let (source, expression) = (text(args[3]), text(args[4]));
        let pattern = Replacer::new(&expression).map_err(|_| {
            let text = "invalid regular expression in label_replace(): ";
            EvalError::execution(format!("{text}{expression}"))
        })?;
        // Compiled expressions are large, so they are added to the memory of the plan at once.
        self.take(pattern.bytes(), span)?;
        let target = label(args[1], "destination label name in label_replace()")?;
        let node = self.build(args[0], grid)?;
        let names = self.names_after(node, &target);
        let replace = LabelReplace { target, replacement, source, pattern };
        Ok(self.add(Kind::LabelReplace(Box::new(replace)), grid, span, names, &[node]))
    }

    fn label_join(&mut self, args: &[&Expr], grid: Grid, span: Span) -> Result<NodeId, PlanError> {
        let separator = text(args[2]);
        let sources = args[3..].iter().map(|arg| label(arg, "source label name in label_join()"));
        let sources = sources.collect::<Result<_, _>>()?;
        let target = label(args[1], "destination label name in label_join()")?;
        let node = self.build(args[0], grid)?;
        let names = self.names_after(node, &target);
        let kind = Kind::LabelJoin { target, separator, sources };
        Ok(self.add(kind, grid, span, names, &[node]))
    }

    fn names_after(&self, node: NodeId, target: &str) -> Names {
        match target {
            "__name__" => Names::Any,
            _ => self.nodes[node].names,
        }
    }

    /// Plans a function of buckets; `place` is the argument with the histograms.
    fn buckets(
        &mut self,
        what: BucketsOf,
        args: &[&Expr],
        place: usize,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        // `histogram_quantiles` has its label second and the quantiles after the label.
        let others = match &what {
            BucketsOf::Quantiles(_) => &args[2..],
            _ => &args[..place],
        };
        let mut inputs = Vec::new();
        let scalars = self.scalars(others, grid, &mut inputs)?;
        let node = self.build(args[place], grid)?;
        inputs.push(node);
        let names = self.dropped(Dropped::Metadata, self.nodes[node].names);
        let kind = Kind::Buckets(Buckets {
            what,
            args: scalars,
            arg_spans: others.iter().map(|arg| noted_at(arg.span, span)).collect(),
            series_span: args[place].span,
        });
        Ok(self.add(kind, grid, span, names, &inputs))
    }

    fn info(&mut self, args: &[&Expr], grid: Grid, span: Span) -> Result<NodeId, PlanError> {
        let given = match args.get(1).map(|arg| &arg.kind) {
            Some(ExprKind::Vector(selector)) => selector.matchers.clone(),
            _ => Vec::new(),
        };
        // Matchers on the name choose info metrics; others choose and filter data labels.
        let (names, data): (Vec<Matcher>, Vec<Matcher>) =
            given.into_iter().partition(|matcher| matcher.name == "__name__");
        let names = info_names(names);
        let conditions = |matchers: &[Matcher]| -> Result<Vec<Condition>, EvalError> {
            matchers.iter().map(Condition::new).collect()
        };
        // Series without info metrics have empty data labels, which the matchers may permit.
        let keeps_bare = conditions(&data)?.iter().all(|condition| condition.holds(""));
        let mut wanted: Vec<String> = data.iter().map(|matcher| matcher.name.clone()).collect();
        sort::sort(&mut wanted);
        wanted.dedup();
        let plan = InfoPlan { names: conditions(&names)?, data: wanted, keeps_bare };
        // Compiled conditions stay for the whole evaluation, so they count as memory.
        self.take(plan.names.iter().map(Condition::bytes).sum(), span)?;
        let selector = VectorSelector {
            name: String::new(),
            matchers: names.iter().chain(&data).cloned().collect(),
            shift: Default::default(),
            bounds: RangeBounds::Samples,
        };
        // Info metrics are the first input, because the join keeps them in memory.
        let infos = self.info_series(args[0], selector, grid, span)?;
        let base = self.build(args[0], grid)?;
        let known = self.nodes[base].names;
        Ok(self.add(Kind::Info(plan), grid, span, known, &[infos, base]))
    }
}

/// Returns the position of an annotation about an argument. It ends with the call, because equal
/// annotations keep the position evaluated last, and a call is evaluated after its arguments.
pub(super) fn noted_at(arg: Span, call: Span) -> Span {
    Span { end: call.end, ..arg }
}

/// Returns the conditions on the names of info metrics; the default is `target_info` alone.
fn info_names(mut names: Vec<Matcher>) -> Vec<Matcher> {
    let name = |op, value: &str| Matcher { name: "__name__".into(), op, value: value.into() };
    if names.is_empty() {
        return vec![name(MatchOp::Equal, "target_info")];
    }
    // Without a positive condition, negative conditions would match every metric of the store.
    if !names.iter().any(|m| matches!(m.op, MatchOp::Equal | MatchOp::Regex)) {
        names.insert(0, name(MatchOp::Regex, ".+_info"));
    }
    names
}

/// Returns the labels that a selector requires by a single `=` matcher each.
fn absent_labels(expr: &Expr) -> Labels {
    let matchers = match &expr.kind {
        ExprKind::Vector(selector) => &selector.matchers,
        ExprKind::Matrix(matrix) => &matrix.selector.matchers,
        _ => return Labels::default(),
    };
    let mut labels = Labels::default();
    let mut seen: Vec<&str> = Vec::new();
    for matcher in matchers.iter().filter(|matcher| matcher.name != "__name__") {
        if matcher.op == MatchOp::Equal && !seen.contains(&matcher.name.as_str()) {
            labels.set(&matcher.name, matcher.value.as_str());
            seen.push(&matcher.name);
        } else {
            // A second condition makes the value ambiguous; upstream leaves the label out.
            labels.remove(&matcher.name);
        }
    }
    labels
}

fn check_bounds(name: &str, bounds: RangeBounds) -> Result<(), EvalError> {
    let (modifier, functions) = match bounds {
        RangeBounds::Samples => return Ok(()),
        RangeBounds::Anchored => ("anchored", &ANCHORED[..]),
        RangeBounds::Smoothed => ("smoothed", &SMOOTHED[..]),
    };
    match functions.contains(&name) {
        true => Ok(()),
        false => Err(EvalError::execution(format!(
            "{modifier} modifier can only be used with: {} - not with {name}",
            functions.join(", ")
        ))),
    }
}

/// Returns a label name argument; `what` describes the argument in errors.
fn label(expr: &Expr, what: &str) -> Result<String, EvalError> {
    match &expr.kind {
        ExprKind::String(text) => text.label_name().map(str::to_owned),
        _ => None,
    }
    .ok_or_else(|| EvalError::execution(format!("invalid {what}: {}", text(expr))))
}

fn unknown(name: &str, span: Span) -> PlanError {
    PlanError::invalid(format!("the function {name:?} cannot be evaluated here"), span)
}

fn text(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::String(text) => text.as_str().to_owned(),
        _ => String::new(),
    }
}

fn strings(exprs: &[&Expr]) -> Vec<String> {
    exprs.iter().map(|expr| text(expr)).collect()
}
