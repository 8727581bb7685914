//! Flags about the node as a whole.

use clap::Args;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_protocol::prom::external_labels::ExternalLabel;
use tidepool_settings::duration::duration;
use tidepool_settings::flags::Marks;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "General")]
pub(super) struct GeneralFlags {
    /// Configuration file in YAML, read again when it changes
    ///
    /// Its keys are the names of these flags. A flag on the command line overrides its key. It is
    /// also read again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Interval between looks whether the configuration file has changed
    ///
    /// A file that it includes counts. A file that is not valid changes nothing: the log and the
    /// metric prometheus_config_last_reload_successful say so.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub config_auto_reload_interval: Duration,

    /// Do not look whether the configuration file has changed
    #[arg(long)]
    pub no_config_auto_reload: bool,

    /// Label that identifies this node; repeatable
    ///
    /// Example: node=edge-7. External labels are added to data that leaves the node: remote read,
    /// forwarding and shipped blocks. They are not stored.
    #[arg(long = "external-label", alias = "label", value_name = "NAME=VALUE")]
    pub external_labels: Vec<ExternalLabel>,
}

impl GeneralFlags {
    pub const MARKS: Marks = Marks {
        short: &["config", "external-label"],
        reloadable: &["external-label"],
        prometheus: &[
            ("config.auto-reload-interval", "config-auto-reload-interval"),
            ("config.file", "config"),
        ],
        ..Marks::NONE
    };

    /// Returns the interval of checks, or `None` if no file is watched.
    pub fn reload_interval(&self) -> Option<Duration> {
        let is_on = self.config.is_some() && !self.no_config_auto_reload;
        is_on.then_some(self.config_auto_reload_interval)
    }

    /// Refuses a label that is set twice.
    pub fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        match self.external_labels.iter().find(|label| !names.insert(label.name())) {
            Some(label) => Err(format!("--external-label sets the label {:?} twice", label.name())),
            None => Ok(()),
        }
    }
}
