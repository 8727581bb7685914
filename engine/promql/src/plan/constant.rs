//! Constant folding: scalars that are known before any series is read.

use super::Options;
use crate::binop;
use crate::functions::{Body, lookup};
use crate::syntax::{Expr, ExprKind, UnaryOp};

/// Returns the value of an expression that is the same number at all steps.
pub fn value(expr: &Expr, options: &Options) -> Option<f64> {
    match &expr.kind {
        ExprKind::Number(number) => Some(number.value),
        ExprKind::Paren(inner) => value(inner, options),
        ExprKind::Unary(op, inner) => {
            let value = value(inner, options)?;
            Some(if *op == UnaryOp::Minus { -value } else { value })
        }
        // Trims have no scalar result; `Builder::scalars_of` refuses them with upstream's text.
        ExprKind::Binary(_) => {
            // A chain may be longer than the stack is deep, so it is folded in a loop.
            let chain = expr.chain();
            let mut total = value(&chain.last()?.1.lhs, options)?;
            for (_, binary) in chain.into_iter().rev() {
                if binary.op.is_trim() {
                    return None;
                }
                total = binop::scalars(binary.op, total, value(&binary.rhs, options)?);
            }
            Some(total)
        }
        ExprKind::Call(call) => match call.function.name {
            "start" => Some(options.start_ms as f64 / 1000.0),
            "end" => Some(options.end_ms as f64 / 1000.0),
            "range" => Some((options.end_ms - options.start_ms) as f64 / 1000.0),
            // `step()` is zero if the query has a single time, whatever step was requested.
            "step" if options.start_ms == options.end_ms => Some(0.0),
            "step" => Some(options.step_ms.unwrap_or(0) as f64 / 1000.0),
            // `lookup` has no entry for `time`, so calls that depend on the step are not folded.
            name => match lookup(name)?.body {
                Body::Scalar(apply) => {
                    let args = call.args.iter().map(|arg| value(arg, options));
                    Some(apply(&args.collect::<Option<Vec<_>>>()?))
                }
                _ => None,
            },
        },
        _ => None,
    }
}
