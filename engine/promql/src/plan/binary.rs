//! Planning of binary operators; chains of operators are planned in a loop.

use super::PlanError;
use super::build::Builder;
use super::types::*;
use crate::binop;
use crate::error::EvalError;
use crate::functions::Dropped;
use crate::model::KeyLabels;
use crate::syntax::{Binary, BinaryOp, Cardinality, Expr, Matching, Span, ValueType, quoted};

/// An operator of a chain; `right` is set if the right operand was built before the left operand.
struct Link<'e> {
    expr: &'e Expr,
    binary: &'e Binary,
    right: Option<Operand>,
}

/// First operand of a chain of operators.
enum Begin<'e> {
    Constant(f64),
    Expr(&'e Expr),
}

#[derive(Clone, Copy)]
enum Operand {
    Constant(f64),
    Scalar(NodeId),
    Vector(NodeId),
}

impl Builder<'_> {
    /// Plans a chain of operators, such as `a + b + c`, in a loop, because it may be longer than
    /// the stack is deep. A first loop, from the last operator to the first, builds right operands
    /// that must precede left operands; a second loop, in the order of the text, builds operators.
    pub(super) fn chain(&mut self, expr: &Expr, grid: Grid) -> Result<NodeId, PlanError> {
        let mut chain = expr.chain();
        let begin = self.begin_of(&mut chain, grid);
        let mut links: Vec<Link<'_>> = Vec::with_capacity(chain.len());
        for (expr, binary) in chain {
            // Operands of a trim keep their buckets; the second loop decrements the number.
            if binary.op.is_trim() {
                self.with_buckets += 1;
            }
            // Nodes get series in the order of building, and a join keeps the first side in memory.
            let is_left_first =
                is_scalar(&binary.lhs) || (!is_scalar(&binary.rhs) && holds_left(binary));
            let right = match is_left_first {
                true => None,
                false => Some(self.operand(&binary.rhs, grid)?),
            };
            links.push(Link { expr, binary, right });
        }
        let mut left = match begin {
            Begin::Constant(value) => Operand::Constant(value),
            Begin::Expr(expr) => self.operand(expr, grid)?,
        };
        while let Some(link) = links.pop() {
            let binary = link.binary;
            let mut right = match link.right {
                Some(right) => right,
                None => self.operand(&binary.rhs, grid)?,
            };
            if binary.op.is_trim() {
                self.with_buckets -= 1;
            }
            let mut span = link.expr.span;
            let mut held = vec![];
            // Consecutive `or` operators that match by the same labels become one node.
            while let Operand::Vector(node) = right
                && binary.op == BinaryOp::Or
            {
                held.push(node);
                match links.last() {
                    Some(next) if continues(binary, next.binary) => {
                        span = next.expr.span;
                        // `or` never builds its left side first, so `right` is always present here.
                        let Some(next) = links.pop().and_then(|next| next.right) else { break };
                        right = next;
                    }
                    _ => break,
                }
            }
            let node = match (left, right) {
                (Operand::Vector(left), Operand::Vector(_)) if binary.op == BinaryOp::Or => {
                    // The last term was built first, so it fills port 0.
                    held.reverse();
                    self.union(binary, &held, left, grid, span)
                }
                (Operand::Vector(left), Operand::Vector(right)) => {
                    self.vectors(binary, [left, right], grid, span)
                }
                (Operand::Vector(vector), scalar) => {
                    self.with_scalar(binary, scalar, vector, false, grid, span)
                }
                (scalar, Operand::Vector(vector)) => {
                    self.with_scalar(binary, scalar, vector, true, grid, span)
                }
                (left, right) => self.scalars_of(binary, left, right, grid, span)?,
            };
            self.check_bytes(span)?;
            left = match binary.value_type {
                ValueType::Scalar => Operand::Scalar(node),
                _ => Operand::Vector(node),
            };
        }
        match left {
            Operand::Vector(node) | Operand::Scalar(node) => Ok(node),
            Operand::Constant(value) => Ok(self.generate(Kind::Number(value), grid, expr.span)),
        }
    }

    /// Returns the first operand of a chain: folded constants, a part that is the same at all
    /// steps, or the leftmost operand. Operators within this operand are removed from `chain`.
    fn begin_of<'e>(&self, chain: &mut Vec<(&'e Expr, &'e Binary)>, grid: Grid) -> Begin<'e> {
        let is_repeated = |(expr, _): &(&Expr, &Binary)| self.invariance.get(expr).is_repeated;
        // `chain` lists the outermost operator first, so the longest invariant prefix is found.
        if let Some(from) = chain.iter().position(is_repeated).filter(|_| grid.steps > 1) {
            let expr = chain[from].0;
            chain.truncate(from);
            return Begin::Expr(expr);
        }
        let Some((_, first)) = chain.last() else { return Begin::Constant(f64::NAN) };
        let first = &first.lhs;
        let Some(mut total) = self.constant(first) else { return Begin::Expr(first) };
        while let Some((_, binary)) = chain.last()
            && !binary.op.is_trim()
            && let Some(right) = self.constant(&binary.rhs)
        {
            total = binop::scalars(binary.op, total, right);
            chain.pop();
        }
        Begin::Constant(total)
    }

    fn operand(&mut self, expr: &Expr, grid: Grid) -> Result<Operand, PlanError> {
        if is_scalar(expr) {
            if let Some(value) = self.constant(expr) {
                return Ok(Operand::Constant(value));
            }
            return self.build(expr, grid).map(Operand::Scalar);
        }
        self.build(expr, grid).map(Operand::Vector)
    }

    fn scalars_of(
        &mut self,
        binary: &Binary,
        left: Operand,
        right: Operand,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        // Upstream refuses trims of scalars during evaluation, not in the type check.
        if binary.op.is_trim() {
            let op = quoted(binary.op.name());
            let text = format!("operator {op} not allowed for Scalar operations");
            return Err(EvalError::execution(text).into());
        }
        let mut inputs = Vec::new();
        let args = [argument(left, &mut inputs), argument(right, &mut inputs)];
        Ok(self.add(Kind::ScalarBinary(binary.op, args), grid, span, Names::Absent, &inputs))
    }

    fn with_scalar(
        &mut self,
        binary: &Binary,
        scalar: Operand,
        vector: NodeId,
        is_left: bool,
        grid: Grid,
        span: Span,
    ) -> NodeId {
        let mut inputs = Vec::new();
        let scalar = argument(scalar, &mut inputs);
        inputs.push(vector);
        let dropped = dropped(binary.op, binary.returns_bool);
        let names = self.dropped(dropped, self.nodes[vector].names);
        let kind = Kind::VectorScalar(VectorScalar {
            op: binary.op,
            scalar,
            is_left,
            returns_bool: binary.returns_bool,
        });
        self.add(kind, grid, span, names, &inputs)
    }

    /// Adds an `or` of vectors; the evaluation keeps all terms but the first in memory.
    fn union(
        &mut self,
        binary: &Binary,
        held: &[NodeId],
        first: NodeId,
        grid: Grid,
        span: Span,
    ) -> NodeId {
        let inputs: Vec<NodeId> = held.iter().copied().chain([first]).collect();
        // Terms may have different names, even if each term has only one name.
        let have_none = inputs.iter().all(|input| self.nodes[*input].names == Names::Absent);
        let names = if have_none { Names::Absent } else { Names::Any };
        let by = key(binary.matching.as_ref().unwrap_or(&Matching::default()));
        self.add(Kind::Set(BinaryOp::Or, by), grid, span, names, &inputs)
    }

    fn vectors(
        &mut self,
        binary: &Binary,
        [left, right]: [NodeId; 2],
        grid: Grid,
        span: Span,
    ) -> NodeId {
        let matching = binary.matching.clone().unwrap_or_default();
        // The held side, kept in memory, is port 0, complete before the flowing side begins.
        let (held, flowing) = match holds_left(binary) {
            true => (left, right),
            false => (right, left),
        };
        let names = self.nodes[flowing].names;
        if binary.op.is_set() {
            let kind = Kind::Set(binary.op, key(&matching));
            return self.add(kind, grid, span, names, &[held, flowing]);
        }
        let after = self.names_of_join(binary.op, binary.returns_bool, &matching, names);
        let kind =
            Kind::Join(Join { op: binary.op, matching, returns_bool: binary.returns_bool, names });
        self.add(kind, grid, span, after, &[held, flowing])
    }

    fn names_of_join(
        &self,
        op: BinaryOp,
        returns_bool: bool,
        matching: &Matching,
        names: Names,
    ) -> Names {
        let is_name = |names: &[String]| names.iter().any(|name| name == "__name__");
        let is_dropped = match dropped(op, returns_bool) {
            Dropped::Nothing => false,
            // Arithmetic makes a new metric, whose name is dropped even with delayed removal.
            _ => !op.is_comparison() || !self.options.delayed_name_removal,
        };
        let is_kept = matching.cardinality != Cardinality::OneToOne
            || is_name(&matching.labels) == matching.is_on;
        match () {
            () if is_name(&matching.include) => Names::Any,
            () if matching.fill_lhs.is_some() || matching.fill_rhs.is_some() => Names::Any,
            () if is_dropped || !is_kept => Names::Absent,
            () => names,
        }
    }
}

fn is_scalar(expr: &Expr) -> bool {
    expr.value_type() == ValueType::Scalar
}

/// Returns whether a join keeps the left side in memory, which is then the "one" side.
fn holds_left(binary: &Binary) -> bool {
    let cardinality = binary.matching.as_ref().map(|matching| matching.cardinality);
    !binary.op.is_set() && cardinality == Some(Cardinality::OneToMany)
}

/// Returns whether `next` is an `or` that matches by the same labels as `binary`.
fn continues(binary: &Binary, next: &Binary) -> bool {
    let by = |binary: &Binary| binary.matching.as_ref().map(key);
    next.op == BinaryOp::Or && by(binary) == by(next)
}

/// Returns a scalar operand as an argument; an operand with a node is added to the inputs.
fn argument(operand: Operand, inputs: &mut Vec<NodeId>) -> ScalarArg {
    match operand {
        Operand::Constant(value) => ScalarArg::Constant(value),
        Operand::Scalar(node) | Operand::Vector(node) => {
            inputs.push(node);
            ScalarArg::Port(inputs.len() - 1)
        }
    }
}

/// Returns the labels by which a join or set operator matches series.
pub fn key(matching: &Matching) -> KeyLabels {
    match matching.is_on {
        true => KeyLabels::with(&matching.labels),
        false => KeyLabels::without(&matching.labels),
    }
}

/// Returns the labels that an operator drops: results of arithmetic are a new metric.
pub fn dropped(op: BinaryOp, returns_bool: bool) -> Dropped {
    match op.is_comparison() || matches!(op, BinaryOp::TrimLower | BinaryOp::TrimUpper) {
        true if !returns_bool => Dropped::Nothing,
        _ => Dropped::Metadata,
    }
}
