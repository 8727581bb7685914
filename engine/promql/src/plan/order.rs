//! Decides whether series arrive in the order of their labels, as the store returns them, and
//! whether a later series may turn out to have the labels of an earlier series.

use super::binary::dropped;
use super::types::{Check, CheckOf, Kind, Leaf, Names, Node, NodeId, Scan};
use crate::functions::Dropped;
use crate::model::is_metadata;
use crate::syntax::{AggregateOp, BinaryOp, Cardinality, MatchOp, Matcher};

pub(super) struct Order<'a> {
    nodes: &'a [Node],
    leaves: &'a [Leaf],
    is_delayed: bool,
    /// The input of each node that fills its last port; other inputs are kept in memory.
    last_inputs: Vec<Option<NodeId>>,
}

/// Whether delivery may begin before the last series is known.
pub(super) enum Safety {
    /// An operator keeps all series in memory, so delivery begins when all are known.
    Whole,
    /// Delivery may begin, unless one of these checks is positive.
    If(Vec<Check>),
    /// Equal labels can neither be excluded nor checked.
    Unknown,
}

/// Series that flow from one scan, after labels were dropped and set.
struct Flow {
    fold: NodeId,
    is_of_scan: bool,
    /// Whether name, type or unit are dropped, or ignored by matching.
    drops_metadata: bool,
    /// Labels that the query sets; checks ensure that no series of the scan has these labels.
    set: Vec<String>,
}

impl<'a> Order<'a> {
    pub fn new(nodes: &'a [Node], leaves: &'a [Leaf], is_delayed: bool) -> Order<'a> {
        let mut last_inputs = vec![None; nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            if let Some((parent, port)) = node.parent
                && port + 1 == nodes[parent].ports
            {
                last_inputs[parent] = Some(id);
            }
        }
        Order { nodes, leaves, is_delayed, last_inputs }
    }

    /// Returns whether the series of a node arrive in ascending order of labels. Dropping a name
    /// that all series have keeps the order. The exception is a series without other labels: it
    /// comes after series whose labels sort before the name, such as `A`.
    pub fn is_by_labels(&self, top: NodeId) -> bool {
        let mut id = top;
        loop {
            let node = &self.nodes[id];
            let keeps = match &node.kind {
                Kind::Fold(fold) => {
                    return fold.dropped == Dropped::Nothing
                        || self.is_delayed
                        || self.scan(id).is_some_and(is_of_one_name);
                }
                // An instant vector is sorted by value or by chosen labels.
                Kind::Sort(_) => node.grid.steps > 1,
                // `or` emits the later terms after the first term.
                Kind::Set(op, _) => *op != BinaryOp::Or,
                Kind::Cleanup => self.has_known_names(id),
                Kind::Repeat | Kind::Pass => true,
                // These nodes emit at most one series.
                Kind::Number(_)
                | Kind::Time
                | Kind::Date(_)
                | Kind::ScalarCall(..)
                | Kind::ScalarBinary(..)
                | Kind::Absent(_)
                | Kind::Scalar
                | Kind::Nothing => return true,
                kind => match self.drops_name(kind) {
                    Some(drops) => !drops || self.has_known_names(id),
                    None => false,
                },
            };
            match self.last_inputs[id] {
                Some(below) if keeps => id = below,
                _ => return false,
            }
        }
    }

    pub fn safety(&self, top: NodeId) -> Safety {
        let mut way = Vec::new();
        let mut id = top;
        let mut flow = loop {
            let node = &self.nodes[id];
            if let Kind::Fold(fold) = &node.kind {
                let drops_metadata = fold.dropped != Dropped::Nothing && !self.is_delayed;
                break Flow { fold: id, is_of_scan: true, drops_metadata, set: Vec::new() };
            }
            match self.last_inputs[id] {
                Some(below) if passes_on(node) => {
                    way.push(node);
                    id = below;
                }
                // The operator collects all series and emits them at the end.
                _ => return Safety::Whole,
            }
        };
        for node in way.into_iter().rev() {
            if !self.flow(&mut flow, &node.kind) {
                return Safety::Unknown;
            }
        }
        match self.scan(flow.fold) {
            Some(scan) => Safety::If(checks(scan, &flow)),
            None => Safety::Unknown,
        }
    }

    /// Applies a node to flowing series; returns false if equal labels can no longer be excluded.
    fn flow(&self, flow: &mut Flow, kind: &Kind) -> bool {
        match kind {
            Kind::Set(BinaryOp::Or, _) => {
                // `or` merges equal label sets itself, but its series no longer come from one scan.
                flow.is_of_scan = false;
                true
            }
            Kind::LabelReplace(plan) => flow.set(&plan.target),
            Kind::LabelJoin { target, .. } => flow.set(target),
            Kind::Join(join) => {
                let matching = &join.matching;
                if matching.fill_lhs.is_some() || matching.fill_rhs.is_some() {
                    // Filled series have the labels of the other side, which no check covers.
                    return false;
                }
                match matching.cardinality {
                    Cardinality::OneToOne => {
                        !matching.is_on && matching.labels.is_empty() && flow.drop_metadata()
                    }
                    _ => {
                        // Copied labels act as labels that are set.
                        matching.include.iter().all(|label| flow.set(label)) && flow.drop_metadata()
                    }
                }
            }
            Kind::Cleanup => flow.drop_metadata(),
            kind => self.drops_name(kind) != Some(true) || flow.drop_metadata(),
        }
    }

    /// Returns whether a node that changes series one by one drops names; `None` for other nodes.
    fn drops_name(&self, kind: &Kind) -> Option<bool> {
        let drops = match kind {
            Kind::Subquery(fold, _) => fold.dropped != Dropped::Nothing,
            Kind::Call(entry, _) => entry.dropped != Dropped::Nothing,
            Kind::VectorScalar(plan) => dropped(plan.op, plan.returns_bool) != Dropped::Nothing,
            Kind::Negate | Kind::TimestampOfValues | Kind::WithoutName => true,
            _ => return None,
        };
        Some(drops && !self.is_delayed)
    }

    /// Returns whether all series that reach a node have the same name, or none.
    fn has_known_names(&self, id: NodeId) -> bool {
        self.last_inputs[id].is_some_and(|below| self.nodes[below].names != Names::Any)
    }

    fn scan(&self, fold: NodeId) -> Option<&Scan> {
        self.leaves.iter().find_map(|leaf| match leaf {
            Leaf::Scan(scan) if scan.consumers.contains(&fold) => Some(scan),
            _ => None,
        })
    }
}

impl Flow {
    /// Records a label that is set; returns false if series may become equal.
    fn set(&mut self, label: &str) -> bool {
        // A label set twice hides the first value, so absence in the store proves nothing.
        if !self.is_of_scan || is_metadata(label) || self.set.iter().any(|other| other == label) {
            return false;
        }
        self.set.push(label.to_owned());
        true
    }

    /// Records that name, type and unit are dropped; returns false if that may make series equal.
    fn drop_metadata(&mut self) -> bool {
        self.drops_metadata = true;
        self.is_of_scan
    }
}

/// Returns whether a node emits series before all of its input has arrived.
fn passes_on(node: &Node) -> bool {
    match &node.kind {
        Kind::Sort(_) => node.grid.steps > 1,
        Kind::Aggregate(plan) => {
            matches!(plan.op, AggregateOp::Limitk | AggregateOp::LimitRatio)
        }
        Kind::CountValues(..)
        | Kind::Absent(_)
        | Kind::Scalar
        | Kind::Buckets(_)
        | Kind::Info(_) => false,
        _ => true,
    }
}

pub(super) fn is_of_one_name(scan: &Scan) -> bool {
    let mut matchers = scan.matchers.iter();
    matchers.any(|matcher| matcher.name == "__name__" && matcher.op == MatchOp::Equal)
}

fn checks(scan: &Scan, flow: &Flow) -> Vec<Check> {
    let check = |label: Option<&str>, what| {
        let has = |label: &str| Matcher {
            name: label.into(),
            op: MatchOp::NotEqual,
            value: String::new(),
        };
        Check {
            matchers: scan.matchers.iter().cloned().chain(label.map(has)).collect(),
            start_ms: scan.start_ms,
            end_ms: scan.end_ms,
            what,
            span: scan.span,
        }
    };
    let mut checks: Vec<Check> =
        flow.set.iter().map(|label| check(Some(label), CheckOf::Any)).collect();
    if flow.drops_metadata {
        let after_metadata = is_of_one_name(scan);
        // Series of one name stay distinct without the name, unless type or unit are dropped, too.
        if after_metadata {
            checks.push(check(Some("__type__"), CheckOf::Metadata));
            checks.push(check(Some("__unit__"), CheckOf::Metadata));
        }
        checks.push(check(None, CheckOf::Equal { after_metadata }));
    }
    checks
}
