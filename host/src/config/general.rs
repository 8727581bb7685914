//! Flags about the node as a whole.

use crate::prom::external_labels::ExternalLabel;
use clap::Args;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "General")]
pub(super) struct GeneralArgs {
    /// Configuration file in YAML, read again on SIGHUP
    ///
    /// Its keys are the names of these flags. A flag on the command line overrides its key.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Label that identifies this node; repeatable
    ///
    /// Example: node=edge-7. External labels are added to data that leaves the node: remote read,
    /// forwarding and shipped blocks. They are not stored.
    #[arg(long = "external-label", alias = "label", value_name = "NAME=VALUE")]
    pub external_labels: Vec<ExternalLabel>,
}

impl GeneralArgs {
    /// Whether no label has two values.
    pub fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        match self.external_labels.iter().find(|label| !names.insert(label.name())) {
            Some(label) => Err(format!("--external-label sets the label {:?} twice", label.name())),
            None => Ok(()),
        }
    }
}
