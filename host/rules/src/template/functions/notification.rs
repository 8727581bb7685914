//! Functions and methods of Alertmanager's templates that those of Prometheus do not have.

use super::Parameter::{Any, List as AnyList, Strings, Text, Time as TimeOf};
use super::{Context, Function, json, plain, text, variadic};
use crate::template::error::Reason;
use crate::template::notification::{
    ALERTS, CHOSEN_ALERTS, LIST, PAIRS, PLAIN_STRINGS, STRINGS, field_text, nesting_above, pairs,
    sorted,
};
use crate::template::time::Time;
use crate::template::value::{List, Map, NESTING_MAX, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Items of a list that are copied in one step.
const ITEMS_PER_STEP: usize = 16;

pub const FUNCTIONS: &[Function] = &[
    variadic("append", &[AnyList], Any, |context, values| {
        let (list, added) = values.split_at(values.len().min(1));
        let items: Vec<Value> = items(list, 0).iter().chain(added).cloned().collect();
        list_of(context, items)
    }),
    plain("date", &[Text, TimeOf], |context, values| {
        let layout = text(values, 0);
        // An element of a layout is written with at most five times its letters.
        context.budget.charge_bytes(layout.len(), 5)?;
        Ok(Value::text(time(values, 1).format(layout)))
    }),
    variadic("dict", &[], Any, |context, values| {
        charge(context, values.len())?;
        if values.len() % 2 != 0 {
            return Err("dict requires an even number of arguments".into());
        }
        let mut map = BTreeMap::new();
        for pair in values.chunks_exact(2) {
            let [Value::Text(name), value] = pair else {
                return Err("dict keys must be strings".into());
            };
            map.insert(name.to_string(), value.clone());
        }
        let nesting = nesting_above(map.values()).ok_or(TOO_DEEP)?;
        Ok(Value::Map(Arc::new(Map { values: map, nesting })))
    }),
    plain("join", &[Text, Strings], |context, values| {
        joined(context, text(values, 0), items(values, 1))
    }),
    variadic("list", &[], Any, |context, values| list_of(context, values.to_vec())),
    plain("now", &[], |context, _| {
        let time = Time::from_millis(context.source.time_ms());
        Ok(Value::Time { time, is_pointer: false })
    }),
    // No template is one of HTML here, so that texts which are safe there are texts as any other.
    plain("safeUrl", &[Text], |_, values| Ok(Value::Html(text(values, 0).into()))),
    plain("since", &[TimeOf], |context, values| {
        let now = Time::from_millis(context.source.time_ms());
        Ok(Value::Duration { nanos: now.since(time(values, 0)), is_pointer: false })
    }),
    variadic("stringSlice", &[], Text, |context, values| {
        charge(context, values.len())?;
        Ok(List::of(PLAIN_STRINGS, values.iter().cloned()))
    }),
    plain("toJson", &[Any], |context, values| {
        let mut failed = Ok(());
        let text = context.written(|sink| {
            failed = json::write(values.first().unwrap_or(&Value::None), sink);
        })?;
        failed.map(|()| Value::text(text))
    }),
    plain("trimSpace", &[Text], |_, values| Ok(Value::text(text(values, 0).trim()))),
    plain("urlUnescape", &[Text], |_, values| unescaped(text(values, 0)).map(Value::text)),
];

const TOO_DEEP: Reason = Reason::Nesting { nesting_max: NESTING_MAX };

pub const KV: &[Function] = &[
    plain("Names", &[], |context, values| {
        let labels = labels(context, values)?;
        Ok(List::of(STRINGS, sorted(labels).map(|(name, _)| Value::text(name))))
    }),
    plain("Remove", &[Strings], |context, values| {
        let labels = labels(context, values)?;
        let names = items(values, 1);
        charge(context, names.len())?;
        let mut rest = labels.clone();
        for name in names {
            if let Value::Text(name) = name {
                rest.remove(&**name);
            }
        }
        Ok(Value::Kv(Arc::new(rest)))
    }),
    plain("SortedPairs", &[], |context, values| Ok(pairs(labels(context, values)?))),
    STRING,
    plain("Values", &[], |context, values| {
        let labels = labels(context, values)?;
        Ok(List::of(STRINGS, sorted(labels).map(|(_, value)| Value::text(value))))
    }),
];

const STRING: Function = plain("String", &[], |context, values| {
    let text = context.written(|sink| crate::template::format::print(values, sink))?;
    Ok(Value::text(text))
});

pub fn list_methods(type_name: &str) -> &'static [Function] {
    match type_name {
        ALERTS => ALERTS_METHODS,
        PAIRS => PAIRS_METHODS,
        STRINGS => STRINGS_METHODS,
        _ => &[],
    }
}

const ALERTS_METHODS: &[Function] = &[
    plain("Firing", &[], |context, values| with_status(context, values, "firing")),
    plain("Resolved", &[], |context, values| with_status(context, values, "resolved")),
];

const PAIRS_METHODS: &[Function] = &[
    plain("Names", &[], |context, values| fields(context, values, "Name")),
    STRING,
    plain("Values", &[], |context, values| fields(context, values, "Value")),
];

const STRINGS_METHODS: &[Function] =
    &[plain("Join", &[Text], |context, values| joined(context, text(values, 1), items(values, 0)))];

fn items(values: &[Value], place: usize) -> &[Value] {
    match values.get(place) {
        Some(Value::List(list)) => &list.items,
        _ => &[],
    }
}

fn time(values: &[Value], place: usize) -> Time {
    match values.get(place) {
        Some(Value::Time { time, .. }) => *time,
        _ => Time::from_millis(0),
    }
}

/// Charges for items that are copied or read.
fn charge(context: &mut Context<'_>, count: usize) -> Result<(), Reason> {
    context.budget.charge((count / ITEMS_PER_STEP) as u64)
}

fn labels<'v>(
    context: &mut Context<'_>,
    values: &'v [Value],
) -> Result<&'v BTreeMap<String, String>, Reason> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    let labels = match values.first() {
        Some(Value::Kv(labels)) => labels,
        _ => &NONE,
    };
    let bytes = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    context.budget.charge_bytes(bytes, 0)?;
    context.budget.charge(labels.len() as u64)?;
    Ok(labels)
}

fn list_of(context: &mut Context<'_>, items: Vec<Value>) -> Result<Value, Reason> {
    charge(context, items.len())?;
    let nesting = nesting_above(&items).ok_or(TOO_DEEP)?;
    Ok(Value::List(Arc::new(List { type_name: LIST, items, nesting })))
}

fn joined(context: &mut Context<'_>, separator: &str, items: &[Value]) -> Result<Value, Reason> {
    charge(context, items.len())?;
    let text = context.written(|sink| {
        for (place, item) in items.iter().enumerate() {
            sink.push(if place > 0 { separator } else { "" });
            if let Value::Text(text) = item {
                sink.push(text);
            }
        }
    })?;
    Ok(Value::text(text))
}

fn with_status(context: &mut Context<'_>, values: &[Value], status: &str) -> Result<Value, Reason> {
    let alerts = items(values, 0);
    charge(context, alerts.len())?;
    let chosen = alerts.iter().filter(|alert| field_text(alert, "Status") == status);
    Ok(List::of(CHOSEN_ALERTS, chosen.cloned()))
}

fn fields(
    context: &mut Context<'_>,
    values: &[Value],
    name: &'static str,
) -> Result<Value, Reason> {
    let pairs = items(values, 0);
    charge(context, pairs.len())?;
    Ok(List::of(STRINGS, pairs.iter().map(|pair| Value::text(field_text(pair, name)))))
}

/// Decodes a value of a URL's query.
fn unescaped(text: &str) -> Result<String, Reason> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let at = text.len() - rest.len() - 1;
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(rest.next()), digit(rest.next())) {
                    (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                    _ => {
                        let wrong: String = text[at..].chars().take(3).collect();
                        let wrong = crate::template::format::quoted(&wrong);
                        return Err(format!("invalid URL escape {wrong}").into());
                    }
                }
            }
            _ => bytes.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
