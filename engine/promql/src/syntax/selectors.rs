//! The selectors of an expression.

use super::{Expr, ExprKind, VectorSelector};

impl Expr {
    /// Returns all selectors in the order of the text.
    pub fn selectors(&self) -> Vec<&VectorSelector> {
        let mut found = Vec::new();
        // The parser bounds the depth of an expression.
        collect(self, &mut found);
        found
    }
}

fn collect<'e>(expr: &'e Expr, found: &mut Vec<&'e VectorSelector>) {
    match &expr.kind {
        ExprKind::Vector(selector) => found.push(selector),
        ExprKind::Matrix(matrix) => found.push(&matrix.selector),
        _ => expr.children().into_iter().for_each(|child| collect(child, found)),
    }
}

#[cfg(test)]
mod tests {
    use crate::syntax::{ParserOptions, parse};

    #[test]
    fn all_are_found_in_their_order() {
        let text = "sum(rate(a[5m])) / on(x) -(b offset 1m) + quantile(scalar(c), max_over_time(d[1h:1m])) + 2";
        let expr = parse(text, &ParserOptions::default()).unwrap();
        let names: Vec<_> = expr.selectors().iter().map(|selector| &*selector.name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }
}
