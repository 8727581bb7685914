//! Watches a threshold: series of a metric that pass it for a while are stored as `ALERTS`, as
//! Prometheus stores them, and sent to a webhook in Alertmanager's format.
//!
//! ```yaml
//! alert: FreezerWarm
//! metric: freezer_temperature_celsius
//! above: -15            # or `below`
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
use tidepool_plugin::job::store::{self, MatchOp, Matcher};
use tidepool_plugin::job::{Guest, webhook};
use tidepool_plugin::{BatchBuilder, Series};

/// How old the newest sample of a series may be: Prometheus' lookback.
const LOOKBACK_MS: i64 = 5 * 60 * 1000;

/// The NaN that marks the end of a series.
const STALE_NAN: u64 = 0x7ff0_0000_0000_0002;

type Labels = Vec<(String, String)>;

#[derive(Default)]
struct State {
    config: Config,
    /// Series beyond the threshold, and since when; those that fire are marked.
    active: BTreeMap<Labels, Active>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Active {
    since_ms: i64,
    value: f64,
    is_firing: bool,
    /// Whether the webhook knows.
    is_told: bool,
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
        let found = newest(&self.config.metric, now_ms)?;
        let resolved = self.update(found, now_ms);
        self.record(now_ms)?;
        self.tell(&resolved, now_ms)
    }

    /// Takes over what is beyond the threshold now, and gives the alerts that fired and ended.
    fn update(&mut self, found: Vec<(Labels, f64)>, now_ms: i64) -> Vec<(Labels, Active)> {
        let mut before = std::mem::take(&mut self.active);
        for (labels, value) in found.into_iter().filter(|(_, value)| self.config.is_beyond(*value))
        {
            let new = Active { since_ms: now_ms, value, is_firing: false, is_told: false };
            let mut active = before.remove(&labels).unwrap_or(new);
            active.value = value;
            active.is_firing = now_ms - active.since_ms >= self.config.for_ms;
            self.active.insert(labels, active);
        }
        before.into_iter().filter(|(_, active)| active.is_told).collect()
    }

    /// Stores `ALERTS`.
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
        let appended = store::append(&batch.finish()).map_err(|error| error.to_string())?;
        if appended.refused == 0 { Ok(()) } else { Err(appended.reasons.join("; ")) }
    }

    /// Sends alerts that began to fire and alerts that ended. Alerts that could not be sent are
    /// sent the next time.
    fn tell(&mut self, resolved: &[(Labels, Active)], now_ms: i64) -> Result<(), String> {
        let config = &self.config;
        let alert = |labels: &Labels, active: &Active, ends_ms: Option<i64>| Alert {
            labels: config.labels_of(labels),
            value: active.value,
            starts_ms: active.since_ms,
            ends_ms,
        };
        let firing = self.active.iter().filter(|(_, active)| active.is_firing && !active.is_told);
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
                firing.for_each(|active| active.is_told = true);
                Ok(())
            }
            answer => {
                // What ended is told again, too.
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

/// The newest value of each series of a metric.
fn newest(metric: &str, now_ms: i64) -> Result<Vec<(Labels, f64)>, String> {
    let by_name =
        Matcher { name: "__name__".to_owned(), op: MatchOp::Equal, value: metric.to_owned() };
    let cursor = store::select(&[by_name], now_ms - LOOKBACK_MS, now_ms)
        .map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    while let Some(batch) = cursor.next().map_err(|error| error.to_string())? {
        let series = Series::of(&batch);
        let mut newest: Vec<Option<(i64, f64)>> = vec![None; series.count()];
        let samples = &batch.samples;
        for ((place, time), value) in
            samples.series.iter().zip(&samples.timestamps_ms).zip(&samples.values)
        {
            if let Some(one) = newest.get_mut(*place as usize)
                && one.is_none_or(|(newest, _)| newest <= *time)
            {
                *one = Some((*time, *value));
            }
        }
        for (place, one) in newest.into_iter().enumerate() {
            let Some((_, value)) = one.filter(|(_, value)| value.to_bits() != STALE_NAN) else {
                continue;
            };
            let labels = series.labels(place).filter(|(name, _)| *name != "__name__");
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            found.push((labels.collect(), value));
        }
    }
    Ok(found)
}

tidepool_plugin::export_job!(RecordingAlert);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_waits_fires_and_ends() {
        let config = read("alert: A\nmetric: m\nabove: 10\nfor: 1m").expect("a configuration");
        let mut state = State { config, ..State::default() };
        let room = |value| vec![(vec![("room".to_owned(), "a".to_owned())], value)];
        let is_firing = |state: &State| state.active.values().map(|a| a.is_firing).next();
        assert!(state.update(room(10.0), 0).is_empty() && state.active.is_empty());
        assert!(state.update(room(11.0), 1_000).is_empty());
        assert_eq!(is_firing(&state), Some(false));
        state.update(room(12.0), 61_000);
        assert_eq!(is_firing(&state), Some(true));
        state.active.values_mut().for_each(|active| active.is_told = true);
        let ended = state.update(room(9.0), 121_000);
        let last = Active { since_ms: 1_000, value: 12.0, is_firing: true, is_told: true };
        assert_eq!(ended.iter().map(|(_, active)| *active).collect::<Vec<_>>(), [last]);
        assert!(state.active.is_empty());
    }
}
