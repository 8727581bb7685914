//! `GET /api/v1/status/{buildinfo,runtimeinfo,config}`: this node, in Prometheus' words.

use super::envelope::success;
use crate::access::machine_name;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use serde_json::json;
use tidepool_lifecycle::clock::system_now;
use tidepool_lifecycle::processors::processors;
use tidepool_settings::duration::duration_text;

/// The release of Prometheus whose API this is like, and our own version as build metadata, which
/// counts for nothing when versions are compared. From 2.24 on Thanos and Grafana send matchers
/// with their questions for labels; from 3.0 on names may have any characters, and `U__` stands for
/// those in paths. No key `features`: with one, Grafana would take this for Mimir.
const VERSION: &str = concat!("3.0.0+tidepool.", env!("CARGO_PKG_VERSION"));

/// Answers with the version.
pub fn build_info() -> Reply {
    let data = json!({
        "version": VERSION, "revision": "", "branch": "", "buildUser": "", "buildDate": "",
        "goVersion": "",
    });
    success(data)
}

/// Answers with figures of the process. Those of Go's runtime are empty.
pub fn runtime_info(context: &Context) -> Reply {
    let config = context.store.config();
    let (damaged, _) = context.store.quarantine_figures();
    let started = time_text(context.started_ms);
    let directory = std::env::current_dir().unwrap_or_default();
    success(json!({
        "startTime": started,
        "CWD": directory.to_string_lossy(),
        "hostname": machine_name(),
        "serverTime": system_now().to_string(),
        "reloadConfigSuccess": context.reload.was_successful(),
        "lastConfigTime": time_text(context.reload.success_ms()),
        "corruptionCount": damaged.damaged_places,
        "goroutineCount": 0,
        "GOMAXPROCS": processors(),
        "GOMEMLIMIT": config.memory.limit_bytes,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": duration_text(config.retention),
    }))
}

fn time_text(time_ms: i64) -> String {
    Timestamp::from_millisecond(time_ms).map_or_else(|_| String::new(), |time| time.to_string())
}

/// Answers with the loaded configuration. Thanos takes the external labels from there.
pub fn config(context: &Context) -> Reply {
    success(json!({ "yaml": context.http.yaml }))
}
