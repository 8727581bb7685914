//! The flags about plugins. What is said of each of them stands in the configuration file.

use super::serve::size;
use super::{ServeConfig, bytes};
use crate::plugin::config::{PluginSettings, PluginsConfig};
use crate::store::{MemorySplit, available_bytes};
use clap::Args;
use std::path::PathBuf;

/// More than this is of no use without the flag that asks for it.
const PLUGINS_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, Args)]
pub(super) struct PluginArgs {
    /// Directory of plugins: each .wasm file in it is loaded, and again when it changes. The section
    /// `plugins` of the configuration file says more of them
    #[arg(long, alias = "plugins-dir", value_name = "DIR")]
    pub plugins: Option<PathBuf>,

    /// Memory of all instances of plugins together; with --plugins it is taken from the part of reads.
    /// By default a half of that, and 256MiB at most
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub plugins_memory_limit: Option<u64>,

    /// Memory of the process that compiles a plugin, which runs beside this one when a plugin is new.
    /// By default a half of what the machine or the control group has
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub plugins_compiler_memory_limit: Option<u64>,
}

impl PluginArgs {
    /// What plugins may take, and the same out of the part of reads.
    pub fn take_memory(&self, split: &mut MemorySplit) -> u64 {
        if self.plugins.is_none() {
            return 0;
        }
        let part = (split.reads_bytes / 2).min(PLUGINS_BYTES);
        let taken = self.plugins_memory_limit.unwrap_or(part).min(split.reads_bytes);
        split.reads_bytes -= taken;
        taken
    }

    /// All about plugins but what the file says.
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

impl ServeConfig {
    /// Adds what the configuration file says of plugins.
    pub(super) fn with_plugins(mut self, plugins: Vec<PluginSettings>) -> Result<Self, String> {
        if !plugins.is_empty() && self.plugins.directory.is_none() {
            return Err("plugins: --plugins (here: plugins-dir) must say where they are".to_owned());
        }
        self.plugins.plugins = plugins;
        Ok(self)
    }
}
