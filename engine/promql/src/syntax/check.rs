//! Type check of a syntax tree, with upstream's errors in upstream's order.

use super::{
    Aggregate, Binary, Call, Cardinality, Expr, ExprKind, MatchOp, ParseError, Span, ValueType,
    VectorSelector, quote,
};
use tidepool_relabel::Pattern;

type Checked<T = ()> = Result<T, ParseError>;

/// Checks the types of a tree, and removes the matching of operators between scalars.
pub(super) fn check(expr: &mut Expr, text: &str) -> Checked {
    Check { text }.expr(expr).map(drop)
}

struct Check<'a> {
    text: &'a str,
}

impl Check<'_> {
    fn error<T>(&self, span: Span, text: impl Into<String>) -> Checked<T> {
        Err(ParseError::new(span, text, self.text))
    }

    fn expr(&self, expr: &mut Expr) -> Checked<ValueType> {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Number(_) | ExprKind::String(_) => {}
            ExprKind::Vector(selector) => self.selector(selector, span, false)?,
            ExprKind::Matrix(matrix) => {
                self.selector(&matrix.selector, matrix.selector_span, false)?;
            }
            ExprKind::Subquery(subquery) => {
                let found = self.expr(&mut subquery.expr)?;
                if found != ValueType::Vector {
                    let text = "subquery is only allowed on instant vector, got";
                    return self.error(span, format!("{text} {} instead", found.name()));
                }
            }
            ExprKind::Unary(_, inner) => {
                let found = self.expr(inner)?;
                if !is_operand(found) {
                    let text = "unary expression only allowed on expressions of type scalar or \
                                instant vector, got";
                    let found = quote::quoted(found.documented());
                    return self.error(span, format!("{text} {found}"));
                }
            }
            ExprKind::Paren(inner) => drop(self.expr(inner)?),
            ExprKind::Binary(binary) => self.chain(binary, span)?,
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate)?,
            ExprKind::Call(call) => self.call(call, span)?,
        }
        Ok(expr.value_type())
    }

    fn expect(&self, expr: &mut Expr, wanted: ValueType, context: &str) -> Checked {
        let found = self.expr(expr)?;
        if found == wanted {
            return Ok(());
        }
        let (wanted, found) = (wanted.documented(), found.documented());
        self.error(expr.span, format!("expected type {wanted} in {context}, got {found}"))
    }

    fn aggregate(&self, aggregate: &mut Aggregate) -> Checked {
        self.expect(&mut aggregate.expr, ValueType::Vector, "aggregation expression")?;
        match (aggregate.op.param_type(), &mut aggregate.param) {
            (Some(wanted), Some(param)) => self.expect(param, wanted, "aggregation parameter"),
            _ => Ok(()),
        }
    }

    /// Checks a chain of operators from the innermost operator outwards.
    fn chain(&self, binary: &mut Binary, span: Span) -> Checked {
        // The chain is taken apart and rebuilt in loops, because recursion may exhaust the stack.
        let mut chain: Vec<Box<Binary>> = Vec::new();
        let mut left = binary.take_left();
        while let ExprKind::Binary(mut inner) = left {
            left = inner.take_left();
            chain.push(inner);
        }
        let first = &mut chain.last_mut().map_or(&mut *binary, |last| &mut **last).lhs;
        first.kind = left;
        self.expr(first)?;
        while let Some(mut inner) = chain.pop() {
            let left = &mut chain.last_mut().map_or(&mut *binary, |outer| &mut **outer).lhs;
            self.operator(&mut inner, left.span)?;
            left.kind = ExprKind::Binary(inner);
        }
        self.operator(binary, span)
    }

    /// Checks an operator whose left operand is checked.
    fn operator(&self, binary: &mut Binary, span: Span) -> Checked {
        let left = binary.lhs.value_type();
        // Operands are checked first, so that the error of an operand comes before the operator's.
        let right = self.expr(&mut binary.rhs)?;
        let op = binary.op;
        let sign = self.operator_span(binary);
        if binary.returns_bool && !op.is_comparison() {
            return self.error(sign, "bool modifier can only be used on comparison operators");
        }
        let of_scalars = left == ValueType::Scalar && right == ValueType::Scalar;
        if op.is_comparison() && !binary.returns_bool && of_scalars {
            return self.error(sign, "comparisons between scalars must use BOOL modifier");
        }
        let Some(matching) = &mut binary.matching else { return Ok(()) };
        // The parser cannot know the cardinality of set operators, because no keyword states it.
        if op.is_set() && matching.cardinality == Cardinality::OneToOne {
            matching.cardinality = Cardinality::ManyToMany;
        }
        let twice = matching.labels.iter().find(|label| matching.include.contains(label));
        if let Some(label) = twice.filter(|_| matching.is_on) {
            let label = quote::quoted(label);
            let text = format!("label {label} must not occur in ON and GROUP clause at once");
            return self.error(sign, text);
        }
        // The order of the checks is upstream's, so that the same error is reported.
        for (operand, found) in [(&binary.lhs, left), (&binary.rhs, right)] {
            if !is_operand(found) {
                let text = "binary expression must contain only scalar and instant vector types";
                return self.error(operand.span, text);
            }
        }
        let fills = matching.fill_lhs.is_some() || matching.fill_rhs.is_some();
        if left != ValueType::Vector || right != ValueType::Vector {
            if !matching.labels.is_empty() {
                return self.error(span, "vector matching only allowed between instant vectors");
            }
            if fills {
                let text = "filling in missing series only allowed between instant vectors";
                return self.error(span, text);
            }
            // From here on `matching` marks operators between two vectors.
            binary.matching = None;
        } else if op.is_set() {
            let name = quote::quoted(op.name());
            if matching.cardinality != Cardinality::ManyToMany {
                return self.error(span, format!("no grouping allowed for {name} operation"));
            }
            if fills {
                let text = "filling in missing series not allowed for set operators";
                return self.error(span, text);
            }
        }
        if op.is_set() && (left == ValueType::Scalar || right == ValueType::Scalar) {
            let name = quote::quoted(op.name());
            let text = format!("set operator {name} not allowed in binary scalar expression");
            return self.error(span, text);
        }
        Ok(())
    }

    /// Returns the range from the operator to the byte before the right operand, without blanks at
    /// its ends. The range omits the last byte, as upstream's positions do.
    fn operator_span(&self, binary: &Binary) -> Span {
        let is_blank = |at: u32| {
            matches!(self.text.as_bytes().get(at as usize), Some(b' ' | b'\t' | b'\n' | b'\r'))
        };
        let mut span =
            Span { start: binary.lhs.span.end, end: binary.rhs.span.start.saturating_sub(1) };
        while is_blank(span.start) {
            span.start += 1;
        }
        while span.end > 0 && is_blank(span.end) {
            span.end -= 1;
        }
        span
    }

    fn call(&self, call: &mut Call, span: Span) -> Checked {
        let function = call.function;
        let name = quote::quoted(function.name);
        let (types, given) = (function.args.len(), call.args.len());
        // The last type of a variadic function is optional and may repeat.
        let least = types.saturating_sub(1);
        let most = least + usize::try_from(function.variadic).unwrap_or(usize::MAX - least);
        let wrong = match function.variadic {
            0 if given != types => format!("expected {types}"),
            0 => String::new(),
            _ if given < least => format!("expected at least {least}"),
            _ if given > most => format!("expected at most {most}"),
            _ => String::new(),
        };
        if !wrong.is_empty() {
            return self.error(span, format!("{wrong} argument(s) in call to {name}, got {given}"));
        }
        let is_info = function.name == "info";
        // Checked first, with a rule of its own: the matchers may all accept an empty value.
        if let Some(selector) = call.args.get(1).filter(|_| is_info) {
            self.info_selector(selector, span)?;
        }
        for (i, arg) in call.args.iter_mut().enumerate() {
            if is_info && i == 1 {
                continue;
            }
            // Arguments beyond the listed types have the last type.
            let Some(wanted) = function.args.get(i).or(function.args.last()) else { break };
            self.expect(arg, *wanted, &format!("call to function {name}"))?;
        }
        Ok(())
    }

    /// Checks the second argument of `info`: matchers alone, which may all match the empty string.
    fn info_selector(&self, arg: &Expr, call: Span) -> Checked {
        let found = arg.value_type();
        if found != ValueType::Vector {
            let (wanted, found) = (ValueType::Vector.documented(), found.documented());
            let text = format!("expected type {wanted} in call to function \"info\", got {found}");
            return self.error(call, text);
        }
        match &arg.kind {
            ExprKind::Vector(selector) if selector.name.is_empty() => {
                self.selector(selector, arg.span, true)
            }
            ExprKind::Vector(_) => {
                self.error(arg.span, "expected label selectors only, got vector selector instead")
            }
            _ => self.error(arg.span, "expected label selectors only"),
        }
    }

    fn selector(&self, selector: &VectorSelector, span: Span, may_be_empty: bool) -> Checked {
        let matchers = &selector.matchers;
        if selector.name.is_empty() {
            // Matchers that all accept the empty string would select every series of the store.
            return match may_be_empty || matchers.iter().any(|it| !it.matches("")) {
                true => Ok(()),
                false => {
                    self.error(span, "vector selector must contain at least one non-empty matcher")
                }
            };
        }
        // The parser appends the matcher of the name last.
        let others = &matchers[..matchers.len().saturating_sub(1)];
        match others.iter().find(|matcher| matcher.name == "__name__") {
            None => Ok(()),
            Some(matcher) => {
                let (one, other) = (quote::quoted(&selector.name), quote::quoted(&matcher.value));
                self.error(span, format!("metric name must not be set twice: {one} or {other}"))
            }
        }
    }
}

fn is_operand(found: ValueType) -> bool {
    matches!(found, ValueType::Scalar | ValueType::Vector)
}

impl super::Matcher {
    /// Returns whether the matcher accepts a value; compiles a regular expression on each call.
    pub fn matches(&self, value: &str) -> bool {
        let fits = || Pattern::new(&self.value).is_ok_and(|pattern| pattern.is_match(value));
        match self.op {
            MatchOp::Equal => self.value == value,
            MatchOp::NotEqual => self.value != value,
            MatchOp::Regex => fits(),
            MatchOp::NotRegex => !fits(),
        }
    }
}
