//! Construction of operators from the nodes of a plan.

use super::aggregate::{self, CountValues};
use super::binary::{And, Joiner, Or};
use super::buckets::OfBuckets;
use super::fold::Fold;
use super::info::Info;
use super::pipeline::{Operator, Pipeline, State};
use super::relabel::{LabelJoiner, Replace};
use super::root::{Cleanup, Root};
use super::scalar::{Absent, Compute, Generate, OfScalars, ToScalar, date};
use super::sort::Sorter;
use super::subquery::SubqueryFold;
use super::transform::{
    Change, Function, Negate, Nothing, Pass, Repeat, Timestamps, Transform, WithScalar, WithoutName,
};
use crate::functions::Dropped;
use crate::plan::{Kind, Lockstep, Names, Node, Plan, ScalarArg, dropped};
use crate::syntax::BinaryOp;

/// Builds the operators of a plan from its nodes, which are moved out of the plan.
pub fn pipeline(plan: &mut Plan, is_delayed: bool) -> Pipeline {
    let mut states = Vec::with_capacity(plan.nodes.len());
    let mut names = vec![Names::Any; plan.nodes.len()];
    for (id, node) in std::mem::take(&mut plan.nodes).into_iter().enumerate() {
        // The last input is the series input, and overwrites the names of scalar inputs.
        let input_names = names[id];
        if let Some((parent, _)) = node.parent {
            names[parent] = node.names;
        }
        let (parent, ports, span) = (node.parent, node.ports, node.span);
        let joins_in_lockstep = node.lockstep == Lockstep::Joins;
        let operator = operator(node, input_names, is_delayed);
        states.push(State::new(operator, ports, parent, span, joins_in_lockstep));
    }
    Pipeline::new(states)
}

fn operator(node: Node, names: Names, is_delayed: bool) -> Box<dyn Operator> {
    let Node { kind, grid, span, ports, lockstep, .. } = node;
    let steps = grid.steps;
    let series_port = ports.saturating_sub(1);
    // With delayed removal, operators only mark series; `Cleanup` drops the labels.
    let drops = |dropped: Dropped| dropped != Dropped::Nothing && !is_delayed;
    match kind {
        Kind::Fold(plan) => Box::new(Fold::new(plan, grid, span)),
        Kind::Subquery(plan, inner) => {
            Box::new(SubqueryFold::new(plan, grid, inner, series_port, span))
        }
        Kind::Number(value) => Box::new(Generate::new(grid, move |_| Some(value))),
        Kind::Time => Box::new(Generate::new(grid, |time_ms| Some(time_ms as f64 / 1000.0))),
        Kind::Date(entry) => Box::new(date(grid, entry)),
        Kind::Repeat => change(Repeat(steps), &[], false, names, span),
        Kind::Call(entry, args) => {
            change(Function(entry), &args, drops(entry.dropped), names, span)
        }
        Kind::ScalarCall(entry, args) => {
            Box::new(Compute::new(OfScalars::Call(entry), &args, ports, steps))
        }
        Kind::ScalarBinary(op, args) => {
            Box::new(Compute::new(OfScalars::Binary(op), &args, ports, steps))
        }
        Kind::TimestampOfValues => change(Timestamps(grid), &[], !is_delayed, names, span),
        Kind::WithoutName => change(WithoutName, &[], !is_delayed, names, span),
        Kind::Nothing => change(Nothing, &[], false, names, span),
        Kind::Negate => change(Negate, &[], !is_delayed, names, span),
        Kind::VectorScalar(plan) => {
            let dropped = dropped(plan.op, plan.returns_bool);
            let scalar = [plan.scalar];
            change(WithScalar::new(plan, dropped, span), &scalar, drops(dropped), names, span)
        }
        Kind::Join(plan) => Box::new(Joiner::new(plan, grid, is_delayed, lockstep, span)),
        Kind::Set(BinaryOp::Or, by) => Box::new(Or::new(by, ports, span)),
        Kind::Set(op, by) => Box::new(And::new(by, op == BinaryOp::Unless, lockstep, span)),
        Kind::Aggregate(plan) => aggregate::operator(plan, grid, span),
        Kind::CountValues(by, label) => Box::new(CountValues::new(by, label, grid, span)),
        // The new value may make labels equal whether names are dropped or not.
        Kind::LabelReplace(plan) => change(Replace::new(plan), &[], true, names, span),
        Kind::LabelJoin { target, separator, sources } => {
            change(LabelJoiner::new(target, separator, sources), &[], true, names, span)
        }
        Kind::Absent(labels) => Box::new(Absent::new(labels, steps)),
        Kind::Scalar => Box::new(ToScalar::new(steps)),
        Kind::Pass => change(Pass, &[], false, names, span),
        Kind::Sort(plan) => Box::new(Sorter::new(plan, grid, span)),
        Kind::Buckets(plan) => Box::new(OfBuckets::new(plan, grid, series_port, names, span)),
        Kind::Info(plan) => Box::new(Info::new(plan, span)),
        Kind::Cleanup => Box::new(Cleanup::new(names, span)),
        Kind::Root(plan) => Box::new(Root::new(plan, grid, span)),
    }
}

fn change<C: Change + 'static>(
    change: C,
    args: &[ScalarArg],
    may_unite: bool,
    names: Names,
    span: crate::syntax::Span,
) -> Box<dyn Operator> {
    Box::new(Transform::new(change, args, may_unite, names, span))
}
