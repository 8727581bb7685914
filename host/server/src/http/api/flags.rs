//! `GET /api/v1/status/flags`: every flag with its value. A flag that Prometheus names differently
//! is listed under both names: Thanos reads the flags for block durations before it ships blocks.

use super::envelope::success;
use crate::http::context::Context;
use crate::http::reply::Reply;
use serde_json::{Map, Value};

pub fn answer(context: &Context) -> Reply {
    let flags =
        context.http.flags.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    success(Value::Object(flags.collect::<Map<_, _>>()))
}
