//! Flags of notification. Receivers are in the configuration file.

use crate::alertmanager::AlertmanagerFlags;
use crate::config::NotifyConfig;
use crate::journal::JournalBounds;
use crate::silences::SILENCES_MAX;
use clap::Args;
use std::time::Duration;
use tidepool_settings::duration::duration;
use tidepool_settings::flags::{Marks, at_least, concurrency};

/// Least size of the journal: a few segments.
const JOURNAL_BYTES_MIN: u64 = 256 << 10;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Notifications")]
pub struct NotifyFlags {
    /// Maximum size of the journal of alerts
    ///
    /// The oldest events are dropped first, and counted for each receiver that did not get them.
    #[arg(
        long, value_name = "BYTES", default_value = "4MiB",
        value_parser = at_least(JOURNAL_BYTES_MIN)
    )]
    alert_journal_size: u64,
    /// Maximum age of events in the journal of alerts
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = duration)]
    alert_journal_time: Duration,
    /// Maximum number of silences, with those that expired within 120 hours
    ///
    /// Expired ones make room for others. A silence has at most 64 KiB.
    #[arg(
        long, value_name = "COUNT", default_value_t = SILENCES_MAX, value_parser = concurrency
    )]
    silences_max: usize,
    #[command(flatten)]
    alertmanager: AlertmanagerFlags,
}

impl NotifyFlags {
    pub const MARKS: Marks = Marks {
        reloadable: &["alert-journal-size", "alert-journal-time", "alerting", "notify"],
        ..AlertmanagerFlags::MARKS
    };

    /// Returns the part of the configuration that comes from flags.
    pub fn config(self) -> NotifyConfig {
        let age_ms_max = i64::try_from(self.alert_journal_time.as_millis()).unwrap_or(i64::MAX);
        NotifyConfig {
            journal: JournalBounds { bytes_max: self.alert_journal_size, age_ms_max },
            silences_max: self.silences_max,
            queue_capacity: self.alertmanager.queue_capacity(),
            batch_size: self.alertmanager.batch_size(),
            drains_on_shutdown: self.alertmanager.drains_on_shutdown(),
            ..NotifyConfig::default()
        }
    }
}
