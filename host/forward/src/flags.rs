//! Flags for forwarding all samples to other receivers.

use super::{DestinationConfig, ForwardConfig};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use std::ffi::OsStr;
use tidepool_runtime::INSTANCE_BYTES_MIN;
use tidepool_settings::duration::bytes;
use tidepool_settings::flags::{Marks, at_least, size};

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Forwarding and shipping")]
pub struct ForwardFlags {
    /// Forward all samples to this remote-write receiver; repeatable
    ///
    /// Settings are Prometheus' defaults. The section remote_write of the configuration file has
    /// all settings.
    #[arg(long, value_name = "URL", value_parser = ReceiverUrlParser)]
    remote_write_url: Vec<DestinationConfig>,

    /// Maximum size of WAL segments kept for destinations that lag
    ///
    /// Beyond it, the WAL is truncated and the backlog is read from blocks.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    remote_write_log_size: u64,

    /// Maximum memory of each destination's engine instance
    ///
    /// A series takes about 100 bytes and its labels, a queued row 32 bytes. An instance that needs
    /// more is restarted again and again.
    #[arg(
        long, value_name = "BYTES", default_value = "1GiB",
        value_parser = at_least(INSTANCE_BYTES_MIN)
    )]
    remote_write_memory_limit: u64,
}

impl ForwardFlags {
    pub const MARKS: Marks = Marks {
        short: &["remote-write-url"],
        reloadable: &["remote-write-log-size", "remote-write-url", "remote_write"],
        urls: &["remote-write-url"],
        ..Marks::NONE
    };

    /// Returns the destinations and limits that flags set.
    pub fn config(self) -> ForwardConfig {
        ForwardConfig {
            destinations: self.remote_write_url,
            log_bytes_max: self.remote_write_log_size,
            memory_bytes_max: size(self.remote_write_memory_limit),
        }
    }
}

/// Parses a receiver's URL. Clap's own errors show the value, and so any token in it.
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
        let text = value.to_str().ok_or_else(|| "the value is not UTF-8".to_owned());
        text.and_then(DestinationConfig::of_url).map_err(|what| {
            let message = format!("invalid value for '--remote-write-url <URL>': {what}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
