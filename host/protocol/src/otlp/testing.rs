//! Helpers that the tests here share.

use super::proto::common::v1::any_value::Value;
use super::proto::common::v1::{AnyValue, KeyValue};
pub use crate::prom::rows::testing::Rows;

pub fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(Value::StringValue(value.to_owned()));
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value }) }
}

pub fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    pairs.iter().map(|(key, value)| attribute(key, value)).collect()
}
