//! `POST /-/reload`: reloads the configuration like SIGHUP. Disabled by default, as in Prometheus.

use super::context::Context;
use super::reply::{Reply, text};
use hyper::StatusCode;

pub const PATH: &str = "/-/reload";

/// Reloads the configuration and reports flags that need a restart.
pub async fn answer(context: &Context) -> Reply {
    if !context.http.lifecycle {
        let message = "the lifecycle API is not enabled; see --enable-lifecycle\n";
        return text(StatusCode::FORBIDDEN, message);
    }
    match context.reload.reload().await {
        Ok(outcome) if outcome.need_restart.is_empty() => text(StatusCode::OK, ""),
        Ok(outcome) => {
            let flags = outcome.need_restart.join(", ");
            text(
                StatusCode::OK,
                format!("changed flags take effect only after a restart: {flags}\n"),
            )
        }
        Err(error) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("failed to reload config: {error}\n"))
        }
    }
}
