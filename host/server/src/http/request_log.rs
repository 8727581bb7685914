//! Log of refused and failed requests: one line each, with a limited number per minute.
//!
//! A line has method, path, client address, status and reason, in the span of the request with its
//! id. Headers and query strings are omitted, since credentials and queries are private. A reason
//! that may quote a query is cut before the quotation.
//!
//! Each endpoint and status may write [`LINES_MAX`] lines in a [`WINDOW`], which begins with its
//! first line. Further lines are counted, and the window ends with a line that has their number.

use super::answered::cut;
use super::handler::Handler;
use super::reply::{Reason, Reply};
use hyper::{Method, Request, StatusCode, Uri};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::Span;

/// Maximum number of lines of an endpoint and status in a window.
const LINES_MAX: u32 = 10;

const WINDOW: Duration = Duration::from_secs(60);

/// An endpoint, and the status of its response.
type Key = (Handler, StatusCode);

/// Assigns ids to requests, and logs refusals and failures.
#[derive(Default)]
pub struct RequestLog {
    last_id: AtomicU64,
    windows: Mutex<HashMap<Key, Window>>,
}

/// Recently logged lines of one endpoint and status.
struct Window {
    began: Instant,
    lines: u32,
    suppressed: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Written,
    Suppressed,
    /// The first suppressed line of its window; the number of all is logged when the window ends.
    FirstSuppressed,
}

/// Fields of a request for its line; the request itself is moved into its handler.
pub struct Asked {
    id: u64,
    method: Method,
    uri: Uri,
    client: Option<SocketAddr>,
}

impl Asked {
    /// Number of the request, counted from the start of the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Span of all log lines about the request.
    pub fn span(&self) -> Span {
        tracing::info_span!("request", request_id = self.id)
    }
}

impl RequestLog {
    /// Assigns an id to a request, and copies the fields for its line.
    pub fn begin<B>(&self, request: &Request<B>, client: Option<SocketAddr>) -> Asked {
        let id = self.last_id.fetch_add(1, Relaxed) + 1;
        Asked { id, method: request.method().clone(), uri: request.uri().clone(), client }
    }

    /// Logs a response that is a refusal or failure.
    pub fn note(self: &Arc<RequestLog>, asked: &Asked, handler: Handler, reply: &Reply) {
        let status = reply.status();
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        match self.admit((handler, status), Instant::now()) {
            Admission::Written => write(asked, handler, reply),
            Admission::Suppressed => {}
            Admission::FirstSuppressed => {
                // One task per window, so the number of tasks is bounded by endpoints and statuses.
                let log = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(WINDOW).await;
                    log.end((handler, status));
                });
            }
        }
    }

    /// Ends all windows when the process stops, and logs the number of suppressed lines.
    pub fn end_all(&self) {
        let keys: Vec<Key> = self.windows().keys().copied().collect();
        for key in keys {
            self.end(key);
        }
    }

    fn admit(&self, key: Key, now: Instant) -> Admission {
        let mut windows = self.windows();
        let window = windows.entry(key).or_insert(Window { began: now, lines: 0, suppressed: 0 });
        // A window with suppressed lines ends only in `end`, which logs their number.
        if window.suppressed == 0 && now.saturating_duration_since(window.began) >= WINDOW {
            *window = Window { began: now, lines: 0, suppressed: 0 };
        }
        if window.lines < LINES_MAX {
            window.lines += 1;
            return Admission::Written;
        }
        window.suppressed += 1;
        match window.suppressed {
            1 => Admission::FirstSuppressed,
            _ => Admission::Suppressed,
        }
    }

    /// Ends a window and logs the number of suppressed lines.
    fn end(&self, key: Key) {
        let Some(window) = self.windows().remove(&key) else { return };
        if window.suppressed == 0 {
            return;
        }
        let (handler, status) = key;
        tracing::info!(
            handler = handler.name(),
            status = status.as_u16(),
            suppressed = window.suppressed,
            "log lines about requests suppressed"
        );
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<Key, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a line. Server errors are warnings; a refused probe is expected, hence a debug line.
fn write(asked: &Asked, handler: Handler, reply: &Reply) {
    let Asked { method, uri, client, .. } = asked;
    let status = reply.status();
    let path = cut(uri.path().as_bytes());
    let client = client.map(tracing::field::display);
    let reason = reply.extensions().get::<Reason>().map_or_else(
        || status.canonical_reason().unwrap_or_default().to_owned(),
        // The client error of a read request may quote the query.
        |reason| cut(reason.text(!(handler.reads() && status.is_client_error())).as_bytes()),
    );
    macro_rules! line {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                %method, path, client, status = status.as_u16(), reason, $message
            )
        };
    }
    match status {
        _ if handler.is_probe() => line!(debug, "not ready"),
        _ if status.is_server_error() => line!(warn, "request failed"),
        _ => line!(info, "request refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_for_each_endpoint_and_status() {
        let log = RequestLog::default();
        let now = Instant::now();
        let read = Handler::new(0, "/api/v1/read");
        let key = (read, StatusCode::BAD_REQUEST);
        for line in 0..LINES_MAX {
            assert_eq!(log.admit(key, now), Admission::Written, "{line}");
        }
        assert_eq!(log.admit(key, now), Admission::FirstSuppressed);
        assert_eq!(log.admit(key, now + WINDOW / 2), Admission::Suppressed);
        let other_status = (read, StatusCode::UNAUTHORIZED);
        assert_eq!(log.admit(other_status, now), Admission::Written);
        let other_handler = (Handler::new(1, "/api/v1/write"), StatusCode::BAD_REQUEST);
        assert_eq!(log.admit(other_handler, now), Admission::Written);
        // Once the number is logged, a new window begins.
        log.end(key);
        assert_eq!(log.admit(key, now + WINDOW), Admission::Written);
    }

    #[test]
    fn a_window_without_suppressed_lines_ends_by_itself() {
        let log = RequestLog::default();
        let (now, key) = (Instant::now(), (Handler::other(2), StatusCode::NOT_FOUND));
        for _ in 0..LINES_MAX {
            assert_eq!(log.admit(key, now), Admission::Written);
        }
        assert_eq!(log.admit(key, now + WINDOW), Admission::Written);
    }
}
