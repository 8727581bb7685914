//! The limit of open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit is raised to this at most: some programs that are started by this one take time for
/// each file that may be open.
const LIMIT_MAX: u64 = 65_536;

/// Files of blocks that may be open where there is no limit.
const OF_BLOCKS_MAX: u64 = LIMIT_MAX / 2;

/// How many files of blocks may be open: half of the limit. Connections, the log and whatever else
/// needs a descriptor for a moment have the other half.
pub fn of_blocks() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(OF_BLOCKS_MAX, |limit| (limit / 2).min(OF_BLOCKS_MAX)) as usize
}

/// Raises the soft limit as far as the hard one allows, and [`LIMIT_MAX`]. A shell and systemd give
/// 1,024 by default for the sake of programs that use `select(2)`, which this one does not. Returns
/// the limit that holds then; nothing if there is none.
pub fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX);
    if wanted <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, limit = current, "the limit of open files could not be raised");
            Some(current)
        }
    }
}
