//! A query, and its evaluation series by series.

use super::EvalError;
use super::budget::Held;
use super::buffer::{Buffer, Places};
use super::column::Column;
use super::context::{Context, Ready};
use super::operators::pipeline;
use super::pipeline::Pipeline;
use super::series::{ResultSeries, Series};
use super::stats::Stats;
use crate::annotations::Annotations;
use crate::model::{FloatPoint, HistogramPoint, Labels, Samples};
use crate::plan::{Grid, Leaf, Node, Options, Plan, PlanError, Scan, plan};
use crate::source::{Selection, SeriesSet, Source};
use crate::syntax::{Expr, Span, ValueType};
use std::collections::VecDeque;
use std::rc::Rc;

/// What an operator takes beside its columns, about.
const NODE_BYTES: usize = 512;

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
        self.plan.leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Scan(scan) => Some(scan),
            Leaf::Generate(_) => None,
        })
    }

    /// Begins to evaluate.
    pub fn evaluate(mut self, source: Rc<dyn Source>) -> Result<Evaluation, EvalError> {
        let is_delayed = self.options.delayed_name_removal;
        let stats = Stats::new(self.plan.grid, self.options.stats_per_step);
        let mut context = Context::new(self.options.limits, is_delayed, stats);
        let patterns = Held { bytes: self.plan.pattern_bytes, samples: 0 };
        context.budget.take(patterns, Span::default())?;
        take_columns(&self.plan.nodes, &mut context)?;
        Ok(Evaluation {
            source,
            returns: self.plan.returns,
            text: self.plan.text.take(),
            pipeline: pipeline(&mut self.plan, is_delayed)?,
            context,
            leaves: std::mem::take(&mut self.plan.leaves).into(),
            running: None,
            buffer: Buffer::default(),
            buffer_held: Held::default(),
        })
    }
}

/// Counts what passes through the operators: each holds a column while a series goes from its leaf
/// to the root.
fn take_columns(nodes: &[Node], context: &mut Context) -> Result<(), EvalError> {
    // The inputs of a node come before it.
    let mut below = vec![0; nodes.len()];
    let mut most = 0;
    for (id, node) in nodes.iter().enumerate() {
        let bytes = below[id] + node.grid.steps * Column::BYTES_PER_STEP;
        if let Some((parent, _)) = node.parent {
            below[parent] = bytes.max(below[parent]);
        }
        let more = NODE_BYTES + bytes.saturating_sub(most);
        most = most.max(bytes);
        context.budget.take(Held { bytes: more, samples: 0 }, node.span)?;
    }
    Ok(())
}

/// The evaluation of a query.
pub struct Evaluation {
    source: Rc<dyn Source>,
    returns: ValueType,
    text: Option<String>,
    pipeline: Pipeline,
    context: Context,
    leaves: VecDeque<Leaf>,
    running: Option<Running>,
    buffer: Buffer,
    buffer_held: Held,
}

struct Running {
    scan: Scan,
    set: Box<dyn SeriesSet>,
    is_in_series: bool,
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
                    self.leaves.clear();
                    self.running = None;
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

    /// What was read and held so far.
    pub fn stats(&self) -> Stats {
        let peak = self.context.budget.peak();
        let mut stats = self.context.stats.clone();
        (stats.bytes_peak, stats.samples_peak) = (peak.bytes, peak.samples);
        stats
    }

    /// Some samples of a series, or the beginning or end of a scan; gives whether there is more.
    fn step(&mut self) -> Result<bool, EvalError> {
        let Some(mut running) = self.running.take() else {
            return match self.leaves.pop_front() {
                None => Ok(false),
                Some(Leaf::Generate(node)) => {
                    self.pipeline.end(node, &mut self.context)?;
                    Ok(true)
                }
                Some(Leaf::Scan(scan)) => {
                    let set = self.source.select(&selection(&scan))?;
                    self.buffer.set_without_buckets(scan.hints.without_buckets);
                    self.running = Some(Running { scan, set, is_in_series: false });
                    Ok(true)
                }
            };
        };
        if running.is_in_series {
            running.is_in_series = self.read(&mut running)?;
        } else if let Some(labels) = running.set.next()? {
            self.begin(&running.scan, labels);
            running.is_in_series = true;
        } else {
            for node in running.scan.consumers {
                self.pipeline.end(node, &mut self.context)?;
            }
            return Ok(true);
        }
        self.running = Some(running);
        Ok(true)
    }

    /// Begins with a series for all consumers of its scan.
    fn begin(&mut self, scan: &Scan, labels: Labels) {
        self.context.stats.series += 1;
        self.buffer.clear();
        for node in &scan.consumers {
            if let Some(fold) = self.pipeline.fold(*node) {
                fold.begin(labels.clone(), &mut self.context);
            }
        }
    }

    /// Reads some samples of a series for all consumers, and sends on what they made of it at its
    /// end; gives whether there is more of it.
    fn read(&mut self, running: &mut Running) -> Result<bool, EvalError> {
        let Running { scan, set, .. } = running;
        let context = &mut self.context;
        let has_more = self.buffer.read(set.as_mut())?;
        context.budget.set(&mut self.buffer_held, self.buffer.held(), scan.span)?;
        let mut needed: Option<Places> = None;
        for node in &scan.consumers {
            let Some(fold) = self.pipeline.fold(*node) else { continue };
            if fold.is_done() {
                continue;
            }
            let places = fold.advance(&self.buffer, context)?;
            if !fold.is_done() {
                needed = Some(needed.map_or(places, |other| other.min(places)));
            }
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

fn selection(scan: &Scan) -> Selection {
    Selection {
        matchers: scan.matchers.clone(),
        start_ms: scan.start_ms,
        end_ms: scan.end_ms,
        hints: scan.hints,
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
