//! Flags for sending all samples on to others.

use super::bytes;
use crate::forward::{DestinationConfig, ForwardConfig};
use clap::Args;

#[derive(Debug, Clone, Args)]
pub(super) struct ForwardArgs {
    /// Send all samples on to this receiver of remote write, with Prometheus' defaults; may be given
    /// several times. The section remote_write of --config says more
    #[arg(long, value_name = "URL", value_parser = DestinationConfig::of_url)]
    remote_write_url: Vec<DestinationConfig>,

    /// Bytes of log segments that are kept for destinations that lag; beyond, they get from blocks
    /// what they have not got from the log
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    remote_write_log_size: u64,

    /// Memory of each destination's engine instance: some 100 bytes and its own texts a series, and 32
    /// a row that waits. One that needs more begins anew, over and over
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes)]
    remote_write_memory_limit: u64,
}

impl ForwardArgs {
    /// Who gets all samples, as far as flags say it.
    pub fn config(self) -> ForwardConfig {
        ForwardConfig {
            destinations: self.remote_write_url,
            log_bytes_max: self.remote_write_log_size,
            memory_bytes_max: super::serve::size(self.remote_write_memory_limit),
        }
    }
}
