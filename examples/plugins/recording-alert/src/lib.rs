//! An alert: series that stay in the result of an expression are stored as `ALERTS`, as Prometheus
//! stores them, and sent to a webhook in Alertmanager's format.
//!
//! ```yaml
//! alert: FreezerWarm
//! expr: freezer_temperature_celsius > -15
//! for: 5m
//! webhook: http://127.0.0.1:9094/hook
//! labels: {severity: page}
//! ```

mod config;
mod notice;

use config::{Config, read};
use notice::{Alert, message};
use std::cell::RefCell;
use std::collections::BTreeMap;
use tidepool_plugin::BatchBuilder;
use tidepool_plugin::job::{Guest, Point, append, instant, webhook};

type Labels = Vec<(String, String)>;

#[derive(Default)]
struct State {
    config: Config,
    /// Alerts by the labels of their series in the result.
    active: BTreeMap<Labels, Active>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Active {
    since_ms: i64,
    value: f64,
    is_firing: bool,
    /// Whether the webhook accepted this alert.
    is_sent: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

struct RecordingAlert;

impl Guest for RecordingAlert {
    fn configure(config: String) -> Result<(), String> {
        let config = read(&config)?;
        STATE.with_borrow_mut(|state| state.config = config);
        Ok(())
    }

    fn run(scheduled_ms: i64) -> Result<(), String> {
        STATE.with_borrow_mut(|state| state.run(scheduled_ms))
    }
}

impl State {
    fn run(&mut self, now_ms: i64) -> Result<(), String> {
        let found = instant(&self.config.expr, now_ms)?.points();
        let resolved = self.update(found, now_ms);
        self.record(now_ms)?;
        self.tell(&resolved, now_ms)
    }

    /// Updates the alerts with the current result; returns alerts that were sent and have ended.
    fn update(&mut self, found: Vec<Point>, now_ms: i64) -> Vec<(Labels, Active)> {
        let mut before = std::mem::take(&mut self.active);
        for Point { mut labels, value } in found {
            labels.retain(|(name, _)| name != "__name__");
            let new = Active { since_ms: now_ms, value, is_firing: false, is_sent: false };
            let mut active = before.remove(&labels).unwrap_or(new);
            active.value = value;
            active.is_firing = now_ms - active.since_ms >= self.config.for_ms;
            self.active.insert(labels, active);
        }
        before.into_iter().filter(|(_, active)| active.is_sent).collect()
    }

    fn record(&self, now_ms: i64) -> Result<(), String> {
        if self.active.is_empty() {
            return Ok(());
        }
        let mut batch = BatchBuilder::new();
        for (labels, active) in &self.active {
            let alert = self.config.labels_of(labels);
            let state = if active.is_firing { "firing" } else { "pending" };
            let own = [("__name__", "ALERTS"), ("alertstate", state)];
            let labels = alert.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let series = batch.series(own.into_iter().chain(labels));
            batch.sample(series, now_ms, 1.0);
        }
        append(batch)
    }

    /// Sends alerts that began to fire and alerts that ended. Unsent alerts are sent by the next
    /// run.
    fn tell(&mut self, resolved: &[(Labels, Active)], now_ms: i64) -> Result<(), String> {
        let config = &self.config;
        let alert = |labels: &Labels, active: &Active, ends_ms: Option<i64>| Alert {
            labels: config.labels_of(labels),
            value: active.value,
            starts_ms: active.since_ms,
            ends_ms,
        };
        let firing = self.active.iter().filter(|(_, active)| active.is_firing && !active.is_sent);
        let mut alerts: Vec<Alert> = firing.map(|(l, active)| alert(l, active, None)).collect();
        alerts.extend(resolved.iter().map(|(labels, a)| alert(labels, a, Some(now_ms))));
        if alerts.is_empty() || config.webhook.is_empty() {
            return Ok(());
        }
        let body = message(&config.alert, &alerts);
        let posted = webhook::post(&config.webhook, "application/json", body.as_bytes());
        match posted {
            Ok(200..300) => {
                let firing = self.active.values_mut().filter(|active| active.is_firing);
                firing.for_each(|active| active.is_sent = true);
                Ok(())
            }
            answer => {
                // Kept as active, so that the next run sends resolved alerts again.
                for (labels, active) in resolved {
                    self.active.entry(labels.clone()).or_insert(*active);
                }
                match answer {
                    Ok(status) => Err(format!("the webhook answered {status}")),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }
}

tidepool_plugin::export_job!(RecordingAlert);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_waits_fires_and_ends() {
        let config = read("alert: A\nexpr: m > 10\nfor: 1m").expect("a configuration");
        let mut state = State { config, ..State::default() };
        let room = |value| {
            let labels = [("__name__", "m"), ("room", "a")];
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            vec![Point { labels: labels.to_vec(), value }]
        };
        let is_firing = |state: &State| state.active.values().map(|a| a.is_firing).next();
        assert!(state.update(room(11.0), 1_000).is_empty());
        assert_eq!(is_firing(&state), Some(false));
        state.update(room(12.0), 61_000);
        assert_eq!(is_firing(&state), Some(true));
        state.active.values_mut().for_each(|active| active.is_sent = true);
        let ended = state.update(Vec::new(), 121_000);
        let last = Active { since_ms: 1_000, value: 12.0, is_firing: true, is_sent: true };
        assert_eq!(ended.iter().map(|(_, active)| *active).collect::<Vec<_>>(), [last]);
        assert!(state.active.is_empty());
    }
}
