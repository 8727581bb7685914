//! Leaves of a plan: scans, checks and generators, from which all series start.

use super::types::NodeId;
use crate::source::Hints;
use crate::syntax::{Matcher, Span};

/// A source of series; the evaluation runs a plan's leaves one after the other.
#[derive(Debug)]
pub enum Leaf {
    /// Reads only labels from the store, before any scan.
    Check(Check),
    /// Reads series with samples from the store.
    Scan(Scan),
    /// Starts a node that needs no series, such as a constant.
    Generate(NodeId),
}

/// A read of a scan's labels before the answer begins, to find whether series may become equal.
#[derive(Debug)]
pub struct Check {
    /// The scan's matchers and, for some checks, a matcher that requires the relevant label.
    pub matchers: Vec<Matcher>,
    /// Oldest relevant sample, included, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Newest relevant sample, included, in milliseconds since the epoch.
    pub end_ms: i64,
    /// Finding that makes the check positive.
    pub what: CheckOf,
    /// Position of the selector in the query text.
    pub span: Span,
}

/// Finding that means that series may become equal once labels are dropped or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOf {
    /// Any series, because the matchers require a label that the query will set.
    Any,
    /// Any series with a type or a unit. A later check then compares label sets.
    Metadata,
    /// Two series that are equal without name, type and unit.
    Equal {
        /// Run the check only if an earlier check found a type or a unit.
        after_metadata: bool,
    },
}

/// A read of series from the store, shared by all folds, nodes that turn samples into values.
#[derive(Debug)]
pub struct Scan {
    /// Matchers of the selector; all must hold.
    pub matchers: Vec<Matcher>,
    /// Oldest needed sample, included, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Newest needed sample, included, in milliseconds since the epoch.
    pub end_ms: i64,
    /// Hints with which the store may leave out unneeded samples.
    pub hints: Hints,
    /// Fold nodes that receive the samples, in the order in which each series is passed to them.
    pub consumers: Vec<NodeId>,
    /// Whether some consumers are on both sides of a join that takes series in lockstep.
    pub is_lockstep: bool,
    /// Position of the selector in the query text.
    pub span: Span,
}
