//! Notifications of alerts: what receivers get, whatever ends, hangs or fails.

mod chaos;
mod clocks;
mod commands;
mod delivery;
mod limits;
mod quick_start;
mod silences;
mod templates;

use super::configuration::start;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_tests::arguments;
use tidepool_tests::cli::run_command;
use tidepool_tests::receiver::{Receiver, status};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// An alert of a notification.
#[derive(Clone, Debug)]
struct Told {
    id: String,
    /// `firing` or `resolved`.
    change: String,
    alert: Value,
}

/// A service that keeps what it accepts.
struct Service {
    receiver: Receiver,
    /// Bodies of accepted requests.
    accepted: Arc<Mutex<Vec<Value>>>,
}

impl Service {
    fn start() -> Service {
        let receiver = Receiver::start().expect("a receiver");
        let service = Service { receiver, accepted: Arc::default() };
        service.accepts();
        service
    }

    /// Accepts everything from now on.
    fn accepts(&self) {
        self.answers_in_bytes(|| (true, status(200).to_bytes()));
    }

    fn answers(&self, code: u16) {
        self.answers_in_bytes(move || (false, status(code).to_bytes()));
    }

    /// Answers each request from now on with bytes, which may accept it.
    fn answers_in_bytes(&self, answer: impl Fn() -> (bool, Vec<u8>) + Send + Sync + 'static) {
        let accepted = self.accepted.clone();
        self.receiver.answers_in_bytes(move |_, received| {
            let (is_accepted, bytes) = answer();
            if is_accepted {
                let body = serde_json::from_slice(&received.body).unwrap_or(Value::Null);
                accepted.lock().expect("no panic").push(body);
            }
            bytes
        });
    }

    fn accepted(&self) -> Vec<Value> {
        self.accepted.lock().expect("no panic").clone()
    }

    fn told(&self) -> Vec<Told> {
        self.accepted().iter().flat_map(told).collect()
    }

    /// A receiver of the configuration that calls this service without delay.
    fn config(&self, name: &str) -> String {
        let url = format!("http://{}/hook", self.receiver.address());
        let webhook = format!("webhook: {{url: '{url}', timeout: 500ms}}");
        format!("  - {{name: {name}, group_wait: 0s, group_interval: 100ms, {webhook}}}\n")
    }
}

/// The alerts of a body.
fn told(body: &Value) -> Vec<Told> {
    let text = |alert: &Value, key: &str| alert[key].as_str().expect(key).to_owned();
    let alerts = body["alerts"].as_array().expect("alerts").iter();
    let told = alerts.map(|alert| Told {
        id: text(alert, "id"),
        change: text(alert, "status"),
        alert: alert.clone(),
    });
    told.collect()
}

/// Rules of one group that is evaluated each 50 ms.
fn group(rules: &str) -> String {
    format!("groups:\n- name: g\n  interval: 50ms\n  rules:\n{rules}")
}

fn config(receivers: &str) -> String {
    format!(
        "enable-lifecycle: true\nglobal: {{external_labels: {{node: n1}}}}\n\
         rule_files: [rules.yml]\nnotify:\n  receivers:\n{receivers}"
    )
}

fn start_with(directory: &Path, rules: &str, receivers: &str, flags: &[&str]) -> Store {
    fs::write(directory.join("rules.yml"), group(rules)).expect("a file");
    start(directory, &config(receivers), flags).0
}

/// The events that `tidepool alerts log` prints.
fn log(store: &Store) -> Vec<Value> {
    let arguments = arguments!["log", "--format=json", store.config.data_dir()];
    let output = run_command("alerts", arguments, "");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let lines = output.stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn id(event: &Value) -> String {
    event["id"].as_str().expect("an identifier").to_owned()
}

fn ids(told: &[Told]) -> BTreeSet<String> {
    told.iter().map(|told| told.id.clone()).collect()
}

#[track_caller]
fn wait_for<T>(store: &Store, what: &str, found: impl FnMut() -> Option<T>) -> T {
    wait::until(what, TIMEOUT, found)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
}
