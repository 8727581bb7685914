//! A query, and its evaluation series by series.

use super::budget::{Budget, Usage};
use super::buffer::{Buffer, Places};
use super::column::Column;
use super::context::{Context, Ready};
use super::key::HashSet;
use super::operators::pipeline;
use super::pipeline::Pipeline;
use super::series::{ResultSeries, Series};
use super::series_union::HASH_BYTES;
use super::stats::Stats;
use crate::annotations::{Annotations, Note};
use crate::error::EvalError;
use crate::model::{
    FloatPoint, HistogramPoint, Labels, Samples, begins_behind_metadata, hash_labels, is_metadata,
};
use crate::plan::{
    Check, CheckOf, Grid, Leaf, NODE_BYTES, Node, Options, Plan, PlanError, Scan, plan,
};
use crate::source::{Hints, Selection, SeriesSet, Source};
use crate::syntax::{Expr, Span, ValueType};
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum number of scans that are opened at the start, because open cursors keep head memory that
/// ingestion needs. Further scans are opened when they run, and may read newer samples.
const OPEN_SCANS_MAX: usize = 8;

/// A planned expression, ready for evaluation.
#[derive(Debug)]
pub struct Query {
    plan: Plan,
    options: Options,
}

impl Query {
    /// Plans an expression that has passed the type check.
    pub fn new(expr: &Expr, options: Options) -> Result<Query, PlanError> {
        let is_range = options.step_ms.is_some();
        let plan = plan(expr, &options)?;
        if is_range && !matches!(plan.returns, ValueType::Scalar | ValueType::Vector) {
            return Err(PlanError::Invalid {
                text: format!(
                    "invalid expression type {:?} for range query, must be Scalar or instant Vector",
                    plan.returns.documented()
                ),
                span: expr.span,
            });
        }
        Ok(Query { plan, options })
    }

    /// Returns the reads of the store that the query needs.
    pub fn scans(&self) -> impl Iterator<Item = &Scan> {
        scans(&self.plan.leaves)
    }

    /// Begins the evaluation over `source`; fails if the plan alone exceeds the memory limit.
    pub fn evaluate(mut self, source: Rc<dyn Source>) -> Result<Evaluation, EvalError> {
        let is_delayed = self.options.delayed_name_removal;
        let stats = Stats::new(self.plan.grid, self.options.stats_per_step);
        let mut context = Context::new(self.options.limits, is_delayed, stats);
        context.is_sorted = self.plan.is_sorted;
        take_nodes(&self.plan.nodes, &mut context)?;
        for span in &self.plan.sorts {
            context.annotations.set_noting(*span);
            context.annotations.note(Note::SortInRange, "", *span);
        }
        Ok(Evaluation {
            source,
            returns: self.plan.returns,
            text: self.plan.text.take(),
            is_stepwise: self.plan.is_stepwise,
            pipeline: pipeline(&mut self.plan, is_delayed),
            context,
            leaves: std::mem::take(&mut self.plan.leaves).into(),
            opened: VecDeque::new(),
            is_begun: false,
            has_metadata: false,
            running: None,
            buffer: Buffer::default(),
            buffer_held: Usage::default(),
            memory_held: Usage::default(),
        })
    }
}

/// Selects series, and counts the cursor over them towards the memory limit.
fn open(
    source: &dyn Source,
    selection: &Selection,
    span: Span,
    budget: &mut Budget,
) -> Result<(Box<dyn SeriesSet>, Usage), EvalError> {
    let set = source.select(selection)?;
    let held = Usage { bytes: set.bytes(), samples: 0 };
    budget.take(held, span)?;
    Ok((set, held))
}

/// Counts towards the memory limit: operators, compiled expressions, and the columns on the longest
/// path from a leaf to the root, because each operator holds a column while a series passes.
fn take_nodes(nodes: &[Node], context: &mut Context) -> Result<(), EvalError> {
    // The inputs of a node come before the node, so one pass finds the longest path.
    let mut below = vec![0; nodes.len()];
    let mut most = 0;
    for (id, node) in nodes.iter().enumerate() {
        let bytes = below[id] + node.grid.steps * Column::BYTES_PER_STEP;
        if let Some((parent, _)) = node.parent {
            below[parent] = bytes.max(below[parent]);
        }
        let compiled = node.kind.compiled_bytes();
        // Only one series passes at a time, so only the growth of the maximum is added.
        let more = NODE_BYTES + compiled + bytes.saturating_sub(most);
        most = most.max(bytes);
        context.budget.take(Usage { bytes: more, samples: 0 }, node.span)?;
    }
    Ok(())
}

/// Size of an evaluation, as far as known before samples are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Approximate number of series of the first selection.
    pub series: usize,
    /// Oldest time that is read, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Newest time that is read, in milliseconds since the epoch.
    pub end_ms: i64,
}

/// A running evaluation of a query; an iterator over the series of the answer.
pub struct Evaluation {
    source: Rc<dyn Source>,
    returns: ValueType,
    text: Option<String>,
    is_stepwise: bool,
    pipeline: Pipeline,
    context: Context,
    leaves: VecDeque<Leaf>,
    /// Series of the scans that have not run yet, in the order of the scans.
    opened: VecDeque<(Box<dyn SeriesSet>, Usage)>,
    is_begun: bool,
    /// Whether a check found series with `__type__` or `__unit__` labels.
    has_metadata: bool,
    running: Option<Running>,
    buffer: Buffer,
    buffer_held: Usage,
    memory_held: Usage,
}

enum Running {
    Scan(RunningScan),
    Check(RunningCheck),
}

struct RunningScan {
    scan: Scan,
    set: Box<dyn SeriesSet>,
    held: Usage,
    is_begun: bool,
    is_in_series: bool,
}

struct RunningCheck {
    check: Check,
    set: Box<dyn SeriesSet>,
    /// Hashes of label sets without name, type and unit.
    seen: HashSet,
    held: Usage,
}

impl Evaluation {
    /// Type of the answer. A range query returns a vector for each step, whatever the type.
    pub fn returns(&self) -> ValueType {
        self.returns
    }

    /// The answer, if the expression is a string literal.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns whether the answer at a step depends only on its time and on samples up to that
    /// time. Final when the evaluation ends, because equal label sets may appear until then.
    pub fn is_stepwise(&self) -> bool {
        self.is_stepwise && !self.context.may_fail && !self.has_metadata
    }

    /// Whether the series of a range query are in label order; final with the first series.
    pub fn comes_sorted(&self) -> bool {
        self.context.is_sorted
    }

    /// Opens the selections, which read the store as it is now; returns the size of the evaluation.
    pub fn prepare(&mut self) -> Result<Estimate, EvalError> {
        let (start_ms, end_ms) = self.range().unwrap_or_default();
        let estimate = self.open_once().and_then(|()| {
            let first = self.opened.front_mut();
            let series = first.map_or(Ok(0), |(set, _)| set.estimate())?;
            Ok(Estimate { series, start_ms, end_ms })
        });
        if estimate.is_err() {
            self.give_up();
        }
        estimate
    }

    /// Returns the next series of the answer, if one is ready.
    pub fn take_ready(&mut self) -> Option<ResultSeries> {
        self.context.take_answer().map(result)
    }

    /// Reads the source at most `reads_max` times, each time some samples of a series, or until a
    /// series of the answer is ready. Returns whether there is more to do.
    pub fn advance(&mut self, reads_max: usize) -> Result<bool, EvalError> {
        for _ in 0..reads_max {
            if self.context.has_answer() {
                return Ok(true);
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.give_up();
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Warnings and infos noted so far.
    pub fn annotations(&self) -> &Annotations {
        &self.context.annotations
    }

    /// Adds the annotations of another evaluation of the same expression, in the form of
    /// [`Annotations::to_bytes`]; `None` if the bytes are damaged.
    pub fn add_annotations(&mut self, bytes: &[u8]) -> Option<()> {
        self.context.annotations.add_bytes(bytes)
    }

    /// Statistics of the series read and the memory held so far.
    pub fn stats(&self) -> Stats {
        let peak = self.context.budget.peak();
        let mut stats = self.context.stats.clone();
        (stats.bytes_peak, stats.samples_peak) = (peak.bytes, peak.samples);
        stats
    }

    /// Ends the evaluation after an error: no series follow.
    fn give_up(&mut self) {
        // Open scans hold cursors over the head, so all scans are dropped at once.
        self.leaves.clear();
        self.opened.clear();
        self.running = None;
        self.source.end();
    }

    /// Reads some samples, or starts or ends a scan; returns whether there is more to do.
    fn step(&mut self) -> Result<bool, EvalError> {
        self.open_once()?;
        match self.running.take() {
            None => self.begin_leaf(),
            Some(Running::Scan(running)) => self.scan(running).map(|()| true),
            Some(Running::Check(running)) => self.check(running).map(|()| true),
        }
    }

    /// Opens the first scans, so that all of them read the same state of the store.
    fn open_once(&mut self) -> Result<(), EvalError> {
        // Set before the scans are opened: after an error, no scan is opened again.
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let Some((start_ms, end_ms)) = self.range() else { return Ok(()) };
        // From here on, all selections of the source read the same state of the store.
        self.source.begin(start_ms, end_ms);
        for scan in scans(&self.leaves).take(OPEN_SCANS_MAX) {
            let opened =
                open(&*self.source, &selection(scan), scan.span, &mut self.context.budget)?;
            self.opened.push_back(opened);
        }
        Ok(())
    }

    /// Oldest and newest time that scans read; `None` without scans.
    fn range(&self) -> Option<(i64, i64)> {
        let start_ms = scans(&self.leaves).map(|scan| scan.start_ms).min()?;
        let end_ms = scans(&self.leaves).map(|scan| scan.end_ms).max()?;
        Some((start_ms, end_ms))
    }

    /// Starts the next leaf; returns `false` if no leaf is left.
    fn begin_leaf(&mut self) -> Result<bool, EvalError> {
        self.context.is_lockstep = false;
        match self.leaves.pop_front() {
            None => {
                self.source.end();
                return Ok(false);
            }
            Some(Leaf::Generate(node)) => self.pipeline.end(node, &mut self.context)?,
            Some(Leaf::Check(check)) => {
                // Series of one name can only become equal when their types or units are dropped.
                let is_needless = check.what == CheckOf::Equal { after_metadata: true };
                // Once equal series are possible, further checks change nothing.
                if self.context.may_fail || (is_needless && !self.has_metadata) {
                    return Ok(true);
                }
                let (set, held) =
                    open(&*self.source, &labels_of(&check), check.span, &mut self.context.budget)?;
                let seen = HashSet::default();
                self.running = Some(Running::Check(RunningCheck { check, set, seen, held }));
            }
            Some(Leaf::Scan(scan)) => {
                let (set, held) = match self.opened.pop_front() {
                    Some(opened) => opened,
                    None => {
                        open(&*self.source, &selection(&scan), scan.span, &mut self.context.budget)?
                    }
                };
                self.buffer.set_without_buckets(scan.hints.without_buckets);
                let running = RunningScan { scan, set, held, is_begun: false, is_in_series: false };
                self.running = Some(Running::Scan(running));
            }
        }
        Ok(true)
    }

    fn scan(&mut self, mut running: RunningScan) -> Result<(), EvalError> {
        if running.is_in_series {
            running.is_in_series = self.read(&mut running)?;
        } else if let Some(labels) = running.set.next()? {
            self.begin(&running.scan, labels, !running.is_begun);
            running.is_begun = true;
            running.is_in_series = true;
        } else {
            // The cursor is done, and operators that emit held series need its memory.
            self.context.budget.give(running.held);
            for node in running.scan.consumers {
                self.pipeline.end(node, &mut self.context)?;
            }
            self.context.budget.give(std::mem::take(&mut self.memory_held));
            return Ok(());
        }
        self.running = Some(Running::Scan(running));
        Ok(())
    }

    fn check(&mut self, mut running: RunningCheck) -> Result<(), EvalError> {
        let budget = &mut self.context.budget;
        let Some(labels) = running.set.next()? else {
            budget.give(running.held);
            return Ok(());
        };
        match running.check.what {
            // One series answers the check: `self.running` stays empty, which ends the check.
            CheckOf::Any => self.context.may_fail = true,
            CheckOf::Metadata => self.has_metadata = true,
            CheckOf::Equal { .. } => {
                // The hash suffices: a collision only delays the answer.
                let named = labels.iter().filter(|(name, _)| !is_metadata(name));
                if running.seen.insert(hash_labels(named)) {
                    let more = Usage { bytes: HASH_BYTES, samples: 0 };
                    running.held.bytes += more.bytes;
                    budget.take(more, running.check.span)?;
                    self.running = Some(Running::Check(running));
                    return Ok(());
                }
                self.context.may_fail = true;
            }
        }
        self.context.budget.give(running.held);
        Ok(())
    }

    /// Starts a series in all consumers of its scan.
    fn begin(&mut self, scan: &Scan, labels: Labels, is_first: bool) {
        if is_first {
            // The first series in label order shows whether any series has a type or a unit.
            self.context.is_lockstep = scan.is_lockstep && begins_behind_metadata(&labels);
        }
        self.context.stats.series += 1;
        self.buffer.clear();
        // The last consumer takes the labels without a copy; most scans have one consumer.
        let Some((last, others)) = scan.consumers.split_last() else { return };
        for node in others {
            if let Some(fold) = self.pipeline.fold(*node) {
                fold.begin(labels.clone(), &mut self.context);
            }
        }
        if let Some(fold) = self.pipeline.fold(*last) {
            fold.begin(labels, &mut self.context);
        }
    }

    /// Reads some samples of a series for all consumers; at the end of the series, emits the
    /// results of the consumers. Returns whether the series has more samples.
    fn read(&mut self, running: &mut RunningScan) -> Result<bool, EvalError> {
        let RunningScan { scan, set, .. } = running;
        let context = &mut self.context;
        let has_more = self.buffer.read(set.as_mut())?;
        context.budget.set(&mut self.buffer_held, self.buffer.held(), scan.span)?;
        let mut needed: Option<Places> = None;
        let mut memory = Usage::default();
        for node in &scan.consumers {
            let Some(fold) = self.pipeline.fold(*node) else { continue };
            if fold.is_done() {
                continue;
            }
            let places = fold.advance(&self.buffer, context)?;
            memory.bytes += fold.memory_bytes();
            if !fold.is_done() {
                needed = Some(needed.map_or(places, |other| other.min(places)));
            }
        }
        if memory != self.memory_held {
            context.budget.set(&mut self.memory_held, memory, scan.span)?;
        }
        // If no consumer needs more samples, the rest of the series is not read.
        if let Some(places) = needed
            && has_more
        {
            self.buffer.drop_before(places);
            return Ok(true);
        }
        context.stats.samples_read += self.buffer.samples_read();
        // Consumers are in the plan's order, so a join in lockstep gets its first side first.
        for node in &scan.consumers {
            let Some(fold) = self.pipeline.fold(*node) else { continue };
            let series = fold.finish(context)?;
            self.pipeline.emit(*node, series, context)?;
        }
        Ok(false)
    }
}

/// Iterates over the series of the answer. A range query returns series in ascending order of
/// labels, unless sorting would need more than a quarter of a limit. The order of an instant query
/// is arbitrary, unless the expression sorts. No series follows an error.
impl Iterator for Evaluation {
    type Item = Result<ResultSeries, EvalError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(series) = self.take_ready() {
                return Some(Ok(series));
            }
            // `advance` stops at each series that is ready, so the bound does not delay the caller.
            match self.advance(usize::MAX) {
                Ok(true) => {}
                Ok(false) => return self.take_ready().map(Ok),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn scans<'a>(leaves: impl IntoIterator<Item = &'a Leaf>) -> impl Iterator<Item = &'a Scan> {
    leaves.into_iter().filter_map(|leaf| match leaf {
        Leaf::Scan(scan) => Some(scan),
        Leaf::Generate(_) | Leaf::Check(_) => None,
    })
}

fn selection(scan: &Scan) -> Selection {
    Selection {
        matchers: scan.matchers.clone(),
        start_ms: scan.start_ms,
        end_ms: scan.end_ms,
        hints: scan.hints,
    }
}

fn labels_of(check: &Check) -> Selection {
    Selection {
        matchers: check.matchers.clone(),
        start_ms: check.start_ms,
        end_ms: check.end_ms,
        hints: Hints { labels_only: true, ..Hints::default() },
    }
}

fn result(ready: Ready) -> ResultSeries {
    match ready {
        Ready::Samples(labels, samples) => ResultSeries { labels, samples },
        Ready::Column(series, grid) => at_times(series, grid),
    }
}

fn at_times(series: Series, grid: Grid) -> ResultSeries {
    let column = &series.column;
    let mut samples = Samples::default();
    // Growth by doubling would take up to twice the memory.
    samples.floats.reserve_exact(column.present().count());
    samples.floats.extend(
        column
            .present()
            .iter()
            .map(|step| FloatPoint { time_ms: grid.time(step), value: column.floats()[step] }),
    );
    if column.has_histograms() {
        for step in 0..column.len() {
            if let Some(histogram) = column.histogram(step) {
                let point =
                    HistogramPoint { time_ms: grid.time(step), histogram: histogram.clone() };
                samples.histograms.push(point);
            }
        }
    }
    ResultSeries { labels: series.labels, samples }
}
