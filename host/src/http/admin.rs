//! `/api/v1/admin/tsdb/{delete_series,clean_tombstones,snapshot}`: what changes or copies stored
//! data, as Prometheus offers it. Off unless asked for: whoever reaches the port could delete all.

use super::body::collect;
use super::reply::{self, Reply, retry_later, status_of, text};
use super::server::Context;
use crate::prom::selector::parse_selector;
use crate::prom::time::{TIME_MAX_MS, TIME_MIN_MS, parse_time};
use crate::store::StoreError;
use crate::wasm::{Damage, Matcher, TimeRange};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use serde_json::json;

/// Deletes samples.
pub const DELETE_SERIES: &str = "/api/v1/admin/tsdb/delete_series";

/// Rewrites blocks without what was deleted.
pub const CLEAN_TOMBSTONES: &str = "/api/v1/admin/tsdb/clean_tombstones";

/// Makes a snapshot.
pub const SNAPSHOT: &str = "/api/v1/admin/tsdb/snapshot";

/// Media type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Largest form.
const FORM_BYTES_MAX: usize = 1 << 20;

/// Answers a request to one of the three.
pub async fn answer(context: &Context, request: Request<Incoming>) -> Reply {
    let done = match request.uri().path() {
        _ if !context.http.admin_api => Err(Failure::Unavailable("admin APIs disabled")),
        DELETE_SERIES => delete_series(context, request).await,
        CLEAN_TOMBSTONES => clean_tombstones(context).await,
        _ => snapshot(context, request).await,
    };
    done.unwrap_or_else(Failure::into_reply)
}

/// Why a call was not done.
enum Failure {
    /// A parameter is wrong.
    BadData(String),
    /// The endpoints are off.
    Unavailable(&'static str),
    /// The store could not.
    Store(StoreError),
    /// It was done but for a part.
    Partly(String),
    /// The body did not come.
    Body(Box<Reply>),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl Failure {
    fn into_reply(self) -> Reply {
        match self {
            Failure::Body(reply) => *reply,
            Failure::BadData(error) => envelope(StatusCode::BAD_REQUEST, "bad_data", &error),
            // The status is upstream's.
            Failure::Unavailable(error) => {
                envelope(StatusCode::INTERNAL_SERVER_ERROR, "unavailable", error)
            }
            Failure::Partly(error) => {
                tracing::warn!(error, "an admin request was done in part");
                envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal", &error)
            }
            Failure::Store(error) => {
                let status = status_of(&error);
                if status.is_server_error() {
                    tracing::warn!(%error, status = status.as_u16(), "an admin request failed");
                }
                let kind = match status {
                    StatusCode::BAD_REQUEST => "bad_data",
                    StatusCode::SERVICE_UNAVAILABLE => "unavailable",
                    _ => "internal",
                };
                envelope(status, kind, &error.to_string())
            }
        }
    }
}

async fn delete_series(context: &Context, request: Request<Incoming>) -> Result<Reply, Failure> {
    let parameters = Parameters::of(context, request).await?;
    let mut selectors = Vec::new();
    for selector in parameters.all("match[]") {
        selectors.push(read_selector(selector)?);
    }
    if selectors.is_empty() {
        return Err(Failure::BadData("no match[] parameter provided".to_owned()));
    }
    let range = TimeRange {
        start_ms: parameters.time("start", TIME_MIN_MS)?,
        end_ms: parameters.time("end", TIME_MAX_MS)?,
    };
    let deletion = context.store.delete(selectors, range).await?;
    done_but_for("deleted", &deletion.bad)
}

fn done_but_for(what: &str, left_out: &[Damage]) -> Result<Reply, Failure> {
    if left_out.is_empty() {
        return Ok(no_content());
    }
    let reasons: Vec<&str> = left_out.iter().map(|bad| bad.reason.as_str()).collect();
    Err(Failure::Partly(format!("{what}, but not in every block: {}", reasons.join("; "))))
}

/// Upstream takes `{}` and selects nothing by it, which nobody can have meant.
fn read_selector(selector: &str) -> Result<Vec<Matcher>, Failure> {
    let wrong =
        |reason: String| Failure::BadData(format!("invalid parameter \"match[]\": {reason}"));
    let matchers = parse_selector(selector).map_err(|error| wrong(error.to_string()))?;
    match matchers.is_empty() {
        true => Err(wrong("match[] must contain at least one non-empty matcher".to_owned())),
        false => Ok(matchers),
    }
}

async fn clean_tombstones(context: &Context) -> Result<Reply, Failure> {
    done_but_for("cleaned", &context.store.clean_tombstones().await?)
}

async fn snapshot(context: &Context, request: Request<Incoming>) -> Result<Reply, Failure> {
    let parameters = Parameters::of(context, request).await?;
    let skip_head = match parameters.first("skip_head") {
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        other => {
            let reason = format!("unable to parse boolean: {other:?} is neither true nor false");
            return Err(Failure::BadData(format!("invalid parameter \"skip_head\": {reason}")));
        }
    };
    let name = context.store.snapshot(!skip_head).await?;
    Ok(reply::json(StatusCode::OK, &json!({ "status": "success", "data": { "name": name } })))
}

/// Parameters of a request: those of a form in its body, then those of its URL.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    async fn of(context: &Context, request: Request<Incoming>) -> Result<Parameters, Failure> {
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        let is_form = kind.trim().eq_ignore_ascii_case(FORM);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut parameters = Vec::new();
        if is_form {
            let bytes_max = context.http.request_bytes_max.min(FORM_BYTES_MAX);
            let body = collect(context, request.into_body(), bytes_max).await;
            let held = body.map_err(|reply| Failure::Body(Box::new(reply)))?;
            parameters.extend(form_urlencoded::parse(&held.bytes).into_owned());
        }
        parameters.extend(form_urlencoded::parse(query.as_bytes()).into_owned());
        Ok(Parameters(parameters))
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Empty without one.
    fn first(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    fn time(&self, name: &str, default_ms: i64) -> Result<i64, Failure> {
        let text = self.first(name);
        if text.is_empty() {
            return Ok(default_ms);
        }
        parse_time(text).ok_or_else(|| {
            Failure::BadData(format!(
                "invalid parameter {name:?}: invalid time value for '{name}': cannot parse \
                 {text:?} to a valid timestamp"
            ))
        })
    }
}

fn no_content() -> Reply {
    let mut reply = text(StatusCode::NO_CONTENT, "");
    reply.headers_mut().remove(CONTENT_TYPE);
    reply
}

fn envelope(status: StatusCode, kind: &str, error: &str) -> Reply {
    let body = json!({ "status": "error", "errorType": kind, "error": error });
    retry_later(reply::json(status, &body))
}
