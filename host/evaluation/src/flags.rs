//! Flags of rules and alerts. The rules are in files that the configuration file names.

use crate::config::RulesConfig;
use clap::Args;
use std::time::Duration;
use tidepool_settings::duration::duration_or_zero;
use tidepool_settings::flags::{Marks, concurrency};

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rules and alerts")]
pub struct RuleFlags {
    /// Maximum number of rules in all files of rule_files
    ///
    /// More rules are an error of the configuration.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub rules_max: usize,
    /// Do not evaluate the rules that ship with tidepool
    ///
    /// Without this flag, the files builtin:node and builtin:tidepool are evaluated once a minute
    /// and shown, but write no samples unless rule_files names them.
    #[arg(long)]
    pub no_default_rules: bool,
    /// Maximum number of alerts of one rule
    ///
    /// A rule that would exceed it fails, and keeps the alerts that it has. All rules together may
    /// have ten times as many.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    alerts_max: usize,
    /// Maximum number of rule groups that are evaluated at the same time
    #[arg(
        long = "rules.max-concurrent-evals", value_name = "COUNT", default_value_t = 4, value_parser = concurrency
    )]
    evaluations_max: usize,
    /// Maximum duration of an outage after which the state of alerts is restored
    #[arg(
        long = "rules.alert.for-outage-tolerance", value_name = "DURATION", default_value = "1h",
        value_parser = duration_or_zero
    )]
    outage_tolerance: Duration,
    /// Minimum time for which a restored alert is pending
    ///
    /// For alerts whose rule has a `for` at least as long.
    #[arg(
        long = "rules.alert.for-grace-period", value_name = "DURATION", default_value = "10m",
        value_parser = duration_or_zero
    )]
    grace_period: Duration,
    /// Interval at which firing alerts are sent to Alertmanagers again
    #[arg(
        long = "rules.alert.resend-delay", value_name = "DURATION", default_value = "1m",
        value_parser = duration_or_zero
    )]
    resend_delay: Duration,
}

impl RuleFlags {
    pub const MARKS: Marks =
        Marks { reloadable: &["rule_files", "no-default-rules"], ..Marks::NONE };

    /// Returns the part of the configuration that comes from flags.
    pub fn config(self) -> RulesConfig {
        RulesConfig {
            evaluations_max: self.evaluations_max,
            outage_tolerance: self.outage_tolerance,
            grace_period: self.grace_period,
            resend_delay: self.resend_delay,
            alerts_max: self.alerts_max,
            rules_max: self.rules_max,
            ..RulesConfig::default()
        }
    }
}
