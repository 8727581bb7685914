//! Binary, unary and aggregation operators, with their properties.

use super::ValueType;

/// Operators of duration expressions, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationOp {
    /// `+`: sum of two durations.
    Add,
    /// `-`: difference of two durations.
    Sub,
    /// `*`: product of two operands.
    Mul,
    /// `/`: quotient of two operands.
    Div,
    /// `%`: remainder of a division.
    Mod,
    /// `^`: power, which is right-associative.
    Pow,
    /// `min_of(a, b)`: the smaller of two operands.
    Min,
    /// `max_of(a, b)`: the larger of two operands.
    Max,
}

impl DurationOp {
    /// Returns the sign or word of the operator.
    pub fn name(self) -> &'static str {
        match self {
            DurationOp::Add => "+",
            DurationOp::Sub => "-",
            DurationOp::Mul => "*",
            DurationOp::Div => "/",
            DurationOp::Mod => "%",
            DurationOp::Pow => "^",
            DurationOp::Min => "min_of",
            DurationOp::Max => "max_of",
        }
    }
}

/// The sign before an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`: leaves the operand unchanged.
    Plus,
    /// `-`: negates all values of the operand.
    Minus,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`: sum of numbers or histograms.
    Add,
    /// `-`: difference of numbers or histograms.
    Sub,
    /// `*`: product, also of histogram and number.
    Mul,
    /// `/`: quotient, also of histogram and number.
    Div,
    /// `%`: remainder with the dividend's sign.
    Mod,
    /// `^`: power, which is right-associative.
    Pow,
    /// `atan2`: angle of two coordinates, in radians.
    Atan2,
    /// `==`: keeps equal numbers or histograms.
    Equal,
    /// `!=`: keeps different numbers or histograms.
    NotEqual,
    /// `<`: keeps numbers smaller than the right operand.
    Less,
    /// `<=`: keeps smaller or equal numbers.
    LessEqual,
    /// `>`: keeps numbers larger than the right operand.
    Greater,
    /// `>=`: keeps larger or equal numbers.
    GreaterEqual,
    /// `</`: keeps the buckets of a histogram below a value.
    TrimUpper,
    /// `>/`: keeps the buckets of a histogram above a value.
    TrimLower,
    /// `and`: intersection of two sets of series.
    And,
    /// `or`: union of two sets of series.
    Or,
    /// `unless`: series of the left side alone.
    Unless,
}

impl BinaryOp {
    /// Returns the sign or word of the operator.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Pow => "^",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::TrimUpper => "</",
            BinaryOp::TrimLower => ">/",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Unless => "unless",
        }
    }

    /// Returns the precedence; 1 binds most loosely.
    pub fn precedence(self) -> u8 {
        use BinaryOp::{Add, And, Atan2, Div, Mod, Mul, Or, Pow, Sub, Unless};
        match self {
            Or => 1,
            And | Unless => 2,
            Add | Sub => 4,
            Mul | Div | Mod | Atan2 => 5,
            Pow => 6,
            _ => 3,
        }
    }

    /// Returns whether the operator is `and`, `or` or `unless`.
    pub fn is_set(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless)
    }

    /// Returns whether the operator keeps a part of a histogram.
    pub fn is_trim(self) -> bool {
        matches!(self, BinaryOp::TrimUpper | BinaryOp::TrimLower)
    }

    /// Returns whether the operator compares; the trims do not.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }
}

/// An operator that aggregates over series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    /// `sum`: sum of values or histograms.
    Sum,
    /// `avg`: mean of values or histograms.
    Avg,
    /// `count`: number of series in a group.
    Count,
    /// `min`: smallest value of a group.
    Min,
    /// `max`: largest value of a group.
    Max,
    /// `group`: 1 for each group of series.
    Group,
    /// `stddev`: population standard deviation of a group.
    Stddev,
    /// `stdvar`: population variance of a group.
    Stdvar,
    /// `topk`: series with the largest values.
    Topk,
    /// `bottomk`: series with the smallest values.
    Bottomk,
    /// `count_values`: number of series by value.
    CountValues,
    /// `quantile`: quantile over the values of a group.
    Quantile,
    /// `limitk`: some k series of a group.
    Limitk,
    /// `limit_ratio`: a stable share of the series.
    LimitRatio,
}

impl AggregateOp {
    /// Returns the word of the operator.
    pub fn name(self) -> &'static str {
        match self {
            AggregateOp::Sum => "sum",
            AggregateOp::Avg => "avg",
            AggregateOp::Count => "count",
            AggregateOp::Min => "min",
            AggregateOp::Max => "max",
            AggregateOp::Group => "group",
            AggregateOp::Stddev => "stddev",
            AggregateOp::Stdvar => "stdvar",
            AggregateOp::Topk => "topk",
            AggregateOp::Bottomk => "bottomk",
            AggregateOp::CountValues => "count_values",
            AggregateOp::Quantile => "quantile",
            AggregateOp::Limitk => "limitk",
            AggregateOp::LimitRatio => "limit_ratio",
        }
    }

    /// Returns the type of the parameter, if the operator has one.
    pub fn param_type(self) -> Option<ValueType> {
        use AggregateOp::{Bottomk, CountValues, LimitRatio, Limitk, Quantile, Topk};
        match self {
            Topk | Bottomk | Quantile | Limitk | LimitRatio => Some(ValueType::Scalar),
            CountValues => Some(ValueType::String),
            _ => None,
        }
    }

    /// Returns whether the operator needs experimental functions to be enabled.
    pub fn is_experimental(self) -> bool {
        matches!(self, AggregateOp::Limitk | AggregateOp::LimitRatio)
    }
}
