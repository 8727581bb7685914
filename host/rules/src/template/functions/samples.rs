//! Results of queries, and arguments for templates.

use super::Parameter::{Any, Sample, Samples, Text};
use super::{Function, nil_pointer, plain, text, variadic};
use crate::template::error::Reason;
use crate::template::value::{Map, NESTING_MAX, Value};
use std::sync::Arc;

/// Steps of a query, and of each sample that it returns.
const QUERY_STEPS: u64 = 1000;
const SAMPLE_STEPS: u64 = 10;

pub const FUNCTIONS: &[Function] = &[
    variadic("args", &[], Any, |_, values| {
        let nesting = values.iter().map(|value| match value {
            Value::Map(map) => map.nesting,
            _ => 0,
        });
        let nesting = nesting.max().unwrap_or(0) + 1;
        // Values are printed and dropped recursively.
        if nesting > NESTING_MAX {
            return Err(Reason::Nesting { nesting_max: NESTING_MAX });
        }
        let values = values.iter().enumerate();
        let values = values.map(|(place, value)| (format!("arg{place}"), value.clone())).collect();
        Ok(Value::Map(Arc::new(Map { values, nesting })))
    }),
    plain("first", &[Samples], |_, values| match values.first() {
        Some(Value::Samples(samples)) if !samples.is_empty() => {
            Ok(Value::Sample(samples[0].clone()))
        }
        _ => Err("first() called on vector with no elements".into()),
    }),
    plain("label", &[Text, Sample], |_, values| match values.get(1) {
        Some(Value::Sample(sample)) => Ok(label(sample, text(values, 0))),
        _ => Err(nil_pointer()),
    }),
    plain("query", &[Text], |context, values| {
        context.budget.charge(QUERY_STEPS)?;
        let samples = context.source.query(text(values, 0))?;
        context.budget.charge(samples.len() as u64 * SAMPLE_STEPS)?;
        Ok(Value::Samples(samples.into_iter().map(Arc::new).collect()))
    }),
    plain("sortByLabel", &[Text, Samples], |context, values| {
        let Some(Value::Samples(samples)) = values.get(1) else {
            return Ok(Value::Samples(Arc::new([])));
        };
        context.budget.charge(samples.len() as u64 * SAMPLE_STEPS)?;
        let name = text(values, 0);
        let mut sorted = samples.to_vec();
        sorted.sort_by(|one, other| value_of(one, name).cmp(value_of(other, name)));
        Ok(Value::Samples(sorted.into()))
    }),
    plain("strvalue", &[Sample], |_, values| match values.first() {
        Some(Value::Sample(sample)) => Ok(label(sample, "__value__")),
        _ => Err(nil_pointer()),
    }),
    plain("value", &[Sample], |_, values| match values.first() {
        Some(Value::Sample(sample)) => Ok(sample.value.value()),
        _ => Err(nil_pointer()),
    }),
];

fn label(sample: &crate::template::data::Sample, name: &str) -> Value {
    Value::text(value_of(sample, name))
}

fn value_of<'s>(sample: &'s crate::template::data::Sample, name: &str) -> &'s str {
    sample.labels.get(name).map_or("", String::as_str)
}
