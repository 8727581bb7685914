//! The limit of this process on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Upper bound for raising the limit: some child processes spend time on each possible file.
const LIMIT_MAX: u64 = 65_536;

/// Maximum number of open block files if the process has no limit.
const OF_BLOCKS_MAX: u64 = LIMIT_MAX / 2;

/// Maximum number of open block files: half of the limit. The other half is for connections, the
/// log and short-lived descriptors.
pub fn of_blocks() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(OF_BLOCKS_MAX, |limit| (limit / 2).min(OF_BLOCKS_MAX)) as usize
}

/// Raises the soft limit to the hard limit, but at most to [`LIMIT_MAX`]. Shells and systemd set
/// 1,024 by default for programs that use `select(2)`, which tidepool does not. Returns the
/// resulting limit, or `None` if the process has no limit.
pub fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX);
    if wanted <= current {
        return Some(current);
    }
    // A failure does not matter much: with fewer open files, block files are reopened more often.
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, limit = current, "the limit of open files could not be raised");
            Some(current)
        }
    }
}
