//! The head snapshot that a clean stop writes, and whether the next start used it.

use crate::process::Server;

/// Name of the file in the data directory.
pub const FILE: &str = "head_snapshot";

/// Returns whether the running server says that it loaded its head from a snapshot.
pub fn was_used(server: &Server) -> bool {
    let used = server.metric("tidepool_head_snapshot_used").expect("the metric");
    let log = server.log();
    let start = log.rfind("tidepool starts").unwrap_or_default();
    assert_eq!(log[start..].contains("head snapshot loaded"), used == 1.0, "{}", &log[start..]);
    assert_eq!(log[start..].contains("log replayed"), used == 0.0, "{}", &log[start..]);
    used == 1.0
}
