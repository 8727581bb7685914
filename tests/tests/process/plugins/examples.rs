//! The plugins of `examples/plugins` do what their pages say, and so do the commands for plugins.

use super::{TIMEOUT, lines, post, push};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use tidepool_tests::cli::{self, Output};
use tidepool_tests::clock::now_ms;
use tidepool_tests::plugins::{build, built, start};
use tidepool_tests::wait;

/// A body as Telegraf's output `influxdb` sends it.
const TELEGRAF: &str = "cpu,cpu=cpu-total,host=edge-7 usage_idle=97.5,usage_user=1.25 1700000000000000000\n\
    mem,host=edge-7 available=8123456512i,used_percent=41.5 1700000000000000000\n\
    system,host=edge-7 uptime_format=\"1 day,  2:03\",n_users=2u 1700000000000000000\n";

#[test]
fn influx_line_takes_what_telegraf_sends() {
    let (store, _plugins) = start(
        |plugins| plugins.with("influx", "influx-line", ""),
        |config| config.flag("--out-of-order-window=0s"),
    )
    .expect("tidepool starts");
    let now = now_ms();
    let body = TELEGRAF.replace("1700000000000000000", &format!("{now}000000"));
    let response = post(&store.server, "/api/v1/push/influx/write?db=telegraf", body.as_bytes());
    assert_eq!((response.status, response.text().as_str()), (204, ""));
    let expected = [
        format!("__name__=cpu_usage_idle,cpu=cpu-total,host=edge-7 97.5 {now}"),
        format!("__name__=cpu_usage_user,cpu=cpu-total,host=edge-7 1.25 {now}"),
        format!("__name__=mem_available,host=edge-7 8123456512 {now}"),
        format!("__name__=mem_used_percent,host=edge-7 41.5 {now}"),
        format!("__name__=system_n_users,host=edge-7 2 {now}"),
    ];
    assert_eq!(lines(&store.server), expected);
    let path = "/api/v1/push/influx/api/v2/write?precision=ms";
    let response = post(&store.server, path, format!("ok value=1 {now}\nbad\n").as_bytes());
    assert_eq!(response.status, 400);
    assert!(response.text().contains("line 2: a field is missing"), "{}", response.text());
    assert!(lines(&store.server).contains(&format!("__name__=ok 1 {now}")));
}

#[test]
fn downsample_makes_five_series_of_each() {
    // The window ends at a multiple of five minutes: a shorter schedule only makes it run soon.
    let (store, _plugins) = start(
        |plugins| plugins.with("down", "downsample", "schedule: 1s\nconfig: temp.*"),
        |config| config,
    )
    .expect("tidepool starts");
    // Within the window even if a run has just begun.
    let then = now_ms() - 60_000;
    push(
        &store.server,
        &format!(
            "temp{{room=\"a\"}} 3 {}\ntemp{{room=\"a\"}} 5 {then}\nother 1 {then}\n",
            then - 1000
        ),
    );
    let made = || {
        let all = lines(&store.server);
        let made: Vec<_> = all.into_iter().filter(|line| line.contains(":5m_")).collect();
        (made.len() >= 5).then_some(made)
    };
    let made = wait::until("the job to run", TIMEOUT, made).expect("it runs");
    for wanted in
        ["min,room=a 3 ", "max,room=a 5 ", "avg,room=a 4 ", "count,room=a 2 ", "sum,room=a 8 "]
    {
        let wanted = format!("__name__=temp:5m_{wanted}");
        assert!(made.iter().any(|line| line.starts_with(&wanted)), "{wanted}: {made:?}");
    }
    assert!(
        !made.iter().any(|line| line.contains("other") || line.contains("_min:5m")),
        "{made:?}"
    );
}

/// Serves one request after the other with 200, and returns their bodies.
fn webhook() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or_default();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if sender.send(serde_json::from_slice(&body).unwrap_or_default()).is_err() {
                return;
            }
        }
    });
    (url, bodies)
}

#[test]
fn recording_alert_fires_and_ends() {
    let (url, bodies) = webhook();
    let config = format!(
        "schedule: 1s\ngrants:\n  webhooks: [{url}]\nconfig: |\n  alert: FreezerWarm\n  \
         expr: freezer_celsius > -15\n  webhook: {url}\n  labels: {{severity: page}}"
    );
    let (store, _plugins) =
        start(|plugins| plugins.with("alert", "recording-alert", &config), |config| config)
            .expect("tidepool starts");
    push(&store.server, &format!("freezer_celsius{{unit=\"7\"}} -3.5 {}\n", now_ms()));
    let told = bodies.recv_timeout(TIMEOUT).expect("the webhook is called");
    assert_eq!((&told["version"], &told["status"]), (&"4".into(), &"firing".into()));
    let alert = &told["alerts"][0];
    let labels = serde_json::json!({"alertname": "FreezerWarm", "severity": "page", "unit": "7"});
    assert_eq!(alert["labels"], labels);
    assert_eq!(alert["annotations"]["value"], "-3.5");
    push(&store.server, &format!("freezer_celsius{{unit=\"7\"}} -20 {}\n", now_ms()));
    let told = bodies.recv_timeout(TIMEOUT).expect("the webhook is called");
    assert_eq!(told["alerts"][0]["status"], "resolved", "{told}");
    let recorded =
        "__name__=ALERTS,alertname=FreezerWarm,alertstate=firing,severity=page,unit=7 1 ";
    let all = lines(&store.server);
    assert!(all.iter().any(|line| line.starts_with(recorded)), "{all:?}");
}

fn plugin(arguments: &[&OsStr]) -> Output {
    cli::run_command("plugin", arguments, "")
}

#[test]
fn a_new_plugin_builds_as_it_is_and_is_what_it_should_be() {
    let directory = tempfile::tempdir().expect("a directory");
    for world in ["transform", "decoder", "job", "observer"] {
        let name = format!("my-{world}");
        let into = directory.path().as_os_str();
        let flags = ["new", &name, "--world", world, "--directory"].map(OsStr::new);
        let made = plugin(&[&flags[..], &[into]].concat());
        assert_eq!(made.code, Some(0), "{made:?}");
        let folder = directory.path().join(&name);
        // One folder for all, because they have the same dependencies.
        let target = directory.path().join("target");
        build(&folder, &target);
        let file = target.join(format!("wasm32-wasip2/release/my_{world}.wasm"));
        let checked = plugin(&[OsStr::new("check"), file.as_os_str()]);
        assert!(
            checked.stdout.contains(&format!("a {world} for tidepool:plugin@0.2")),
            "{checked:?}"
        );
        // No file is overwritten.
        assert_eq!(plugin(&[&flags[..], &[into]].concat()).code, Some(1));
    }
}

#[test]
fn a_plugin_is_tried_on_samples() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    };
    let samples = write("samples.txt", "a{pod_uid=\"7\"} 1 5\nsecret_b 2 5\nc 3 5\n");
    let rules = write(
        "rules.yml",
        "- {regex: pod_uid, action: labeldrop}\n- {source_labels: [__name__], regex: secret_.*, action: drop}\n",
    );
    let run = |wasm: &Path, config: &Path, file: &Path| {
        plugin(&[
            OsStr::new("run"),
            wasm.as_os_str(),
            OsStr::new("--config"),
            config.as_os_str(),
            file.as_os_str(),
        ])
    };
    let tried = run(&built("drop-and-relabel"), &rules, &samples);
    let expected = "- a{pod_uid=\"7\"} 1 5\n+ a{} 1 5\n- secret_b{} 2 5\n";
    assert_eq!(tried.stdout, expected, "{tried:?}");
    assert!(tried.stderr.contains("2 rows gone, 1 new, 1 as they were"), "{tried:?}");
    let wrong = write("wrong.yml", "- {action: filter}\n");
    let refused = run(&built("drop-and-relabel"), &wrong, &samples);
    assert!(refused.stderr.contains("rule 1: unknown action \"filter\""), "{refused:?}");
    let none = write("none.yml", "");
    // A job has a store with the samples, and runs for the minute that begins after them.
    let two = write("two.txt", "temp 3 1767225659000\ntemp 5 1767225601000\n");
    let ran = run(&built("downsample"), &none, &two);
    let expected = "+ temp:5m_avg{} 4 1767225660000\n+ temp:5m_count{} 2 1767225660000\n\
        + temp:5m_max{} 5 1767225660000\n+ temp:5m_min{} 3 1767225660000\n+ temp:5m_sum{} 8 1767225660000\n";
    assert_eq!(ran.stdout, expected, "{ran:?}");
    let rule = write("rule.txt", "temp:avg = avg(avg_over_time(temp[5m]))");
    let ran = run(&built("recording-rule"), &rule, &two);
    assert_eq!(ran.stdout, "+ temp:avg{} 4 1767225660000\n", "{ran:?}");
    let text = write("text.txt", "temp:avg = \"no vector\"");
    let refused = run(&built("recording-rule"), &text, &two);
    assert!(refused.stderr.contains("the result of the expression is a string"), "{refused:?}");
    let broken = write("broken.txt", "temp:avg = avg(temp");
    let refused = run(&built("recording-rule"), &broken, &two);
    assert!(refused.stderr.contains("unclosed left parenthesis"), "{refused:?}");
    let alert =
        write("alert.yml", "alert: Hot\nexpr: temp > 2\nwebhook: http://127.0.0.1:9/hook\n");
    let ran = run(&built("recording-alert"), &alert, &two);
    // The request that it would post is shown, and not sent.
    let posted = ran.stdout.lines().nth(1).and_then(|line| line.strip_prefix("> "));
    let posted: Value = serde_json::from_str(posted.unwrap_or_default()).expect("JSON");
    assert!(ran.stdout.starts_with("> POST http://127.0.0.1:9/hook (application/json)\n"));
    assert_eq!(posted["alerts"][0]["labels"]["alertname"], "Hot", "{ran:?}");
    let lines = write("lines.txt", "m,a=b c=1 7000000\n");
    let decoded = run(&built("influx-line"), &none, &lines);
    assert_eq!(decoded.stdout, "+ m_c{a=\"b\"} 1 7\n", "{decoded:?}");
}
