//! Syntax of expressions: tokens, syntax tree, type check, and printers.
//!
//! Source: prometheus/prometheus, `promql/parser`.

mod ast;
mod check;
mod error;
mod function;
mod lexer;
mod number;
mod ops;
mod parser;
mod pretty;
mod printer;
mod quote;
mod selectors;
mod text;
mod token;

pub use ast::*;
pub use error::ParseError;
pub use function::Function;
pub use ops::*;
pub use parser::{ParserOptions, parse, parse_selector};
pub use pretty::LINE_BYTES_MAX;
pub use quote::{push_name, push_quoted, quoted};
pub use text::Text;
pub use tidepool_model::MatchOp;
use token::Keyword;
