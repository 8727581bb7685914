//! Encoders of answers. Each encodes one series at a time, so that memory holds no whole answer.

mod json;
mod protobuf;
mod tree;

pub use json::{Json, messages};
pub use protobuf::protobuf_series;
pub use tree::push_tree;

/// Type of an answer, as the API names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// One float without labels, with its time.
    Scalar,
    /// One string, with the evaluation time.
    String,
    /// One sample for each series.
    Vector,
    /// Samples of several times for each series.
    Matrix,
}

impl AnswerKind {
    /// Returns the value of `resultType`.
    pub fn name(self) -> &'static str {
        match self {
            AnswerKind::Scalar => "scalar",
            AnswerKind::String => "string",
            AnswerKind::Vector => "vector",
            AnswerKind::Matrix => "matrix",
        }
    }
}
