//! The syntax tree of an expression. Each node has its position in the text.

use super::{AggregateOp, BinaryOp, DurationOp, MatchOp, Text, UnaryOp};

/// A position in the text of an expression, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// The four types of PromQL values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A float without labels or time.
    Scalar,
    /// A string, the value of a string literal.
    String,
    /// One sample for each series.
    Vector,
    /// Samples over a range of time for each series.
    Matrix,
}

impl ValueType {
    /// Returns the name in documentation and errors.
    pub fn documented(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "instant vector",
            ValueType::Matrix => "range vector",
        }
    }

    /// Returns the name in the HTTP API.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "vector",
            ValueType::Matrix => "matrix",
        }
    }
}

/// A node of the syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Position of the node in the text.
    pub span: Span,
    /// Kind of the node, with its children.
    pub kind: ExprKind,
}

/// The kinds of nodes of a syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number, or a duration in seconds.
    Number(NumberLiteral),
    /// A string literal without its quotes.
    String(Text),
    /// An instant vector selector, `name{…}`.
    Vector(VectorSelector),
    /// A range vector selector, `name{…}[range]`.
    Matrix(MatrixSelector),
    /// A subquery, `expr[range:step]`: an expression evaluated over a range of time.
    Subquery(Box<Subquery>),
    /// An operand with a sign, `-x` or `+x`.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands with a binary operator.
    Binary(Box<Binary>),
    /// An aggregation over series, such as `sum by (a) (x)`.
    Aggregate(Box<Aggregate>),
    /// A function call with its arguments.
    Call(Call),
    /// An expression enclosed in parentheses.
    Paren(Box<Expr>),
}

impl Expr {
    /// Returns the type of the expression's value.
    pub fn value_type(&self) -> ValueType {
        let mut expr = self;
        loop {
            return match &expr.kind {
                ExprKind::Number(_) => ValueType::Scalar,
                ExprKind::String(_) => ValueType::String,
                ExprKind::Vector(_) | ExprKind::Aggregate(_) => ValueType::Vector,
                ExprKind::Matrix(_) | ExprKind::Subquery(_) => ValueType::Matrix,
                ExprKind::Call(call) => call.function.returns,
                ExprKind::Binary(binary) => binary.value_type,
                ExprKind::Unary(_, inner) | ExprKind::Paren(inner) => {
                    expr = inner;
                    continue;
                }
            };
        }
    }

    /// Returns this expression and its left operands while they are binary expressions, outermost
    /// first. The tree of a chain is as deep as the chain is long, so chains are walked in loops.
    pub fn chain(&self) -> Vec<(&Expr, &Binary)> {
        let mut chain = Vec::new();
        let mut expr = self;
        while let ExprKind::Binary(binary) = &expr.kind {
            chain.push((expr, &**binary));
            expr = &binary.lhs;
        }
        chain
    }

    /// Returns the operands of a chain in the order of the text; empty for other expressions.
    pub fn operands(&self) -> Vec<&Expr> {
        // The outermost operator comes first in `chain`, but last in the text.
        let chain = self.chain();
        let first = chain.last().map(|(_, binary)| &binary.lhs);
        first.into_iter().chain(chain.iter().rev().map(|(_, binary)| &binary.rhs)).collect()
    }

    /// Estimates the memory of the tree in bytes.
    pub fn bytes(&self) -> usize {
        let own = match &self.kind {
            ExprKind::Vector(selector) => selector.bytes(),
            ExprKind::Matrix(matrix) => matrix.selector.bytes(),
            ExprKind::String(text) => text.as_str().len(),
            // `children` skips the operators inside of a chain, so they are counted here.
            ExprKind::Binary(_) => self.chain().len() * size_of::<(Expr, Binary)>(),
            ExprKind::Aggregate(_) => size_of::<Aggregate>(),
            _ => 0,
        };
        let below = self.children().into_iter().map(Expr::bytes);
        size_of::<Expr>() + own + below.sum::<usize>()
    }

    /// Returns the direct children; a chain of operators counts as one level.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Vector(_)
            | ExprKind::Matrix(_) => Vec::new(),
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => vec![inner],
            ExprKind::Subquery(subquery) => vec![&subquery.expr],
            ExprKind::Binary(_) => self.operands(),
            ExprKind::Aggregate(aggregate) => {
                aggregate.param.iter().chain([&aggregate.expr]).collect()
            }
            ExprKind::Call(call) => call.args.iter().collect(),
        }
    }
}

/// A literal number, or a literal duration with units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberLiteral {
    /// The value; seconds of a duration.
    pub value: f64,
    /// Whether the literal has units, as in `5m`.
    pub is_duration: bool,
}

/// A condition on one label, as in `{name="value"}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// Name of the label, `__name__` for the metric.
    pub name: String,
    /// Comparison of the label with `value`.
    pub op: MatchOp,
    /// Compared text, or a regular expression in RE2's syntax.
    pub value: String,
}

/// Treatment of the ends of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeBounds {
    /// Only the samples within the range are used.
    #[default]
    Samples,
    /// `anchored`: the last samples at or before the ends of the range are used.
    Anchored,
    /// `smoothed`: values are interpolated at the ends of the range.
    Smoothed,
}

/// An instant vector selector with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSelector {
    /// Metric name before the braces; empty if there is none.
    pub name: String,
    /// All matchers, including the matcher of `__name__`.
    pub matchers: Vec<Matcher>,
    /// The modifiers `@` and `offset`.
    pub shift: TimeShift,
    /// Treatment of the range's ends, used by range functions only.
    pub bounds: RangeBounds,
}

impl VectorSelector {
    fn bytes(&self) -> usize {
        let matchers = self.matchers.iter();
        let texts = matchers.map(|matcher| matcher.name.len() + matcher.value.len());
        self.name.len() + size_of_val(&*self.matchers) + texts.sum::<usize>()
    }
}

/// A range vector selector with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSelector {
    /// Selector of the series. Its span ends before the bracket.
    pub selector: VectorSelector,
    /// Position of `selector` without the range.
    pub selector_span: Span,
    /// Width of the range before the evaluation time.
    pub range: DurationValue,
}

/// An expression that is evaluated over a range of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// The expression to evaluate at each step.
    pub expr: Expr,
    /// Width of the range before the evaluation time.
    pub range: DurationValue,
    /// Time between evaluations; `None` for the default.
    pub step: Option<DurationValue>,
    /// The modifiers `@` and `offset`.
    pub shift: TimeShift,
}

/// The modifiers `@` and `offset`, which change the evaluation time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeShift {
    /// Value of `offset`; may be negative.
    pub offset: Option<DurationValue>,
    /// Value of `@`, if it is set.
    pub at: Option<At>,
}

/// A fixed evaluation time, given by `@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Time in milliseconds since the epoch.
    Time(i64),
    /// `@ start()`: start of the query's range.
    Start,
    /// `@ end()`: end of the query's range.
    End,
}

/// A duration, or an expression that is computed when the query's range is known.
#[derive(Clone, Debug, PartialEq)]
pub enum DurationValue {
    /// A literal duration in milliseconds.
    Ms(i64),
    /// An expression of durations, not computed yet.
    Expr(Box<DurationExpr>),
}

/// An expression of durations, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationExpr {
    /// Position of the expression in the text.
    pub span: Span,
    /// Whether the expression is in parentheses.
    pub is_wrapped: bool,
    /// Kind of the node, with its operands.
    pub kind: DurationExprKind,
}

/// The kinds of nodes of a duration expression.
#[derive(Clone, Debug, PartialEq)]
pub enum DurationExprKind {
    /// A number or duration in seconds.
    Number(NumberLiteral),
    /// `step()`, the step of the query.
    Step,
    /// `range()`, the width of the query's range.
    Range,
    /// An operand with a sign, `-x`.
    Unary(UnaryOp, Box<DurationExpr>),
    /// Two operands with a binary operator.
    Binary(DurationOp, Box<DurationExpr>, Box<DurationExpr>),
}

/// Two operands with a binary operator and its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// Operator between the two operands.
    pub op: BinaryOp,
    /// The left operand; in a chain another `Binary`.
    pub lhs: Expr,
    /// The right operand of the operator.
    pub rhs: Expr,
    /// Whether a comparison has `bool`: it returns 0 or 1 instead of filtering.
    pub returns_bool: bool,
    /// Matching of series; `None` if an operand is a scalar.
    pub matching: Option<Matching>,
    /// Type of the result: a scalar if both operands are scalars, else a vector.
    pub value_type: ValueType,
}

impl Binary {
    /// Moves the left operand out and leaves a placeholder.
    pub(super) fn take_left(&mut self) -> ExprKind {
        let nothing = NumberLiteral { value: 0.0, is_duration: false };
        std::mem::replace(&mut self.lhs.kind, ExprKind::Number(nothing))
    }
}

impl Drop for Binary {
    /// Takes a chain of operators apart in a loop: recursion could exhaust the stack.
    fn drop(&mut self) {
        let mut left = self.take_left();
        while let ExprKind::Binary(mut binary) = left {
            left = binary.take_left();
        }
    }
}

/// Matching of the series of two vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// Number of series of one side that may match a series of the other.
    pub cardinality: Cardinality,
    /// Whether `labels` must be equal (`on`) or are ignored (`ignoring`).
    pub is_on: bool,
    /// Labels of `on` or `ignoring`, in the order of the text.
    pub labels: Vec<String>,
    /// Labels of `group_left` or `group_right` to copy from the "one" side.
    pub include: Vec<String>,
    /// Value that replaces missing series of the left side.
    pub fill_lhs: Option<f64>,
    /// Value that replaces missing series of the right side.
    pub fill_rhs: Option<f64>,
}

/// Number of series of one side that may match a series of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cardinality {
    /// One series of each side, the default.
    #[default]
    OneToOne,
    /// `group_left`: many series of the left side.
    ManyToOne,
    /// `group_right`: many series of the right side.
    OneToMany,
    /// Many series of both sides, by set operators.
    ManyToMany,
}

/// An aggregation over the series of a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The aggregation operator, such as `sum`.
    pub op: AggregateOp,
    /// The vector that is aggregated.
    pub expr: Expr,
    /// Parameter of `topk`, `quantile` and others.
    pub param: Option<Expr>,
    /// Labels of `by` or `without`, in the order of the text.
    pub grouping: Vec<String>,
    /// Whether `grouping` are the labels to drop.
    pub is_without: bool,
}

/// A function call with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function, from the table of functions.
    pub function: &'static super::Function,
    /// The arguments in the order of the text.
    pub args: Vec<Expr>,
}
