//! Tokens of the lexer, and their names in errors.

use super::{AggregateOp, BinaryOp, quote};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    End,
    Name,
    /// A name with colons, which only metrics have.
    MetricName,
    Text,
    Number,
    Duration,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Comma,
    Colon,
    Assign,
    MatchRegex,
    NotMatchRegex,
    At,
    Operator(BinaryOp),
    Aggregate(AggregateOp),
    Keyword(Keyword),
}

/// Words of the grammar. In most places they are also names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    Offset,
    Smoothed,
    Anchored,
    By,
    Without,
    On,
    Ignoring,
    GroupLeft,
    GroupRight,
    Fill,
    FillLeft,
    FillRight,
    Bool,
    Start,
    End,
    Step,
    Range,
    MaxOf,
    MinOf,
}

use TokenKind::{Aggregate, Keyword as Word, Operator};

/// All words that are not plain names, with their tokens.
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

const WORD_BYTES_MAX: usize = 12;

impl TokenKind {
    /// Returns the token of a word in upper or lower case; `None` for a plain name.
    pub fn of_word(word: &str) -> Option<TokenKind> {
        // A longer name is no word, which saves the search.
        if word.len() > WORD_BYTES_MAX {
            return None;
        }
        let found = WORDS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word));
        found.map(|(_, kind)| *kind)
    }

    /// Returns the token of a word within brackets, where few words are known.
    pub fn of_duration_word(word: &str) -> Option<TokenKind> {
        TokenKind::of_word(word).filter(|kind| kind.is_duration_word())
    }

    /// Returns whether the token is a function of duration expressions.
    pub fn is_duration_word(self) -> bool {
        use Keyword::{MaxOf, MinOf, Range, Step};
        matches!(self, Word(Step | Range | MaxOf | MinOf))
    }

    /// Returns whether an expression may begin with the token as a metric name.
    pub fn is_metric_name(self) -> bool {
        use Keyword::{Bool, GroupLeft, GroupRight, Ignoring, On};
        match self {
            TokenKind::Name | TokenKind::MetricName | Aggregate(_) => true,
            Operator(op) => op.is_set(),
            Word(word) => !matches!(word, Bool | On | Ignoring | GroupLeft | GroupRight),
            _ => false,
        }
    }

    /// Returns whether the token may be a name in a list of labels.
    pub fn is_label_name(self) -> bool {
        match self {
            TokenKind::Name | TokenKind::MetricName | Aggregate(_) => true,
            Operator(op) => op.is_set() || op == BinaryOp::Atan2,
            Word(word) => word != Keyword::Without,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub start: u32,
    pub text: &'a str,
}

impl Token<'_> {
    pub fn end(&self) -> u32 {
        self.start + self.text.len() as u32
    }

    pub fn span(&self) -> super::Span {
        super::Span { start: self.start, end: self.end() }
    }
}

impl fmt::Display for Token<'_> {
    /// Writes the token as upstream's errors name it.
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
        // Upstream shows ten letters of a longer token.
        match self.text.len() > 10 {
            true => {
                let head: String = self.text.chars().take(10).collect();
                write!(f, "{class}{}...", quote::quoted(&head))
            }
            false => write!(f, "{class}{}", quote::quoted(self.text)),
        }
    }
}
