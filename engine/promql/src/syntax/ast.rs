//! The tree of an expression. Each node knows its place in the text.

use super::{AggregateOp, BinaryOp, DurationOp, MatchOp, Text, UnaryOp};

/// A place in the text of an expression, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

/// The four types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A float without labels.
    Scalar,
    /// A text.
    String,
    /// One value for each series.
    Vector,
    /// Samples of a range of time for each series.
    Matrix,
}

impl ValueType {
    /// As documents name it.
    pub fn documented(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "instant vector",
            ValueType::Matrix => "range vector",
        }
    }

    /// As the HTTP API names it.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "vector",
            ValueType::Matrix => "matrix",
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its place in the text.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number, or a duration in seconds.
    Number(NumberLiteral),
    /// A text without its quotes.
    String(Text),
    /// An instant vector selector.
    Vector(VectorSelector),
    /// A range vector selector.
    Matrix(MatrixSelector),
    /// An expression over a range of time.
    Subquery(Box<Subquery>),
    /// `-x`, `+x`.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Binary(Box<Binary>),
    /// An aggregation.
    Aggregate(Box<Aggregate>),
    /// A function call.
    Call(Call),
    /// An expression in parentheses.
    Paren(Box<Expr>),
}

impl Expr {
    /// The type of its value.
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

    /// This expression and its left operands, as long as they are binary expressions: `a + b + c`
    /// and `a + b` of the former. Chains are as deep as they are long, so they are walked in loops.
    pub fn chain(&self) -> Vec<(&Expr, &Binary)> {
        let mut chain = Vec::new();
        let mut expr = self;
        while let ExprKind::Binary(binary) = &expr.kind {
            chain.push((expr, &**binary));
            expr = &binary.lhs;
        }
        chain
    }

    /// The operands of a chain, in their order in the text; none of another expression.
    pub fn operands(&self) -> Vec<&Expr> {
        let chain = self.chain();
        let first = chain.last().map(|(_, binary)| &binary.lhs);
        first.into_iter().chain(chain.iter().rev().map(|(_, binary)| &binary.rhs)).collect()
    }

    /// Memory of the tree, roughly.
    pub fn bytes(&self) -> usize {
        let own = match &self.kind {
            ExprKind::Vector(selector) => selector.bytes(),
            ExprKind::Matrix(matrix) => matrix.selector.bytes(),
            ExprKind::String(text) => text.as_str().len(),
            ExprKind::Binary(_) => self.chain().len() * size_of::<(Expr, Binary)>(),
            ExprKind::Aggregate(_) => size_of::<Aggregate>(),
            _ => 0,
        };
        let below = self.children().into_iter().map(Expr::bytes);
        size_of::<Expr>() + own + below.sum::<usize>()
    }

    /// The expressions right below this one; a chain of operators counts as one level.
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

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberLiteral {
    /// Its value; of a duration, its seconds.
    pub value: f64,
    /// Whether it was written as a duration.
    pub is_duration: bool,
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    /// How its value is compared.
    pub op: MatchOp,
    /// The value, or an expression in RE2's syntax.
    pub value: String,
}

/// How a range is bounded by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeBounds {
    /// By the samples in it.
    #[default]
    Samples,
    /// `anchored`: by the last samples at or before its ends.
    Anchored,
    /// `smoothed`: by values interpolated at its ends.
    Smoothed,
}

/// An instant vector selector.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSelector {
    /// The metric name that stands before the braces; empty if there is none there.
    pub name: String,
    /// All conditions, `__name__` included.
    pub matchers: Vec<Matcher>,
    /// Shifts of the evaluation time.
    pub shift: TimeShift,
    /// For range functions.
    pub bounds: RangeBounds,
}

impl VectorSelector {
    /// Memory of names and matchers, roughly.
    fn bytes(&self) -> usize {
        let matchers = self.matchers.iter();
        let texts = matchers.map(|matcher| matcher.name.len() + matcher.value.len());
        self.name.len() + size_of_val(&*self.matchers) + texts.sum::<usize>()
    }
}

/// A range vector selector.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSelector {
    /// The series. Its span ends before the bracket.
    pub selector: VectorSelector,
    /// Place of `selector`.
    pub selector_span: Span,
    /// How far back.
    pub range: DurationValue,
}

/// An expression over a range of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// What is evaluated.
    pub expr: Expr,
    /// How far back.
    pub range: DurationValue,
    /// Time between evaluations; none for the default.
    pub step: Option<DurationValue>,
    /// Shifts of the evaluation time.
    pub shift: TimeShift,
}

/// `@` and `offset`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeShift {
    /// `offset`; may be negative.
    pub offset: Option<DurationValue>,
    /// `@`.
    pub at: Option<At>,
}

/// A fixed evaluation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Milliseconds since the epoch.
    Time(i64),
    /// `@ start()`
    Start,
    /// `@ end()`
    End,
}

/// A duration, or an expression that gives one when the query's range is known.
#[derive(Clone, Debug, PartialEq)]
pub enum DurationValue {
    /// Milliseconds.
    Ms(i64),
    /// To be evaluated.
    Expr(Box<DurationExpr>),
}

/// An expression of durations, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationExpr {
    /// Its place in the text.
    pub span: Span,
    /// Whether it is in parentheses.
    pub is_wrapped: bool,
    /// What it is.
    pub kind: DurationExprKind,
}

/// What a duration expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum DurationExprKind {
    /// A number.
    Number(NumberLiteral),
    /// `step()`
    Step,
    /// `range()`
    Range,
    /// `-x`, `+x`
    Unary(UnaryOp, Box<DurationExpr>),
    /// Two operands.
    Binary(DurationOp, Box<DurationExpr>, Box<DurationExpr>),
}

/// A binary expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// The operator.
    pub op: BinaryOp,
    /// Left operand.
    pub lhs: Expr,
    /// Right operand.
    pub rhs: Expr,
    /// Whether a comparison gives 0 or 1 instead of filtering.
    pub returns_bool: bool,
    /// How series are matched; none if an operand is a scalar.
    pub matching: Option<Matching>,
    /// A scalar if both operands are, else a vector.
    pub value_type: ValueType,
}

impl Binary {
    /// Takes the left operand out; something else is in its place then.
    pub(super) fn take_left(&mut self) -> ExprKind {
        let nothing = NumberLiteral { value: 0.0, is_duration: false };
        std::mem::replace(&mut self.lhs.kind, ExprKind::Number(nothing))
    }
}

impl Drop for Binary {
    /// Takes a chain of operators apart in a loop: it may be longer than the stack is deep.
    fn drop(&mut self) {
        let mut left = self.take_left();
        while let ExprKind::Binary(mut binary) = left {
            left = binary.take_left();
        }
    }
}

/// How series of two vectors are matched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// How many series of a side may match one of the other.
    pub cardinality: Cardinality,
    /// Whether `labels` are those that must be equal (`on`), instead of those that may differ.
    pub is_on: bool,
    /// Labels of `on` or `ignoring`, in their order in the text.
    pub labels: Vec<String>,
    /// Labels that are taken from the "one" side.
    pub include: Vec<String>,
    /// Value of the left side where it has no series.
    pub fill_lhs: Option<f64>,
    /// Value of the right side where it has no series.
    pub fill_rhs: Option<f64>,
}

/// How many series of a side may match one of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cardinality {
    /// One of each side.
    #[default]
    OneToOne,
    /// `group_left`
    ManyToOne,
    /// `group_right`
    OneToMany,
    /// Set operators.
    ManyToMany,
}

/// An aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The operator.
    pub op: AggregateOp,
    /// What is aggregated.
    pub expr: Expr,
    /// Parameter of some operators.
    pub param: Option<Expr>,
    /// Labels of `by` or `without`, in their order in the text.
    pub grouping: Vec<String>,
    /// Whether `grouping` are the labels that are dropped.
    pub is_without: bool,
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub function: &'static super::Function,
    /// Its arguments.
    pub args: Vec<Expr>,
}
