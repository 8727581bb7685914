//! The types of a tree.

use super::{
    Aggregate, Binary, Call, Cardinality, Expr, ExprKind, MatchOp, ParseError, Span, ValueType,
    VectorSelector, quote,
};
use tidepool_relabel::Pattern;

type Checked<T = ()> = Result<T, ParseError>;

/// Checks a tree, and takes the matching of series from operators of scalars.
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

    /// An expression that must have a type.
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

    /// A chain of operators, from the first one on.
    fn chain(&self, binary: &mut Binary, span: Span) -> Checked {
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

    /// An operator whose left operand was checked.
    fn operator(&self, binary: &mut Binary, span: Span) -> Checked {
        let left = binary.lhs.value_type();
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
        if op.is_set() && matching.cardinality == Cardinality::OneToOne {
            matching.cardinality = Cardinality::ManyToMany;
        }
        let twice = matching.labels.iter().find(|label| matching.include.contains(label));
        if let Some(label) = twice.filter(|_| matching.is_on) {
            let label = quote::quoted(label);
            let text = format!("label {label} must not occur in ON and GROUP clause at once");
            return self.error(sign, text);
        }
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

    /// From the operator to the last byte before the right operand, without blanks around; the end
    /// is upstream's, which leaves out that last byte.
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
        if let Some(selector) = call.args.get(1).filter(|_| is_info) {
            self.info_selector(selector, span)?;
        }
        for (i, arg) in call.args.iter_mut().enumerate() {
            if is_info && i == 1 {
                continue;
            }
            let Some(wanted) = function.args.get(i).or(function.args.last()) else { break };
            self.expect(arg, *wanted, &format!("call to function {name}"))?;
        }
        Ok(())
    }

    /// The second argument of `info`: matchers alone, which may all match nothing.
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
            return match may_be_empty || matchers.iter().any(|it| !it.matches("")) {
                true => Ok(()),
                false => {
                    self.error(span, "vector selector must contain at least one non-empty matcher")
                }
            };
        }
        // The last one is that of the name.
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
    /// Whether it holds for a value. Compiles the expression each time: for few values only.
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
