//! Values of a template, each with the Go type that upstream's has.

use super::data::{Data, Sample, SampleValue};
use super::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum nesting of maps that `args` makes.
pub const NESTING_MAX: usize = 50;

pub const DATA_TYPE: &str = "struct { Labels map[string]string; ExternalLabels map[string]string; \
                              ExternalURL string; Value interface {} }";

pub type Labels = Arc<BTreeMap<String, String>>;

#[derive(Clone, Debug)]
pub enum Value {
    /// No value: nil, or the element of a map that is missing.
    None,
    Bool(bool),
    /// A byte of a text.
    Byte(u8),
    Data(Arc<Data>),
    /// Nanoseconds.
    Duration {
        nanos: i64,
        is_pointer: bool,
    },
    Float(f64),
    /// Text of a native histogram.
    Histogram(Arc<str>),
    /// What `safeHtml` returns, which is no string for other functions.
    Html(Arc<str>),
    Int(i64),
    Int64(i64),
    /// Labels or annotations in a notification, which have methods.
    Kv(Labels),
    Labels(Labels),
    List(Arc<List>),
    Map(Arc<Map>),
    Month(u8),
    Sample(Arc<Sample>),
    Samples(Arc<[Arc<Sample>]>),
    Struct(Arc<Struct>),
    Text(Arc<str>),
    Time {
        time: Time,
        is_pointer: bool,
    },
    Weekday(u8),
}

/// What `args` and `dict` return.
#[derive(Debug, Default)]
pub struct Map {
    pub values: BTreeMap<String, Value>,
    /// How many maps lie in each other.
    pub nesting: usize,
}

/// A slice of a Go type.
#[derive(Debug)]
pub struct List {
    pub type_name: &'static str,
    pub items: Vec<Value>,
    /// How many maps and lists lie in each other.
    pub nesting: usize,
}

/// A value of a Go type with fields.
#[derive(Debug)]
pub struct Struct {
    pub shape: &'static Shape,
    /// As many as the shape has fields.
    pub values: Vec<Value>,
}

#[derive(Debug)]
pub struct Shape {
    pub type_name: &'static str,
    /// Names of the fields, in templates and in JSON.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Kinds of Go that comparisons tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Float,
    Int,
    Text,
    Uint,
    Other,
}

impl Value {
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(text.into())
    }

    /// Returns the name of the Go type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "<nil>",
            Value::Bool(_) => "bool",
            Value::Byte(_) => "uint8",
            Value::Data(_) => DATA_TYPE,
            Value::Duration { is_pointer: false, .. } => "time.Duration",
            Value::Duration { is_pointer: true, .. } => "*time.Duration",
            Value::Float(_) => "float64",
            Value::Histogram(_) => "*histogram.FloatHistogram",
            Value::Html(_) => "template.HTML",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Kv(_) => "template.KV",
            Value::Labels(_) => "map[string]string",
            Value::List(list) => list.type_name,
            Value::Map(_) => "map[string]interface {}",
            Value::Month(_) => "time.Month",
            Value::Sample(_) => "*template.sample",
            Value::Samples(_) => "template.queryResult",
            Value::Struct(value) => value.shape.type_name,
            Value::Text(_) => "string",
            Value::Time { is_pointer: false, .. } => "time.Time",
            Value::Time { is_pointer: true, .. } => "*time.Time",
            Value::Weekday(_) => "time.Weekday",
        }
    }

    /// Returns whether the value is not the zero of its type.
    pub fn is_true(&self) -> bool {
        match self {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Float(value) => *value != 0.0,
            Value::Html(text) | Value::Text(text) => !text.is_empty(),
            Value::Kv(labels) | Value::Labels(labels) => !labels.is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Map(map) => !map.values.is_empty(),
            Value::Samples(samples) => !samples.is_empty(),
            Value::Data(_)
            | Value::Duration { is_pointer: true, .. }
            | Value::Histogram(_)
            | Value::Sample(_)
            | Value::Struct(_)
            | Value::Time { .. } => true,
            Value::Byte(_)
            | Value::Duration { .. }
            | Value::Int(_)
            | Value::Int64(_)
            | Value::Month(_)
            | Value::Weekday(_) => self.integer() != Some(0),
        }
    }

    /// Returns the value of any type whose kind is an integer.
    pub fn integer(&self) -> Option<i64> {
        match *self {
            Value::Byte(value) | Value::Month(value) | Value::Weekday(value) => Some(value.into()),
            Value::Duration { nanos, is_pointer: false } => Some(nanos),
            Value::Int(value) | Value::Int64(value) => Some(value),
            _ => None,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::Byte(_) => Kind::Uint,
            Value::Float(_) => Kind::Float,
            Value::Html(_) | Value::Text(_) => Kind::Text,
            _ if self.integer().is_some() => Kind::Int,
            _ => Kind::Other,
        }
    }

    /// Returns the bytes of the text that the value is.
    pub fn bytes(&self) -> usize {
        match self {
            Value::Html(text) | Value::Text(text) => text.len(),
            _ => 0,
        }
    }
}

impl List {
    /// Makes a list of values that hold neither maps nor lists that templates make.
    pub fn of(type_name: &'static str, items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(List { type_name, items: items.into_iter().collect(), nesting: 1 }))
    }
}

impl Struct {
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut fields = self.shape.fields.iter().zip(&self.values);
        fields.find(|((field, _), _)| *field == name).map(|(_, value)| value)
    }
}

impl SampleValue {
    pub fn value(&self) -> Value {
        match self {
            SampleValue::Float(value) => Value::Float(*value),
            SampleValue::Histogram(text) => Value::Histogram(text.clone()),
        }
    }
}
