//! Credentials that endpoints require, and the response if they are missing or wrong.

use super::context::Context;
use super::reload;
use super::reply::{Reply, retry_later, text};
use super::{api_v2, federate, import, otlp, push};
use crate::access::{Denied, Kinds, Scope};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};

/// Returns the kind of access that a request needs a credential for; `None` if it is open to all.
pub fn scope(context: &Context, method: &Method, path: &str) -> Option<Scope> {
    if push::is_given(context, path) {
        return Some(Scope::Write);
    }
    // With users in the web configuration, otherwise open paths need read access as well.
    scope_of(method, path).or_else(|| context.access.guards_all().then_some(Scope::Read))
}

/// Same as [`scope`], but without the paths of plugins. Unlisted API endpoints need read access.
pub fn scope_of(method: &Method, path: &str) -> Option<Scope> {
    match path {
        "/api/v1/write" | otlp::PATH => Some(Scope::Write),
        _ if path.starts_with(import::PATH) => Some(Scope::Write),
        _ if path.starts_with(push::PREFIX) => Some(Scope::Write),
        "/metrics" | federate::PATH => Some(Scope::Read),
        reload::PATH => Some(Scope::Admin),
        _ if path.starts_with("/api/v1/admin/") => Some(Scope::Admin),
        _ if api_v2::is_change(method, path) => Some(Scope::Admin),
        _ if path.starts_with("/api/") => Some(Scope::Read),
        _ => None,
    }
}

/// Checks the credential of a request; the error is the response to send.
pub async fn check(context: &Context, scope: Scope, headers: &HeaderMap) -> Result<(), Reply> {
    let credential = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    context.access.check(scope, credential).await.map_err(denied)
}

fn denied(denied: Denied) -> Reply {
    let Kinds { basic, bearer } = match denied {
        Denied::Unauthorized(kinds) => kinds,
        Denied::Busy => {
            // 503, since the credential may be right and a sender must keep its samples.
            let message = "too many passwords are being checked; retry later\n";
            return retry_later(text(StatusCode::SERVICE_UNAVAILABLE, message));
        }
    };
    let mut reply = text(StatusCode::UNAUTHORIZED, "credentials are missing or wrong\n");
    // Only accepted kinds, so that browsers do not ask for a password without need.
    let challenges = [
        (basic, "Basic realm=\"tidepool\", charset=\"UTF-8\""),
        (bearer, "Bearer realm=\"tidepool\""),
    ];
    for (_, challenge) in challenges.into_iter().filter(|(is_taken, _)| *is_taken) {
        reply.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_are_read_by_all_readers_and_changed_by_admins() {
        let silence = "/api/v2/silence/01020304-0506-4708-890a-0b0c0d0e0f10";
        for (method, path, scope) in [
            (Method::GET, "/api/v2/silences", Scope::Read),
            (Method::HEAD, "/api/v2/silences", Scope::Read),
            (Method::POST, "/api/v2/silences", Scope::Admin),
            (Method::GET, silence, Scope::Read),
            (Method::DELETE, silence, Scope::Admin),
            (Method::GET, "/api/v2/status", Scope::Read),
        ] {
            assert_eq!(scope_of(&method, path), Some(scope), "{method} {path}");
        }
    }

    #[test]
    fn every_endpoint_but_two_needs_a_credential() {
        for (path, scope) in [
            ("/api/v1/write", Some(Scope::Write)),
            ("/api/v1/otlp/v1/metrics", Some(Scope::Write)),
            ("/api/v1/import/prometheus", Some(Scope::Write)),
            ("/api/v1/import/prometheus/metrics/job/a", Some(Scope::Write)),
            ("/api/v1/push/influx/write", Some(Scope::Write)),
            ("/api/v1/read", Some(Scope::Read)),
            ("/api/v1/metadata", Some(Scope::Read)),
            ("/api/v1/whatever/comes", Some(Scope::Read)),
            ("/metrics", Some(Scope::Read)),
            ("/federate", Some(Scope::Read)),
            ("/api/v1/admin/tsdb/snapshot", Some(Scope::Admin)),
            ("/-/reload", Some(Scope::Admin)),
            ("/-/healthy", None),
            ("/-/ready", None),
            ("/", None),
            ("/ui/app.js", None),
            ("/graph", None),
            ("/query", None),
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(scope_of(&method, path), scope, "{method} {path}");
            }
        }
    }
}
