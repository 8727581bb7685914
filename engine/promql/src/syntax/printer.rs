//! Prints an expression on one line, as upstream does.

use super::{
    Aggregate, At, Binary, Call, Cardinality, DurationExpr, DurationExprKind, DurationOp,
    DurationValue, Expr, ExprKind, Matcher, Matching, NumberLiteral, RangeBounds, Subquery,
    TimeShift, UnaryOp, VectorSelector, number, quote,
};
use std::fmt;
use tidepool_model::number::{general, plain};
use tidepool_model::sort;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        push_expr(self, &mut out);
        f.write_str(&out)
    }
}

impl fmt::Display for DurationExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        push_duration_expr(self, &mut out);
        f.write_str(&out)
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        quote::push_name(&self.name, &mut out);
        out.push_str(self.op.name());
        quote::push_quoted(&self.value, &mut out);
        f.write_str(&out)
    }
}

impl fmt::Display for VectorSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        push_selector(self, &mut out);
        f.write_str(&out)
    }
}

pub(super) fn push_expr(expr: &Expr, out: &mut String) {
    match &expr.kind {
        ExprKind::Number(number) => push_number(number, out),
        ExprKind::String(text) => out.push_str(&text.quoted()),
        ExprKind::Vector(selector) => push_selector(selector, out),
        ExprKind::Matrix(matrix) => {
            push_series(&matrix.selector, out);
            out.push('[');
            push_duration(&matrix.range, out);
            out.push(']');
            // Upstream's order of modifiers differs between ranges and instant selectors.
            push_bounds(matrix.selector.bounds, out);
            push_at(&matrix.selector.shift, out);
            push_offset(&matrix.selector.shift, out);
        }
        ExprKind::Subquery(subquery) => {
            push_expr(&subquery.expr, out);
            push_subquery_range(subquery, out);
        }
        ExprKind::Unary(op, inner) => {
            out.push(sign(*op));
            push_expr(inner, out);
        }
        ExprKind::Binary(_) => {
            // A loop, because a chain may be longer than the stack is deep.
            let chain = expr.chain();
            if let Some((_, first)) = chain.last() {
                push_expr(&first.lhs, out);
            }
            for (_, binary) in chain.into_iter().rev() {
                out.push(' ');
                push_operator(binary, out);
                out.push(' ');
                push_expr(&binary.rhs, out);
            }
        }
        ExprKind::Aggregate(aggregate) => {
            push_aggregate_head(aggregate, out);
            out.push('(');
            if let Some(param) = &aggregate.param {
                push_expr(param, out);
                out.push_str(", ");
            }
            push_expr(&aggregate.expr, out);
            out.push(')');
        }
        ExprKind::Call(Call { function, args }) => {
            out.push_str(function.name);
            out.push('(');
            for (i, arg) in args.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                push_expr(arg, out);
            }
            out.push(')');
        }
        ExprKind::Paren(inner) => {
            out.push('(');
            push_expr(inner, out);
            out.push(')');
        }
    }
}

pub(super) fn sign(op: UnaryOp) -> char {
    if op == UnaryOp::Minus { '-' } else { '+' }
}

/// Appends the operator with its labels, up to the parenthesis of its arguments.
pub(super) fn push_aggregate_head(aggregate: &Aggregate, out: &mut String) {
    out.push_str(aggregate.op.name());
    if aggregate.is_without || !aggregate.grouping.is_empty() {
        out.push_str(if aggregate.is_without { " without" } else { " by" });
        push_labels(&aggregate.grouping, out);
        out.push(' ');
    }
}

pub(super) fn push_operator(binary: &Binary, out: &mut String) {
    out.push_str(binary.op.name());
    if binary.returns_bool {
        out.push_str(" bool");
    }
    if let Some(matching) = &binary.matching {
        push_matching(matching, out);
    }
}

fn push_matching(matching: &Matching, out: &mut String) {
    let group = match matching.cardinality {
        Cardinality::ManyToOne => " group_left",
        Cardinality::OneToMany => " group_right",
        Cardinality::OneToOne | Cardinality::ManyToMany => "",
    };
    // A group needs the clause before it, even if `ignoring` lists nothing.
    if !matching.labels.is_empty() || matching.is_on || !group.is_empty() {
        out.push_str(if matching.is_on { " on" } else { " ignoring" });
        push_labels(&matching.labels, out);
    }
    if !group.is_empty() {
        out.push_str(group);
        push_labels(&matching.include, out);
    }
    let mut fill = |word: &str, value: Option<f64>| {
        if let Some(value) = value {
            out.extend([word, " (", &general(value), ")"]);
        }
    };
    match (matching.fill_lhs, matching.fill_rhs) {
        // Upstream prints equal values as one modifier.
        (Some(left), Some(right)) if left == right => fill(" fill", Some(left)),
        (left, right) => {
            fill(" fill_left", left);
            fill(" fill_right", right);
        }
    }
}

fn push_labels(labels: &[String], out: &mut String) {
    out.push_str(" (");
    for (i, label) in labels.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        quote::push_name(label, out);
    }
    out.push(')');
}

fn push_number(number: &NumberLiteral, out: &mut String) {
    match number.is_duration {
        true => number::push_duration((number.value * 1000.0).round() as i64, out),
        false => out.push_str(&plain(number.value)),
    }
}

fn push_selector(selector: &VectorSelector, out: &mut String) {
    push_series(selector, out);
    push_at(&selector.shift, out);
    push_bounds(selector.bounds, out);
    push_offset(&selector.shift, out);
}

fn push_series(selector: &VectorSelector, out: &mut String) {
    // The matcher that the parser made of the name is not printed again.
    let is_name = |matcher: &Matcher| {
        let VectorSelector { name, .. } = selector;
        let is_equal = matcher.op == super::MatchOp::Equal && matcher.name == "__name__";
        is_equal && matcher.value == *name && !name.is_empty()
    };
    let others = selector.matchers.iter().filter(|matcher| !is_name(matcher));
    let mut texts: Vec<String> = others.map(Matcher::to_string).collect();
    // Upstream sorts matchers by their text.
    sort::sort(&mut texts);
    out.push_str(&selector.name);
    if !texts.is_empty() {
        out.extend(["{", &texts.join(","), "}"]);
    }
}

fn push_bounds(bounds: RangeBounds, out: &mut String) {
    out.push_str(match bounds {
        RangeBounds::Samples => "",
        RangeBounds::Anchored => " anchored",
        RangeBounds::Smoothed => " smoothed",
    });
}

pub(super) fn push_subquery_range(subquery: &Subquery, out: &mut String) {
    out.push('[');
    push_duration(&subquery.range, out);
    out.push(':');
    if let Some(step) = &subquery.step {
        push_duration(step, out);
    }
    out.push(']');
    push_at(&subquery.shift, out);
    push_offset(&subquery.shift, out);
}

fn push_at(shift: &TimeShift, out: &mut String) {
    match shift.at {
        None => {}
        Some(At::Start) => out.push_str(" @ start()"),
        Some(At::End) => out.push_str(" @ end()"),
        Some(At::Time(ms)) => {
            let sign = if ms < 0 { "-" } else { "" };
            // The separate sign keeps times between -1 and 0 seconds negative.
            let ms = ms.unsigned_abs();
            out.push_str(&format!(" @ {sign}{}.{:03}", ms / 1000, ms % 1000));
        }
    }
}

fn push_offset(shift: &TimeShift, out: &mut String) {
    if let Some(offset) = &shift.offset {
        out.push_str(" offset ");
        push_duration(offset, out);
    }
}

fn push_duration(duration: &DurationValue, out: &mut String) {
    match duration {
        DurationValue::Ms(ms) => number::push_duration(*ms, out),
        DurationValue::Expr(expr) => push_duration_expr(expr, out),
    }
}

fn push_duration_expr(expr: &DurationExpr, out: &mut String) {
    if expr.is_wrapped {
        out.push('(');
    }
    match &expr.kind {
        DurationExprKind::Number(number) => push_number(number, out),
        DurationExprKind::Step => out.push_str("step()"),
        DurationExprKind::Range => out.push_str("range()"),
        DurationExprKind::Unary(op, inner) => {
            if *op == UnaryOp::Minus {
                out.push('-');
            }
            push_duration_expr(inner, out);
        }
        DurationExprKind::Binary(op @ (DurationOp::Min | DurationOp::Max), left, right) => {
            out.extend([op.name(), "("]);
            push_duration_expr(left, out);
            out.push_str(", ");
            push_duration_expr(right, out);
            out.push(')');
        }
        DurationExprKind::Binary(op, left, right) => {
            push_duration_expr(left, out);
            out.extend([" ", op.name(), " "]);
            push_duration_expr(right, out);
        }
    }
    if expr.is_wrapped {
        out.push(')');
    }
}
