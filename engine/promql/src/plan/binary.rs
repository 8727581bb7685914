//! Binary operators.

use super::PlanError;
use super::build::Builder;
use super::types::*;
use crate::eval::EvalError;
use crate::eval::key::KeyLabels;
use crate::functions::Dropped;
use crate::syntax::{Binary, BinaryOp, Cardinality, Matching, Span, ValueType, quoted};

impl Builder<'_> {
    pub(super) fn binary(
        &mut self,
        binary: &Binary,
        grid: Grid,
        span: Span,
    ) -> Result<NodeId, PlanError> {
        let is_scalar = |expr: &crate::syntax::Expr| expr.value_type() == ValueType::Scalar;
        match (is_scalar(&binary.lhs), is_scalar(&binary.rhs)) {
            (true, true) if binary.op.is_trim() => {
                let op = quoted(binary.op.name());
                let text = format!("operator {op} not allowed for Scalar operations");
                Err(EvalError::execution(text).into())
            }
            (true, true) => {
                let mut inputs = Vec::new();
                let left = self.scalar(&binary.lhs, grid, &mut inputs)?;
                let right = self.scalar(&binary.rhs, grid, &mut inputs)?;
                let kind = Kind::ScalarBinary(binary.op, [left, right]);
                Ok(self.add(kind, grid, span, Names::Absent, &inputs))
            }
            (false, false) => self.vectors(binary, grid, span),
            (is_left, _) => {
                let (scalar, vector) = match is_left {
                    true => (&binary.lhs, &binary.rhs),
                    false => (&binary.rhs, &binary.lhs),
                };
                let mut inputs = Vec::new();
                let scalar = self.scalar(scalar, grid, &mut inputs)?;
                let node = self.build(vector, grid)?;
                inputs.push(node);
                let dropped = dropped(binary.op, binary.returns_bool);
                let names = self.dropped(dropped, self.nodes[node].names);
                let kind = Kind::VectorScalar(VectorScalar {
                    op: binary.op,
                    scalar,
                    is_left,
                    returns_bool: binary.returns_bool,
                });
                Ok(self.add(kind, grid, span, names, &inputs))
            }
        }
    }

    fn vectors(&mut self, binary: &Binary, grid: Grid, span: Span) -> Result<NodeId, PlanError> {
        let matching = binary.matching.clone().unwrap_or_default();
        let is_set = matches!(binary.op, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless);
        let holds_left = !is_set && matching.cardinality == Cardinality::OneToMany;
        let (held, flowing) = match holds_left {
            true => (&binary.lhs, &binary.rhs),
            false => (&binary.rhs, &binary.lhs),
        };
        let held = self.build(held, grid)?;
        let flowing = self.build(flowing, grid)?;
        let (held_names, names) = (self.nodes[held].names, self.nodes[flowing].names);
        if is_set {
            let names = match (binary.op, held_names, names) {
                (BinaryOp::Or, Names::Absent, Names::Absent) => Names::Absent,
                (BinaryOp::Or, _, _) => Names::Any,
                (_, _, names) => names,
            };
            let kind = Kind::Set(binary.op, key(&matching));
            return Ok(self.add(kind, grid, span, names, &[held, flowing]));
        }
        let after = self.names_of_join(binary.op, binary.returns_bool, &matching, names);
        let kind =
            Kind::Join(Join { op: binary.op, matching, returns_bool: binary.returns_bool, names });
        Ok(self.add(kind, grid, span, after, &[held, flowing]))
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

/// The labels by which series match.
pub fn key(matching: &Matching) -> KeyLabels {
    match matching.is_on {
        true => KeyLabels::with(&matching.labels),
        false => KeyLabels::without(&matching.labels),
    }
}

/// Labels that an operator takes out: results of arithmetic are another metric.
pub fn dropped(op: BinaryOp, returns_bool: bool) -> Dropped {
    match op.is_comparison() || matches!(op, BinaryOp::TrimLower | BinaryOp::TrimUpper) {
        true if !returns_bool => Dropped::Nothing,
        _ => Dropped::Metadata,
    }
}
