//! `tidepool plugin check`: checks whether a file is a plugin, and prints its world.

use super::{Done, PluginArg, block_on};
use crate::cli::progress::print_line;
use clap::Args;
use tidepool_plugins::config::World;
use tidepool_plugins::{TrialError, TrialPlugin};
use tidepool_telemetry::{self as telemetry, LogFormat};

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    plugin: PluginArg,
}

pub fn run(args: &CheckArgs) -> Done {
    telemetry::init(LogFormat::Text, "info");
    let (wasm, settings) = (args.plugin.wasm()?, args.plugin.settings()?);
    let named = |error: TrialError| args.plugin.named(&error);
    let trial = TrialPlugin::compile(&wasm, settings).map_err(named)?;
    let trial = block_on(trial.start(None))?.map_err(named)?;
    let world = trial.world();
    let (file, name) = (args.plugin.file.display(), world.name());
    print_line(&format!("{file}: a {name} for tidepool:plugin@0.2"));
    if matches!(world, World::Transform | World::Observer) {
        let labels = ["labels"].into_iter();
        let seen = labels.chain(trial.interest()).collect::<Vec<_>>().join(", ");
        print_line(&format!("  sees: {seen}"));
    }
    print_line(&format!("  memory when started: {} KiB", trial.memory_bytes() / 1024));
    Ok(())
}
