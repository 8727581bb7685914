//! Parts of a plan.

use crate::functions::{Dropped, Entry, OverWindow};
use crate::limits::Limits;
use crate::model::{KeyLabels, Labels};
use crate::syntax::{AggregateOp, BinaryOp, Matching, RangeBounds, Span, ValueType};
use tidepool_relabel::Replacer;

pub use super::condition::Condition;
pub use super::grid::Grid;
pub use super::leaf::{Check, CheckOf, Leaf, Scan};

/// What a query is evaluated with. Times are milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// First evaluation time.
    pub start_ms: i64,
    /// Last evaluation time, included.
    pub end_ms: i64,
    /// Time between evaluations; none for an instant query, which is evaluated at `start_ms`.
    pub step_ms: Option<i64>,
    /// How old a sample may be that an instant vector selector takes.
    pub lookback_ms: i64,
    /// Step of subqueries that give none.
    pub subquery_step_ms: i64,
    /// What the query may take.
    pub limits: Limits,
    /// Whether metric names are taken out at the end only (upstream's feature
    /// `promql-delayed-name-removal`).
    pub delayed_name_removal: bool,
    /// Whether types and units are labels (upstream's feature `type-and-unit-labels`).
    pub type_and_unit_labels: bool,
    /// Whether start times of counters are used (upstream's feature `use-start-timestamps`).
    pub start_timestamps: bool,
    /// Whether samples are counted for each step.
    pub stats_per_step: bool,
}

impl Options {
    /// An instant query.
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

    /// A range query.
    pub fn range(start_ms: i64, end_ms: i64, step_ms: i64) -> Options {
        Options { end_ms, step_ms: Some(step_ms), ..Options::instant(start_ms) }
    }
}

/// Place of a node in its plan.
pub type NodeId = usize;

/// Which input of a node; they are filled in this order.
pub type Port = usize;

/// What a node and its operator take beside columns, about.
pub const NODE_BYTES: usize = 512;

/// A plan.
#[derive(Debug)]
pub struct Plan {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What fills them, in this order.
    pub leaves: Vec<Leaf>,
    /// When the query is evaluated.
    pub grid: Grid,
    /// Calls that sort in vain.
    pub sorts: Vec<Span>,
    /// Type of the answer.
    pub returns: ValueType,
    /// The answer, if it is a text.
    pub text: Option<String>,
    /// Whether the answer at a step depends on nothing but its time and samples that are not newer.
    pub is_stepwise: bool,
    /// Whether the series of the answer are in the order of their labels, if that can be afforded.
    pub is_sorted: bool,
}

/// A part of the expression.
#[derive(Debug)]
pub struct Node {
    /// What it does.
    pub kind: Kind,
    /// When its values are.
    pub grid: Grid,
    /// Its place in the text.
    pub span: Span,
    /// Where its series go.
    pub parent: Option<(NodeId, Port)>,
    /// How many inputs it has.
    pub ports: usize,
    /// Names of its series.
    pub names: Names,
    /// What it does while a scan gives series to both sides of a join.
    pub lockstep: Lockstep,
}

/// What a node does while a scan gives series to both sides of a join one after the other. The
/// evaluation may find that it cannot, and wait as without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lockstep {
    /// What it always does.
    #[default]
    None,
    /// It stands between the scan and the join, so it gives the result for a series at once.
    Passes,
    /// It is the join: each series of its second side matches none but the last one of its first.
    Joins,
}

/// What is known about the metric names of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// None has one.
    Absent,
    /// All have the same one.
    Same,
    /// They may differ.
    Any,
}

/// A scalar argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarArg {
    /// The same at all steps.
    Constant(f64),
    /// From an input.
    Port(Port),
}

/// How samples of one series become values at the steps.
#[derive(Clone, Debug)]
pub struct FoldPlan {
    /// What is made of them.
    pub kind: FoldKind,
    /// A time that is taken instead of the step's.
    pub at_ms: Option<i64>,
    /// Milliseconds by which it is shifted back.
    pub offset_ms: i64,
    /// Width of the window in milliseconds.
    pub range_ms: i64,
    /// Milliseconds before and behind the window from which samples are taken, too.
    pub margin_ms: (i64, i64),
    /// How the window is bounded.
    pub bounds: RangeBounds,
    /// Scalar arguments.
    pub args: Vec<ScalarArg>,
    /// Places of all arguments.
    pub arg_spans: Vec<Span>,
    /// Labels that are taken out.
    pub dropped: Dropped,
    /// Whether its samples count; those within subqueries do not.
    pub is_counted: bool,
    /// What a rate of something that is no counter is told by.
    pub counter_check: Option<CounterCheck>,
}

/// What tells a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterCheck {
    /// The end of its name.
    Name,
    /// The label `__type__`.
    Type,
}

/// What is made of the samples of one series.
#[derive(Clone, Copy, Debug)]
pub enum FoldKind {
    /// The last value.
    Value,
    /// The last sample's time in seconds.
    Timestamp,
    /// The last sample's start time in seconds; nothing if start times are not used.
    StartTimestamp,
    /// The last sample's time in milliseconds, for `info`.
    InfoTime,
    /// The value that lies between two samples.
    Smoothed,
    /// A function of the window.
    Range(OverWindow),
    /// The samples of the window themselves, as the answer.
    Samples,
}

/// What a node does.
#[derive(Debug)]
pub enum Kind {
    /// Makes values of samples of a scan; inputs are scalars.
    Fold(FoldPlan),
    /// Makes values of the values of a subquery, which are on this grid; inputs are scalars, then
    /// the series.
    Subquery(FoldPlan, Grid),
    /// One value without labels at each step.
    Number(f64),
    /// The step's time in seconds.
    Time,
    /// A function of dates, of the step's time.
    Date(&'static Entry),
    /// The values of the first step, at all steps.
    Repeat,
    /// A function of one series' values; inputs are scalars, then the series.
    Call(&'static Entry, Vec<ScalarArg>),
    /// A function of scalars.
    ScalarCall(&'static Entry, Vec<ScalarArg>),
    /// `timestamp` of something else than a selector.
    TimestampOfValues,
    /// The same values without names.
    WithoutName,
    /// Nothing, whatever comes.
    Nothing,
    /// `-x`
    Negate,
    /// Two scalars.
    ScalarBinary(BinaryOp, [ScalarArg; 2]),
    /// A vector and a scalar: the scalar, then the series.
    VectorScalar(VectorScalar),
    /// Two vectors: the held one, then the other.
    Join(Join),
    /// `and`, `or`, `unless`: the right one, then the left one.
    Set(BinaryOp, KeyLabels),
    /// An aggregation: its parameter, if that is not constant, then the series.
    Aggregate(AggregatePlan),
    /// `count_values` with this label.
    CountValues(KeyLabels, String),
    /// `label_replace`
    LabelReplace(Box<LabelReplace>),
    /// `label_join`
    LabelJoin {
        /// Label that is set.
        target: String,
        /// What stands between the values.
        separator: String,
        /// Labels whose values are joined.
        sources: Vec<String>,
    },
    /// `absent`, `absent_over_time`: a series of these labels.
    Absent(Labels),
    /// `scalar`
    Scalar,
    /// Passes series on.
    Pass,
    /// `sort`, `sort_desc`, …
    Sort(Sort),
    /// `histogram_quantile`, `histogram_fraction`, `histogram_quantiles`: scalars, then the series.
    Buckets(Buckets),
    /// `info`: series of info metrics, then those that get their labels.
    Info(InfoPlan),
    /// Takes out names whose removal was delayed.
    Cleanup,
    /// Gives series to the caller.
    Root(Root),
}

/// How the answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Whether series are sorted.
    pub sorting: Sorting,
    /// Whether series that come later may have the labels of earlier ones, which is an error: then
    /// none is given before the last one is there.
    pub may_fail: bool,
}

/// Whether series are sorted by labels before the caller gets them, if there is memory for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// They come as the expression gives them.
    None,
    /// They come sorted, unless an operator has to hold some of them: then as [`Sorting::All`].
    IfHeld,
    /// All of them.
    All,
}

/// A vector and a scalar.
#[derive(Clone, Copy, Debug)]
pub struct VectorScalar {
    /// The operator.
    pub op: BinaryOp,
    /// The scalar.
    pub scalar: ScalarArg,
    /// Whether the scalar is the left operand.
    pub is_left: bool,
    /// Whether a comparison gives 0 or 1.
    pub returns_bool: bool,
}

/// A join of two vectors.
#[derive(Clone, Debug)]
pub struct Join {
    /// The operator.
    pub op: BinaryOp,
    /// How series match. The held side is the "one" side; the right one of one-to-one.
    pub matching: Matching,
    /// Whether a comparison gives 0 or 1.
    pub returns_bool: bool,
    /// Names of the side that flows.
    pub names: Names,
}

/// An aggregation.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// The operator.
    pub op: AggregateOp,
    /// What makes a group.
    pub by: KeyLabels,
    /// Parameter of some operators.
    pub param: Option<ScalarArg>,
    /// Place of the parameter.
    pub param_span: Span,
    /// Place of what is aggregated.
    pub expr_span: Span,
}

/// How series are sorted.
#[derive(Clone, Debug)]
pub struct Sort {
    /// Labels whose values are compared; none to compare the series' values.
    pub labels: Option<Vec<String>>,
    /// Whether the largest comes first.
    pub is_descending: bool,
}

/// A function of the buckets of classic and native histograms.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// What is computed.
    pub what: BucketsOf,
    /// Quantiles, or lower and upper bound.
    pub args: Vec<ScalarArg>,
    /// Places of `args`.
    pub arg_spans: Vec<Span>,
    /// Place of the series.
    pub series_span: Span,
}

/// What is computed of buckets.
#[derive(Clone, Debug)]
pub enum BucketsOf {
    /// One quantile.
    Quantile,
    /// Several quantiles, told by this label.
    Quantiles(String),
    /// The part between two bounds.
    Fraction,
}

/// `label_replace`
#[derive(Debug)]
pub struct LabelReplace {
    /// Label that is set.
    pub target: String,
    /// Its value; may name groups.
    pub replacement: String,
    /// Label whose value is matched.
    pub source: String,
    /// The compiled expression.
    pub pattern: Replacer,
}

/// `info`
#[derive(Debug)]
pub struct InfoPlan {
    /// Conditions on the names of info metrics.
    pub names: Vec<Condition>,
    /// Labels that are taken, ascending; all are if there are none.
    pub data: Vec<String>,
    /// Whether series without info metrics stay.
    pub keeps_bare: bool,
}

impl Kind {
    /// Memory of what was compiled, roughly.
    pub fn compiled_bytes(&self) -> usize {
        match self {
            Kind::LabelReplace(plan) => plan.pattern.bytes(),
            Kind::Info(plan) => plan.names.iter().map(Condition::bytes).sum(),
            _ => 0,
        }
    }
}
