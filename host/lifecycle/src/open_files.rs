//! The limit of open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum that the limit is raised to: some child processes take time for each possible file.
const LIMIT_MAX: u64 = 65_536;

/// Limit of open files of blocks if the process has no limit.
const OF_BLOCKS_MAX: u64 = LIMIT_MAX / 2;

/// Maximum number of open files of blocks: half of the limit. Connections, the log and short-lived
/// descriptors have the other half.
pub fn of_blocks() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(OF_BLOCKS_MAX, |limit| (limit / 2).min(OF_BLOCKS_MAX)) as usize
}

/// Raises the soft limit to the hard limit, but at most to [`LIMIT_MAX`]. Shells and systemd set
/// 1,024 by default for programs that use `select(2)`, which this one does not. Returns the
/// resulting limit; `None` if there is none.
pub fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX);
    if wanted <= current {
        return Some(current);
    }
    // A failure is no reason to stop: with fewer files, those of blocks are reopened more often.
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, limit = current, "the limit of open files could not be raised");
            Some(current)
        }
    }
}
