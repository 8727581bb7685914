//! Flags for the translation of OpenTelemetry metrics.

use clap::Args;
use tidepool_protocol::otlp::{Settings, Strategy};
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "OTLP")]
pub struct OtlpFlags {
    /// Translation of OTLP metric and attribute names to Prometheus' names
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "STRATEGY",
        default_value = "UnderscoreEscapingWithSuffixes"
    )]
    otlp_translation_strategy: Strategy,

    /// Resource attribute to add as a label to all series; repeatable
    ///
    /// Example: k8s.pod.name. All other resource attributes become labels of target_info.
    #[arg(long = "otlp-promote-resource-attribute", value_name = "ATTRIBUTE")]
    otlp_promote_resource_attributes: Vec<String>,

    /// Add service.name, service.namespace and service.instance.id to target_info
    ///
    /// The labels job and instance are made of them in any case.
    #[arg(long)]
    otlp_keep_identifying_resource_attributes: bool,

    /// Add labels otel_scope_* to all series
    ///
    /// They hold the name, version, schema URL and attributes of the instrumentation scope.
    #[arg(long)]
    otlp_promote_scope_metadata: bool,
}

impl OtlpFlags {
    pub const MARKS: Marks = Marks::NONE;

    pub fn settings(self) -> Settings {
        Settings {
            strategy: self.otlp_translation_strategy,
            promoted_attributes: self.otlp_promote_resource_attributes,
            keep_identifying: self.otlp_keep_identifying_resource_attributes,
            promote_scope: self.otlp_promote_scope_metadata,
        }
    }
}
