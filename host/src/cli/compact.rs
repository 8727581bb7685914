//! `tidepool tsdb compact`: does all compaction at once that a server would do over time.

use super::progress::warn_line;
use super::workspace::BLOCK_DURATION_MS;
use super::{CliError, DataDirArg, Progress, Verdict, Workspace};
use tidepool_store::{CompactionSettings, PinConfig, Waiting, millis};

use clap::Args;
use std::time::Duration;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{
    CompactProgress, DeletionReason, INSTANCE_BYTES_MAX, Instance, Options, Role, Room,
};
use tidepool_settings::duration::{bytes, duration, duration_or_zero};

/// Out-of-order window in milliseconds, if no node has stored its settings in the directory.
const OUT_OF_ORDER_WINDOW_MS: i64 = 7_200_000;

#[derive(Debug, Clone, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Cut all that the logs hold into blocks, however recent; the logs are empty then
    #[arg(long)]
    head: bool,

    /// Span of one block; the head is cut when it spans more than one and a half. By default that
    /// of the node that worked here last, or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    block_duration: Option<Duration>,

    /// Longest span of a merged block; by default that of the node that worked here last, or a
    /// tenth of the retention, and 31d at most. The block duration itself turns merging off
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_block_duration: Option<Duration>,

    /// Drop blocks that end this long before the newest. 0s: none
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration_or_zero)]
    retention_time: Duration,

    /// Drop the oldest blocks until the data directory is this small. 0: none
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = bytes)]
    retention_size: u64,

    /// How far out of order a sample the logs may still get: such ranges are not cut without
    /// --head. By default that of the node that worked here last, or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    out_of_order_window: Option<Duration>,

    /// Merge and drop also blocks that wait for an upload (--ship, --delay-compact-file)
    ///
    /// Merged blocks are not uploaded: their samples will be missing in object storage.
    #[arg(long)]
    merge_waiting: bool,

    /// Memory of the engine instance, which holds what is only in the logs
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    memory_limit: u64,
}

pub fn run(args: &CompactArgs) -> Result<Verdict, CliError> {
    let memory_bytes = args.memory_limit.min(INSTANCE_BYTES_MAX);
    let workspace = Workspace::own(&args.dir.data_dir, memory_bytes)?;
    let settings = CompactionSettings::read(&workspace.data)?;
    let of_node = settings.as_ref();
    let or = |given: Option<Duration>, of_node: Option<i64>, default_ms: i64| {
        given.map(millis).or(of_node).unwrap_or(default_ms)
    };
    let mut instance = workspace.owner(Options {
        block_duration_ms: or(
            args.block_duration,
            of_node.map(|node| node.block_duration_ms),
            BLOCK_DURATION_MS,
        ),
        block_duration_max_ms: or(
            args.max_block_duration,
            of_node.map(|node| node.max_block_duration_ms),
            0,
        ),
        retention_ms: millis(args.retention_time),
        retention_bytes: args.retention_size,
        out_of_order_window_ms: or(
            args.out_of_order_window,
            of_node.map(|node| node.out_of_order_window_ms),
            OUT_OF_ORDER_WINDOW_MS,
        ),
        // Unlimited, so that all exemplars stay in the log.
        exemplars_max: u64::MAX,
        ..super::workspace::options(Role::All)
    })?;
    let pin = of_node.and_then(|node| node.pin(&workspace.data)).filter(|_| !args.merge_waiting);
    let mut waiting = Waiting::default();
    if let Some(pin) = &pin {
        // As on a node, a block that waits for an upload is dropped only by retention by size.
        waiting = pin.waiting(&workspace.blocks, 0, false).map_err(CliError::Waiting)?;
        instance.pin(&waiting.pinned)?;
    }
    if args.head {
        instance.cut_all()?;
    }
    let verdict = compact_all(&workspace, &mut instance, pin.as_ref(), waiting, system_now_ms)?;
    if let Some(pin) = &pin {
        report_waiting(&workspace, pin)?;
    }
    Ok(verdict)
}

/// Does all compaction that is due, and prints it. New blocks are dated by `now_ms`.
pub(super) fn compact_all(
    workspace: &Workspace,
    instance: &mut Instance,
    pin: Option<&PinConfig>,
    mut waiting: Waiting,
    now_ms: impl Fn() -> i64,
) -> Result<Verdict, CliError> {
    let progress = Progress::spinner("looking for what is due");
    let mut damaged = false;
    let mut blocks_made = 0u64;
    loop {
        let blocks_bytes = workspace.blocks.size_bytes_total()?;
        let other_bytes = workspace.data.size_bytes()?.saturating_sub(blocks_bytes);
        let free_bytes = workspace.data.free_bytes()?;
        let memory_bytes = workspace.memory_bytes_max() as u64;
        let room = Room { free_bytes, other_bytes, memory_bytes };
        // Sizes change only by a step with a result, so `room` stays valid until then.
        let step = loop {
            let step = instance.compact(now_ms(), room)?;
            if step.done || step.block.is_some() || !step.deleted.is_empty() {
                break step;
            }
            damaged |= report(&progress, &step, &waiting);
        };
        damaged |= report(&progress, &step, &waiting);
        blocks_made += u64::from(step.block.is_some());
        // A new block may have to wait for an upload, and must then not be merged by the next step.
        if let Some(block) = &step.block
            && pin.is_some_and(|pin| pin.pins_new(block.level))
        {
            waiting.add(&block.id);
            instance.pin(&waiting.pinned)?;
        }
        progress.say(format!("compacting, {blocks_made} blocks made"));
        if step.done {
            return Ok(if damaged { Verdict::Damaged } else { Verdict::Fine });
        }
    }
}

/// Warns of blocks that were not merged because they wait for an upload.
fn report_waiting(workspace: &Workspace, pin: &PinConfig) -> Result<(), CliError> {
    let waiting = pin.waiting(&workspace.blocks, 0, false).map_err(CliError::Waiting)?.all;
    if !waiting.is_empty() {
        warn_line(&format!(
            "{} blocks wait for an upload and were not merged: {} does not list them. Start the \
             node until they are uploaded, or give --merge-waiting to do without the upload",
            waiting.len(),
            pin.file.display()
        ));
    }
    Ok(())
}

/// Prints the results of a step; returns whether damage was found.
fn report(progress: &Progress, step: &CompactProgress, waiting: &Waiting) -> bool {
    if let Some(block) = &step.block {
        let what = if block.level == 1 { "cut from the head" } else { "merged" };
        let (id, level, samples) = (&block.id, block.level, block.samples);
        progress.print(&format!("{id} {what}: level {level}, {samples} samples"));
    }
    for deleted in &step.deleted {
        let why = match deleted.reason {
            DeletionReason::Merged => "a merged block holds it",
            DeletionReason::Age => "older than --retention-time",
            DeletionReason::Size => "beyond --retention-size",
        };
        progress.print(&format!("{} deleted: {why}", deleted.id));
        if waiting.all.contains(&deleted.id) {
            progress.warn(&format!("{} was never uploaded", deleted.id));
        }
    }
    for bad in &step.bad {
        let (place, reason) = (&bad.where_, &bad.reason);
        progress.warn(&format!("{place} is damaged and left out: {reason}"));
    }
    for left in &step.unmerged {
        let (place, reason) = (&left.where_, &left.reason);
        progress.warn(&format!("{place} stays as it is: {reason}"));
    }
    !step.bad.is_empty()
}

const _: () = assert!(
    BLOCK_DURATION_MS == 7_200_000 && OUT_OF_ORDER_WINDOW_MS == 7_200_000,
    "the help says 2h"
);
