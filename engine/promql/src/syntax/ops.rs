//! Operators.

use super::ValueType;

/// Operators of duration expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
    /// `min_of(a, b)`
    Min,
    /// `max_of(a, b)`
    Max,
}

impl DurationOp {
    /// Its sign or word.
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

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
    /// `atan2`
    Atan2,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `</`: keeps the buckets of a histogram below a value
    TrimUpper,
    /// `>/`: keeps the buckets of a histogram above a value
    TrimLower,
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl BinaryOp {
    /// Its sign or word.
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

    /// How strongly it binds, from 1.
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

    /// Whether it is `and`, `or` or `unless`.
    pub fn is_set(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless)
    }

    /// Whether it keeps a part of a histogram.
    pub fn is_trim(self) -> bool {
        matches!(self, BinaryOp::TrimUpper | BinaryOp::TrimLower)
    }

    /// Whether it compares; the trims do not.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }
}

/// An aggregation operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    /// `sum`
    Sum,
    /// `avg`
    Avg,
    /// `count`
    Count,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `group`
    Group,
    /// `stddev`
    Stddev,
    /// `stdvar`
    Stdvar,
    /// `topk`
    Topk,
    /// `bottomk`
    Bottomk,
    /// `count_values`
    CountValues,
    /// `quantile`
    Quantile,
    /// `limitk`
    Limitk,
    /// `limit_ratio`
    LimitRatio,
}

impl AggregateOp {
    /// Its word.
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

    /// The type of its parameter, if it takes one.
    pub fn param_type(self) -> Option<ValueType> {
        use AggregateOp::{Bottomk, CountValues, LimitRatio, Limitk, Quantile, Topk};
        match self {
            Topk | Bottomk | Quantile | Limitk | LimitRatio => Some(ValueType::Scalar),
            CountValues => Some(ValueType::String),
            _ => None,
        }
    }

    /// Whether it needs experimental functions to be enabled.
    pub fn is_experimental(self) -> bool {
        matches!(self, AggregateOp::Limitk | AggregateOp::LimitRatio)
    }
}
