//! Binary operators on single values.
//!
//! Source: prometheus/prometheus, `promql/engine.go` (`scalarBinop`, `vectorElemBinop`).

use crate::annotations::{HistogramOperation, Note};
use crate::histogram::Keep;
use crate::model::{CounterReset, Histogram, Value};
use crate::syntax::BinaryOp;
use std::rc::Rc;

/// Applies an operator to two scalars; comparisons return 0 or 1.
pub fn scalars(op: BinaryOp, left: f64, right: f64) -> f64 {
    match comparison(op, left, right) {
        Some(holds) => f64::from(u8::from(holds)),
        None => arithmetic(op, left, right),
    }
}

/// Returns whether a comparison holds; `None` if the operator is not a comparison.
#[inline]
pub fn comparison(op: BinaryOp, left: f64, right: f64) -> Option<bool> {
    Some(match op {
        BinaryOp::Equal => left == right,
        BinaryOp::NotEqual => left != right,
        BinaryOp::Less => left < right,
        BinaryOp::LessEqual => left <= right,
        BinaryOp::Greater => left > right,
        BinaryOp::GreaterEqual => left >= right,
        _ => return None,
    })
}

/// Applies an arithmetic operator; returns NaN for other operators.
#[inline]
pub fn arithmetic(op: BinaryOp, left: f64, right: f64) -> f64 {
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left * right,
        BinaryOp::Div => left / right,
        BinaryOp::Mod => left % right,
        BinaryOp::Pow => left.powf(right),
        BinaryOp::Atan2 => left.atan2(right),
        _ => f64::NAN,
    }
}

/// Result of an operator for two elements.
#[derive(Clone, Debug, Default)]
pub struct Element {
    /// The value, even if a comparison does not hold; `None` if the operands have no result.
    pub value: Option<Value>,
    /// Whether the comparison holds; true for other operators.
    pub is_kept: bool,
    pub note: Option<Note<'static>>,
}

pub fn values(op: BinaryOp, left: &Value, right: &Value) -> Element {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => floats(op, *left, *right),
        (Value::Float(factor), Value::Histogram(histogram)) if op == BinaryOp::Mul => {
            changed(histogram, |histogram| histogram.scale(*factor))
        }
        (Value::Histogram(histogram), Value::Float(number)) => match op {
            BinaryOp::Mul => changed(histogram, |histogram| histogram.scale(*number)),
            BinaryOp::Div => changed(histogram, |histogram| histogram.divide(*number)),
            BinaryOp::TrimUpper => trimmed(histogram, *number, Keep::Below),
            BinaryOp::TrimLower => trimmed(histogram, *number, Keep::Above),
            _ => incompatible(op, left, right),
        },
        (Value::Histogram(a), Value::Histogram(b)) => match op {
            BinaryOp::Add => sum(op, a, b),
            BinaryOp::Sub => sum(op, a, b),
            // Histograms have no order; comparisons other than equality are annotated.
            BinaryOp::Equal | BinaryOp::NotEqual => Element {
                value: Some(left.clone()),
                is_kept: a.is_same(b) == (op == BinaryOp::Equal),
                note: None,
            },
            _ => incompatible(op, left, right),
        },
        _ => incompatible(op, left, right),
    }
}

fn floats(op: BinaryOp, left: f64, right: f64) -> Element {
    let of = |value| Some(Value::Float(value));
    match comparison(op, left, right) {
        Some(is_kept) => Element { value: of(left), is_kept, note: None },
        // Trims apply to histograms only; `arithmetic` would silently return NaN.
        None if matches!(op, BinaryOp::TrimLower | BinaryOp::TrimUpper) => {
            incompatible(op, &Value::Float(left), &Value::Float(right))
        }
        None => Element { value: of(arithmetic(op, left, right)), is_kept: true, note: None },
    }
}

fn incompatible(op: BinaryOp, left: &Value, right: &Value) -> Element {
    let kind = |value: &Value| match value {
        Value::Float(_) => "float",
        Value::Histogram(_) => "histogram",
    };
    let note = Note::IncompatibleTypes(kind(left), op.name(), kind(right));
    Element { note: Some(note), ..Element::default() }
}

fn changed(histogram: &Histogram, change: impl FnOnce(&mut Histogram)) -> Element {
    let mut histogram = histogram.clone();
    change(&mut histogram);
    // Upstream compacts after scaling, so that a factor of 0 leaves no empty buckets.
    histogram.compact();
    Element { value: Some(Value::Histogram(Rc::new(histogram))), is_kept: true, note: None }
}

fn trimmed(histogram: &Histogram, at: f64, keep: Keep) -> Element {
    let mut histogram = histogram.clone();
    histogram.trim(at, keep);
    Element { value: Some(Value::Histogram(Rc::new(histogram))), is_kept: true, note: None }
}

fn sum(op: BinaryOp, left: &Histogram, right: &Histogram) -> Element {
    let mut result = left.clone();
    let (done, operation) = match op {
        BinaryOp::Sub => (result.subtract(right), HistogramOperation::Sub),
        _ => (result.add(right), HistogramOperation::Add),
    };
    // Exponential and custom buckets cannot be combined; upstream drops the element.
    let Ok(reconciled) = done else {
        let note = Note::IncompatibleBucketLayout(op.name());
        return Element { note: Some(note), ..Element::default() };
    };
    if reconciled.counter_resets {
        let note = Note::CounterResetCollision(operation);
        return Element { note: Some(note), ..Element::default() };
    }
    if op == BinaryOp::Sub {
        result.counter_reset = CounterReset::Gauge;
    }
    result.compact();
    Element {
        value: Some(Value::Histogram(Rc::new(result))),
        is_kept: true,
        note: reconciled.custom_bounds.then_some(Note::MismatchedCustomBuckets(operation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_ieee() {
        assert_eq!(scalars(BinaryOp::Div, 1.0, 0.0), f64::INFINITY);
        assert!(scalars(BinaryOp::Mod, 1.0, 0.0).is_nan());
        assert_eq!(scalars(BinaryOp::Mod, -5.0, 3.0), -2.0);
        assert_eq!(scalars(BinaryOp::Pow, 1.0, f64::NAN), 1.0);
        assert_eq!(scalars(BinaryOp::NotEqual, f64::NAN, f64::NAN), 1.0);
        assert_eq!(scalars(BinaryOp::GreaterEqual, 2.0, 2.0), 1.0);
    }

    #[test]
    fn what_has_no_meaning_is_said() {
        let histogram = Value::Histogram(Rc::new(Histogram::default()));
        let element = values(BinaryOp::Add, &Value::Float(1.0), &histogram);
        assert!(element.value.is_none());
        assert_eq!(element.note, Some(Note::IncompatibleTypes("float", "+", "histogram")));
    }
}
