//! Programs as receivers.

use super::super::scrape::api;
use super::*;
use std::os::unix::fs::PermissionsExt as _;

const ALWAYS: &str = "  - {alert: Always, expr: vector(1), labels: {severity: page}}\n";

/// A receiver that runs a script with two arguments.
fn script(directory: &Path, text: &str, timeout: &str) -> String {
    let path = directory.join("script");
    fs::write(&path, format!("#!/bin/sh\ncd {}\n{text}", directory.display())).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = path.display();
    let command = format!("command: {{path: '{path}', arguments: [a, 'b $(touch c)'], {timeout}}}");
    format!("  - {{name: command, group_wait: 0s, group_interval: 100ms, {command}}}\n")
}

#[test]
fn a_program_gets_json_arguments_and_an_empty_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "env > env.part; printf '%s|' \"$@\" > arguments; cat > input\n\
                mv env.part env\n";
    let receivers = script(directory.path(), text, "timeout: 10s");
    let store = start_with(directory.path(), ALWAYS, &receivers, &[]);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
    let environment = wait_for(&store, "a process", || read("env"));
    let mut names: Vec<&str> =
        environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // A shell adds these.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert!(names.iter().all(|name| name.starts_with("TIDEPOOL_") || *name == "PATH"), "{names:?}");
    assert!(environment.contains("TIDEPOOL_ALERTNAME=Always\n"), "{environment}");
    assert_eq!(read("arguments").as_deref(), Some("a|b $(touch c)|"));
    assert!(!directory.path().join("c").exists());
    let input: Value = serde_json::from_str(&read("input").expect("input")).expect("JSON");
    assert_eq!(told(&input)[0].id, id(&log(&store)[0]));
    assert_eq!(input["receiver"], "command");
}

#[test]
fn a_process_that_takes_too_long_is_killed_with_its_children() {
    let directory = tempfile::tempdir().expect("a directory");
    // The child holds the output open, so that waiting for its end would wait for it.
    let text = "yes output | head -c 100000\nsleep 600 & echo $! >> children\nsleep 600\n";
    let receivers = script(directory.path(), text, "timeout: 300ms");
    let store = start_with(directory.path(), ALWAYS, &receivers, &[]);
    let children = || -> Vec<String> {
        let text = fs::read_to_string(directory.path().join("children")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    wait_for(&store, "a second attempt", || (children().len() >= 2).then_some(()));
    let first = children().swap_remove(0);
    let is_gone = || {
        let state = fs::read_to_string(format!("/proc/{first}/stat")).unwrap_or_default();
        // A zombie that its new parent has not reaped runs no more.
        (state.is_empty() || state.contains(") Z ")).then_some(())
    };
    wait_for(&store, "the end of the first child", is_gone);
    let state = wait_for(&store, "the failure", || {
        let state = api(&store.server, "alerts/receivers")["receivers"][0].clone();
        state["lastError"].as_str().map(str::to_owned)
    });
    assert!(state.contains("was killed, since it ran longer than 0.3 s"), "{state}");
    assert!(state.contains("output output") && state.len() <= 4096, "{}", state.len());
}
