//! Flags for sending all samples on to others.

use super::bytes;
use crate::forward::{DestinationConfig, ForwardConfig};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use std::ffi::OsStr;

#[derive(Debug, Clone, Args)]
pub(super) struct ForwardArgs {
    /// Send all samples on to this receiver of remote write, with Prometheus' defaults; may be given
    /// several times. The section remote_write of --config says more
    #[arg(long, value_name = "URL", value_parser = ReceiverUrlParser)]
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

/// Reads a receiver's URL. What clap says of a value by itself shows it, and with it a token in it.
#[derive(Clone)]
struct ReceiverUrlParser;

impl TypedValueParser for ReceiverUrlParser {
    type Value = DestinationConfig;

    fn parse_ref(
        &self,
        command: &Command,
        _arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DestinationConfig, clap::Error> {
        let text = value.to_str().ok_or_else(|| "this is no text".to_owned());
        text.and_then(DestinationConfig::of_url).map_err(|what| {
            let message = format!("invalid value for '--remote-write-url <URL>': {what}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
