//! `GET /metrics`: all metrics. Each crate writes its own.

mod configuration;

use super::context::Context;
use super::reply::{Reply, full};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use tidepool_telemetry::{MetricsText, process};

pub async fn answer(context: &Context) -> Reply {
    full(
        StatusCode::OK,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
        page(context).await,
    )
}

/// Formats all metrics in the text format.
pub async fn page(context: &Context) -> String {
    let mut text = MetricsText::default();
    let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
    text.gauges("tidepool_build_info", "The running version of tidepool.", &[(version, 1)]);
    process::show(&mut text);
    configuration::show(&mut text, &context.reload);
    configuration::show_files(&mut text, &context.access.files());
    context.counters.show(&mut text, &context.translation, &context.bodies);
    context.durations.show(&mut text);
    context.store.show(&mut text, context.queries.kept_bytes()).await;
    context.queries.show(&mut text);
    context.scraping.show(&mut text);
    context.rules.show(&mut text);
    context.notifier.show(&mut text);
    context.forward.show(&mut text);
    if let Some(figures) = &context.ship {
        figures.show(&mut text);
    }
    if let Some(plugins) = &context.plugins {
        plugins.show(&mut text);
    }
    text.finish()
}
