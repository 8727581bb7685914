//! What starts series on their way through a plan.

use super::types::NodeId;
use crate::source::Hints;
use crate::syntax::{Matcher, Span};

/// What starts series on their way.
#[derive(Debug)]
pub enum Leaf {
    /// Labels of the store's series.
    Check(Check),
    /// Series of the store.
    Scan(Scan),
    /// A node that needs no series.
    Generate(NodeId),
}

/// A look at the labels of a scan, before the answer begins: whether series may become equal.
#[derive(Debug)]
pub struct Check {
    /// The scan's conditions, and more.
    pub matchers: Vec<Matcher>,
    /// Oldest sample that counts, included, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Newest sample that counts, included.
    pub end_ms: i64,
    /// What is looked for.
    pub what: CheckOf,
    /// The selector's place in the text.
    pub span: Span,
}

/// What makes series equal once labels were taken out or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOf {
    /// Any series: it has a label that will be set.
    Any,
    /// Any series: it has a type or a unit. Then they are compared.
    Metadata,
    /// Two series that are equal without name, type and unit.
    Equal {
        /// Only if there is a type or a unit.
        after_metadata: bool,
    },
}

/// Reading series of the store.
#[derive(Debug)]
pub struct Scan {
    /// All must hold.
    pub matchers: Vec<Matcher>,
    /// Oldest sample that is needed, included, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Newest sample that is needed, included.
    pub end_ms: i64,
    /// What is done with the samples.
    pub hints: Hints,
    /// The folds that take the samples.
    pub consumers: Vec<NodeId>,
    /// Whether some of them are on both sides of a join that takes series in lockstep.
    pub is_lockstep: bool,
    /// The selector's place in the text.
    pub span: Span,
}
