//! Flags that say how OpenTelemetry's metrics are translated.

use crate::otlp::{Settings, Strategy};
use clap::Args;

#[derive(Debug, Clone, Args)]
pub(super) struct OtlpArgs {
    /// How names of OTLP metrics and attributes become Prometheus' names
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "STRATEGY",
        default_value = "UnderscoreEscapingWithSuffixes"
    )]
    otlp_translation_strategy: Strategy,

    /// An attribute of OTLP resources, such as k8s.pod.name, that becomes a label of all their
    /// series; may be given several times. All others are labels of target_info
    #[arg(long = "otlp-promote-resource-attribute", value_name = "ATTRIBUTE")]
    otlp_promote_resource_attributes: Vec<String>,

    /// Give target_info also service.name, service.namespace and service.instance.id, which are job
    /// and instance
    #[arg(long)]
    otlp_keep_identifying_resource_attributes: bool,

    /// Give OTLP series the labels otel_scope_*: name, version, schema and attributes of the library
    /// that measured
    #[arg(long)]
    otlp_promote_scope_metadata: bool,
}

impl OtlpArgs {
    pub fn settings(self) -> Settings {
        Settings {
            strategy: self.otlp_translation_strategy,
            promoted_attributes: self.otlp_promote_resource_attributes,
            keep_identifying: self.otlp_keep_identifying_resource_attributes,
            promote_scope: self.otlp_promote_scope_metadata,
        }
    }
}
