//! `POST /api/v1/otlp/v1/metrics`: OpenTelemetry metrics over OTLP/HTTP in protobuf.
//!
//! Source: OpenTelemetry Protocol Specification 1.x, sections "OTLP/HTTP Request", "Response".

use super::body::read_plain_or_gzip;
use super::context::Context;
use super::reply::{self, Reply, retry_later, text};
use super::translation::{self, Translated};
use crate::http::request::Request;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use prost::Message as _;
use tidepool_protocol::otlp::proto::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use tidepool_protocol::otlp::proto::rpc::Status;
use tidepool_protocol::otlp::{Malformed, Report, TranslateError, translate};

/// Path of OTLP metrics, as in Prometheus.
pub const PATH: &str = "/api/v1/otlp/v1/metrics";

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

pub async fn answer(context: &Context, request: Request) -> Reply {
    let reply = match take(context, request).await {
        Ok(translated) => translated,
        // OTLP requires a `Status` message for every error, even for errors from shared code.
        Err(refused) => as_status(refused).await,
    };
    context.translation.otlp.count(reply)
}

async fn take(context: &Context, request: Request) -> Result<Reply, Reply> {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let media_type = content_type.and_then(|value| value.split(|byte| *byte == b';').next());
    let is_protobuf =
        media_type.is_some_and(|t| t.trim_ascii().eq_ignore_ascii_case(PROTOBUF.as_bytes()));
    // Checked before the body is read, as for remote write.
    if !is_protobuf {
        let found = String::from_utf8_lossy(content_type.unwrap_or_default());
        let message = format!(
            "content type {found:?} is not supported; send application/x-protobuf, which is \
             OTLP/HTTP with the encoding \"proto\" or \"http/protobuf\", not JSON\n"
        );
        return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let held = read_plain_or_gzip(context, request).await?;
    let settings = context.http.otlp.clone();
    let counters = &context.translation.otlp;
    // A malformed body is returned as a result: rows before the error may be stored already.
    let translated =
        translation::run(context, counters, held, move |body, writer| {
            match translate(body, &settings, writer) {
                Ok(report) => Ok(Ok(report)),
                Err(TranslateError::Malformed(malformed)) => Ok(Err(malformed)),
                Err(TranslateError::ReceiverClosed(gone)) => Err(gone),
            }
        });
    let translated: Translated<Result<Report, Malformed>> = translated.await?;
    let report = match &translated.report {
        Ok(report) => report,
        Err(malformed) => {
            let message = format!("the body is not an ExportMetricsServiceRequest: {malformed}\n");
            return Err(text(StatusCode::BAD_REQUEST, message));
        }
    };
    translated.count(counters, report.rejected_points);
    let rejected = translated.refused_points + report.rejected_points;
    let mut reasons = report.reasons.clone();
    if translated.refused > 0 {
        reasons.extend(translated.refusals.iter().cloned());
    }
    let message = reasons.join("\n");
    if !message.is_empty() {
        tracing::debug!(rejected, first = reasons.first(), "data points rejected");
    }
    // 429, because OTLP senders retry it, unlike other 4xx.
    if translated.may_clear {
        return Err(retry_later(text(StatusCode::TOO_MANY_REQUESTS, message)));
    }
    // Nothing was stored, so a partial success would be misleading.
    if rejected > 0 && translated.rows == 0 {
        return Err(text(StatusCode::BAD_REQUEST, message));
    }
    Ok(accepted(rejected, message))
}

/// Builds a success. Rejected points are reported as a partial success, and the sender drops them.
fn accepted(rejected: u64, error_message: String) -> Reply {
    let partial_success = (rejected > 0 || !error_message.is_empty()).then(|| {
        let rejected_data_points = i64::try_from(rejected).unwrap_or(i64::MAX);
        ExportMetricsPartialSuccess { rejected_data_points, error_message }
    });
    let body = ExportMetricsServiceResponse { partial_success }.encode_to_vec();
    reply::full(StatusCode::OK, PROTOBUF, body)
}

/// Converts a refusal to OTLP's form: the same text in a `google.rpc.Status`.
async fn as_status(refused: Reply) -> Reply {
    let (head, body) = refused.into_parts();
    let words = body.collect().await.map(|words| words.to_bytes()).unwrap_or_default();
    let message = String::from_utf8_lossy(&words).trim_end().to_owned();
    let status = Status { code: grpc_code(head.status), message };
    let mut reply = reply::full(head.status, PROTOBUF, status.encode_to_vec());
    if let Some(after) = head.headers.get(RETRY_AFTER) {
        reply.headers_mut().insert(RETRY_AFTER, after.clone());
    }
    reply
}

/// Returns the gRPC code for an HTTP status.
fn grpc_code(status: StatusCode) -> i32 {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => 8,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => 12,
        StatusCode::SERVICE_UNAVAILABLE => 14,
        status if status.is_server_error() => 13,
        _ => 3,
    }
}
