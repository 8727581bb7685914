//! Tokens: what the lexer gives, and how errors name them.

use super::{AggregateOp, BinaryOp, quote};
use std::fmt;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Behind the last token.
    End,
    /// A name without colons.
    Name,
    /// A name with colons, which metrics alone have.
    MetricName,
    /// A quoted text.
    Text,
    /// A number.
    Number,
    /// A duration.
    Duration,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `=`
    Assign,
    /// `=~`
    MatchRegex,
    /// `!~`
    NotMatchRegex,
    /// `@`
    At,
    /// A binary operator.
    Operator(BinaryOp),
    /// An aggregation operator.
    Aggregate(AggregateOp),
    /// A word of the grammar.
    Keyword(Keyword),
}

/// Words of the grammar. In most places they are names too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `offset`
    Offset,
    /// `smoothed`
    Smoothed,
    /// `anchored`
    Anchored,
    /// `by`
    By,
    /// `without`
    Without,
    /// `on`
    On,
    /// `ignoring`
    Ignoring,
    /// `group_left`
    GroupLeft,
    /// `group_right`
    GroupRight,
    /// `fill`
    Fill,
    /// `fill_left`
    FillLeft,
    /// `fill_right`
    FillRight,
    /// `bool`
    Bool,
    /// `start`
    Start,
    /// `end`
    End,
    /// `step`
    Step,
    /// `range`
    Range,
    /// `max_of`
    MaxOf,
    /// `min_of`
    MinOf,
}

use TokenKind::{Aggregate, Keyword as Word, Operator};

/// All words that are no plain names, with what they are.
const WORDS: [(&str, TokenKind); 39] = [
    ("and", Operator(BinaryOp::And)),
    ("or", Operator(BinaryOp::Or)),
    ("unless", Operator(BinaryOp::Unless)),
    ("atan2", Operator(BinaryOp::Atan2)),
    ("sum", Aggregate(AggregateOp::Sum)),
    ("avg", Aggregate(AggregateOp::Avg)),
    ("count", Aggregate(AggregateOp::Count)),
    ("min", Aggregate(AggregateOp::Min)),
    ("max", Aggregate(AggregateOp::Max)),
    ("group", Aggregate(AggregateOp::Group)),
    ("stddev", Aggregate(AggregateOp::Stddev)),
    ("stdvar", Aggregate(AggregateOp::Stdvar)),
    ("topk", Aggregate(AggregateOp::Topk)),
    ("bottomk", Aggregate(AggregateOp::Bottomk)),
    ("count_values", Aggregate(AggregateOp::CountValues)),
    ("quantile", Aggregate(AggregateOp::Quantile)),
    ("limitk", Aggregate(AggregateOp::Limitk)),
    ("limit_ratio", Aggregate(AggregateOp::LimitRatio)),
    ("offset", Word(Keyword::Offset)),
    ("smoothed", Word(Keyword::Smoothed)),
    ("anchored", Word(Keyword::Anchored)),
    ("by", Word(Keyword::By)),
    ("without", Word(Keyword::Without)),
    ("on", Word(Keyword::On)),
    ("ignoring", Word(Keyword::Ignoring)),
    ("group_left", Word(Keyword::GroupLeft)),
    ("group_right", Word(Keyword::GroupRight)),
    ("fill", Word(Keyword::Fill)),
    ("fill_left", Word(Keyword::FillLeft)),
    ("fill_right", Word(Keyword::FillRight)),
    ("bool", Word(Keyword::Bool)),
    ("start", Word(Keyword::Start)),
    ("end", Word(Keyword::End)),
    ("step", Word(Keyword::Step)),
    ("range", Word(Keyword::Range)),
    ("max_of", Word(Keyword::MaxOf)),
    ("min_of", Word(Keyword::MinOf)),
    ("inf", TokenKind::Number),
    ("nan", TokenKind::Number),
];

/// Longest of the words.
const WORD_BYTES_MAX: usize = 12;

impl TokenKind {
    /// What a word is, in any case of its letters; none for a plain name.
    pub fn of_word(word: &str) -> Option<TokenKind> {
        if word.len() > WORD_BYTES_MAX {
            return None;
        }
        let found = WORDS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word));
        found.map(|(_, kind)| *kind)
    }

    /// What a word is within brackets, where few are known.
    pub fn of_duration_word(word: &str) -> Option<TokenKind> {
        TokenKind::of_word(word).filter(|kind| kind.is_duration_word())
    }

    /// Whether it is a function of duration expressions.
    pub fn is_duration_word(self) -> bool {
        use Keyword::{MaxOf, MinOf, Range, Step};
        matches!(self, Word(Step | Range | MaxOf | MinOf))
    }

    /// Whether an expression may begin with it as the name of a metric.
    pub fn is_metric_name(self) -> bool {
        use Keyword::{Bool, GroupLeft, GroupRight, Ignoring, On};
        match self {
            TokenKind::Name | TokenKind::MetricName | Aggregate(_) => true,
            Operator(op) => op.is_set(),
            Word(word) => !matches!(word, Bool | On | Ignoring | GroupLeft | GroupRight),
            _ => false,
        }
    }

    /// Whether it is the name of a label in a list of labels.
    pub fn is_label_name(self) -> bool {
        match self {
            TokenKind::Name | TokenKind::MetricName | Aggregate(_) => true,
            Operator(op) => op.is_set() || op == BinaryOp::Atan2,
            Word(word) => word != Keyword::Without,
            _ => false,
        }
    }
}

/// A token with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// As it is written.
    pub text: &'a str,
}

impl Token<'_> {
    /// Behind the last byte.
    pub fn end(&self) -> u32 {
        self.start + self.text.len() as u32
    }

    /// Its place.
    pub fn span(&self) -> super::Span {
        super::Span { start: self.start, end: self.end() }
    }
}

impl fmt::Display for Token<'_> {
    /// As errors name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Keyword::{End, MaxOf, MinOf, Range, Start, Step};
        let class = match self.kind {
            TokenKind::End => return f.write_str("end of input"),
            Word(Start | End | Step | Range | MaxOf | MinOf) => "",
            Word(_) => return write!(f, "<{}>", self.text),
            Operator(_) | TokenKind::At | TokenKind::MatchRegex | TokenKind::NotMatchRegex => {
                return write!(f, "<op:{}>", self.text);
            }
            Aggregate(_) => return write!(f, "<aggr:{}>", self.text),
            TokenKind::Name => return write!(f, "identifier {}", quote::quoted(self.text)),
            TokenKind::MetricName => {
                return write!(f, "metric identifier {}", quote::quoted(self.text));
            }
            TokenKind::Text => "string ",
            TokenKind::Number => "number ",
            TokenKind::Duration => "duration ",
            _ => "",
        };
        match self.text.len() > 10 {
            true => {
                let head: String = self.text.chars().take(10).collect();
                write!(f, "{class}{}...", quote::quoted(&head))
            }
            false => write!(f, "{class}{}", quote::quoted(self.text)),
        }
    }
}
