//! Whether series come in the order of their labels, as they do from the store.

use super::binary::dropped;
use super::types::{Kind, Leaf, Names, Node, NodeId, Scan};
use crate::functions::Dropped;
use crate::syntax::{BinaryOp, MatchOp};

/// Nodes and leaves of a plan that is made.
pub(super) struct Order<'a> {
    pub nodes: &'a [Node],
    pub leaves: &'a [Leaf],
    /// Whether names are taken out at the end only.
    pub is_delayed: bool,
}

impl Order<'_> {
    /// Whether the series of a node come by ascending labels. To take out a name that all of them
    /// have keeps the order, but for a series without any other label: it comes behind those that
    /// have labels before the name alone, such as `A`.
    pub fn is_by_labels(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        match &node.kind {
            Kind::Fold(fold) => {
                fold.dropped == Dropped::Nothing || self.is_delayed || self.is_of_one_name(id)
            }
            Kind::Subquery(fold, _) => self.passes(id, fold.dropped != Dropped::Nothing),
            Kind::Call(entry, _) => self.passes(id, entry.dropped != Dropped::Nothing),
            Kind::VectorScalar(plan) => {
                self.passes(id, dropped(plan.op, plan.returns_bool) != Dropped::Nothing)
            }
            Kind::Negate | Kind::TimestampOfValues => self.passes(id, true),
            Kind::Repeat | Kind::Pass => self.passes(id, false),
            Kind::Sort(_) => node.grid.steps > 1 && self.passes(id, false),
            Kind::Set(op, _) => *op != BinaryOp::Or && self.passes(id, false),
            Kind::Cleanup => self.last_input(id).is_some_and(|below| {
                self.nodes[below].names != Names::Any && self.is_by_labels(below)
            }),
            // One series, or none.
            Kind::Number(_)
            | Kind::Time
            | Kind::Date(_)
            | Kind::ScalarCall(..)
            | Kind::ScalarBinary(..)
            | Kind::Absent(_)
            | Kind::Scalar
            | Kind::Nothing => true,
            _ => false,
        }
    }

    /// Whether a node that changes one series after the other keeps their order.
    fn passes(&self, id: NodeId, drops_name: bool) -> bool {
        let keeps =
            |below: NodeId| !drops_name || self.is_delayed || self.nodes[below].names != Names::Any;
        self.last_input(id).is_some_and(|below| keeps(below) && self.is_by_labels(below))
    }

    /// The input whose series flow.
    fn last_input(&self, id: NodeId) -> Option<NodeId> {
        let port = self.nodes[id].ports.checked_sub(1)?;
        self.nodes.iter().position(|node| node.parent == Some((id, port)))
    }

    /// Whether the scan of a fold selects one name.
    fn is_of_one_name(&self, fold: NodeId) -> bool {
        let is_its = |scan: &&Scan| scan.consumers.contains(&fold);
        let scans = self.leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Scan(scan) => Some(scan),
            Leaf::Generate(_) => None,
        });
        scans.into_iter().find(is_its).is_some_and(|scan| {
            let mut matchers = scan.matchers.iter();
            matchers.any(|matcher| matcher.name == "__name__" && matcher.op == MatchOp::Equal)
        })
    }
}
