//! Duration expressions, computed from the query's range and step.
//!
//! Source: prometheus/prometheus, `promql/durations.go`.

use super::{Options, PlanError};
use crate::binop;
use crate::syntax::{BinaryOp, DurationExpr, DurationExprKind, DurationOp, DurationValue, UnaryOp};

/// Largest absolute duration in seconds: upstream keeps nanoseconds in 64 bits.
const SECONDS_MAX: f64 = 9_223_372_036.854_775;

/// Resolves a range or a step to milliseconds; an expression must be greater than zero.
pub fn positive(duration: &DurationValue, options: &Options) -> Result<i64, PlanError> {
    resolve(duration, options, false)
}

/// Resolves an offset, which may be negative, to milliseconds.
pub fn any(duration: &DurationValue, options: &Options) -> Result<i64, PlanError> {
    resolve(duration, options, true)
}

fn resolve(
    duration: &DurationValue,
    options: &Options,
    may_be_negative: bool,
) -> Result<i64, PlanError> {
    let expr = match duration {
        DurationValue::Ms(ms) => return Ok(*ms),
        DurationValue::Expr(expr) => expr,
    };
    let seconds = seconds(expr, options)?;
    // NaN passes both comparisons below, so this check comes first.
    if !seconds.is_finite() {
        return Err(wrong(expr, "duration is NaN or infinite"));
    }
    if seconds <= 0.0 && !may_be_negative {
        return Err(wrong(expr, "duration must be greater than 0"));
    }
    if seconds.abs() > SECONDS_MAX {
        return Err(wrong(expr, "duration is out of range"));
    }
    // `SECONDS_MAX` keeps the product within an `i64`.
    Ok((seconds * 1000.0) as i64)
}

fn seconds(expr: &DurationExpr, options: &Options) -> Result<f64, PlanError> {
    Ok(match &expr.kind {
        DurationExprKind::Number(number) => number.value,
        // An instant query has no step; upstream uses zero.
        DurationExprKind::Step => options.step_ms.unwrap_or(0) as f64 / 1000.0,
        DurationExprKind::Range => (options.end_ms - options.start_ms) as f64 / 1000.0,
        DurationExprKind::Unary(UnaryOp::Plus, inner) => seconds(inner, options)?,
        DurationExprKind::Unary(UnaryOp::Minus, inner) => -seconds(inner, options)?,
        DurationExprKind::Binary(op, left, right) => {
            let (left, right) = (seconds(left, options)?, seconds(right, options)?);
            let op = match op {
                // `binop` would return a number that is not finite; upstream reports the division.
                DurationOp::Div if right == 0.0 => return Err(wrong(expr, "division by zero")),
                DurationOp::Mod if right == 0.0 => return Err(wrong(expr, "modulo by zero")),
                DurationOp::Min => return Ok(crate::functions::min(left, right)),
                DurationOp::Max => return Ok(crate::functions::max(left, right)),
                DurationOp::Add => BinaryOp::Add,
                DurationOp::Sub => BinaryOp::Sub,
                DurationOp::Mul => BinaryOp::Mul,
                DurationOp::Div => BinaryOp::Div,
                DurationOp::Mod => BinaryOp::Mod,
                DurationOp::Pow => BinaryOp::Pow,
            };
            binop::scalars(op, left, right)
        }
    })
}

/// Makes an error at a duration. Upstream prints byte offsets here, not line and column.
fn wrong(expr: &DurationExpr, text: &str) -> PlanError {
    let span = expr.span;
    PlanError::invalid(format!("{}:{}: {text}", span.start, span.end), span)
}
