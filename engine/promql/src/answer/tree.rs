//! Syntax trees in JSON, as Prometheus' HTTP API returns them to editors.
//!
//! Source: prometheus/prometheus, `web/api/v1/translate_ast.go`.

use super::json::string;
use crate::syntax::{
    At, Cardinality, DurationExpr, DurationExprKind, DurationValue, Expr, ExprKind, Function,
    Matcher, Matching, RangeBounds, TimeShift, UnaryOp,
};

/// Appends the tree of an expression as a JSON object.
pub fn push_tree(expr: &Expr, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    match &expr.kind {
        ExprKind::Number(number) => {
            object.text("type", "numberLiteral");
            object.text("val", &tidepool_model::number::plain(number.value));
        }
        ExprKind::String(text) => {
            object.text("type", "stringLiteral");
            object.text("val", text.as_str());
        }
        ExprKind::Vector(selector) => {
            object.text("type", "vectorSelector");
            object.text("name", &selector.name);
            object.value("matchers", |out| push_matchers(&selector.matchers, out));
            push_shift(&selector.shift, &mut object);
            push_bounds(selector.bounds, &mut object);
        }
        ExprKind::Matrix(matrix) => {
            let selector = &matrix.selector;
            object.text("type", "matrixSelector");
            object.text("name", &selector.name);
            push_duration(["range", "rangeExpr"], Some(&matrix.range), &mut object);
            object.value("matchers", |out| push_matchers(&selector.matchers, out));
            push_shift(&selector.shift, &mut object);
            push_bounds(selector.bounds, &mut object);
        }
        ExprKind::Subquery(subquery) => {
            object.text("type", "subquery");
            object.value("expr", |out| push_tree(&subquery.expr, out));
            push_duration(["range", "rangeExpr"], Some(&subquery.range), &mut object);
            push_duration(["step", "stepExpr"], subquery.step.as_ref(), &mut object);
            push_shift(&subquery.shift, &mut object);
        }
        ExprKind::Unary(op, inner) => {
            object.text("type", "unaryExpr");
            object.text("op", sign(*op));
            object.value("expr", |out| push_tree(inner, out));
        }
        ExprKind::Paren(inner) => {
            object.text("type", "parenExpr");
            object.value("expr", |out| push_tree(inner, out));
        }
        ExprKind::Binary(binary) => {
            object.text("type", "binaryExpr");
            object.text("op", binary.op.name());
            object.value("lhs", |out| push_tree(&binary.lhs, out));
            object.value("rhs", |out| push_tree(&binary.rhs, out));
            object.value("matching", |out| match &binary.matching {
                Some(matching) => push_matching(matching, out),
                None => out.extend_from_slice(b"null"),
            });
            object.bool("bool", binary.returns_bool);
        }
        ExprKind::Aggregate(aggregate) => {
            object.text("type", "aggregation");
            object.text("op", aggregate.op.name());
            object.value("expr", |out| push_tree(&aggregate.expr, out));
            object.value("param", |out| match &aggregate.param {
                Some(param) => push_tree(param, out),
                None => out.extend_from_slice(b"null"),
            });
            object.value("grouping", |out| push_texts(&aggregate.grouping, out));
            object.bool("without", aggregate.is_without);
        }
        ExprKind::Call(call) => {
            object.text("type", "call");
            object.value("func", |out| push_function(call.function, out));
            object.value("args", |out| push_list(&call.args, push_tree, out));
        }
    }
    object.end();
}

struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, is_first: true }
    }

    fn end(self) {
        self.out.push(b'}');
    }

    fn value(&mut self, name: &str, push: impl FnOnce(&mut Vec<u8>)) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        string(name, self.out);
        self.out.push(b':');
        push(self.out);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.value(name, |out| string(text, out));
    }

    fn plain(&mut self, name: &str, json: &str) {
        self.value(name, |out| out.extend_from_slice(json.as_bytes()));
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.plain(name, if value { "true" } else { "false" });
    }
}

fn sign(op: UnaryOp) -> &'static str {
    if op == UnaryOp::Minus { "-" } else { "+" }
}

fn push_list<T>(entries: &[T], push: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push(entry, out);
    }
    out.push(b']');
}

fn push_texts(texts: &[String], out: &mut Vec<u8>) {
    push_list(texts, |text, out| string(text, out), out);
}

fn push_matchers(matchers: &[Matcher], out: &mut Vec<u8>) {
    let push = |matcher: &Matcher, out: &mut Vec<u8>| {
        let mut object = Object::begin(out);
        object.text("name", &matcher.name);
        object.text("value", &matcher.value);
        object.text("type", matcher.op.name());
        object.end();
    };
    push_list(matchers, push, out);
}

fn push_matching(matching: &Matching, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.text(
        "card",
        match matching.cardinality {
            Cardinality::OneToOne => "one-to-one",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToMany => "many-to-many",
        },
    );
    object.value("labels", |out| push_texts(&matching.labels, out));
    object.bool("on", matching.is_on);
    object.value("include", |out| push_texts(&matching.include, out));
    object.value("fillValues", |out| {
        let mut object = Object::begin(out);
        for (name, value) in [("lhs", matching.fill_lhs), ("rhs", matching.fill_rhs)] {
            // JSON has no infinities and no NaN.
            let value = value.filter(|value| value.is_finite());
            object.plain(name, &value.map_or("null".to_owned(), tidepool_model::number::plain));
        }
        object.end();
    });
    object.end();
}

fn push_function(function: &Function, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.text("name", function.name);
    object.value("argTypes", |out| {
        push_list(function.args, |kind, out| string(kind.name(), out), out);
    });
    object.plain("variadic", &function.variadic.to_string());
    object.text("returnType", function.returns.name());
    object.end();
}

fn push_bounds(bounds: RangeBounds, object: &mut Object<'_>) {
    object.bool("anchored", bounds == RangeBounds::Anchored);
    object.bool("smoothed", bounds == RangeBounds::Smoothed);
}

fn push_shift(shift: &TimeShift, object: &mut Object<'_>) {
    push_duration(["offset", "offsetExpr"], shift.offset.as_ref(), object);
    let (time, edge) = match shift.at {
        None => (None, "null"),
        Some(At::Time(ms)) => (Some(ms), "null"),
        Some(At::Start) => (None, "\"start\""),
        Some(At::End) => (None, "\"end\""),
    };
    object.plain("timestamp", &time.map_or("null".to_owned(), |ms| ms.to_string()));
    object.plain("startOrEnd", edge);
}

/// Writes a duration: milliseconds under the first name, or an expression under the second name.
fn push_duration(names: [&str; 2], duration: Option<&DurationValue>, object: &mut Object<'_>) {
    let (ms, expr) = match duration {
        None => (0, None),
        Some(DurationValue::Ms(ms)) => (*ms, None),
        Some(DurationValue::Expr(expr)) => (0, Some(expr)),
    };
    object.plain(names[0], &ms.to_string());
    object.value(names[1], |out| match expr {
        Some(expr) => push_duration_expr(expr, out),
        None => out.extend_from_slice(b"null"),
    });
}

fn push_duration_expr(expr: &DurationExpr, out: &mut Vec<u8>) {
    let push_number = |out: &mut Vec<u8>| {
        if let DurationExprKind::Number(number) = expr.kind {
            let mut object = Object::begin(out);
            object.text("type", "numberLiteral");
            object.text("val", &tidepool_model::number::plain(number.value));
            object.bool("duration", number.is_duration);
            object.end();
        }
    };
    let (op, left, right) = match &expr.kind {
        // A literal in parentheses stays an expression, so that its parentheses can be printed.
        DurationExprKind::Number(_) if !expr.is_wrapped => return push_number(out),
        DurationExprKind::Number(_) => ("+", None, None),
        DurationExprKind::Step => ("step", None, None),
        DurationExprKind::Range => ("range", None, None),
        DurationExprKind::Unary(op, inner) => (sign(*op), None, Some(inner)),
        DurationExprKind::Binary(op, left, right) => (op.name(), Some(left), Some(right)),
    };
    let is_number = matches!(expr.kind, DurationExprKind::Number(_));
    let mut object = Object::begin(out);
    object.text("type", "durationExpr");
    object.text("op", op);
    for (name, inner) in [("lhs", left), ("rhs", right)] {
        object.value(name, |out| match inner {
            Some(inner) => push_duration_expr(inner, out),
            // Upstream represents a number in parentheses as the operand of a plus.
            None if is_number && name == "rhs" => push_number(out),
            None => out.extend_from_slice(b"null"),
        });
    }
    object.bool("wrapped", expr.is_wrapped);
    object.end();
}
