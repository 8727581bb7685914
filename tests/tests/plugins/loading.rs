//! Files that come, change, are no plugins, or go.

use super::{TIMEOUT, lines, push};
use std::fs;
use tidepool_tests::http::Client;
use tidepool_tests::plugins::{built, figure, start};
use tidepool_tests::process::Server;
use tidepool_tests::wait::{self, now_ms};

#[track_caller]
fn wait_for_log(server: &Server, words: &str) {
    let said = || server.log().contains(words).then_some(());
    if wait::until(words, TIMEOUT, said).is_err() {
        panic!("{words:?} is not in the log:\n{}", server.log());
    }
}

#[test]
fn what_is_no_plugin_harms_nobody() {
    let (store, plugins) = start(
        |plugins| {
            let plugins = plugins.with("wrong-world", "hostile-job", "world: transform");
            let plugins = plugins.with("good", "pass-all", "");
            plugins.put("garbage", b"no plugin at all");
            plugins.put("empty", b"");
            plugins.put("module", b"\0asm\x01\0\0\0");
            let half = fs::read(built("pass-all")).expect("the plugin");
            plugins.put("half", &half[..half.len() / 2]);
            plugins
        },
        |config| config,
    )
    .expect("tidepool starts");
    for (plugin, why) in [
        ("garbage", "it is no WebAssembly component"),
        ("empty", "it is no WebAssembly component"),
        ("module", "it is a core module"),
        ("half", "it could not be compiled"),
        ("wrong-world", "it is made for the world job, and the configuration says transform"),
    ] {
        let log = store.server.log();
        let line = log.lines().find(|line| line.contains(&format!("plugin=\"{plugin}\"")));
        assert!(line.is_some_and(|line| line.contains(why)), "{plugin}: {log}");
    }
    let now = now_ms();
    push(&store.server, &format!("a 1 {now}\n"));
    assert_eq!(lines(&store.server), [format!("__name__=a 1 {now}")]);
    assert_eq!(figure(&store.server, "calls_total", "good", "outcome=\"ok\""), 1.0);
    drop(plugins);
}

#[test]
fn a_plugin_is_replaced_while_it_is_in_use() {
    let (store, plugins) =
        start(|plugins| plugins.with("changing", "pass-all", ""), |config| config)
            .expect("tidepool starts");
    let now = now_ms();
    let mut count = 0;
    let mut push_some = || {
        for _ in 0..50 {
            count += 1;
            push(&store.server, &format!("m{{n=\"{count}\"}} {count} {now}\n"));
        }
    };
    push_some();
    // Another plugin under the same name: its configuration is empty, so that it passes all as well.
    for (of, world) in [("drop-and-relabel", "transform"), ("pass-all", "transform")] {
        let loaded = format!("a plugin was loaded plugin=\"changing\" world=\"{world}\"");
        let before = store.server.log().matches(&loaded).count();
        plugins.put("changing", &fs::read(built(of)).expect("the plugin"));
        let is_loaded = || {
            push_some();
            (store.server.log().matches(&loaded).count() > before).then_some(())
        };
        wait::until("the other plugin", TIMEOUT, is_loaded).expect("it is loaded");
    }
    // A wrong file changes nothing.
    plugins.put("changing", b"no plugin at all");
    wait_for_log(&store.server, "the one that was loaded before goes on");
    push_some();
    // A file that is gone is none any more.
    fs::remove_file(plugins.path("changing")).expect("it was there");
    wait_for_log(&store.server, "it is left out");
    push_some();
    let stored = lines(&store.server);
    assert_eq!(stored.len(), count);
    let calls = figure(&store.server, "calls_total", "changing", "outcome=\"ok\"");
    assert!(calls >= 200.0, "{calls}");
}

#[test]
fn a_reload_takes_other_settings() {
    let rules = "config: '[{target_label: zone, replacement: north}]'";
    let (store, mut plugins) = start(
        |plugins| plugins.with("zone", "drop-and-relabel", rules),
        |config| config.flag("--enable-lifecycle"),
    )
    .expect("tidepool starts");
    let now = now_ms();
    push(&store.server, &format!("a 1 {now}\n"));
    let reload = || {
        let url = format!("{}/-/reload", store.server.url());
        Client::default().post(&url, &[], b"").expect("an answer")
    };
    plugins.replace("config: ", "confg: ");
    assert_eq!(reload().status, 500);
    plugins.replace("confg: ", "config: ");
    plugins.replace("north", "south");
    assert_eq!(reload().status, 200);
    let is_loaded =
        || (store.server.log().matches("a plugin was loaded").count() == 2).then_some(());
    wait::until("the new settings", TIMEOUT, is_loaded).expect("they hold");
    push(&store.server, &format!("b 2 {now}\n"));
    let expected =
        [format!("__name__=a,zone=north 1 {now}"), format!("__name__=b,zone=south 2 {now}")];
    assert_eq!(lines(&store.server), expected);
}

#[test]
fn machine_code_is_kept_and_checked() {
    let (store, _plugins) = start(|plugins| plugins.with("pass", "pass-all", ""), |config| config)
        .expect("tidepool starts");
    let cache = store.config.data_dir().join("plugin-cache");
    let files = || -> Vec<_> {
        let files = fs::read_dir(&cache).expect("the cache").flatten();
        files.map(|file| (file.path(), file.metadata().expect("a file").modified().ok())).collect()
    };
    let before = files();
    assert_eq!(before.len(), 1);
    let store = store.restart(Server::terminate).expect("it starts again");
    assert_eq!(files(), before, "it was not compiled again");
    let (path, _) = &before[0];
    let mut code = fs::read(path).expect("the code");
    let middle = code.len() / 2;
    code[middle] ^= 1;
    fs::write(path, code).expect("it can be damaged");
    let store = store.restart(Server::terminate).expect("it starts again");
    assert!(store.server.log().contains("machine code is damaged"), "{}", store.server.log());
    let now = now_ms();
    push(&store.server, &format!("a 1 {now}\n"));
    assert_eq!(figure(&store.server, "calls_total", "pass", "outcome=\"ok\""), 1.0);
}

#[test]
fn a_missing_plugin_without_which_nothing_is_stored() {
    let (store, plugins) = start(
        |plugins| {
            let plugins = plugins.with("needed", "pass-all", "world: transform\non-fault: reject");
            fs::remove_file(plugins.path("needed")).expect("it was there");
            plugins
        },
        |config| config,
    )
    .expect("tidepool starts");
    let path = "/api/v1/import/prometheus";
    assert_eq!(super::post(&store.server, path, b"a 1\n").status, 503);
    plugins.put("needed", &fs::read(built("pass-all")).expect("the plugin"));
    let is_taken = || (super::post(&store.server, path, b"a 1\n").status == 204).then_some(());
    wait::until("the plugin", TIMEOUT, is_taken).expect("it is loaded");
}
