//! InfluxDB's line protocol at `POST /api/v1/push/NAME`, and at `/write` and `/api/v2/write` below
//! it, where Telegraf and client libraries look for it.
//!
//! ```text
//! weather,site=north temperature=21.5,humid=true 1700000000000000000
//!   ▼
//! weather_temperature{site="north"} 21.5     weather_humid{site="north"} 1
//! ```

mod line;
mod precision;

use line::{Value, parse};
use precision::precision;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::decoder::{Decoded, Guest, Refusal, Request};

/// Maximum number of reasons in the response.
const REASONS_MAX: usize = 10;

pub struct InfluxLine;

impl Guest for InfluxLine {
    fn configure(config: String) -> Result<(), String> {
        match config.trim() {
            "" => Ok(()),
            _ => Err("this plugin takes no configuration".to_owned()),
        }
    }

    fn decode(request: Request) -> Result<Decoded, Refusal> {
        if !matches!(request.path.trim_end_matches('/'), "" | "/write" | "/api/v2/write") {
            let what = format!("unknown path {:?}: use /write or /api/v2/write", request.path);
            return Err(Refusal::NotFound(what));
        }
        let divide = precision(&request.query).map_err(Refusal::Malformed)?;
        let text = std::str::from_utf8(&request.body)
            .map_err(|error| Refusal::Malformed(format!("the body is not UTF-8: {error}")))?;
        let mut batch = BatchBuilder::new();
        let (mut refused, mut reasons) = (0, Vec::new());
        for (number, line) in text.lines().enumerate() {
            if let Err(why) = take(line, &request, divide, &mut batch) {
                refused += 1;
                if reasons.len() < REASONS_MAX {
                    reasons.push(format!("line {}: {why}", number + 1));
                }
            }
        }
        Ok(Decoded { batch: batch.finish(), refused, reasons })
    }
}

/// Adds the samples of a line. String fields are not samples and are skipped.
fn take(
    line: &str,
    request: &Request,
    precision: precision::Precision,
    batch: &mut BatchBuilder,
) -> Result<(), String> {
    let Some(point) = parse(line)? else { return Ok(()) };
    let timestamp_ms = match point.timestamp {
        Some(timestamp) => precision.milliseconds(timestamp).ok_or("the time is too large")?,
        None => request.received_ms,
    };
    let measurement = name(&point.measurement, true);
    let tags: Vec<(String, &str)> =
        point.tags.iter().map(|(tag, value)| (name(tag, false), value.as_str())).collect();
    for (field, value) in &point.fields {
        let Value::Number(value) = value else { continue };
        // The field name `value` says nothing about the metric, so it is not appended to the name.
        let metric = match field.as_str() {
            "value" => measurement.clone(),
            field => format!("{measurement}_{}", name(field, true)),
        };
        let tags = tags.iter().map(|(tag, value)| (tag.as_str(), *value));
        let series = batch.series([("__name__", metric.as_str())].into_iter().chain(tags));
        batch.sample(series, timestamp_ms, *value);
    }
    Ok(())
}

/// Converts a name to Prometheus' classic character set; only metric names may contain colons.
fn name(text: &str, is_metric: bool) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (is_metric && c == ':');
    let name: String = text.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

tidepool_plugin::export_decoder!(InfluxLine);
