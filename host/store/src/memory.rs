//! Divides the memory of the process, and refuses reads when it is short.
//!
//! ```text
//! --memory-limit ─┬─ program           threads, connections, what the allocator keeps
//!                 ├─ network           request bodies on their way to the head
//!                 ├─ scrapes           targets, what they remember, rows on their way to the head
//!                 ├─ reads             all query instances together
//!                 ├─ head              one instance: caches go, then a block is cut early, then
//!                 │                    new series are refused, then writes (the engine decides)
//!                 └─ compactor         one instance, a third of the head's: what it cuts from
//!                                      a head whose labels take more is several blocks (the engine
//!                                      decides)
//! ```
//!
//! Each part has its own limit, so that no part can use memory that another part needs. Reads are
//! also refused if the head is short of memory, since reads prevent it from truncating, and if the
//! memory of the process nevertheless comes near its limit.

use super::StoreError;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidepool_runtime::MemoryPool;
use tidepool_telemetry::process::resident_bytes;

const MIB: u64 = 1024 * 1024;

/// Minimum memory for a working store.
pub const MEMORY_LIMIT_BYTES_MIN: u64 = 96 * MIB;

/// Memory of the program without data.
const PROGRAM_BYTES: u64 = 40 * MIB;

/// Maximum useful memory of the parts, here and in the next three constants.
const NETWORK_BYTES_MAX: u64 = 128 * MIB;
const SCRAPES_BYTES_MAX: u64 = 512 * MIB;
const READS_BYTES_MAX: u64 = 2560 * MIB;
const HEAD_BYTES_MAX: u64 = 3072 * MIB;

/// Minimum memory with which the compactor can cut a head of any size.
pub const COMPACTOR_BYTES_MIN: u64 = 8 * MIB;

/// Time for which a reading of the process' memory is used. A read needs longer to fill its memory.
const RESIDENT_EVERY: Duration = Duration::from_millis(10);

/// Minimum memory with which a query can return any result.
pub const QUERY_BYTES_MIN: u64 = 8 * MIB;

/// Share of the machine's memory that is used if no limit is set.
const SYSTEM_PERCENT: u64 = 75;
/// Share of the limit beyond which reads are refused.
const READS_REFUSED_PERCENT: u64 = 90;
/// Share of the head's memory above which reads are refused, or ended so that it can truncate.
const HEAD_SHORT_PERCENT: u64 = 65;

/// Maximum memory of each part, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySplit {
    pub limit_bytes: u64,
    pub network_bytes: u64,
    /// Memory of all scrape targets and of their scrapes.
    pub scrapes_bytes: u64,
    pub reads_bytes: u64,
    pub head_bytes: u64,
    pub compactor_bytes: u64,
}

impl MemorySplit {
    /// Divides a limit among the parts.
    pub fn of(limit_bytes: u64) -> MemorySplit {
        // A smaller limit is divided like the minimum, and then refused by `check`.
        let rest_bytes = limit_bytes.max(MEMORY_LIMIT_BYTES_MIN) - PROGRAM_BYTES;
        let network_bytes = (rest_bytes / 8).min(NETWORK_BYTES_MAX);
        let asked_bytes = (rest_bytes / 4).min(READS_BYTES_MAX);
        // Taken from the reads' share: the head's data must still fit under the same limit.
        let scrapes_bytes = (rest_bytes / 16).min(SCRAPES_BYTES_MAX);
        let reads_bytes = asked_bytes - scrapes_bytes;
        let stored_bytes = rest_bytes - network_bytes - asked_bytes;
        let head_bytes = (stored_bytes / 4 * 3).min(HEAD_BYTES_MAX);
        let compactor_bytes = head_bytes / 3;
        MemorySplit {
            limit_bytes,
            network_bytes,
            scrapes_bytes,
            reads_bytes,
            head_bytes,
            compactor_bytes,
        }
    }

    /// Returns the sum of all parts.
    pub fn needed_bytes(&self) -> u64 {
        let instances = self.head_bytes + self.compactor_bytes;
        PROGRAM_BYTES + self.network_bytes + self.scrapes_bytes + self.reads_bytes + instances
    }

    /// Checks that the parts fit into the limit. Flags may have set single parts.
    pub fn check(&self) -> Result<(), StoreError> {
        let limit_bytes = self.limit_bytes;
        if limit_bytes < MEMORY_LIMIT_BYTES_MIN {
            return Err(StoreError::Limits(format!(
                "--memory-limit={limit_bytes} is less than the {MEMORY_LIMIT_BYTES_MIN} bytes \
                 without which nothing can be stored"
            )));
        }
        let (head, compactor) = (self.head_bytes, self.compactor_bytes);
        if compactor < COMPACTOR_BYTES_MIN {
            return Err(StoreError::Limits(format!(
                "--compactor-memory-limit={compactor} is less than the {COMPACTOR_BYTES_MIN} bytes \
                 without which no block can be cut"
            )));
        }
        if self.needed_bytes() > limit_bytes {
            return Err(StoreError::Limits(format!(
                "--memory-limit={limit_bytes} is less than what its parts may take together: \
                 {PROGRAM_BYTES} for the program, {} for requests, {} for scrapes, {} for reads, \
                 {head} for the head and {compactor} for the compactor. Raise it, or leave the \
                 parts' flags out",
                self.network_bytes, self.scrapes_bytes, self.reads_bytes
            )));
        }
        Ok(())
    }
}

/// The memory for reads, and the limits above which reads are refused.
#[derive(Debug)]
pub struct ReadMemory {
    limit_bytes: u64,
    head_bytes_max: u64,
    pub pool: Arc<MemoryPool>,
    resident: Resident,
}

/// Resident bytes of this process. Kept for a short time, because reading them is slow.
#[derive(Debug, Default)]
struct Resident(Mutex<Option<(Instant, u64)>>);

impl Resident {
    fn bytes(&self) -> Option<u64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((at, bytes)) if at.elapsed() < RESIDENT_EVERY => Some(bytes),
            _ => {
                let bytes = resident_bytes()?;
                *known = Some((Instant::now(), bytes));
                Some(bytes)
            }
        }
    }
}

impl ReadMemory {
    pub fn new(split: &MemorySplit) -> ReadMemory {
        let pool = MemoryPool::new(usize::try_from(split.reads_bytes).unwrap_or(usize::MAX));
        let MemorySplit { limit_bytes, head_bytes, .. } = *split;
        let resident = Resident::default();
        ReadMemory { limit_bytes, head_bytes_max: head_bytes, pool, resident }
    }

    /// Returns whether the head is so short of memory that reads must end so that it can truncate.
    pub fn is_head_short(&self, head_used_bytes: u64) -> bool {
        head_used_bytes > self.head_bytes_max / 100 * HEAD_SHORT_PERCENT
    }

    /// Checks whether another read may begin.
    pub fn check(&self, head_used_bytes: u64) -> Result<(), StoreError> {
        let refused = |why: String| Err(StoreError::ShortOfMemory(why));
        if self.is_head_short(head_used_bytes) {
            return refused(format!(
                "the head uses {head_used_bytes} of {} bytes, and reads would keep it from \
                 giving some back",
                self.head_bytes_max
            ));
        }
        let left = self.pool.bytes_max().saturating_sub(self.pool.used_bytes()) as u64;
        if left < QUERY_BYTES_MIN {
            let max = self.pool.bytes_max();
            return refused(format!("the reads that run take all of the {max} bytes for reads"));
        }
        let most_bytes = self.limit_bytes / 100 * READS_REFUSED_PERCENT;
        match self.resident.bytes() {
            Some(resident) if resident > most_bytes => refused(format!(
                "the process takes {resident} of {} bytes (--memory-limit)",
                self.limit_bytes
            )),
            // If the system does not report the resident bytes, only the limits of the parts apply.
            _ => Ok(()),
        }
    }
}

/// Default limit: three quarters of the memory of the machine or the control group.
pub fn default_limit_bytes() -> u64 {
    (available_bytes() / 100 * SYSTEM_PERCENT).max(MEMORY_LIMIT_BYTES_MIN)
}

/// Returns the memory of the machine or the limit of the control group, whichever is smaller.
pub fn available_bytes() -> u64 {
    let bounds = [machine_bytes(), cgroup_limit_bytes()];
    bounds.into_iter().flatten().min().unwrap_or(MEMORY_LIMIT_BYTES_MIN)
}

/// Returns the machine's memory (proc(5), `/proc/meminfo`).
fn machine_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the memory limit of this process' control group in either version (cgroups(7)): the
/// smallest limit of the group and its ancestors.
fn cgroup_limit_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit_in = |dir: &str, path: &str, file: &str| -> Option<u64> {
        // In a container the group's own directory is the root, so this path does not exist there.
        let limits = Path::new(path.trim_start_matches('/')).ancestors().filter_map(|group| {
            let file = Path::new(dir).join(group).join(file);
            // The text `max` means no limit; it does not parse, so it is skipped.
            std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
        });
        limits.min()
    };
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        match (fields.next()?, fields.next()?) {
            ("", path) => limit_in("/sys/fs/cgroup", path, "memory.max"),
            (controllers, path) if controllers.split(',').any(|name| name == "memory") => {
                limit_in("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_stands() {
        for mib in [96, 128, 256, 1024, 4096, 65536] {
            let split = MemorySplit::of(mib * MIB);
            assert!(split.check().is_ok(), "{mib} MiB: {split:?}");
            assert!(split.head_bytes >= mib * MIB / 5 || mib > 8192, "{mib} MiB: {split:?}");
        }
        let split = MemorySplit::of(256 * MIB);
        assert!(MemorySplit { head_bytes: 200 * MIB, ..split }.check().is_err());
        assert!(MemorySplit { compactor_bytes: MIB, ..split }.check().is_err());
        assert!(MemorySplit { reads_bytes: 200 * MIB, ..split }.check().is_err());
        assert!(MemorySplit { limit_bytes: MIB, ..split }.check().is_err());
    }

    #[test]
    fn reads_wait_while_memory_is_short() {
        let memory = ReadMemory::new(&MemorySplit::of(default_limit_bytes()));
        assert!(memory.check(0).is_ok());
        assert!(memory.check(memory.head_bytes_max).is_err());
        let mut share = memory.pool.share();
        assert!(share.grow_to(memory.pool.bytes_max()));
        assert!(memory.check(0).is_err());
        drop(share);
        assert!(memory.check(0).is_ok());
        let small = ReadMemory { limit_bytes: 1, ..memory };
        assert!(small.check(0).is_err());
    }
}
