//! Parts of an expression that are the same at all steps, because `@` fixes all their times.
//!
//! Source: prometheus/prometheus, `promql/engine.go`, `preprocessExprHelper`.

use super::selector::info_reference;
use super::{Options, constant};
use crate::syntax::{Expr, ExprKind};
use std::collections::HashMap;

/// Whether each expression of a tree is the same at all steps, by address of the expression.
#[derive(Debug, Default)]
pub struct Invariance(HashMap<*const Expr, Fixed>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    pub is_invariant: bool,
    /// Whether one step is evaluated and repeated; false for ranges, strings and numbers.
    pub is_repeated: bool,
}

const VARIABLE: Fixed = Fixed { is_invariant: false, is_repeated: false };
const REPEATED: Fixed = Fixed { is_invariant: true, is_repeated: true };

/// Functions that use the evaluation time besides their arguments.
const OF_TIME: [&str; 10] = [
    "days_in_month",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "hour",
    "minute",
    "month",
    "year",
    "predict_linear",
    "time",
];

impl Invariance {
    /// Visits all expressions of a tree, which must not move while the result is used.
    pub fn of(expr: &Expr, options: &Options) -> Invariance {
        let mut invariance = Invariance::default();
        invariance.visit(expr, options);
        invariance
    }

    pub fn get(&self, expr: &Expr) -> Fixed {
        self.0.get(&std::ptr::from_ref(expr)).copied().unwrap_or_default()
    }

    fn visit(&mut self, expr: &Expr, options: &Options) -> Fixed {
        // Chains may be longer than the stack is deep, so only right operands recurse.
        let chain = expr.chain();
        let Some((_, first)) = chain.last() else {
            let fixed = self.judge(expr, options);
            self.0.insert(std::ptr::from_ref(expr), fixed);
            return fixed;
        };
        let mut left = self.visit(&first.lhs, options);
        for (expr, binary) in chain.into_iter().rev() {
            let right = self.visit(&binary.rhs, options);
            let are_invariant = left.is_invariant && right.is_invariant;
            // An operator on two numbers is repeated too, unless constant folding comes first.
            left = if are_invariant { REPEATED } else { VARIABLE };
            self.0.insert(std::ptr::from_ref(expr), left);
        }
        left
    }

    fn judge(&mut self, expr: &Expr, options: &Options) -> Fixed {
        let at = |is_fixed: bool, is_repeated| Fixed { is_invariant: is_fixed, is_repeated };
        match &expr.kind {
            ExprKind::Number(_) | ExprKind::String(_) => at(true, false),
            ExprKind::Vector(selector) => {
                let is_fixed = selector.shift.at.is_some();
                at(is_fixed, is_fixed)
            }
            ExprKind::Matrix(matrix) => at(matrix.selector.shift.at.is_some(), false),
            ExprKind::Subquery(subquery) => {
                self.visit(&subquery.expr, options);
                at(subquery.shift.at.is_some(), false)
            }
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => self.visit(inner, options),
            ExprKind::Aggregate(aggregate) => {
                // Upstream ignores whether the parameter is the same at all steps.
                if let Some(param) = &aggregate.param {
                    self.visit(param, options);
                }
                self.visit(&aggregate.expr, options)
            }
            ExprKind::Binary(_) => VARIABLE,
            ExprKind::Call(call) => {
                if constant::value(expr, options).is_some() {
                    return at(true, false);
                }
                let name = call.function.name;
                let mut are_fixed = true;
                for (i, arg) in call.args.iter().enumerate() {
                    let fixed = self.visit(arg, options);
                    // The second argument of `info` has no time of its own.
                    are_fixed &= fixed.is_invariant || (name == "info" && i == 1);
                }
                let is_fixed = match name {
                    // `@` fixes the time of a sample; the time of other values is the step's.
                    "timestamp" => matches!(bare(&call.args[0]).kind, ExprKind::Vector(_)),
                    "info" => info_reference(&call.args[0], options).is_some(),
                    name => !OF_TIME.contains(&name),
                };
                if are_fixed && is_fixed { REPEATED } else { VARIABLE }
            }
        }
    }
}

/// Returns the expression without enclosing parentheses.
pub fn bare(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Paren(inner) => bare(inner),
        _ => expr,
    }
}
