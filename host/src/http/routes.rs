//! Which endpoint answers which path.

use super::reply::{Reply, text};
use super::server::Context;
use super::{admin, auth, import, metadata, metrics, otlp, read, replay, status, write};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use std::sync::atomic::Ordering::Relaxed;

/// Answers a request.
pub async fn handle(context: &Context, request: Request<Incoming>) -> Reply {
    let reply = match auth::check(context, request.uri().path(), request.headers()).await {
        Ok(()) => route(context, request).await,
        Err(reply) => reply,
    };
    let counters = &context.counters;
    let refused = match reply.status() {
        StatusCode::UNAUTHORIZED => &counters.refused_unauthorized,
        StatusCode::REQUEST_TIMEOUT => &counters.refused_slow,
        StatusCode::PAYLOAD_TOO_LARGE => &counters.refused_too_large,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => &counters.refused_type,
        StatusCode::SERVICE_UNAVAILABLE => &counters.refused_unavailable,
        _ => return reply,
    };
    refused.fetch_add(1, Relaxed);
    reply
}

async fn route(context: &Context, request: Request<Incoming>) -> Reply {
    let method = request.method().clone();
    let is_get = method == Method::GET || method == Method::HEAD;
    match request.uri().path() {
        "/api/v1/write" if method == Method::POST => write::answer(context, request).await,
        "/api/v1/read" if method == Method::POST => read::answer(context, request).await,
        otlp::PATH if method == Method::POST => otlp::answer(context, request).await,
        "/api/v1/write" | "/api/v1/read" | otlp::PATH => not_allowed("POST"),
        path if path.starts_with(import::PATH) => match method {
            Method::POST | Method::PUT => import::answer(context, request).await,
            _ => not_allowed("POST, PUT"),
        },
        admin::DELETE_SERIES | admin::CLEAN_TOMBSTONES | admin::SNAPSHOT => match method {
            Method::POST | Method::PUT => admin::answer(context, request).await,
            _ => not_allowed("POST, PUT"),
        },
        "/-/healthy"
        | "/-/ready"
        | "/metrics"
        | "/api/v1/metadata"
        | STATUS_TSDB
        | replay::PATH
        | "/"
            if !is_get =>
        {
            not_allowed("GET, HEAD")
        }
        "/-/healthy" => text(StatusCode::OK, "tidepool is healthy.\n"),
        "/-/ready" => replay::ready(context),
        replay::PATH => replay::status(context),
        "/metrics" => metrics::answer(context).await,
        "/api/v1/metadata" => metadata::answer(context).await,
        STATUS_TSDB => status::tsdb(context, request.uri().query()).await,
        "/" => text(StatusCode::OK, INDEX),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

const STATUS_TSDB: &str = "/api/v1/status/tsdb";

const INDEX: &str = "tidepool: a Prometheus-compatible metrics store

POST /api/v1/write     remote write 1.0 and 2.0
POST /api/v1/otlp/v1/metrics
                       OpenTelemetry metrics: OTLP over HTTP, protobuf
POST /api/v1/import/prometheus
                       samples as text: Prometheus' format or OpenMetrics
POST /api/v1/read      remote read: SAMPLES and STREAMED_XOR_CHUNKS
GET  /api/v1/metadata  type, help and unit of metric families
GET  /api/v1/status/tsdb
                       metrics and labels with the most series
GET  /api/v1/status/walreplay
                       how far the replay of the log is
GET  /metrics          the store's own figures
GET  /-/healthy        200 while the process lives
GET  /-/ready          200 once the log is replayed
POST /api/v1/admin/tsdb/{delete_series,clean_tombstones,snapshot}
                       with --enable-admin-api
";

fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    reply
        .headers_mut()
        .insert(hyper::header::ALLOW, hyper::header::HeaderValue::from_static(allowed));
    reply
}
