//! Answers as bytes, series by series, so that none must be held whole.

mod json;
mod protobuf;
mod tree;

pub use json::{Json, messages};
pub use protobuf::protobuf_series;
pub use tree::push_tree;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// One float without labels.
    Scalar,
    /// A text.
    String,
    /// One sample for each series.
    Vector,
    /// Samples of several times for each series.
    Matrix,
}

impl AnswerKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            AnswerKind::Scalar => "scalar",
            AnswerKind::String => "string",
            AnswerKind::Vector => "vector",
            AnswerKind::Matrix => "matrix",
        }
    }
}
