//! Joins of equal selectors by all labels, in one scan.
//!
//! ```text
//!          ┌─▶ a ─▶ + ─▶ first side ──┐
//! scan a ──┤        ▲ b, held         ├─▶ join
//!          └─▶ a ───────▶ second side ┘
//! ```
//!
//! Series of one name that match by all other labels match only themselves. A scan can therefore
//! give each series to the first side of the join and then to the second side: the join holds one
//! series instead of a whole side, and nothing is read twice. This works if
//!
//! - the selector requires one name, and no series has a type or a unit: these are dropped with the
//!   name, so that series could become equal. The evaluation checks this, and lets the second side
//!   wait if necessary;
//! - the join is one-to-one, `and` or `unless`, by all labels and without fill values;
//! - nodes between the scan and the join emit the result for each series at once, with its labels;
//! - all other inputs of these nodes are complete before the scan begins, and no series of another
//!   scan has to wait because a scan has moved.

use super::order::is_of_one_name;
use super::selector::{are_read_at_once, widen};
use super::types::{Kind, Leaf, Lockstep, Names, Node, NodeId, Port};
use crate::model::KeyLabels;
use crate::syntax::{BinaryOp, Cardinality};
use tidepool_model::sort;

/// Scans are merged only up to these numbers of leaves and nodes of a plan, and of consumers of a
/// scan, because all pairs are compared.
const LEAVES_MAX: usize = 100;
const NODES_MAX: usize = 1000;
const CONSUMERS_MAX: usize = 16;

/// Merges scans that can run in lockstep. In a plan, nodes of an expression come before nodes of
/// the enclosing expression, so inner joins are merged first.
pub(super) fn merge(nodes: &mut [Node], leaves: &mut Vec<Leaf>) {
    if leaves.len() > LEAVES_MAX || nodes.len() > NODES_MAX {
        return;
    }
    let mut later = 1;
    while later < leaves.len() {
        let plan = Plan::new(nodes, leaves);
        // The nearest earlier scan is tried first: fewer leaves between both means less waiting.
        let found = (0..later).rev().find_map(|i| Some((i, plan.lockstep(i, later)?)));
        let Some((earlier, found)) = found else {
            later += 1;
            continue;
        };
        for id in found.between {
            nodes[id].lockstep = Lockstep::Passes;
        }
        for id in found.joins {
            nodes[id].lockstep = Lockstep::Joins;
        }
        // The merged scan runs at the later position, where all other inputs are complete.
        if let Leaf::Scan(other) = leaves.remove(earlier)
            && let Some(Leaf::Scan(scan)) = leaves.get_mut(later - 1)
        {
            widen(scan, &other);
            scan.consumers = found.consumers;
            scan.is_lockstep = true;
        }
        // The later scan has moved up one position; it may merge with another scan.
        later = (later - 1).max(1);
    }
}

struct LockstepScan {
    /// Consumers in the order in which each series is passed to them.
    consumers: Vec<NodeId>,
    joins: Vec<NodeId>,
    between: Vec<NodeId>,
}

struct Plan<'a> {
    nodes: &'a [Node],
    leaves: &'a [Leaf],
    inputs: Vec<Vec<(Port, NodeId)>>,
}

impl<'a> Plan<'a> {
    fn new(nodes: &'a [Node], leaves: &'a [Leaf]) -> Plan<'a> {
        let mut inputs = vec![Vec::new(); nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            if let Some((parent, port)) = node.parent {
                inputs[parent].push((port, id));
            }
        }
        Plan { nodes, leaves, inputs }
    }

    /// Merges two scans into one scan at the position of the later scan, if possible.
    fn lockstep(&self, earlier: usize, later: usize) -> Option<LockstepScan> {
        let (Leaf::Scan(a), Leaf::Scan(b)) = (&self.leaves[earlier], &self.leaves[later]) else {
            return None;
        };
        let are_equal = a.matchers == b.matchers
            && a.hints.without_buckets == b.hints.without_buckets
            && is_of_one_name(a)
            && are_read_at_once(a, b);
        let mut consumers = [a.consumers.as_slice(), &b.consumers].concat();
        if !are_equal || consumers.len() > CONSUMERS_MAX {
            return None;
        }
        // Nodes of the first side of a join come before nodes of the second side.
        sort::sort(&mut consumers);
        let ways: Vec<Vec<(NodeId, Port)>> = consumers.iter().map(|id| self.way(*id)).collect();
        let mut joins = Vec::new();
        let mut tops = vec![0; ways.len()];
        // All pairs of consumers have to meet at a suitable join, not only neighbours.
        for second in 1..ways.len() {
            for first in 0..second {
                let join = self.join(&ways[first], &ways[second])?;
                joins.push(join);
                tops[first] = join.max(tops[first]);
                tops[second] = join.max(tops[second]);
            }
        }
        // Up to its highest join, every node on a consumer's path has to pass series on at once.
        let mut between = Vec::new();
        for (way, top) in ways.iter().zip(&tops) {
            for (id, port) in way.iter().take_while(|(id, _)| id < top) {
                if !joins.contains(id) {
                    self.passes(*id, *port).then(|| between.push(*id))?;
                }
            }
        }
        let found = LockstepScan { consumers, joins, between };
        self.does_none_wait(earlier, later, &found).then_some(found)
    }

    /// Returns the nodes that the series of a node reach, each with the port that they enter.
    fn way(&self, id: NodeId) -> Vec<(NodeId, Port)> {
        std::iter::successors(self.nodes[id].parent, |(id, _)| self.nodes[*id].parent).collect()
    }

    /// Returns the node at which two paths meet, if the node is a join that can run in lockstep.
    fn join(&self, first: &[(NodeId, Port)], second: &[(NodeId, Port)]) -> Option<NodeId> {
        let meets = |(id, port): &(NodeId, Port)| {
            let (_, other) = first.iter().find(|(other, _)| other == id)?;
            Some((*id, *other, *port))
        };
        // Consumers ascend, so the first consumer has to feed the held side (port 0).
        let (id, 0, 1) = second.iter().find_map(meets)? else { return None };
        let is_by_all_labels = match &self.nodes[id].kind {
            Kind::Set(BinaryOp::And | BinaryOp::Unless, by) => *by == KeyLabels::without(&[]),
            kind => is_one_to_one_by_all_labels(kind),
        };
        // Series of several names could match each other, not only themselves.
        let have_names = self.inputs[id].iter().all(|(_, input)| self.has_names(*input));
        (is_by_all_labels && have_names).then_some(id)
    }

    /// Returns whether a node emits the result for each series of a port at once.
    fn passes(&self, id: NodeId, port: Port) -> bool {
        let node = &self.nodes[id];
        let is_last = port + 1 == node.ports;
        let has_names =
            self.inputs[id].iter().any(|(p, input)| *p == port && self.has_names(*input));
        let is_of_each = match &node.kind {
            Kind::Call(..)
            | Kind::VectorScalar(_)
            | Kind::Negate
            | Kind::Repeat
            | Kind::Subquery(..)
            | Kind::TimestampOfValues
            | Kind::WithoutName
            | Kind::Set(BinaryOp::And | BinaryOp::Unless, _) => true,
            kind => is_one_to_one_by_all_labels(kind),
        };
        is_last && has_names && is_of_each
    }

    fn has_names(&self, id: NodeId) -> bool {
        self.nodes[id].names != Names::Any
    }

    /// Returns whether no series of the leaves from one scan to the other has to wait if the
    /// earlier scan runs at the position of the later scan.
    fn does_none_wait(&self, earlier: usize, later: usize, found: &LockstepScan) -> bool {
        let place = |leaf: usize| if leaf == earlier { later } else { leaf };
        let filled_by = |leaf: &Leaf| match leaf {
            Leaf::Scan(scan) => scan.consumers.clone(),
            Leaf::Generate(node) => vec![*node],
            Leaf::Check(_) => Vec::new(),
        };
        // The last leaf that contributes to each node, directly or through its inputs.
        let mut last = vec![0; self.nodes.len()];
        for (leaf, what) in self.leaves.iter().enumerate() {
            filled_by(what).into_iter().for_each(|node| last[node] = place(leaf));
        }
        // Inputs come before their node, so `last[id]` is final when it is passed on.
        for (id, node) in self.nodes.iter().enumerate() {
            if let Some((parent, _)) = node.parent {
                last[parent] = last[id].max(last[parent]);
            }
        }
        // A port waits for the ports before it, unless the join takes both ports in lockstep.
        let waits = |leaf: usize, id: NodeId, port: Port| {
            let is_in_step =
                self.nodes[id].lockstep == Lockstep::Joins || found.joins.contains(&id);
            let before = self.inputs[id].iter().filter(|(other, _)| *other < port);
            before
                .map(|(_, input)| last[*input])
                .any(|last| last > leaf || last == leaf && !is_in_step)
        };
        (earlier..=later).all(|leaf| {
            filled_by(&self.leaves[leaf]).into_iter().all(|node| {
                let start = (node, self.nodes[node].ports.saturating_sub(1));
                let mut way = std::iter::once(start).chain(self.way(node));
                // Nothing flows beyond a held input, and little beyond an aggregation.
                let mut has_ended = false;
                way.all(|(id, port)| {
                    let may_pass = has_ended || !waits(place(leaf), id, port);
                    let is_held = port + 1 < self.nodes[id].ports;
                    has_ended |= is_held || gathers(&self.nodes[id].kind);
                    may_pass
                })
            })
        })
    }
}

/// Returns whether a node emits nothing before all series have arrived.
fn gathers(kind: &Kind) -> bool {
    matches!(kind, Kind::Aggregate(_) | Kind::CountValues(..) | Kind::Absent(_) | Kind::Scalar)
}

fn is_one_to_one_by_all_labels(kind: &Kind) -> bool {
    let Kind::Join(join) = kind else { return false };
    let matching = &join.matching;
    matching.cardinality == Cardinality::OneToOne
        && !matching.is_on
        && matching.labels.is_empty()
        && matching.fill_lhs.is_none()
        && matching.fill_rhs.is_none()
}
