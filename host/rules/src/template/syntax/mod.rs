//! What a template is written in: tokens, their tree, and the parser.
//!
//! Source: Go's `text/template/parse`, from its documentation and behaviour.

mod lexer;
mod literal;
mod operand;
mod parser;
mod token;
mod tree;

pub use literal::unquoted;
pub use parser::{Parsed, parse};
pub use tree::{Branches, Command, Invocation, List, Node, Operand, Pipe, Term};
