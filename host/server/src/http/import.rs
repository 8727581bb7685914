//! `POST /api/v1/import/prometheus`: samples in Prometheus' exposition format, OpenMetrics or
//! protobuf. Path and parameters are as in VictoriaMetrics, labels in the path as in the
//! Pushgateway.

use super::body::read_plain_or_gzip;
use super::context::Context;
use super::reply::{Reply, retry_later, text};
use super::translation::{self, Translated};
use crate::http::request::Request;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tidepool_exposition::Format;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_protocol::prom::push::{Push, PushError};
use tidepool_protocol::text::{ImportOptions, Imported, import};

/// The path without labels. The Pushgateway's `/metrics/job/JOB/…` may be appended.
pub const PATH: &str = "/api/v1/import/prometheus";

/// Content type of the protobuf format.
const PROTOBUF: &str = "application/vnd.google.protobuf";

/// The path with the Pushgateway's labels.
pub const PATH_LABELS: &str = "/api/v1/import/prometheus/metrics/{*}";

pub async fn answer(context: &Context, request: Request) -> Reply {
    let reply = take(context, request).await.unwrap_or_else(|refused| refused);
    context.translation.import.count(reply)
}

async fn take(context: &Context, request: Request) -> Result<Reply, Reply> {
    let format = format_of(request.headers())
        .map_err(|message| text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))?;
    let below = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let is_pushgateway = !below.is_empty();
    let push = Push::read(below, request.uri().query().unwrap_or_default());
    let push = push.map_err(|error| {
        let status = match error {
            PushError::Path(_) => StatusCode::NOT_FOUND,
            PushError::ExtraLabel(_) | PushError::Timestamp(_) => StatusCode::BAD_REQUEST,
        };
        text(status, format!("{error}\n"))
    })?;
    let options = ImportOptions {
        timestamp_ms: push.timestamp_ms.unwrap_or_else(system_now_ms),
        extra_labels: push.labels,
    };
    let held = read_plain_or_gzip(context, request).await?;
    let counters = &context.translation.import;
    let translated = translation::run(context, counters, held, move |body, writer| {
        import(body, format, &options, writer)
    });
    let translated: Translated<Imported> = translated.await?;
    translated.count(counters, translated.report.refused);
    // Retryable rows decide the status: after a 400 the sender would drop them.
    if translated.may_clear {
        return Err(retry_later(text(StatusCode::TOO_MANY_REQUESTS, words(&translated))));
    }
    if translated.report.refused + translated.refused > 0 {
        tracing::debug!(
            lines = translated.report.refused,
            rows = translated.refused,
            "text refused"
        );
        return Err(text(StatusCode::BAD_REQUEST, words(&translated)));
    }
    // Go's client of the Pushgateway accepts only 200 and 202.
    let stored = if is_pushgateway { StatusCode::OK } else { StatusCode::NO_CONTENT };
    let mut reply = text(stored, "");
    reply.headers_mut().remove(CONTENT_TYPE);
    Ok(reply)
}

/// Describes invalid lines and refused rows: their numbers, then the first few.
fn words(translated: &Translated<Imported>) -> String {
    let Translated { report, rows, refused, refusals, .. } = translated;
    let mut words = format!(
        "{rows} samples were stored; {} lines are wrong, {refused} samples were refused:\n",
        report.refused
    );
    let refusals = refusals.iter().filter(|_| *refused > 0);
    for line in report.errors.iter().chain(refusals) {
        words.push_str(line);
        words.push('\n');
    }
    words
}

/// Returns the format by content type. Prometheus' text is also used without a type and for curl's.
fn format_of(headers: &HeaderMap) -> Result<Format, String> {
    let Some(value) = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) else {
        return Ok(Format::Prometheus);
    };
    let named = String::from_utf8_lossy(value).to_ascii_lowercase();
    match named.split(';').next().unwrap_or_default().trim() {
        "application/openmetrics-text" => Ok(Format::Openmetrics),
        // Client libraries send delimited messages only, so other forms of protobuf are refused.
        PROTOBUF if named.contains("delimited") => Ok(Format::Protobuf),
        "" | "text/plain" | "application/x-www-form-urlencoded" | "application/octet-stream" => {
            Ok(Format::Prometheus)
        }
        _ => Err(format!(
            "content type {named:?} is not supported; use text/plain for Prometheus' format, \
             application/openmetrics-text, or {PROTOBUF}; encoding=delimited\n"
        )),
    }
}
