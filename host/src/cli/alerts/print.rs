//! Text of a backtest's report.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;
use tidepool_evaluation::backtest::{AlertReport, BacktestReport, KindReport, RuleReport};
use tidepool_model::number::general;
use tidepool_rules::labels::LabelSet;
use tidepool_settings::duration::duration_text;

pub fn text(report: &BacktestReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for group in &report.groups {
        let every = seconds(group.interval);
        let _ = writeln!(out, "{}, every {every}:", group.name);
        for rule in &group.rules {
            put_rule(&mut out, rule);
        }
    }
    let series = &report.series;
    let others = if series.any { " and others that are not named" } else { "" };
    let _ = writeln!(out, "Stored series read: {}{others}", names(&series.stored));
    let _ = writeln!(out, "Computed series read: {}", names(&series.computed));
    if !series.circular.is_empty() {
        let circular = names(&series.circular);
        let _ = writeln!(out, "Rules that read what is computed after them: {circular}");
    }
    out
}

fn put_rule(out: &mut String, rule: &RuleReport) {
    let name = &rule.name;
    let found = match &rule.kind {
        KindReport::Recording { samples, series } => {
            format!("{} of {}", count(*samples, "sample"), count(*series, "series"))
        }
        KindReport::Alerting { pending: 0, fired, .. } => {
            format!("fired {}", count(*fired, "time"))
        }
        KindReport::Alerting { pending, fired, .. } => {
            format!("fired {}, {pending} only pending", count(*fired, "time"))
        }
    };
    let _ = write!(out, "  {name}: {found}; {}", count(rule.evaluations, "evaluation"));
    if rule.failures > 0 {
        let _ = write!(out, ", {} failed: {}", rule.failures, rule.last_error);
    }
    out.push('\n');
    if let KindReport::Alerting { alerts, omitted, .. } = &rule.kind {
        for alert in alerts {
            put_alert(out, alert);
        }
        if *omitted > 0 {
            let _ = writeln!(out, "    {} more", count(*omitted, "alert"));
        }
    }
}

fn put_alert(out: &mut String, alert: &AlertReport) {
    let labels = alert.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels = LabelSet::sorted(labels);
    let AlertReport { active_at, fired_at, .. } = alert;
    let value = general(alert.value.parse().unwrap_or(f64::NAN));
    let end = match &alert.resolved_at {
        Some(resolved_at) => format!("resolved at {resolved_at}"),
        None => "fires at the end".to_owned(),
    };
    let _ =
        writeln!(out, "    {fired_at} {end}, active since {active_at}, value {value}: {labels}");
}

fn names(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    }
}

fn seconds(seconds: f64) -> String {
    duration_text(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Writes a number with its unit, such as `1 time` or `2 times`.
fn count(number: u64, unit: &str) -> String {
    let plural = if number == 1 || unit.ends_with('s') { "" } else { "s" };
    format!("{number} {unit}{plural}")
}
