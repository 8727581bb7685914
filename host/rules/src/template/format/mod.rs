//! Texts as Go's `fmt` prints them: `printf` and its verbs.
//!
//! Source: the documentation of Go's `fmt`, and its behaviour, with which `tests/templates.rs`
//! compares.

mod float;
mod number;
mod print;
mod quote;
mod sink;
mod verb;

pub use print::{print, print_bare, println};
pub use quote::{can_be_raw, is_printable, quoted};
pub use sink::Sink;
pub use verb::printf;
