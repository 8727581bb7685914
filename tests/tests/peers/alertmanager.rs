//! A real Alertmanager, and its tool: what they take from tidepool, and that nothing is lost while
//! one of both is away.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_tests::alertmanager::{self, Config, amtool};
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::receiver::{Receiver, status};
use tidepool_tests::text_push::{assert_stored, push};
use tidepool_tests::tidepool::{Store, WalSync};
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// How often live alerts are sent again.
const RESEND: &str = "--rules.alert.resend-delay=1s";
/// A resend with what a busy machine may take besides.
const ONE_RESEND: Duration = Duration::from_secs(10);

/// Fires for rooms whose temperature was pushed, without delay.
const RULES: &str = "groups:\n- name: g\n  interval: 100ms\n  rules:\n  \
                     - alert: Hot\n    expr: temperature > 50\n    labels: {severity: page}\n    \
                     annotations: {summary: '{{ $labels.room }} has {{ $value }}'}\n  \
                     - alert: Cold\n    expr: temperature < 5\n";

/// A running Alertmanager and the webhook that it notifies.
struct Peer {
    config: Config,
    server: Server,
    webhook: Receiver,
}

impl Peer {
    fn start(directory: &Path) -> Peer {
        let webhook = webhook();
        let config = configured(directory, &webhook);
        let server = config.start().expect("Alertmanager starts");
        Peer { config, server, webhook }
    }

    fn alerts(&self) -> Vec<Value> {
        alertmanager::alerts(&self.server).expect("its alerts")
    }

    /// The rooms of the alerts that it shows.
    fn rooms(&self) -> BTreeSet<String> {
        self.alerts().iter().map(room).collect()
    }
}

fn webhook() -> Receiver {
    let webhook = Receiver::start().expect("a receiver");
    webhook.answers(|_, _| status(200));
    webhook
}

fn configured(directory: &Path, webhook: &Receiver) -> Config {
    let url = format!("http://{}/hook", webhook.address());
    Config::new(directory, &url).expect("a configuration")
}

/// Bodies of the requests so far.
fn bodies(receiver: &Receiver) -> Vec<Value> {
    let received = receiver.received().into_iter();
    received.map(|request| serde_json::from_slice(&request.body).expect("JSON")).collect()
}

/// Alerts of which a webhook was notified.
fn notified(webhook: &Receiver) -> Vec<Value> {
    let bodies = bodies(webhook).into_iter();
    bodies.flat_map(|body| body["alerts"].as_array().expect("alerts").clone()).collect()
}

fn room(alert: &Value) -> String {
    alert["labels"]["room"].as_str().unwrap_or_default().to_owned()
}

fn rooms(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("a time")
}

/// Starts tidepool with these items of `alertmanagers`, in YAML's flow style.
fn tidepool(directory: &Path, alertmanagers: &str) -> Store {
    fs::write(directory.join("rules.yml"), RULES).expect("a file");
    let path = directory.join("tidepool.yml");
    fs::write(&path, config(alertmanagers)).expect("a file");
    let store = Store::start_with(|store| {
        store
            .keeps_address()
            // A kill must not take what was pushed just before.
            .wal_sync(WalSync::Interval)
            .flag(&format!("--config={}", path.display()))
            // The test decides when it is read.
            .flag("--no-config-auto-reload")
            .flag(RESEND)
            .flag("--external-url=http://node7:9201/")
    });
    store.expect("tidepool starts")
}

fn reload(store: &Store) -> (u16, String) {
    let url = store.server.url() + "/-/reload";
    let answer = Client::default().post(&url, &[], b"").expect("an answer");
    (answer.status, answer.text())
}

fn api(server: &Server, path: &str) -> Value {
    let answer = Client::default().get(&format!("{}/api/v1/{path}", server.url()));
    let answer: Value = serde_json::from_slice(&answer.expect("an answer").body).expect("JSON");
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

fn config(alertmanagers: &str) -> String {
    format!(
        "enable-lifecycle: true\nglobal: {{external_labels: {{node: n1, replica: r1}}}}\n\
         rule_files: [rules.yml]\nalerting:\n  \
         alert_relabel_configs: [{{action: labeldrop, regex: replica}}]\n  \
         alertmanagers: [{alertmanagers}]\n"
    )
}

/// An item for Alertmanagers at these addresses.
fn item(addresses: &[String]) -> String {
    let rules = "[{target_label: path, replacement: static}]";
    let targets = addresses.join("', '");
    format!("{{static_configs: [{{targets: ['{targets}']}}], alert_relabel_configs: {rules}}}")
}

#[track_caller]
fn measure(server: &Server, temperatures: &[(&str, i64)]) {
    let line = |(room, value): &(&str, i64)| format!("temperature{{room=\"{room}\"}} {value}\n");
    let text: String = temperatures.iter().map(line).collect();
    assert_stored(&push(server, "", &[], text.as_bytes()));
}

#[track_caller]
fn wait_for<T>(store: &Store, what: &str, found: impl FnMut() -> Option<T>) -> T {
    wait_within(store, what, TIMEOUT, found)
}

#[track_caller]
fn wait_within<T>(
    store: &Store,
    what: &str,
    timeout: Duration,
    found: impl FnMut() -> Option<T>,
) -> T {
    wait::until(what, timeout, found)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
}

/// The journal's time of a change of a room's alert, if it has happened.
fn changed_at(store: &Store, room: &str, change: &str) -> Option<Timestamp> {
    let history = api(&store.server, "alerts/history");
    let events = history["events"].as_array().expect("events");
    let wanted = |event: &&Value| event["labels"]["room"] == room && event["change"] == change;
    events.iter().find(wanted).map(|event| time(&event["time"]))
}

#[test]
fn alertmanager_groups_notifies_and_resolves_what_rules_say() {
    let directory = tempfile::tempdir().expect("a directory");
    let peer = Peer::start(&directory.path().join("am"));
    let store = tidepool(directory.path(), &item(&[peer.config.address().to_string()]));
    measure(&store.server, &[("attic", 60), ("boiler", 70), ("cellar", 2), ("den", 20)]);
    let shown = wait_for(&store, "three alerts", || {
        let shown = peer.alerts();
        (shown.len() == 3).then_some(shown)
    });
    let url = "http://node7:9201/graph?g0.expr=";
    for (name, room, annotations, expr) in [
        ("Hot", "attic", json!({"summary": "attic has 60"}), "temperature+%3E+50"),
        ("Hot", "boiler", json!({"summary": "boiler has 70"}), "temperature+%3E+50"),
        ("Cold", "cellar", json!({}), "temperature+%3C+5"),
    ] {
        let alert = shown.iter().find(|alert| alert["labels"]["room"] == room);
        let alert = alert.unwrap_or_else(|| panic!("no alert of {room}: {shown:?}"));
        let mut labels = json!({"alertname": name, "room": room, "node": "n1", "path": "static"});
        if name == "Hot" {
            labels["severity"] = json!("page");
        }
        assert_eq!(alert["labels"], labels);
        assert_eq!(alert["annotations"], annotations);
        assert_eq!(alert["generatorURL"], format!("{url}{expr}&g0.tab=1"));
        assert_eq!(alert["status"]["state"], "active");
        let began = changed_at(&store, room, "firing").expect("an event");
        assert_eq!(time(&alert["startsAt"]), began);
    }

    let first = wait_for(&store, "both groups", || {
        let bodies = bodies(&peer.webhook);
        let of = |name: &str| bodies.iter().find(|b| b["groupLabels"]["alertname"] == name);
        Some([of("Hot")?.clone(), of("Cold")?.clone()])
    });
    for (body, expected) in first.iter().zip([rooms(&["attic", "boiler"]), rooms(&["cellar"])]) {
        let alerts = body["alerts"].as_array().expect("alerts");
        assert_eq!(alerts.iter().map(room).collect::<BTreeSet<_>>(), expected);
        assert_eq!(body["status"], "firing");
        assert_eq!(body["commonLabels"]["node"], "n1");
    }

    measure(&store.server, &[("attic", 10)]);
    let end = wait_for(&store, "the end of one alert", || {
        let mut all = notified(&peer.webhook).into_iter();
        all.find(|alert| alert["status"] == "resolved")
    });
    assert_eq!(room(&end), "attic");
    assert_eq!(Some(time(&end["startsAt"])), changed_at(&store, "attic", "firing"));
    assert_eq!(Some(time(&end["endsAt"])), changed_at(&store, "attic", "resolved"));
    assert_eq!(peer.rooms(), rooms(&["boiler", "cellar"]));
}

/// What amtool says, for a server to be compared with another.
struct Session<'a> {
    url: &'a str,
    /// Identifiers in the order in which they were first seen.
    ids: Vec<String>,
    said: Vec<String>,
}

impl Session<'_> {
    /// Runs `amtool silence …` and returns its output as it is.
    fn run(&mut self, arguments: &[&str]) -> String {
        let all: Vec<&str> = ["silence"].iter().chain(arguments).copied().collect();
        let output = amtool(self.url, &all).expect("amtool runs");
        let address = self.url.strip_prefix("http://").expect("a URL");
        let said = format!("{:?}\n{}{}", output.code, output.stdout, output.stderr);
        let said = self.comparable(&said.replace(address, "ADDRESS"));
        let command = self.comparable(&arguments.join(" "));
        self.said.push(format!("{command}: {said}"));
        output.stdout
    }

    /// As [`Session::run`], for errors whose reason, in quotes, need not be the same.
    fn run_briefly(&mut self, arguments: &[&str]) {
        self.run(arguments);
        let said = self.said.pop().expect("what was just said");
        let brief = said.split_once("BadRequest \"").map(|(brief, _)| format!("{brief}BadRequest"));
        self.said.push(brief.unwrap_or(said));
    }

    fn add(&mut self, arguments: &[&str]) -> String {
        let all = ["add", "--author=tests", "--comment=work"].iter().chain(arguments);
        self.run(&all.copied().collect::<Vec<_>>()).trim().to_owned()
    }

    /// Replaces identifiers by their numbers, and times of today. Others are arguments of the
    /// test, and must be the same.
    fn comparable(&mut self, text: &str) -> String {
        let is_word = |char: char| char.is_ascii_alphanumeric() || "-:.".contains(char);
        let mut made = String::new();
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let length = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length.max(char.len_utf8()));
            rest = after;
            let is_date = word.starts_with("20") && word.get(4..5) == Some("-");
            let is_clock = word.len() == 8 && word.get(2..3) == Some(":");
            if is_id(word) {
                let known = self.ids.iter().position(|id| id == word);
                let number = known.unwrap_or_else(|| {
                    self.ids.push(word.to_owned());
                    self.ids.len() - 1
                });
                made += &format!("ID{number}");
            } else if is_date {
                made += "DATE";
            } else if is_clock {
                made += "TIME";
            } else {
                made += word;
            }
        }
        made
    }
}

fn is_id(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Sets, lists, changes and ends silences, with what a server refuses.
fn session(url: &str) -> Vec<String> {
    let mut session = Session { url, ids: Vec::new(), said: Vec::new() };
    // Ends of the next century show that times are passed on, and sort the lists.
    let disk = session.add(&["DiskFull", "device=~sd.*", "--end=2101-01-01T00:00:00Z"]);
    let zone = session.add(&[
        "zone!=a",
        "rack!~\"1|2\"",
        "--start=2100-01-01T00:00:00Z",
        "--end=2102-01-01T00:00:00Z",
        "--annotation=ticket=7",
    ]);
    assert!(is_id(&disk) && is_id(&zone), "{:?}", session.said);
    session.run(&["query"]);
    session.run(&["query", "-o", "json"]);
    session.run(&["query", "-o", "extended"]);
    session.run(&["query", "--quiet", "alertname=DiskFull"]);
    session.run(&["query", "--id", &zone]);
    session.run(&["query", "--created-by=nobody"]);

    session.run(&["update", "--comment=more work", "--end=2103-01-01T00:00:00Z", &disk]);
    session.run(&["update", "--comment=later", "--start=2100-06-01T00:00:00Z", &zone]);
    session.run(&["query", "-o", "json"]);
    // What was silenced until now stays so: the silence ends, and another begins.
    session.run(&["update", "--comment=later", "--start=2100-07-01T00:00:00Z", &disk]);
    session.run(&["query", "-o", "json"]);
    session.run(&["expire", &disk]);
    session.run(&["expire", &zone]);
    session.run(&["query", "-o", "json"]);
    session.run(&["query", "--expired"]);

    // What the tool or the server refuses.
    session.run(&["expire", &disk]);
    session.run(&["expire", "01020304-0506-4708-890a-0b0c0d0e0f10"]);
    session.run(&["expire", "x"]);
    session.run(&["update", "--comment=x", "01020304-0506-4708-890a-0b0c0d0e0f10"]);
    session.add(&[]);
    session.add(&["a=b", "c=~("]);
    session.add(&["a="]);
    session.add(&["a=~.*"]);
    session.add(&["a=b", "--start=2021-01-01T00:00:00Z", "--end=2022-01-01T00:00:00Z"]);
    session.run(&["add", "a=b", "--author=tests"]);
    // The reasons are in other words, because the texts of parsers are.
    session.run_briefly(&["query", "a=b", "c"]);
    session.run_briefly(&["query", "a=b", "c=~\"(\""]);
    session.run(&["query", "-o", "json"]);
    session.said
}

#[test]
fn amtool_says_the_same_of_tidepool_as_of_alertmanager() {
    let directory = tempfile::tempdir().expect("a directory");
    let peer = Peer::start(&directory.path().join("am"));
    let store = tidepool(directory.path(), "");
    let expected = session(&peer.server.url());
    let said = session(&store.server.url());
    for (said, expected) in said.iter().zip(&expected) {
        assert_eq!(said, expected, "\n{}", store.server.log());
    }
    assert_eq!(said.len(), expected.len());
}

/// The value of a metric of an Alertmanager's own page, or of tidepool's, by labels.
fn metric(server: &Server, series: &str) -> Option<f64> {
    let url = server.url() + "/metrics";
    let page = Client::default().get(&url).expect("a page").text();
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

#[test]
fn ends_that_alertmanager_missed_are_posted_with_their_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let webhook = webhook();
    let config = configured(&directory.path().join("am"), &webhook);
    // Alertmanager shows no alerts that have ended. Another, of the test, keeps what it is sent.
    let recorder = Receiver::start().expect("a receiver");
    recorder.answers(|_, _| status(503));
    let addresses = [config.address().to_string(), recorder.address().to_string()];
    let mut store = tidepool(directory.path(), &item(&addresses));
    // Alerts of two names, because Alertmanager groups by it: of a group that fires, it would tell
    // the ends of alerts that it first hears of as ended.
    measure(&store.server, &[("attic", 2), ("boiler", 70)]);
    let began = wait_for(&store, "a beginning", || changed_at(&store, "attic", "firing"));
    measure(&store.server, &[("attic", 10)]);
    let ended = wait_for(&store, "an end", || changed_at(&store, "attic", "resolved"));
    // Only the journal knows of the end after a restart.
    store = store.restart(Server::terminate).expect("tidepool starts again");
    wait_for(&store, "the live alert again", || {
        let data = api(&store.server, "alerts");
        (data["alerts"].as_array().map(Vec::len) == Some(1)).then_some(())
    });

    let accepted: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = accepted.clone();
    recorder.answers(move |_, received| {
        kept.lock().expect("no panic").push(received.body.clone());
        status(200)
    });
    let server = config.start().expect("Alertmanager starts");
    let peer = Peer { config, server, webhook };
    wait_within(&store, "the live alert", ONE_RESEND, || {
        (peer.rooms() == rooms(&["boiler"])).then_some(())
    });
    for address in &addresses {
        let url = format!("http://{address}/api/v2/alerts");
        let name = "tidepool_notifications_alertmanager_not_notified_total";
        let series = format!("{name}{{alertmanager=\"{url}\"}}");
        // It waits half a minute for the end to be accepted live.
        wait::until(&series, Duration::from_secs(45), || {
            (metric(&store.server, &series) == Some(1.0)).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    }
    let posted = accepted.lock().expect("no panic").clone().into_iter();
    let all = posted.flat_map(|body| serde_json::from_slice::<Vec<Value>>(&body).expect("JSON"));
    let ends: Vec<Value> = all.filter(|alert| room(alert) == "attic").collect();
    let [end] = &ends[..] else { panic!("the end is posted once: {ends:?}") };
    assert_eq!((time(&end["startsAt"]), time(&end["endsAt"])), (began, ended));
    let labels = json!({
        "alertname": "Cold", "room": "attic", "node": "n1", "path": "static",
    });
    assert_eq!(end["labels"], labels);

    // The real one has taken it as well, and notifies nobody of it.
    let resolved = "alertmanager_alerts_received_total{status=\"resolved\",version=\"v2\"}";
    assert_eq!(metric(&peer.server, resolved), Some(1.0));
    wait_for(&store, "the notification of the live alert", || {
        let notified = notified(&peer.webhook);
        notified.iter().any(|alert| room(alert) == "boiler").then_some(())
    });
    assert!(!notified(&peer.webhook).iter().any(|alert| room(alert) == "attic"));
    assert_eq!(peer.rooms(), rooms(&["boiler"]));
}

#[test]
fn a_killed_tidepool_has_alertmanager_know_the_live_state_within_one_resend() {
    let directory = tempfile::tempdir().expect("a directory");
    let peer = Peer::start(&directory.path().join("am"));
    let store = tidepool(directory.path(), &item(&[peer.config.address().to_string()]));
    measure(&store.server, &[("attic", 60), ("boiler", 70)]);
    let both = wait_for(&store, "two alerts", || {
        let alerts = peer.alerts();
        (alerts.len() == 2).then_some(alerts)
    });
    measure(&store.server, &[("attic", 10)]);
    wait_for(&store, "an end", || changed_at(&store, "attic", "resolved"));
    // While tidepool is away, an Alertmanager that knows nothing takes the place of the first, so
    // that it shows what it is told after the kill, and nothing else.
    let Peer { config, server, webhook } = peer;
    let other = config.in_directory(&directory.path().join("other")).expect("a directory");
    let (store, server) = store
        .outage(|| {
            server.kill().expect("Alertmanager ends");
            other.start().expect("Alertmanager starts")
        })
        .expect("tidepool starts again");
    let peer = Peer { config: other, server, webhook };
    let live = wait_within(&store, "the live state", ONE_RESEND, || {
        let alerts = peer.alerts();
        let shown: BTreeSet<String> = alerts.iter().map(room).collect();
        (shown == rooms(&["boiler"])).then_some(alerts)
    });
    let before = both.iter().find(|alert| room(alert) == "boiler").expect("an alert");
    assert_eq!(live[0]["fingerprint"], before["fingerprint"]);
    assert_eq!(live[0]["startsAt"], before["startsAt"]);

    measure(&store.server, &[("boiler", 10)]);
    wait_for(&store, "its end", || peer.rooms().is_empty().then_some(()));
}

#[test]
fn alerts_go_to_the_alertmanagers_that_discovery_and_reloads_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, two] = ["one", "two"].map(|name| Peer::start(&directory.path().join(name)));
    let name = |peer: &Peer| {
        let targets = json!([{"targets": [peer.config.address().to_string()]}]);
        let (file, part) = ("alertmanagers.json", "alertmanagers.part");
        fs::write(directory.path().join(part), targets.to_string()).expect("a file");
        fs::rename(directory.path().join(part), directory.path().join(file)).expect("a file");
    };
    let active = |store: &Store| -> Vec<String> {
        let data = api(&store.server, "alertmanagers");
        let list = data["activeAlertmanagers"].as_array().expect("a list");
        list.iter().map(|one| one["url"].as_str().expect("a URL").to_owned()).collect()
    };
    let url = |peer: &Peer| format!("{}/api/v2/alerts", peer.server.url());
    name(&one);
    let discovery = "{file_sd_configs: [{files: [alertmanagers.json], refresh_interval: 1s}]}";
    let store = tidepool(directory.path(), discovery);
    measure(&store.server, &[("attic", 60)]);
    wait_for(&store, "the first", || (one.rooms() == rooms(&["attic"])).then_some(()));
    assert_eq!(active(&store), [url(&one)]);
    assert_eq!(two.rooms(), rooms(&[]));

    name(&two);
    wait_for(&store, "the second", || (two.rooms() == rooms(&["attic"])).then_some(()));
    assert_eq!(active(&store), [url(&two)]);
    measure(&store.server, &[("boiler", 70)]);
    wait_for(&store, "more in the second", || (two.rooms().len() == 2).then_some(()));
    assert!(!one.rooms().contains("boiler"));

    let text = config(&item(&[one.config.address().to_string()]));
    fs::write(directory.path().join("tidepool.yml"), text).expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    wait_for(&store, "the first again", || {
        let of_static = |alert: &Value| alert["labels"]["path"] == "static";
        let alerts: Vec<Value> = one.alerts().into_iter().filter(of_static).collect();
        (alerts.len() == 2).then_some(())
    });
    assert_eq!(active(&store), [url(&one)]);
}
