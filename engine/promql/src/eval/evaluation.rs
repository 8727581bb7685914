//! A query, and its evaluation series by series.

use super::budget::Held;
use super::buffer::{Buffer, Places};
use super::column::Column;
use super::context::{Context, Ready};
use super::key::HashSet;
use super::operators::pipeline;
use super::pipeline::Pipeline;
use super::series::{ResultSeries, Series};
use super::stats::Stats;
use super::unite::HASH_BYTES;
use crate::annotations::{Annotations, Note};
use crate::error::EvalError;
use crate::model::{
    FloatPoint, HistogramPoint, Labels, Samples, begins_behind_metadata, hash_labels, is_metadata,
};
use crate::plan::{
    Check, CheckOf, Grid, Leaf, NODE_BYTES, Node, Options, Plan, PlanError, Scan, plan,
};
use crate::source::{Hints, Selection, SeriesSet, Source};
use crate::syntax::{Expr, ValueType};
use std::collections::VecDeque;
use std::rc::Rc;

/// Scans that are open at a time: each holds a cursor over the head, which is memory of ingestion.
/// Those behind them are opened when their turn comes, and may show later samples.
const OPEN_SCANS_MAX: usize = 8;

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub struct Query {
    plan: Plan,
    options: Options,
}

impl Query {
    /// Makes a plan for an expression whose types were checked.
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

    /// What is read of the store.
    pub fn scans(&self) -> impl Iterator<Item = &Scan> {
        scans(&self.plan.leaves)
    }

    /// Begins to evaluate.
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
            buffer_held: Held::default(),
            memory_held: Held::default(),
        })
    }
}

/// Counts the operators, what was compiled for them, and what passes through them: each holds a
/// column while a series goes from its leaf to the root.
fn take_nodes(nodes: &[Node], context: &mut Context) -> Result<(), EvalError> {
    // The inputs of a node come before it.
    let mut below = vec![0; nodes.len()];
    let mut most = 0;
    for (id, node) in nodes.iter().enumerate() {
        let bytes = below[id] + node.grid.steps * Column::BYTES_PER_STEP;
        if let Some((parent, _)) = node.parent {
            below[parent] = bytes.max(below[parent]);
        }
        let compiled = node.kind.compiled_bytes();
        let more = NODE_BYTES + compiled + bytes.saturating_sub(most);
        most = most.max(bytes);
        context.budget.take(Held { bytes: more, samples: 0 }, node.span)?;
    }
    Ok(())
}

/// What is known of an evaluation before samples are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// About how many series the first selection has.
    pub series: usize,
    /// Oldest time that is read.
    pub start_ms: i64,
    /// Newest time that is read.
    pub end_ms: i64,
}

/// The evaluation of a query.
pub struct Evaluation {
    source: Rc<dyn Source>,
    returns: ValueType,
    text: Option<String>,
    is_stepwise: bool,
    pipeline: Pipeline,
    context: Context,
    leaves: VecDeque<Leaf>,
    /// Series of the scans that are still to run, in their order.
    opened: VecDeque<(Box<dyn SeriesSet>, Held)>,
    /// Whether all scans were opened.
    is_begun: bool,
    /// Whether a check found series with types or units.
    has_metadata: bool,
    running: Option<Running>,
    buffer: Buffer,
    buffer_held: Held,
    memory_held: Held,
}

enum Running {
    Scan(RunningScan),
    Check(RunningCheck),
}

struct RunningScan {
    scan: Scan,
    set: Box<dyn SeriesSet>,
    held: Held,
    is_begun: bool,
    is_in_series: bool,
}

struct RunningCheck {
    check: Check,
    set: Box<dyn SeriesSet>,
    /// Label sets without name, type and unit.
    seen: HashSet,
    held: Held,
}

impl Evaluation {
    /// Type of the answer. A range query gives a vector for each step, whatever the type.
    pub fn returns(&self) -> ValueType {
        self.returns
    }

    /// The answer, if it is a text.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether the answer at a step depends on nothing but its time and samples that are not newer.
    /// Series that may become equal are known at the end only.
    pub fn is_stepwise(&self) -> bool {
        self.is_stepwise && !self.context.may_fail && !self.has_metadata
    }

    /// Whether the series of a range come by ascending labels; known when the first one is ready.
    pub fn comes_sorted(&self) -> bool {
        self.context.is_sorted
    }

    /// Opens the selections, so that they show the store as it is now, and gives what is known of
    /// them before they are read.
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

    /// A series of the answer, if one is ready.
    pub fn take_ready(&mut self) -> Option<ResultSeries> {
        self.context.take_answer().map(result)
    }

    /// Reads the source this many times at most, each time some samples of a series, or until a
    /// series of the answer is ready; gives whether there is more to do.
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

    /// What was noted so far.
    pub fn annotations(&self) -> &Annotations {
        &self.context.annotations
    }

    /// Adds what another evaluation of the same expression noted, as
    /// [`Annotations::to_bytes`] gives it; none if it is something else.
    pub fn add_annotations(&mut self, bytes: &[u8]) -> Option<()> {
        self.context.annotations.add_bytes(bytes)
    }

    /// What was read and held so far.
    pub fn stats(&self) -> Stats {
        let peak = self.context.budget.peak();
        let mut stats = self.context.stats.clone();
        (stats.bytes_peak, stats.samples_peak) = (peak.bytes, peak.samples);
        stats
    }

    /// Nothing comes behind an error.
    fn give_up(&mut self) {
        self.leaves.clear();
        self.opened.clear();
        self.running = None;
        self.source.end();
    }

    /// Some samples of a series, or the beginning or end of a scan; gives whether there is more.
    fn step(&mut self) -> Result<bool, EvalError> {
        self.open_once()?;
        match self.running.take() {
            None => self.begin_leaf(),
            Some(Running::Scan(running)) => self.scan(running).map(|()| true),
            Some(Running::Check(running)) => self.check(running).map(|()| true),
        }
    }

    /// Opens the first scans, so that they show the store as of one moment.
    fn open_once(&mut self) -> Result<(), EvalError> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let Some((start_ms, end_ms)) = self.range() else { return Ok(()) };
        self.source.begin(start_ms, end_ms);
        for scan in scans(&self.leaves).take(OPEN_SCANS_MAX) {
            let set = self.source.select(&selection(scan))?;
            let held = Held { bytes: set.bytes(), samples: 0 };
            self.context.budget.take(held, scan.span)?;
            self.opened.push_back((set, held));
        }
        Ok(())
    }

    /// The oldest and the newest time that scans read, if there are any.
    fn range(&self) -> Option<(i64, i64)> {
        let start_ms = scans(&self.leaves).map(|scan| scan.start_ms).min()?;
        let end_ms = scans(&self.leaves).map(|scan| scan.end_ms).max()?;
        Some((start_ms, end_ms))
    }

    /// Begins with the next leaf; gives whether there is one.
    fn begin_leaf(&mut self) -> Result<bool, EvalError> {
        self.context.is_lockstep = false;
        match self.leaves.pop_front() {
            None => {
                self.source.end();
                return Ok(false);
            }
            Some(Leaf::Generate(node)) => self.pipeline.end(node, &mut self.context)?,
            Some(Leaf::Check(check)) => {
                let is_needless = check.what == CheckOf::Equal { after_metadata: true };
                if self.context.may_fail || (is_needless && !self.has_metadata) {
                    return Ok(true);
                }
                let set = self.source.select(&labels_of(&check))?;
                let held = Held { bytes: set.bytes(), samples: 0 };
                self.context.budget.take(held, check.span)?;
                let seen = HashSet::default();
                self.running = Some(Running::Check(RunningCheck { check, set, seen, held }));
            }
            Some(Leaf::Scan(scan)) => {
                let (set, held) = match self.opened.pop_front() {
                    Some(opened) => opened,
                    None => (self.source.select(&selection(&scan))?, Held::default()),
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

    /// Looks at the labels of a series.
    fn check(&mut self, mut running: RunningCheck) -> Result<(), EvalError> {
        let budget = &mut self.context.budget;
        let Some(labels) = running.set.next()? else {
            budget.give(running.held);
            return Ok(());
        };
        match running.check.what {
            CheckOf::Any => self.context.may_fail = true,
            CheckOf::Metadata => self.has_metadata = true,
            CheckOf::Equal { .. } => {
                let named = labels.iter().filter(|(name, _)| !is_metadata(name));
                if running.seen.insert(hash_labels(named)) {
                    let more = Held { bytes: HASH_BYTES, samples: 0 };
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

    /// Begins with a series for all consumers of its scan.
    fn begin(&mut self, scan: &Scan, labels: Labels, is_first: bool) {
        if is_first {
            self.context.is_lockstep = scan.is_lockstep && begins_behind_metadata(&labels);
        }
        self.context.stats.series += 1;
        self.buffer.clear();
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

    /// Reads some samples of a series for all consumers, and sends on what they made of it at its
    /// end; gives whether there is more of it.
    fn read(&mut self, running: &mut RunningScan) -> Result<bool, EvalError> {
        let RunningScan { scan, set, .. } = running;
        let context = &mut self.context;
        let has_more = self.buffer.read(set.as_mut())?;
        context.budget.set(&mut self.buffer_held, self.buffer.held(), scan.span)?;
        let mut needed: Option<Places> = None;
        let mut memory = Held::default();
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
        if let Some(places) = needed
            && has_more
        {
            self.buffer.drop_before(places);
            return Ok(true);
        }
        context.stats.samples_read += self.buffer.samples_read();
        for node in &scan.consumers {
            let Some(fold) = self.pipeline.fold(*node) else { continue };
            let series = fold.finish(context)?;
            self.pipeline.emit(*node, series, context)?;
        }
        Ok(false)
    }
}

/// The series of the answer. Those of ranges come by ascending labels, unless to sort them would
/// take more than a quarter of a limit; those of an instant vector come in no certain order, but
/// for expressions that sort. Nothing comes behind an error.
impl Iterator for Evaluation {
    type Item = Result<ResultSeries, EvalError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(series) = self.take_ready() {
                return Some(Ok(series));
            }
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
