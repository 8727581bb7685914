//! What templates are expanded with.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What an alert's template is about.
#[derive(Clone, Debug)]
pub struct Data {
    pub labels: Arc<BTreeMap<String, String>>,
    pub external_labels: Arc<BTreeMap<String, String>>,
    /// URL under which users reach the server.
    pub external_url: String,
    pub value: SampleValue,
}

#[derive(Clone, Debug)]
pub enum SampleValue {
    Float(f64),
    /// Text of a native histogram, which is all that templates see of it.
    Histogram(Arc<str>),
}

/// A sample that a query returns.
#[derive(Clone, Debug)]
pub struct Sample {
    pub labels: Arc<BTreeMap<String, String>>,
    pub value: SampleValue,
}

/// What answers the queries of templates.
pub trait Source {
    /// Evaluates an expression at [`Source::time_ms`]. The answer has to be bounded.
    fn query(&self, expression: &str) -> Result<Vec<Sample>, String>;

    fn time_ms(&self) -> i64;
}
