//! Flags of the queues for Alertmanagers.

use clap::{ArgAction, Args};
use tidepool_settings::flags::Marks;

/// Maximum capacity of a queue, whose alerts are in memory.
const CAPACITY_MAX: i64 = 10_000_000;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rules and alerts")]
pub struct AlertmanagerFlags {
    /// Maximum number of alerts queued for each Alertmanager
    ///
    /// If a queue is full, its oldest alerts are dropped. Alerts that fire are sent again.
    #[arg(
        long, value_name = "ALERTS",
        default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=CAPACITY_MAX)
    )]
    alertmanager_notification_queue_capacity: u32,

    /// Maximum number of alerts in a request to Alertmanager
    #[arg(
        long, value_name = "ALERTS",
        default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=CAPACITY_MAX)
    )]
    alertmanager_notification_batch_size: u32,

    /// Send queued alerts to Alertmanagers at a stop, instead of dropping them
    ///
    /// Draining ends at the first failure, and after 30 s.
    #[arg(
        long, value_name = "BOOL",
        default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set
    )]
    alertmanager_drain_notification_queue_on_shutdown: bool,
}

impl AlertmanagerFlags {
    pub const MARKS: Marks = Marks {
        prometheus: &[
            (
                "alertmanager.drain-notification-queue-on-shutdown",
                "alertmanager-drain-notification-queue-on-shutdown",
            ),
            ("alertmanager.notification-batch-size", "alertmanager-notification-batch-size"),
            (
                "alertmanager.notification-queue-capacity",
                "alertmanager-notification-queue-capacity",
            ),
        ],
        ..Marks::NONE
    };

    pub fn queue_capacity(&self) -> usize {
        self.alertmanager_notification_queue_capacity as usize
    }

    pub fn batch_size(&self) -> usize {
        self.alertmanager_notification_batch_size as usize
    }

    pub fn drains_on_shutdown(&self) -> bool {
        self.alertmanager_drain_notification_queue_on_shutdown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: AlertmanagerFlags,
    }

    fn parsed(flags: &[&str]) -> Option<(usize, usize, bool)> {
        let all = ["tidepool"].iter().chain(flags);
        let flags = Command::try_parse_from(all).ok()?.flags;
        Some((flags.queue_capacity(), flags.batch_size(), flags.drains_on_shutdown()))
    }

    /// Upstream: `cmd/prometheus/main.go`.
    #[test]
    fn flags_have_prometheus_defaults() {
        assert_eq!(parsed(&[]), Some((10_000, 256, true)));
        let all = [
            "--alertmanager-notification-queue-capacity=5",
            "--alertmanager-notification-batch-size=7",
            "--alertmanager-drain-notification-queue-on-shutdown=false",
        ];
        assert_eq!(parsed(&all), Some((5, 7, false)));
        let bare = parsed(&["--alertmanager-drain-notification-queue-on-shutdown"]);
        assert_eq!(bare, Some((10_000, 256, true)));
        assert_eq!(parsed(&["--alertmanager-notification-queue-capacity=0"]), None);
    }
}
