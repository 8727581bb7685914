//! Any text as an expression: it is refused with a place within the text, or it is printed as a
//! text that gives the same tree. Each part of a tree has its place within the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_promql::answer::push_tree;
use tidepool_promql::syntax::{
    Expr, ExprKind, LINE_BYTES_MAX, ParserOptions, Span, UnaryOp, parse, parse_selector,
};

fuzz_target!(|text: &str| {
    if let Err(error) = parse_selector(text) {
        check_place(text, error.span);
    }
    // What is not enabled is refused, and nothing else changes.
    let _ = parse(text, &ParserOptions::default());
    let expr = match parse(text, &ParserOptions::all()) {
        Ok(expr) => expr,
        Err(error) => {
            check_place(text, error.span);
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    check_places(text, &expr);
    push_tree(&expr, &mut Vec::new());
    expr.selectors();
    let tree = without_places(&expr);
    for printed in [expr.to_string(), expr.prettified(LINE_BYTES_MAX), expr.prettified(10)] {
        let again = parse(&printed, &ParserOptions::all());
        let again = again.unwrap_or_else(|error| panic!("{text:?} as {printed:?}: {error}"));
        check_places(&printed, &again);
        assert_eq!(without_places(&again), tree, "{text:?} as {printed:?}");
    }
});

fn check_place(text: &str, span: Span) {
    let Span { start, end } = span;
    let is_within = start <= end && end as usize <= text.len();
    assert!(is_within, "{start}..{end} of {} bytes: {text:?}", text.len());
}

fn check_places(text: &str, expr: &Expr) {
    check_place(text, expr.span);
    let Span { start, end } = expr.span;
    let part = text.get(start as usize..end as usize);
    assert!(part.is_some_and(|part| !part.is_empty()), "{start}..{end} of {text:?}");
    let mut children: Vec<&Expr> = Vec::new();
    match &expr.kind {
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => children.push(inner),
        ExprKind::Subquery(subquery) => children.push(&subquery.expr),
        ExprKind::Binary(binary) => children.extend([&binary.lhs, &binary.rhs]),
        ExprKind::Aggregate(aggregate) => {
            children.push(&aggregate.expr);
            children.extend(&aggregate.param);
        }
        ExprKind::Call(call) => children.extend(&call.args),
        ExprKind::Matrix(matrix) => check_place(text, matrix.selector_span),
        ExprKind::Number(_) | ExprKind::String(_) | ExprKind::Vector(_) => {}
    }
    for child in children {
        let is_within = expr.span.start <= child.span.start && child.span.end <= expr.span.end;
        assert!(is_within, "{:?} in {:?} of {text:?}", child.span, expr.span);
        check_places(text, child);
    }
}

/// The tree as text, without the places, which differ, and what else printing may change.
fn without_places(expr: &Expr) -> String {
    let mut expr = expr.clone();
    normalize(&mut expr);
    let tree = format!("{expr:?}");
    let mut rest = tree.as_str();
    let mut out = String::with_capacity(tree.len());
    // In texts of the expression a quote is escaped, so that a place is never found in one but as
    // part of the text itself, which then loses it on both sides.
    while let Some(at) = rest.find("Span { start: ") {
        let (before, place) = rest.split_at(at);
        out.push_str(before);
        rest = place.split_once('}').map_or("", |(_, behind)| behind);
    }
    // Upstream prints durations without the sign of zero, too.
    (out + rest).replace("value: -0.0, is_duration: true", "value: 0.0, is_duration: true")
}

/// Matchers come in the order in which they are printed. A plus sign changes no value: upstream
/// prints `Inf ^ 2` as `+Inf ^ 2`, which is `+(Inf ^ 2)`.
fn normalize(expr: &mut Expr) {
    while let ExprKind::Unary(UnaryOp::Plus, inner) = &expr.kind {
        *expr = Expr::clone(inner);
    }
    match &mut expr.kind {
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => normalize(inner),
        ExprKind::Subquery(subquery) => normalize(&mut subquery.expr),
        ExprKind::Binary(binary) => {
            normalize(&mut binary.lhs);
            normalize(&mut binary.rhs);
        }
        ExprKind::Aggregate(aggregate) => {
            normalize(&mut aggregate.expr);
            aggregate.param.as_mut().map(normalize);
        }
        ExprKind::Call(call) => call.args.iter_mut().for_each(normalize),
        ExprKind::Vector(selector) => selector.matchers.sort_by_key(ToString::to_string),
        ExprKind::Matrix(matrix) => matrix.selector.matchers.sort_by_key(ToString::to_string),
        ExprKind::Number(_) | ExprKind::String(_) => {}
    }
}
