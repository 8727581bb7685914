//! `/api/v2/`: silences, with paths, bodies and statuses of Alertmanager's API, so that `amtool`
//! and dashboards work. Other than in `/api/v1/`, answers have no envelope, and pages of other
//! origins may not read them.
//!
//! Source: prometheus/alertmanager, `api/v2/openapi.yaml`. What bodies mean is in
//! [`tidepool_notify::silences::api`].

use super::aside;
use super::body::{Bound, collect};
use super::context::Context;
use super::reply::{self, Reason, Reply, text};
use crate::http::request::Request;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tidepool_notify::silences::Silences;
use tidepool_notify::silences::api::{self, ApiError, Listing, time_text};
use tidepool_protocol::prom::label_name::decode_path_segment;

pub const SILENCES: &str = "/api/v2/silences";

/// Beginning of the path of one silence.
const SILENCE: &str = "/api/v2/silence/";

/// Maximum number of parameters of a list.
const PARAMETERS_MAX: usize = 1000;

/// The Alertmanager whose API this is like. Clients choose their dialect by it.
const VERSION: &str = concat!("0.35.0+tidepool.", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Status,
    /// List silences, or set one.
    Silences,
    /// Show or expire a silence.
    Silence,
}

/// Returns whether a request changes silences, for which reading is not enough.
pub fn is_change(method: &Method, path: &str) -> bool {
    let is_silence = path == SILENCES || path.starts_with(SILENCE);
    is_silence && !matches!(*method, Method::GET | Method::HEAD)
}

pub async fn answer(context: &Context, call: Call, request: Request) -> Reply {
    let silences = context.notifier.silences();
    let mut reply = match call {
        Call::Status => reply::json(StatusCode::OK, &status(context)),
        Call::Silences => match *request.method() {
            Method::POST => {
                let posted = post(context, silences.clone(), request).await;
                posted.unwrap_or_else(|refused| refused)
            }
            _ => list(silences, request.uri().query().unwrap_or_default()),
        },
        Call::Silence => silence(silences.clone(), &request).await,
    };
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

fn list(silences: &Silences, query: &str) -> Reply {
    let parameters: Vec<(String, String)> =
        form_urlencoded::parse(query.as_bytes()).into_owned().take(PARAMETERS_MAX + 1).collect();
    if parameters.len() > PARAMETERS_MAX {
        let why = format!("at most {PARAMETERS_MAX} parameters are allowed in one request");
        return refused(&ApiError::Bad(why));
    }
    let values = |wanted: &'static str| {
        let found = parameters.iter().filter(move |(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    // Of several values, upstream takes the last.
    let is_listed = |state| values(state).next_back().is_none_or(is_true);
    let listing = Listing {
        filters: values("filter").collect(),
        active: is_listed("active"),
        pending: is_listed("pending"),
        expired: is_listed("expired"),
    };
    answered(api::list(silences, &listing))
}

/// Returns whether a text is one of those that mean true to upstream's generated server.
fn is_true(text: &str) -> bool {
    let texts = ["true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"];
    // A parameter without a value has its default.
    text.is_empty() || texts.iter().any(|known| text.eq_ignore_ascii_case(known))
}

async fn post(context: &Context, silences: Silences, request: Request) -> Result<Reply, Reply> {
    if let Some(unsupported) = unsupported_type(request.headers()) {
        return Err(unsupported);
    }
    let body = collect(context, request.into_body(), Bound::of_reads(context)).await?;
    // The memory of the body stays reserved until the work ends.
    let posted = aside::run(move || api::post(&silences, &body.bytes)).await;
    Ok(answered(posted.map_err(|error| reply::error(&error))?))
}

/// Refuses bodies of other types, which a form in a page could send as well.
fn unsupported_type(headers: &HeaderMap) -> Option<Reply> {
    let given = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let given = String::from_utf8_lossy(given);
    let kind = given.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return None;
    }
    let message = format!("unsupported media type {kind:?}, only [application/json] are allowed");
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Some(reply::json(status, &json!({"code": status.as_u16(), "message": message})))
}

async fn silence(silences: Silences, request: &Request) -> Reply {
    let segment = request.uri().path().strip_prefix(SILENCE).unwrap_or_default();
    let id = decode_path_segment(segment).unwrap_or_default();
    if *request.method() != Method::DELETE {
        return answered(api::get(&silences, &id));
    }
    match aside::run(move || api::delete(&silences, &id)).await {
        Ok(Ok(())) => empty(StatusCode::OK),
        Ok(Err(error)) => refused(&error),
        Err(error) => reply::error(&error),
    }
}

/// Returns what dashboards ask for first. There is no cluster, and no configuration of an
/// Alertmanager.
fn status(context: &Context) -> Value {
    json!({
        "cluster": {"status": "disabled", "peers": []},
        "config": {"original": ""},
        "uptime": time_text(context.started_ms),
        "versionInfo": {
            "branch": "", "buildDate": "", "buildUser": "", "goVersion": "", "revision": "",
            "version": VERSION,
        },
    })
}

fn answered(answer: Result<Value, ApiError>) -> Reply {
    match answer {
        Ok(value) => reply::json(StatusCode::OK, &value),
        Err(error) => refused(&error),
    }
}

fn refused(error: &ApiError) -> Reply {
    let status = StatusCode::from_u16(error.status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = match error.body() {
        Some(body) => reply::json(status, &body),
        None => empty(status),
    };
    // The log shows the error's text without the JSON around it.
    reply.extensions_mut().insert(Reason::new(error.to_string()));
    reply
}

fn empty(status: StatusCode) -> Reply {
    let mut reply = text(status, "");
    reply.headers_mut().remove(CONTENT_TYPE);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_of_silences_need_no_admin() {
        let id = "/api/v2/silence/01020304-0506-4708-890a-0b0c0d0e0f10";
        for (method, path, expected) in [
            (Method::GET, SILENCES, false),
            (Method::HEAD, id, false),
            (Method::POST, SILENCES, true),
            (Method::DELETE, id, true),
            (Method::OPTIONS, SILENCES, true),
            (Method::GET, "/api/v2/status", false),
            (Method::POST, "/api/v2/silencesx", false),
        ] {
            assert_eq!(is_change(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn flags_of_lists_are_upstreams() {
        for text in ["true", "TRUE", "1", "yes", "t", "enabled", ""] {
            assert!(is_true(text), "{text}");
        }
        for text in ["false", "0", "no", "x"] {
            assert!(!is_true(text), "{text}");
        }
    }

    #[test]
    fn bodies_are_json() {
        let check = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            unsupported_type(&headers).map(|reply| reply.status().as_u16())
        };
        assert_eq!(check("application/json"), None);
        assert_eq!(check("Application/JSON; charset=utf-8"), None);
        for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
            assert_eq!(check(kind), Some(415), "{kind}");
        }
        assert!(unsupported_type(&HeaderMap::new()).is_some());
    }
}
