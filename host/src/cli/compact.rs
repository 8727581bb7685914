//! `tidepool tsdb compact`: does at once what a server does now and then.

use super::workspace::BLOCK_DURATION_MS;
use super::{CliError, DataDirArg, Progress, Verdict, Workspace};
use crate::store::{millis, system_now_ms};
use crate::wasm::{CompactProgress, DeletionReason, INSTANCE_BYTES_MAX, Options, Role, Room};
use clap::Args;
use std::time::Duration;
use tidepool_settings::duration::{bytes, duration, duration_or_zero};

#[derive(Debug, Clone, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Cut all that the logs hold into blocks, however recent; the logs are empty then
    #[arg(long)]
    head: bool,

    /// Span of one block; the head is cut when it spans more than one and a half
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration)]
    block_duration: Duration,

    /// Longest span of a merged block; by default a tenth of the retention, and 31d at most. The
    /// block duration itself turns merging off
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_block_duration: Option<Duration>,

    /// Drop blocks that end this long before the newest. 0s: none
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration_or_zero)]
    retention_time: Duration,

    /// Drop the oldest blocks until the data directory is this small. 0: none
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = bytes)]
    retention_size: u64,

    /// How far out of order a sample the logs may still get: such ranges are not cut without --head
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration_or_zero)]
    out_of_order_window: Duration,

    /// Memory of the engine instance, which holds what is only in the logs
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    memory_limit: u64,
}

pub fn run(args: &CompactArgs) -> Result<Verdict, CliError> {
    let memory_bytes = args.memory_limit.min(INSTANCE_BYTES_MAX);
    let workspace = Workspace::own(&args.dir.data_dir, memory_bytes)?;
    let mut instance = workspace.owner(Options {
        block_duration_ms: millis(args.block_duration),
        block_duration_max_ms: args.max_block_duration.map_or(0, millis),
        retention_ms: millis(args.retention_time),
        retention_bytes: args.retention_size,
        out_of_order_window_ms: millis(args.out_of_order_window),
        ..super::workspace::options(Role::All)
    })?;
    if args.head {
        instance.cut_all()?;
    }
    let progress = Progress::spinner("looking for what is due");
    let mut damaged = false;
    let mut blocks_made = 0u64;
    loop {
        let blocks_bytes = workspace.blocks.size_bytes_total()?;
        let other_bytes = workspace.data.size_bytes()?.saturating_sub(blocks_bytes);
        let free_bytes = workspace.data.free_bytes()?;
        let room = Room { free_bytes, other_bytes, memory_bytes };
        let step = loop {
            let step = instance.compact(system_now_ms(), room)?;
            if step.done || step.block.is_some() || !step.deleted.is_empty() {
                break step;
            }
            damaged |= report(&progress, &step);
        };
        damaged |= report(&progress, &step);
        blocks_made += u64::from(step.block.is_some());
        progress.say(format!("compacting, {blocks_made} blocks made"));
        if step.done {
            return Ok(if damaged { Verdict::Damaged } else { Verdict::Fine });
        }
    }
}

/// Prints what was done; returns whether damage was found.
fn report(progress: &Progress, step: &CompactProgress) -> bool {
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

const _: () = assert!(BLOCK_DURATION_MS == 7_200_000, "the default of --block-duration says 2h");
