//! The differences of two values in colours of a terminal: green is added, red is missing, yellow
//! has another value.
//!
//! Source: nsf/jsondiff with `DefaultConsoleOptions`, which upstream uses.

use crate::template::quoted;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Normal,
    Added,
    Removed,
    Changed,
}

impl Colour {
    fn begin(self) -> &'static str {
        match self {
            Colour::Normal => "",
            Colour::Added => "\u{1b}[0;32m",
            Colour::Removed => "\u{1b}[0;31m",
            Colour::Changed => "\u{1b}[0;33m",
        }
    }

    fn end(self) -> &'static str {
        match self {
            Colour::Normal => "",
            _ => "\u{1b}[0m",
        }
    }
}

/// Returns all of both values, with what differs in colours.
pub fn diff(expected: &Value, got: &Value) -> String {
    of_level(expected, got, 0)
}

/// A text in which each line begins and ends with the colour.
struct Text {
    out: String,
    level: usize,
    colour: Colour,
}

impl Text {
    fn set(&mut self, colour: Colour) {
        if self.colour != colour {
            self.out.push_str(self.colour.end());
            self.out.push_str(colour.begin());
            self.colour = colour;
        }
    }

    fn line(&mut self, last: &str) {
        self.out.push_str(last);
        self.out.push_str(self.colour.end());
        self.out.push('\n');
        (0..self.level).for_each(|_| self.out.push_str("    "));
        self.out.push_str(self.colour.begin());
    }

    fn key(&mut self, key: Option<&str>) {
        if let Some(key) = key {
            self.out.push_str(&quoted(key));
            self.out.push_str(": ");
        }
    }

    fn value(&mut self, value: &Value) {
        let (open, close, items) = match value {
            Value::Text(text) => return self.out.push_str(&quoted(text)),
            Value::List(items) => ("[", "]", items.iter().map(|item| (None, item)).collect()),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (Some(key.as_str()), value));
                ("{", "}", entries.collect::<Vec<_>>())
            }
        };
        if items.is_empty() {
            self.out.push_str(open);
            return self.out.push_str(close);
        }
        self.level += 1;
        self.line(open);
        for (number, (key, item)) in items.iter().enumerate() {
            if number > 0 {
                self.line(",");
            }
            self.key(*key);
            self.value(item);
        }
        self.level -= 1;
        self.line("");
        self.out.push_str(close);
    }
}

fn of_level(expected: &Value, got: &Value, level: usize) -> String {
    let mut text = Text { out: String::new(), level, colour: Colour::Normal };
    let (open, close, pairs) = match (expected, got) {
        (Value::List(expected), Value::List(got)) => {
            let count = expected.len().max(got.len());
            let pair = |place| (None, expected.get(place), got.get(place));
            ("[", "]", (0..count).map(pair).collect::<Vec<_>>())
        }
        (Value::Map(expected), Value::Map(got)) => {
            let mut keys: Vec<&String> = expected.keys().chain(got.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            let pair = |key: &'_ String| (expected.get(key), got.get(key));
            let pairs = keys.into_iter().map(|key| {
                let (expected, got) = pair(key);
                (Some(key.as_str()), expected, got)
            });
            ("{", "}", pairs.collect())
        }
        (expected, got) => {
            if expected == got {
                text.value(expected);
            } else {
                text.set(Colour::Changed);
                // Both are texts: values of one place have one type here.
                text.value(expected);
                text.out.push_str(" => ");
                text.value(got);
                text.set(Colour::Normal);
            }
            return text.out;
        }
    };
    if pairs.is_empty() {
        return format!("{open}{close}");
    }
    text.level += 1;
    text.line(open);
    for (number, (key, expected, got)) in pairs.iter().enumerate() {
        if number > 0 {
            text.line(",");
        }
        match (expected, got) {
            (Some(expected), Some(got)) => {
                text.key(*key);
                let within = of_level(expected, got, text.level);
                text.out.push_str(&within);
            }
            (Some(value), None) | (None, Some(value)) => {
                let is_missing = got.is_none();
                text.set(if is_missing { Colour::Removed } else { Colour::Added });
                text.key(*key);
                text.value(value);
                text.set(Colour::Normal);
            }
            (None, None) => {}
        }
    }
    text.level -= 1;
    text.line("");
    text.out.push_str(close);
    text.out
}
