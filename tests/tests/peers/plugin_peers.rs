//! Plugins and foreign tools: clients of InfluxDB that write to a decoder, a transform that wac
//! composes of two, and one in Python. `tests/run` installs the tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidepool_tests::built::workspace;
use tidepool_tests::cli::run_command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers;
use tidepool_tests::plugins::{TOKEN, built, influx_store, start};
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};

/// Returns a line for each stored sample: labels by name, value, time.
fn lines(server: &Server) -> Vec<String> {
    let all = everything(0, now_ms() + 3_600_000);
    let answers = Reader::new(&server.url()).streamed(&[all]).expect("an answer");
    let mut lines = Vec::new();
    for series in answers.into_iter().flatten() {
        let pairs = series.labels.pairs().iter().map(|(name, value)| format!("{name}={value}"));
        let labels = pairs.collect::<Vec<_>>().join(",");
        let samples = series.samples.iter();
        lines.extend(samples.map(|one| format!("{labels} {} {}", one.value, one.timestamp_ms)));
    }
    lines.sort();
    lines
}

fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn influxdbs_client_for_python_writes_as_to_influxdb() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = influx_store(directory.path());
    let python = peers::python("influx").unwrap_or_else(|missing| panic!("{missing}"));
    let script = workspace().join("tests/influx/write.py");
    let now = now_ms() / 1000 * 1000;
    let said = run(Command::new(python).arg(script).args([
        store.server.url().as_str(),
        TOKEN,
        &now.to_string(),
    ]));
    // The errors in a body are reported, and its other lines are stored.
    assert!(said.starts_with("400 "), "{said}");
    assert!(said.contains("line 2: a field is missing"), "{said}");
    let all = lines(&store.server);
    for gzip in ["False", "True"] {
        for unit in ["ns", "us", "ms", "s"] {
            for (field, value) in [("celsius", 21.5), ("people", 3.0), ("open", 1.0)] {
                let labels = format!("__name__=air_{field},gzip={gzip},room=a b,c=d,unit={unit}");
                let line = format!("{labels} {value} {now}");
                assert!(all.contains(&line), "{line} is not in {all:?}");
            }
        }
    }
    let batched = |line: &&String| line.starts_with("__name__=batched,");
    assert_eq!(all.iter().filter(batched).count(), 2_000);
    assert_eq!(all.iter().filter(|line| line.starts_with("__name__=good ")).count(), 1);
    assert_eq!(all.len(), 2 * 4 * 3 + 2_000 + 1);
}

#[test]
fn influxdbs_client_for_go_writes_as_to_influxdb() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = influx_store(directory.path());
    let program = peers::built("go-influx").unwrap_or_else(|missing| panic!("{missing}"));
    let now = now_ms();
    run(Command::new(program).args([store.server.url().as_str(), TOKEN, &now.to_string()]));
    let all = lines(&store.server);
    let last = format!("__name__=pump_rpm,site=a, b=c 999 {}", now - 999);
    assert!(all.contains(&last), "{last} is not in {all:?}");
    assert!(all.contains(&format!("__name__=pump_rpm,site=one 7 {now}")));
    assert_eq!(all.len(), 2 * 1000 + 1);
}

/// Returns the output of `plugin run` for samples.
fn tried(plugin: &Path, config: &str, samples: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let (config, samples) = (write("config", config), write("samples.txt", samples));
    let flag = Path::new("--config");
    let arguments = [Path::new("run"), plugin, flag, &config, &samples];
    let output = run_command("plugin", &arguments.map(Path::as_os_str), "");
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout
}

/// Returns two plugins composed into one by wac.
fn composed(directory: &Path, first: &str, second: &str) -> PathBuf {
    let out = directory.join("composed.wasm");
    let compose = workspace().join("examples/plugins/chain/compose");
    let (first, second) = (built(first), built(second));
    let wac = peers::tool("wac").unwrap_or_else(|missing| panic!("{missing}"));
    run(Command::new(compose).env("WAC", wac).args([&first, &second, &out]));
    out
}

#[test]
fn two_transforms_that_wac_made_one_work_in_turn() {
    let directory = tempfile::tempdir().expect("a directory");
    let both = composed(directory.path(), "drop-and-relabel", "drop-and-relabel");
    let checked = run_command("plugin", &[Path::new("check"), &both].map(Path::as_os_str), "");
    assert!(checked.stdout.contains("a transform for tidepool:plugin@0.2"), "{checked:?}");
    let rules = "- {source_labels: [__name__], regex: 'go_.*', action: drop}\n\
                 - {regex: pod, action: labeldrop}\n\
                 ---\n\
                 - {source_labels: [__name__, pod], regex: 'up;', target_label: site, replacement: n}\n";
    let shown = tried(&both, rules, "go_gc 1 5\nup{pod=\"7\"} 1 5\nother 2 5\n");
    // The second plugin sees that the first dropped the label.
    assert_eq!(shown, "- go_gc{} 1 5\n- up{pod=\"7\"} 1 5\n+ up{site=\"n\"} 1 5\n");
    let indented = rules.replace('\n', "\n  ");
    let settings = format!("on-fault: reject\nconfig: |\n  {}", indented.trim_end());
    let (store, _plugins) =
        start(|plugins| plugins.with_file("both", &both, &settings), |config| config)
            .expect("tidepool starts");
    let now = now_ms();
    let text = format!("go_gc 1 {now}\nup{{pod=\"7\"}} 1 {now}\nother 2 {now}\n");
    let url = format!("{}/api/v1/import/prometheus", store.server.url());
    let response = Client::default().post(&url, &[], text.as_bytes()).expect("an answer");
    assert_eq!((response.status, response.text().as_str()), (204, ""));
    let expected = [format!("__name__=other 2 {now}"), format!("__name__=up,site=n 1 {now}")];
    assert_eq!(lines(&store.server), expected);
}

#[test]
fn a_chain_passes_on_what_is_changed_and_added() {
    let directory = tempfile::tempdir().expect("a directory");
    // The first plugin doubles values; the second adds a series.
    let both = composed(directory.path(), "hostile-transform", "hostile-transform");
    let shown = tried(&both, "double\n---\nread-files\n", "a 1.5 5\n");
    assert_eq!(shown, "- a{} 1.5 5\n+ a{} 3 5\n+ nothing_seen{} 1 5\n");
}

#[test]
fn the_plugin_in_python_gives_labels_from_its_table() {
    let plugin = peers::python_plugin().unwrap_or_else(|missing| panic!("{missing}"));
    let table = "host,site\n  edge-7,nörd";
    let settings = format!("on-fault: reject\nconfig: |\n  {table}");
    let (store, _plugins) =
        start(|plugins| plugins.with_file("lookup", &plugin, &settings), |config| config)
            .expect("tidepool starts");
    let now = now_ms();
    let text = format!("up{{host=\"edge-7\"}} 1 {now}\nup{{host=\"edge-8\"}} 1 {now}\n");
    let url = format!("{}/api/v1/import/prometheus", store.server.url());
    let response = Client::default().post(&url, &[], text.as_bytes()).expect("an answer");
    assert_eq!((response.status, response.text().as_str()), (204, ""));
    let expected = [
        format!("__name__=up,host=edge-7,site=nörd 1 {now}"),
        format!("__name__=up,host=edge-8 1 {now}"),
    ];
    assert_eq!(lines(&store.server), expected, "{}", store.server.log());
}
