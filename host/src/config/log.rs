//! Flags about log lines: level, format, requests.

use clap::Args;
use tidepool_settings::flags::Marks;
use tidepool_telemetry::{LogFilter, LogFormat};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "General")]
pub(super) struct LogFlags {
    /// Minimum level of log lines: debug, info, warn or error
    ///
    /// Levels of single targets may follow, as in info,tidepool_store=debug.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogFilter,

    /// Format of log lines
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// Log every request after it is answered
    #[arg(long)]
    pub access_log: bool,
}

impl LogFlags {
    pub const MARKS: Marks = Marks {
        short: &["log-level"],
        reloadable: &["access-log", "log-level"],
        prometheus: &[("log.format", "log-format"), ("log.level", "log-level")],
        ..Marks::NONE
    };
}
