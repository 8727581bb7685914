//! Functions that Go's templates have.

use super::Parameter::{Any, Raw, Text};
use super::{Context, Function, Run, compare, escape, index, plain, text, variadic};
use crate::template::error::Reason;
use crate::template::format::{print, print_bare, printf, println};
use crate::template::value::Value;

pub const FUNCTIONS: &[Function] = &[
    Function { name: "and", parameters: &[Raw], variadic: Some(Raw), run: Run::And },
    Function { name: "call", parameters: &[Raw], variadic: Some(Raw), run: Run::Call },
    Function { name: "or", parameters: &[Raw], variadic: Some(Raw), run: Run::Or },
    plain("not", &[Raw], |_, values| Ok(Value::Bool(!values.first().is_some_and(Value::is_true)))),
    variadic("eq", &[Raw], Raw, |_, values| compare::is_any(values).map(Value::Bool)),
    plain("ne", &[Raw, Raw], |_, values| Ok(Value::Bool(!compare::is_any(values)?))),
    plain("lt", &[Raw, Raw], |_, values| compare::is_less(values).map(Value::Bool)),
    plain("le", &[Raw, Raw], |_, values| compare::is_at_most(values).map(Value::Bool)),
    plain("gt", &[Raw, Raw], |_, values| Ok(Value::Bool(!compare::is_at_most(values)?))),
    plain("ge", &[Raw, Raw], |_, values| Ok(Value::Bool(!compare::is_less(values)?))),
    variadic("index", &[Raw], Raw, |_, values| index::element(values)),
    variadic("slice", &[Raw], Raw, index::slice),
    plain("len", &[Raw], |_, values| index::len(values)),
    variadic("print", &[], Any, |context, values| {
        Ok(Value::text(context.written(|sink| print(values, sink))?))
    }),
    variadic("println", &[], Any, |context, values| {
        Ok(Value::text(context.written(|sink| println(values, sink))?))
    }),
    variadic("printf", &[Text], Any, |context, values| {
        let rest = values.get(1..).unwrap_or_default();
        Ok(Value::text(context.written(|sink| printf(text(values, 0), rest, sink))?))
    }),
    variadic("html", &[], Any, |context, values| escaped(context, values, escape::html)),
    variadic("js", &[], Any, |context, values| escaped(context, values, escape::js)),
    variadic("urlquery", &[], Any, |context, values| escaped(context, values, escape::query)),
];

fn escaped(
    context: &mut Context<'_>,
    values: &[Value],
    escape: fn(&str) -> String,
) -> Result<Value, Reason> {
    let text = context.written(|sink| print_bare(values, sink))?;
    // What is escaped is at most twelve times as long.
    Ok(Value::text(escape(&text)))
}
