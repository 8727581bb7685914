//! Whether series come in the order of their labels, as they do from the store; and whether series
//! that come late may turn out to have the labels of earlier ones.

use super::binary::dropped;
use super::types::{Check, CheckOf, Kind, Leaf, Names, Node, NodeId, Scan};
use crate::functions::Dropped;
use crate::model::is_metadata;
use crate::syntax::{AggregateOp, BinaryOp, Cardinality, MatchOp, Matcher};

/// Nodes and leaves of a plan that is made.
pub(super) struct Order<'a> {
    nodes: &'a [Node],
    leaves: &'a [Leaf],
    /// Whether names are taken out at the end only.
    is_delayed: bool,
    /// Of each node the input whose series flow.
    last_inputs: Vec<Option<NodeId>>,
}

/// Whether an answer may begin before its last series is there.
pub(super) enum Safety {
    /// All series come at once.
    Whole,
    /// It may, unless one of these looks at labels finds something.
    If(Vec<Check>),
    /// No one knows.
    Unknown,
}

/// Series that flow from one scan, without some of its labels and with others set.
struct Flow {
    fold: NodeId,
    /// Whether they are still those of one scan.
    is_of_scan: bool,
    /// Whether name, type or unit are taken out, or left out where series match.
    drops_metadata: bool,
    /// Labels that are set, so that no series may have had them.
    set: Vec<String>,
}

impl<'a> Order<'a> {
    /// Of these nodes and leaves.
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

    /// Whether the series of a node come by ascending labels. To take out a name that all of them
    /// have keeps the order, but for a series without any other label: it comes behind those that
    /// have labels before the name alone, such as `A`.
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
                Kind::Sort(_) => node.grid.steps > 1,
                Kind::Set(op, _) => *op != BinaryOp::Or,
                Kind::Cleanup => self.has_known_names(id),
                Kind::Repeat | Kind::Pass => true,
                // One series, or none.
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

    /// Whether a node's answer may begin before its last series is there.
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
                // All series are held, and come in one go.
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

    /// What a node makes of series that flow through it; false if no one knows whether they may
    /// become equal.
    fn flow(&self, flow: &mut Flow, kind: &Kind) -> bool {
        match kind {
            Kind::Set(BinaryOp::Or, _) => {
                flow.is_of_scan = false;
                true
            }
            Kind::LabelReplace(plan) => flow.set(&plan.target),
            Kind::LabelJoin { target, .. } => flow.set(target),
            Kind::Join(join) => {
                let matching = &join.matching;
                if matching.fill_lhs.is_some() || matching.fill_rhs.is_some() {
                    return false;
                }
                match matching.cardinality {
                    Cardinality::OneToOne => {
                        !matching.is_on && matching.labels.is_empty() && flow.drop_metadata()
                    }
                    _ => {
                        matching.include.iter().all(|label| flow.set(label)) && flow.drop_metadata()
                    }
                }
            }
            Kind::Cleanup => flow.drop_metadata(),
            kind => self.drops_name(kind) != Some(true) || flow.drop_metadata(),
        }
    }

    /// Whether a node that changes one series after the other takes out names; none for others.
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

    /// Whether the series that come to a node have one name, or none.
    fn has_known_names(&self, id: NodeId) -> bool {
        self.last_inputs[id].is_some_and(|below| self.nodes[below].names != Names::Any)
    }

    /// The scan of a fold.
    fn scan(&self, fold: NodeId) -> Option<&Scan> {
        self.leaves.iter().find_map(|leaf| match leaf {
            Leaf::Scan(scan) if scan.consumers.contains(&fold) => Some(scan),
            _ => None,
        })
    }
}

impl Flow {
    /// Sets a label; false if series may become equal by that.
    fn set(&mut self, label: &str) -> bool {
        if !self.is_of_scan || is_metadata(label) || self.set.iter().any(|other| other == label) {
            return false;
        }
        self.set.push(label.to_owned());
        true
    }

    /// Takes out name, type and unit; false if no one knows whether series become equal by that.
    fn drop_metadata(&mut self) -> bool {
        self.drops_metadata = true;
        self.is_of_scan
    }
}

/// Whether a node gives series on before all of them are there.
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

/// Whether a scan selects one name.
pub(super) fn is_of_one_name(scan: &Scan) -> bool {
    let mut matchers = scan.matchers.iter();
    matchers.any(|matcher| matcher.name == "__name__" && matcher.op == MatchOp::Equal)
}

/// What must not be found among the labels of a scan.
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
        if after_metadata {
            checks.push(check(Some("__type__"), CheckOf::Metadata));
            checks.push(check(Some("__unit__"), CheckOf::Metadata));
        }
        checks.push(check(None, CheckOf::Equal { after_metadata }));
    }
    checks
}
