//! Types of a plan: options, nodes, and the parameters of each kind of node.

use crate::functions::{Dropped, Entry, OverWindow};
use crate::limits::Limits;
use crate::model::{KeyLabels, Labels};
use crate::syntax::{AggregateOp, BinaryOp, Matching, RangeBounds, Span, ValueType};
use tidepool_relabel::Replacer;

pub use super::condition::Condition;
pub use super::grid::Grid;
pub use super::leaf::{Check, CheckOf, Leaf, Scan};

/// Settings of a query. Times are milliseconds since the epoch, durations milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// First evaluation time, included in the query.
    pub start_ms: i64,
    /// Last evaluation time, included in the query.
    pub end_ms: i64,
    /// Time between evaluations; `None` for an instant query, which is evaluated at `start_ms`.
    pub step_ms: Option<i64>,
    /// Maximum age of the sample that an instant vector selector returns (lookback delta).
    pub lookback_ms: i64,
    /// Step of subqueries that state no step.
    pub subquery_step_ms: i64,
    /// Limits of memory, samples, steps and nesting.
    pub limits: Limits,
    /// Whether names are dropped at the end (upstream's `promql-delayed-name-removal`).
    pub delayed_name_removal: bool,
    /// Whether `__type__` and `__unit__` are labels (upstream's feature `type-and-unit-labels`).
    pub type_and_unit_labels: bool,
    /// Whether start timestamps of counters are used (upstream's feature `use-start-timestamps`).
    pub start_timestamps: bool,
    /// Whether statistics count samples for each step.
    pub stats_per_step: bool,
}

impl Options {
    /// Options of an instant query, with upstream's defaults: 5 minutes lookback, 1 minute step.
    pub fn instant(time_ms: i64) -> Options {
        Options {
            start_ms: time_ms,
            end_ms: time_ms,
            step_ms: None,
            lookback_ms: 300_000,
            subquery_step_ms: 60_000,
            limits: Limits::default(),
            delayed_name_removal: false,
            type_and_unit_labels: false,
            start_timestamps: false,
            stats_per_step: false,
        }
    }

    /// Options of a range query, with the defaults of [`Options::instant`].
    pub fn range(start_ms: i64, end_ms: i64, step_ms: i64) -> Options {
        Options { end_ms, step_ms: Some(step_ms), ..Options::instant(start_ms) }
    }
}

/// Index of a node in [`Plan::nodes`].
pub type NodeId = usize;

/// Number of an input of a node; inputs are filled in ascending order.
pub type Port = usize;

/// Approximate memory of a node and its operator in bytes, without columns.
pub const NODE_BYTES: usize = 512;

/// A checked expression in the form in which it is evaluated.
#[derive(Debug)]
pub struct Plan {
    /// Nodes of the expression; the inputs of a node come before the node.
    pub nodes: Vec<Node>,
    /// Leaves that start series, in the order in which they run.
    pub leaves: Vec<Leaf>,
    /// Evaluation times of the whole query.
    pub grid: Grid,
    /// Sort calls that have no effect because they are evaluated over a range.
    pub sorts: Vec<Span>,
    /// Type of the result, such as scalar or vector.
    pub returns: ValueType,
    /// The result, if the expression is a string literal.
    pub text: Option<String>,
    /// Whether the answer at a step depends only on its time and on samples up to this time.
    pub is_stepwise: bool,
    /// Whether the answer's series are to be sorted by labels, if the memory limit permits.
    pub is_sorted: bool,
}

/// A node of the plan, made from a part of the expression.
#[derive(Debug)]
pub struct Node {
    /// Operation of the node, with its parameters.
    pub kind: Kind,
    /// Evaluation times of the node's values.
    pub grid: Grid,
    /// Position of the expression in the query text.
    pub span: Span,
    /// Node and port that receive the node's series; `None` for the root.
    pub parent: Option<(NodeId, Port)>,
    /// Number of inputs, including the port that a scan or generator feeds.
    pub ports: usize,
    /// Knowledge about the metric names of the node's series.
    pub names: Names,
    /// Behaviour while a scan passes series to both sides of a join.
    pub lockstep: Lockstep,
}

/// Behaviour of a node while a scan passes each series to both sides of a join. The evaluation may
/// find that a scan cannot run in lockstep; then the second side waits as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lockstep {
    /// Not part of a lockstep scan.
    #[default]
    None,
    /// Is between the scan and the join, so the node emits the result for a series at once.
    Passes,
    /// Is the join: a series of the second side matches only the last series of the first side.
    Joins,
}

/// Knowledge about the metric names of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// No series has a metric name.
    Absent,
    /// All series have the same metric name.
    Same,
    /// Series may have different metric names.
    Any,
}

/// A scalar argument of a function or an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarArg {
    /// A value that is the same at all steps.
    Constant(f64),
    /// A value for each step, from this input.
    Port(Port),
}

/// Parameters of a fold, which makes one value per step from the samples of a series.
#[derive(Clone, Debug)]
pub struct FoldPlan {
    /// Function that makes the values.
    pub kind: FoldKind,
    /// Fixed evaluation time of the `@` modifier, in place of the step's time.
    pub at_ms: Option<i64>,
    /// The `offset` modifier: milliseconds by which the window is moved back.
    pub offset_ms: i64,
    /// Width of the window in milliseconds.
    pub range_ms: i64,
    /// Milliseconds before and after the window from which samples are needed as well.
    pub margin_ms: (i64, i64),
    /// Modifier of the window: none, `anchored` or `smoothed`.
    pub bounds: RangeBounds,
    /// Scalar arguments, without the range vector.
    pub args: Vec<ScalarArg>,
    /// Positions of all arguments in the query text, for annotations.
    pub arg_spans: Vec<Span>,
    /// Labels that the result lacks.
    pub dropped: Dropped,
    /// Whether statistics count the samples; samples within subqueries are not counted.
    pub is_counted: bool,
    /// Test for the info annotation about rates of metrics that are no counters.
    pub counter_check: Option<CounterCheck>,
}

/// Property by which a counter is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterCheck {
    /// The suffix of its metric name, such as `_total`.
    Name,
    /// The value of its label `__type__`.
    Type,
}

/// Function that a fold applies to the samples of one series.
#[derive(Clone, Copy, Debug)]
pub enum FoldKind {
    /// Value of the last sample.
    Value,
    /// Time of the last sample in seconds.
    Timestamp,
    /// Start time of the last sample in seconds; no value if start times are not used.
    StartTimestamp,
    /// Time of the last sample in milliseconds, for `info`.
    InfoTime,
    /// Value interpolated between the samples around the step.
    Smoothed,
    /// A range function over the window.
    Range(OverWindow),
    /// The samples of the window themselves, as the answer.
    Samples,
}

/// Operation of a node. The inputs of an operation are listed in the order of the ports.
#[derive(Debug)]
pub enum Kind {
    /// Folds the samples of a scan; inputs are scalars.
    Fold(FoldPlan),
    /// Folds the values of a subquery on this inner grid; inputs are scalars, then the series.
    Subquery(FoldPlan, Grid),
    /// The same value at each step, without labels.
    Number(f64),
    /// Time of the step in seconds.
    Time,
    /// A date function of the step's time.
    Date(&'static Entry),
    /// Values of the first step, repeated at all steps.
    Repeat,
    /// A function of one series' values; inputs are scalars, then the series.
    Call(&'static Entry, Vec<ScalarArg>),
    /// A function of scalars that returns a scalar.
    ScalarCall(&'static Entry, Vec<ScalarArg>),
    /// `timestamp` of an expression other than a selector.
    TimestampOfValues,
    /// Drops metric names and keeps the values.
    WithoutName,
    /// Emits no values, whatever the input.
    Nothing,
    /// Unary minus of a vector.
    Negate,
    /// A binary operator between two scalars.
    ScalarBinary(BinaryOp, [ScalarArg; 2]),
    /// A binary operator between a vector and a scalar; inputs are the scalar, then the series.
    VectorScalar(VectorScalar),
    /// A binary operator between two vectors; inputs are the held side, then the flowing side.
    Join(Join),
    /// `and`, `or`, `unless`; inputs are the right operands, then the left operand.
    Set(BinaryOp, KeyLabels),
    /// An aggregation; inputs are its parameter, unless that is constant, then the series.
    Aggregate(AggregatePlan),
    /// `count_values`, which writes values to this label.
    CountValues(KeyLabels, String),
    /// `label_replace`, with its compiled regular expression.
    LabelReplace(Box<LabelReplace>),
    /// `label_join` of source labels into a target label.
    LabelJoin {
        /// Label that receives the joined value.
        target: String,
        /// Text between the joined values.
        separator: String,
        /// Labels whose values are joined, in this order.
        sources: Vec<String>,
    },
    /// `absent`, `absent_over_time`: a series with these labels.
    Absent(Labels),
    /// `scalar`, which reduces a vector to a scalar.
    Scalar,
    /// Emits its series unchanged, for `vector`.
    Pass,
    /// Sorting by value or by labels: `sort`, `sort_desc`, `sort_by_label`, `sort_by_label_desc`.
    Sort(Sort),
    /// `histogram_quantile`, `histogram_fraction`, `histogram_quantiles`: scalars, then the series.
    Buckets(Buckets),
    /// `info`; inputs are series of info metrics, then the series that receive their labels.
    Info(InfoPlan),
    /// Drops names whose removal was delayed.
    Cleanup,
    /// Hands series to the caller; the last node.
    Root(Root),
}

/// Delivery of the answer to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Whether and when series are sorted.
    pub sorting: Sorting,
    /// Whether a later series may have the labels of an earlier series, which is an error: then no
    /// series is delivered before all series are known.
    pub may_fail: bool,
}

/// Whether series are sorted by labels before delivery, if the memory limit permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// Not sorted; series keep the order of evaluation.
    None,
    /// Sorted by construction, unless an operator delays some series: then as [`Sorting::All`].
    IfHeld,
    /// All series are collected and sorted.
    All,
}

/// A binary operator between a vector and a scalar.
#[derive(Clone, Copy, Debug)]
pub struct VectorScalar {
    /// Arithmetic, comparison or trim operator.
    pub op: BinaryOp,
    /// Operand without labels, constant or per step.
    pub scalar: ScalarArg,
    /// Whether the scalar is the left operand.
    pub is_left: bool,
    /// Whether a comparison returns 0 or 1.
    pub returns_bool: bool,
}

/// A binary operator of vectors: one side is held in memory, the other flows past it.
#[derive(Clone, Debug)]
pub struct Join {
    /// Arithmetic, comparison or trim operator.
    pub op: BinaryOp,
    /// Matching of series. The held side is the "one" side; in one-to-one joins the right side.
    pub matching: Matching,
    /// Whether a comparison returns 0 or 1.
    pub returns_bool: bool,
    /// Knowledge about the names of the flowing side.
    pub names: Names,
}

/// An aggregation other than `count_values`.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// Aggregation operator, such as `sum` or `topk`.
    pub op: AggregateOp,
    /// Labels by which series are grouped.
    pub by: KeyLabels,
    /// Parameter of `topk`, `bottomk`, `limitk`, `limit_ratio` and `quantile`.
    pub param: Option<ScalarArg>,
    /// Position of the parameter, for annotations.
    pub param_span: Span,
    /// Position of the aggregated expression, for annotations.
    pub expr_span: Span,
}

/// Sort order of an instant vector.
#[derive(Clone, Debug)]
pub struct Sort {
    /// Labels whose values are compared; `None` to compare the values of series.
    pub labels: Option<Vec<String>>,
    /// Whether the largest value comes first.
    pub is_descending: bool,
}

/// A function of the buckets of classic and native histograms.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Result: quantiles or a fraction.
    pub what: BucketsOf,
    /// Quantiles, or the lower and upper bound of a fraction.
    pub args: Vec<ScalarArg>,
    /// Positions of `args` in the query text.
    pub arg_spans: Vec<Span>,
    /// Position of the histograms in the query text.
    pub series_span: Span,
}

/// Result of a function of buckets.
#[derive(Clone, Debug)]
pub enum BucketsOf {
    /// One quantile for each histogram.
    Quantile,
    /// Several quantiles, distinguished by the value of this label.
    Quantiles(String),
    /// Fraction of observations between two bounds.
    Fraction,
}

/// Parameters of `label_replace`, with its compiled expression.
#[derive(Debug)]
pub struct LabelReplace {
    /// Label that receives the new value.
    pub target: String,
    /// New value; may refer to capture groups.
    pub replacement: String,
    /// Label whose value is matched.
    pub source: String,
    /// The regular expression, compiled and anchored.
    pub pattern: Replacer,
}

/// Parameters of `info`, which adds labels of info metrics.
#[derive(Debug)]
pub struct InfoPlan {
    /// Conditions on the names of info metrics.
    pub names: Vec<Condition>,
    /// Labels that are added, in ascending order; empty to add all.
    pub data: Vec<String>,
    /// Whether series without matching info metrics are kept.
    pub keeps_bare: bool,
}

impl Kind {
    /// Approximate memory of compiled regular expressions in bytes.
    pub fn compiled_bytes(&self) -> usize {
        match self {
            Kind::LabelReplace(plan) => plan.pattern.bytes(),
            Kind::Info(plan) => plan.names.iter().map(Condition::bytes).sum(),
            _ => 0,
        }
    }
}
