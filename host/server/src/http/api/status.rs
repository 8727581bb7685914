//! `GET /api/v1/status/{buildinfo,runtimeinfo,config}`: the state of this node in Prometheus'
//! terms.

use super::envelope::success;
use crate::access::machine_name;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use serde_json::json;
use tidepool_lifecycle::clock::system_now;
use tidepool_lifecycle::processors::processors;
use tidepool_settings::duration::duration_text;

/// Version of Prometheus whose API is implemented; our own version is build metadata, which
/// comparisons ignore. Thanos and Grafana send matchers with label requests from 2.24 on, and any
/// characters in names (`U__` in paths) from 3.0 on. `features` would make Grafana assume Mimir.
const VERSION: &str = concat!("3.0.0+tidepool.", env!("CARGO_PKG_VERSION"));

pub fn build_info() -> Reply {
    let data = json!({
        "version": VERSION, "revision": "", "branch": "", "buildUser": "", "buildDate": "",
        "goVersion": "",
    });
    success(data)
}

/// Returns figures of the process. Fields about Go's runtime are empty.
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

/// Returns the loaded configuration, in which Thanos looks for the external labels.
pub fn config(context: &Context) -> Reply {
    success(json!({ "yaml": context.http.yaml }))
}
