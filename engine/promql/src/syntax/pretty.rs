//! Prints an expression over several lines, with longer parts split.

use super::printer::{push_aggregate_head, push_expr, push_operator, push_subquery_range, sign};
use super::{Expr, ExprKind};

/// Longest expression in bytes that upstream leaves on one line.
pub const LINE_BYTES_MAX: usize = 100;

impl Expr {
    /// Prints the expression, split where one line would exceed `line_bytes_max` bytes.
    pub fn prettified(&self, line_bytes_max: usize) -> String {
        let mut out = String::new();
        push(self, 0, line_bytes_max, &mut out);
        out
    }
}

/// Appends an expression with its indentation, on several lines if one line is too long.
fn push(expr: &Expr, level: usize, line_bytes_max: usize, out: &mut String) {
    let start = out.len();
    indent(level, out);
    let text_start = out.len();
    push_expr(expr, out);
    if out.len() - text_start <= line_bytes_max {
        if matches!(expr.kind, ExprKind::Subquery(_)) {
            // Upstream writes a short subquery without indentation.
            out.replace_range(start..text_start, "");
        }
        return;
    }
    match &expr.kind {
        ExprKind::Number(_) | ExprKind::String(_) => {}
        ExprKind::Vector(_) | ExprKind::Matrix(_) => {}
        ExprKind::Aggregate(aggregate) => {
            out.truncate(text_start);
            push_aggregate_head(aggregate, out);
            let args = aggregate.param.iter().chain([&aggregate.expr]);
            push_args(args, level, line_bytes_max, out);
        }
        ExprKind::Call(call) => {
            out.truncate(text_start);
            out.push_str(call.function.name);
            push_args(call.args.iter(), level, line_bytes_max, out);
        }
        ExprKind::Paren(inner) => {
            out.truncate(text_start);
            push_args([&**inner].into_iter(), level, line_bytes_max, out);
        }
        ExprKind::Binary(binary) => {
            out.truncate(start);
            push(&binary.lhs, level + 1, line_bytes_max, out);
            out.push('\n');
            indent(level, out);
            push_operator(binary, out);
            out.push('\n');
            push(&binary.rhs, level + 1, line_bytes_max, out);
        }
        ExprKind::Subquery(subquery) => {
            out.truncate(start);
            // The inner expression has its own indentation, and the range follows its last line.
            push(&subquery.expr, level, line_bytes_max, out);
            push_subquery_range(subquery, out);
        }
        ExprKind::Unary(op, inner) => {
            out.truncate(text_start);
            // The inner expression has its own indentation, which must not follow the sign.
            let mut text = String::new();
            push(inner, level, line_bytes_max, &mut text);
            out.push(sign(*op));
            out.push_str(text.trim());
        }
    }
}

/// Appends arguments in parentheses, each on lines of its own.
fn push_args<'e>(
    args: impl Iterator<Item = &'e Expr>,
    level: usize,
    line_bytes_max: usize,
    out: &mut String,
) {
    out.push('(');
    for (i, arg) in args.enumerate() {
        out.push_str(if i > 0 { ",\n" } else { "\n" });
        push(arg, level + 1, line_bytes_max, out);
    }
    out.push('\n');
    indent(level, out);
    out.push(')');
}

fn indent(level: usize, out: &mut String) {
    (0..level).for_each(|_| out.push_str("  "));
}
