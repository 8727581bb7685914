//! `tidepool tsdb snapshot`: a copy of the data directory for backups.

use super::{CliError, DataDirArg, Progress, Verdict, Workspace};
use tidepool_disk::SnapshotWriter;
use tidepool_store::snapshot_name;

use clap::Args;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_settings::duration::bytes;

#[derive(Debug, Clone, Args)]
pub struct SnapshotArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Leave out what is only in the logs
    #[arg(long)]
    skip_head: bool,

    /// Memory of the engine instance, which holds what is only in the logs
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    memory_limit: u64,
}

pub fn run(args: &SnapshotArgs) -> Result<Verdict, CliError> {
    let workspace = Workspace::own(&args.dir.data_dir, args.memory_limit)?;
    let name = snapshot_name();
    let snapshot = SnapshotWriter::begin(&workspace.data, &name, 0)?;
    let progress = Progress::spinner("linking blocks");
    for block in workspace.blocks.list()? {
        snapshot.add_block(&block)?;
    }
    if !args.skip_head {
        // Written as blocks of the snapshot; the data directory itself is not changed.
        let mut instance = workspace.reader_beside(snapshot.blocks())?;
        progress.say("writing what is only in the logs");
        while !instance.snapshot_head(system_now_ms())?.done {}
    }
    let path = snapshot.commit()?;
    progress.print(&path.display().to_string());
    Ok(Verdict::Fine)
}
