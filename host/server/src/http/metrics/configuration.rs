//! Metrics of configuration reloads, and of the access files in use.

use crate::access::FilesState;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_telemetry::MetricsText;

/// Writes the metrics of reloads under Prometheus' names, which alerts use.
pub fn show(text: &mut MetricsText, reload: &ReloadHandle) {
    text.gauge(
        "prometheus_config_last_reload_successful",
        "Whether the last configuration reload attempt was successful.",
        u8::from(reload.was_successful()),
    );
    text.gauge(
        "prometheus_config_last_reload_success_timestamp_seconds",
        "Time of the last successful load of the configuration.",
        reload.success_ms() as f64 / 1000.0,
    );
    text.gauge(
        "tidepool_config_flags_need_restart",
        "Flags whose value in the configuration file takes effect only after a restart.",
        reload.need_restart(),
    );
}

/// Writes the metrics of TLS and credentials files.
pub fn show_files(text: &mut MetricsText, files: &[FilesState]) {
    let labels: Vec<String> = files.iter().map(|it| format!("flag=\"{}\"", it.flag)).collect();
    let labelled = || labels.iter().map(String::as_str).zip(files);
    let are_used: Vec<_> = labelled().map(|(labels, it)| (labels, u8::from(it.is_used))).collect();
    text.gauges(
        "tidepool_access_file_last_reload_successful",
        "Whether the present content of a file of credentials or TLS is in use.",
        &are_used,
    );
    let ends = labelled().filter_map(|(labels, it)| Some((labels, it.expires?)));
    text.gauges(
        "tidepool_tls_certificate_expiry_timestamp_seconds",
        "When the first certificate of the chain that is served expires.",
        &ends.collect::<Vec<_>>(),
    );
}
