//! `POST /api/v1/push/NAME`: bodies that the decoder plugin NAME translates. A path that clients
//! append to their URL, such as `/write`, may follow the name. The configuration can also assign
//! other paths to a plugin.

use super::body::{BufferedBody, read_plain_or_gzip};
use super::context::Context;
use super::reply::{self, Reply, retry_later, text};
use crate::http::request::Request;
use tidepool_plugins::{Decoded, Plugins, PushRequest, Undecoded};
use tidepool_protocol::prom::write::may_clear;
use tidepool_store::BodyRoom;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::sync::atomic::Ordering::Relaxed;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::RemoteWriteVersion;

/// Common prefix of the paths with a plugin's name.
pub const PREFIX: &str = "/api/v1/push/";

pub const PATH: &str = "/api/v1/push/{*}";

pub async fn answer(context: &Context, request: Request) -> Reply {
    let reply = take(context, request).await.unwrap_or_else(|refused| refused);
    context.translation.push.count(reply)
}

async fn take(context: &Context, request: Request) -> Result<Reply, Reply> {
    let Some(plugins) = &context.plugins else {
        return Err(text(StatusCode::NOT_FOUND, "no plugins are loaded (--plugins)\n"));
    };
    let (name, path) = target(plugins, request.uri().path());
    // Checked before the body is read, which may be large.
    plugins.check_decoder(&name).map_err(|error| refused(&error))?;
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let content_type = String::from_utf8_lossy(content_type.unwrap_or_default()).into_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let BufferedBody { bytes: body, room } = read_plain_or_gzip(context, request).await?;
    let push = PushRequest { content_type, path, query, received_ms: system_now_ms(), body };
    store(context, plugins, &name, push, room).await
}

/// Splits a path into plugin and remaining path; a path assigned to a plugin remains whole.
fn target(plugins: &Plugins, path: &str) -> (String, String) {
    let Some(below) = path.strip_prefix(PREFIX) else {
        return (plugins.at_path(path).unwrap_or_default(), path.to_owned());
    };
    let (name, path) = below.split_at(below.find('/').unwrap_or(below.len()));
    (name.to_owned(), path.to_owned())
}

/// Returns whether the configuration assigns a path to a plugin.
pub fn is_given(context: &Context, path: &str) -> bool {
    context.plugins.as_ref().is_some_and(|plugins| plugins.at_path(path).is_some())
}

/// Decodes a body with a plugin, and stores its rows.
async fn store(
    context: &Context,
    plugins: &Plugins,
    name: &str,
    push: PushRequest,
    room: BodyRoom,
) -> Result<Reply, Reply> {
    let decoded = plugins.decode(name, push).await.map_err(|error| refused(&error))?;
    let Decoded { body, rows, refused, mut reasons } = decoded;
    let (mut not_stored, mut stored) = (0, rows);
    if let Some(body) = body {
        let appended = context.intake().append(RemoteWriteVersion::V2, body, room).await;
        let outcome = appended.map_err(|error| reply::error(&error))?;
        not_stored = outcome.refused;
        stored = outcome.samples_written + outcome.histograms_written;
        reasons.extend(outcome.refusals.iter().map(|refusal| refusal.detail.clone()));
        // Retryable rows decide the status: after a 400 the sender would drop them.
        if may_clear(&outcome) {
            let words = words(stored, refused, not_stored, &reasons);
            return Err(retry_later(text(StatusCode::TOO_MANY_REQUESTS, words)));
        }
    }
    let counters = &context.translation.push;
    counters.rows.fetch_add(stored, Relaxed);
    counters.rejected.fetch_add(refused.saturating_add(not_stored), Relaxed);
    if refused > 0 || not_stored > 0 {
        let words = words(stored, refused, not_stored, &reasons);
        return Err(text(StatusCode::BAD_REQUEST, words));
    }
    let mut reply = text(StatusCode::NO_CONTENT, "");
    reply.headers_mut().remove(CONTENT_TYPE);
    Ok(reply)
}

fn words(stored: u64, refused: u64, not_stored: u64, reasons: &[String]) -> String {
    let mut words = format!(
        "{stored} samples were stored; {refused} rows are wrong, {not_stored} were refused:\n"
    );
    for reason in reasons {
        words.push_str(reason);
        words.push('\n');
    }
    words
}

fn refused(error: &Undecoded) -> Reply {
    let status = match error {
        Undecoded::Store(error) => return reply::error(error),
        Undecoded::NoDecoder(_) | Undecoded::NotFound(_) => StatusCode::NOT_FOUND,
        Undecoded::Malformed(_) | Undecoded::Poisonous { .. } => StatusCode::BAD_REQUEST,
        Undecoded::UnsupportedType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Undecoded::Failed { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    retry_later(text(status, format!("{error}\n")))
}
