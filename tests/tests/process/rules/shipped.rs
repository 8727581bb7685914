//! Rules that ship with the program: evaluated as named, or shown without being named.

use super::{
    Client, Duration, Store, Value, api, fs, import, is_mark, of, reload, run_command, start, wait,
    wait_for,
};

#[test]
fn they_are_evaluated_if_they_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "rule_files: ['builtin:node', 'builtin:tidepool']\nhost-metrics-interval: 1s\n";
    let (store, _) = start(directory.path(), text, &[]);
    let groups = api(&store.server, "rules")["groups"].clone();
    let groups = groups.as_array().expect("groups");
    let files: Vec<&str> =
        groups.iter().map(|group| group["file"].as_str().expect("a file")).collect();
    assert!(files.contains(&"builtin:node") && files.contains(&"builtin:tidepool"), "{files:?}");
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules"));
    assert!(rules.count() >= 20, "{groups:?}");
    drop(store);
    let path = directory.path().join("tidepool.yml");
    fs::write(&path, "rule_files: ['builtin:nodes']\n").expect("a file");
    let output = run_command("check", &["config".as_ref(), path.as_os_str()], "");
    let expected =
        "1:13: rule_files: there is no builtin:nodes; there are builtin:node, builtin:tidepool";
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(output.code == Some(1) && said.contains(expected), "{said}");
}

/// Groups of a file that ships with the program, as the API shows them.
fn shipped(store: &Store, file: &str) -> Vec<Value> {
    let groups = api(&store.server, "rules")["groups"].clone();
    let groups = groups.as_array().expect("groups").iter();
    groups.filter(|group| group["file"] == file).cloned().collect()
}

#[test]
fn unnamed_they_are_shown_and_store_nothing() {
    const NODE: &str = "builtin:node";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidepool.yml");
    let write = |text: &str| fs::write(&path, text).expect("a file");
    write("enable-lifecycle: true\n");
    let flag = format!("--config={}", path.display());
    let store = Store::start_with(|config| config.with_builtin_metrics().flag(&flag));
    let store = store.expect("tidepool starts");
    import(
        &store,
        "node_time_seconds{instance=\"a\"} 1000\nnode_boot_time_seconds{instance=\"a\"} 900\n",
    );
    for file in [NODE, "builtin:tidepool"] {
        let groups = shipped(&store, file);
        assert!(!groups.is_empty() && groups.iter().all(|group| group["interval"] == 60.0));
    }
    // Within a minute, as a group has its slot then, and its evaluation.
    let is_rebooted = |alert: &Value| {
        alert["labels"]["alertname"] == "NodeRebooted" && alert["labels"]["instance"] == "a"
    };
    let rebooted = || {
        let alerts = api(&store.server, "alerts")["alerts"].clone();
        alerts.as_array()?.iter().find(|alert| is_rebooted(alert)).cloned()
    };
    let alert = wait::until("an alert", Duration::from_secs(120), rebooted)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    assert_eq!(alert["state"], "firing");
    assert_eq!(of(&store, "ALERTS"), []);
    let metrics = || Client::default().get(&(store.server.url() + "/metrics")).expect("metrics");
    assert!(!metrics().text().contains("rule_group=\"builtin:"));

    // Named, they are evaluated as the configuration says, and stored.
    write(
        "enable-lifecycle: true\nglobal: {evaluation_interval: 1s}\nrule_files: ['builtin:node']\n",
    );
    assert_eq!(reload(&store).0, 200);
    let stored = || {
        of(&store, "ALERTS").into_iter().find(|series| {
            (series.labels.value("alertname"), series.labels.value("instance"))
                == ("NodeRebooted", "a")
        })
    };
    wait_for(&store, "samples of an alert", stored);
    let groups = shipped(&store, NODE);
    assert!(groups.iter().all(|group| group["interval"] == 1.0), "{groups:?}");
    assert_eq!(shipped(&store, "builtin:tidepool")[0]["interval"], 60.0);
    assert!(metrics().text().contains("rule_group=\"builtin:node;node_disk\""));

    // Not named again, their series end; turned off, they are gone.
    write("enable-lifecycle: true\n");
    assert_eq!(reload(&store).0, 200);
    wait_for(&store, "the end of a series", || {
        stored()?.samples.last().filter(|it| is_mark(it)).map(drop)
    });
    assert_eq!(shipped(&store, NODE)[0]["interval"], 60.0);
    write("enable-lifecycle: true\nno-default-rules: true\n");
    assert_eq!(reload(&store).0, 200);
    assert!(shipped(&store, NODE).is_empty());
}
