//! `tidepool tsdb restore`: adds a quarantined log to the data directory, as blocks.
//!
//! These blocks and the node's log may have different samples of the same times. Therefore
//! `meta.json` gets the hint of out-of-order blocks: then the next start replays the whole log.

use super::compact::compact_all;
use super::quarantine::time_ms;
use super::workspace::{BLOCK_DURATION_MS, options};
use super::{CliError, DATA_DIR_DEFAULT, Verdict, Workspace};
use tidepool_store::{CompactionSettings, Waiting};

use clap::Args;
use serde_json::Value;
use std::fs::canonicalize;
use std::path::PathBuf;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{INSTANCE_BYTES_MAX, Options, Role};
use tidepool_settings::duration::bytes;

/// Hint that a block may have only out-of-order samples, as in upstream.
const HINT: &str = "from-out-of-order";

/// Maximum size of a `meta.json` that the engine reads, in bytes.
const META_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// The quarantined log, such as DIR/set-aside/000003-20261121T141500Z-logs
    #[arg(value_name = "LOGS")]
    logs: PathBuf,

    /// The data directory that gets the blocks, on the same file system
    #[arg(value_name = "DIR", default_value = DATA_DIR_DEFAULT)]
    data_dir: PathBuf,

    /// Memory of the engine instance, which holds all that the log holds
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    memory_limit: u64,
}

pub fn run(args: &RestoreArgs) -> Result<Verdict, CliError> {
    let memory_bytes = args.memory_limit.min(INSTANCE_BYTES_MAX);
    let node = Workspace::own(&args.data_dir, memory_bytes)?;
    let same = |path: &PathBuf| canonicalize(path).map_err(CliError::file("open", path));
    let logs_path = same(&args.logs)?;
    // Checked here, because locking the directory twice would give a less helpful error.
    if logs_path == same(&args.data_dir)? {
        return Err(CliError::RestoreOfItself { dir: args.logs.clone() });
    }
    let logs = Workspace::own(&args.logs, memory_bytes)?;
    let settings = CompactionSettings::read(&node.data)?;
    let block_duration_ms = settings.map_or(BLOCK_DURATION_MS, |node| node.block_duration_ms);
    let mut instance = logs.owner(Options {
        block_duration_ms,
        // Nothing is merged here, because the node may upload these blocks before it merges them.
        block_duration_max_ms: block_duration_ms,
        ..options(Role::All)
    })?;
    instance.cut_all()?;
    // If two blocks have a sample of the same time, the newer block's is used. Dated by the
    // quarantine, these blocks are older than what the node has stored since.
    let entries = node.data.quarantine().entries()?;
    let entry = entries.iter().find(|it| canonicalize(&it.path).is_ok_and(|it| it == logs_path));
    let made_ms = entry.and_then(time_ms).unwrap_or_else(system_now_ms);
    let verdict = compact_all(&logs, &mut instance, None, Waiting::default(), || made_ms)?;
    drop(instance);
    for block in logs.blocks.list()? {
        let file = logs.blocks.open_file(&block, "meta.json")?;
        let len = u32::try_from(file.size_bytes().min(META_BYTES_MAX)).unwrap_or(u32::MAX);
        let meta = with_hint(&file.read_at(0, len)?)
            .ok_or_else(|| CliError::NoMeta { path: logs.data.path().join(&block) })?;
        node.blocks.adopt(&logs.blocks, &block, &meta)?;
    }
    Ok(verdict)
}

/// Adds the hint to a `meta.json`; `None` if the JSON is not a `meta.json`.
fn with_hint(meta: &[u8]) -> Option<Vec<u8>> {
    let mut meta: Value = serde_json::from_slice(meta).ok()?;
    let compaction = meta.get_mut("compaction")?.as_object_mut()?;
    let hints = compaction.entry("hints").or_insert_with(|| Value::Array(Vec::new()));
    let hints = hints.as_array_mut()?;
    if !hints.iter().any(|hint| hint == HINT) {
        hints.push(HINT.into());
    }
    serde_json::to_vec_pretty(&meta).ok()
}
