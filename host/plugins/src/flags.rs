//! Flags of plugins. The settings of each plugin are in the configuration file.

use super::config::{PluginSettings, PluginsConfig};
use clap::Args;
use std::path::PathBuf;
use tidepool_settings::flags::{Marks, at_least, size};
use tidepool_store::{MemorySplit, available_bytes};

/// Minimum value of the memory flags in bytes: a single instance needs as much for its data.
const PLUGINS_BYTES_MIN: u64 = 1 << 20;

/// Default maximum memory of all plugins in bytes. Only the flag sets a higher maximum.
const PLUGINS_BYTES: u64 = 256 << 20;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Plugins")]
pub struct PluginFlags {
    /// Directory of plugins
    ///
    /// Every .wasm file in it is loaded, and loaded again when it changes. The section `plugins` of
    /// the configuration file configures them.
    #[arg(long, alias = "plugins-dir", value_name = "DIR")]
    pub plugins: Option<PathBuf>,

    /// Maximum memory of all plugin instances
    ///
    /// It is taken from the share of reads. The default is half of that share, at most 256MiB.
    #[arg(long, value_name = "BYTES", value_parser = at_least(PLUGINS_BYTES_MIN))]
    pub plugins_memory_limit: Option<u64>,

    /// Maximum memory of the process that compiles a plugin
    ///
    /// It runs beside the server when a plugin is new. The default is half of the memory of the
    /// machine or control group.
    #[arg(long, value_name = "BYTES", value_parser = at_least(PLUGINS_BYTES_MIN))]
    pub plugins_compiler_memory_limit: Option<u64>,
}

impl PluginFlags {
    pub const MARKS: Marks = Marks::NONE;

    /// Returns the memory for plugins in bytes, and subtracts it from the share of reads.
    pub fn take_memory(&self, split: &mut MemorySplit) -> u64 {
        if self.plugins.is_none() {
            // Without a directory no plugin can run, so reads keep their whole share.
            return 0;
        }
        let part = (split.reads_bytes / 2).min(PLUGINS_BYTES);
        // Bounded by the share of reads, so that the subtraction cannot underflow.
        let taken = self.plugins_memory_limit.unwrap_or(part).min(split.reads_bytes);
        split.reads_bytes -= taken;
        taken
    }

    /// Returns the configuration from the flags. `with_plugins` adds the section of the file.
    pub fn config(self, memory_bytes: u64) -> PluginsConfig {
        PluginsConfig {
            directory: self.plugins,
            memory_bytes_max: size(memory_bytes),
            compiler_bytes_max: self
                .plugins_compiler_memory_limit
                .unwrap_or_else(|| available_bytes() / 2),
            plugins: Vec::new(),
        }
    }
}

impl PluginsConfig {
    /// Adds the section of the configuration file, which requires a directory of plugins.
    pub fn with_plugins(self, plugins: Vec<PluginSettings>) -> Result<PluginsConfig, String> {
        if !plugins.is_empty() && self.directory.is_none() {
            return Err(
                "plugins: the directory is missing: set --plugins (in the file: plugins-dir)"
                    .to_owned(),
            );
        }
        Ok(PluginsConfig { plugins, ..self })
    }
}
