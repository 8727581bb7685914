//! Files that appear, change, are not plugins, or disappear.

use super::{TIMEOUT, lines, push};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::plugins::{built, figure, start, start_loading, wait_loaded};
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

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
        ("garbage", "it is not a WebAssembly component"),
        ("empty", "it is not a WebAssembly component"),
        ("module", "it is a core module"),
        ("half", "it could not be compiled"),
        ("wrong-world", "it is made for the world job, but the configuration says transform"),
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
    // Another plugin under the same name: its configuration is empty, so it also passes everything.
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
    // An invalid file changes nothing.
    plugins.put("changing", b"no plugin at all");
    wait_for_log(&store.server, "the loaded version stays in use");
    push_some();
    // A plugin whose file is gone is unloaded.
    fs::remove_file(plugins.path("changing")).expect("it was there");
    wait_for_log(&store.server, "the plugin is not called");
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
    wait_loaded(&store.server);
    assert_eq!(files(), before, "it was not compiled again");
    let (path, _) = &before[0];
    let mut code = fs::read(path).expect("the code");
    let middle = code.len() / 2;
    code[middle] ^= 1;
    fs::write(path, code).expect("it can be damaged");
    let store = store.restart(Server::terminate).expect("it starts again");
    wait_loaded(&store.server);
    assert!(store.server.log().contains("compiled code is damaged"), "{}", store.server.log());
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

const IMPORT: &str = "/api/v1/import/prometheus";

/// Waits until a write is accepted.
fn wait_taken(server: &Server) {
    let is_taken = || (super::post(server, IMPORT, b"a 1\n").status == 204).then_some(());
    if wait::until("writes to be taken", TIMEOUT, is_taken).is_err() {
        panic!("{:?}:\n{}", super::post(server, IMPORT, b"a 1\n").text(), server.log());
    }
}

#[test]
fn writes_wait_for_transforms_that_are_being_loaded_and_nothing_else_does() {
    // The plugin takes all the time that its start may take: ten seconds.
    for (settings, then) in [("on-fault: reject", 503), ("", 204)] {
        let settings = format!("config: loop-at-start\n{settings}");
        let (store, _plugins) = start_loading(
            |plugins| {
                let plugins = plugins.with("slow", "hostile-transform", &settings);
                plugins.with("influx", "influx-line", "world: decoder")
            },
            |config| config,
        )
        .expect("tidepool starts");
        let response = super::post(&store.server, IMPORT, b"a 1\n");
        assert_eq!((response.status, response.header("retry-after")), (503, Some("5")));
        let why = "the plugin slow is being loaded, and nothing is stored before that";
        assert!(response.text().contains(why), "{}", response.text());
        let healthy = Client::default().get(&format!("{}/-/healthy", store.server.url()));
        assert_eq!(healthy.expect("an answer").status, 200);
        wait_loaded(&store.server);
        wait_for_log(&store.server, "took longer than 10000 ms");
        assert_eq!(super::post(&store.server, IMPORT, b"a 1\n").status, then);
    }
}

#[test]
fn a_stop_does_not_wait_for_plugins() {
    let (store, _plugins) = start_loading(
        |plugins| plugins.with("slow", "hostile-transform", "config: loop-at-start"),
        |config| config,
    )
    .expect("tidepool starts");
    // The plugin is compiled by then, and starts.
    let cache = store.config.data_dir().join("plugin-cache");
    let has_code = |file: fs::DirEntry| file.path().extension().is_some_and(|e| e == "code");
    let is_compiled = || fs::read_dir(&cache).ok()?.flatten().any(has_code).then_some(());
    wait::until("the machine code", TIMEOUT, is_compiled).expect("it is compiled");
    let ending = store.server.terminate().expect("it ends");
    let log = fs::read_to_string(store.directory.path().join("tidepool.log")).expect("the log");
    assert!(ending.status.success() && log.contains("stopped cleanly"), "{log}");
    assert!(!log.contains("panicked") && !log.contains("took longer"), "{log}");
}

#[test]
fn what_failed_for_a_passing_reason_is_tried_again() {
    let settings = "world: transform\non-fault: reject";
    let cache = |data: &std::path::Path| data.join("plugin-cache");
    let (store, _plugins) = start(
        |plugins| plugins.with("needed", "pass-all", settings),
        |config| {
            let cache = cache(config.data_dir());
            fs::create_dir_all(&cache).expect("the cache");
            fs::set_permissions(&cache, Permissions::from_mode(0o777)).expect("its mode");
            config
        },
    )
    .expect("tidepool starts");
    wait_for_log(&store.server, "must be a directory that only this user can write to");
    assert_eq!(super::post(&store.server, IMPORT, b"a 1\n").status, 503);
    let cache = cache(store.config.data_dir());
    fs::set_permissions(&cache, Permissions::from_mode(0o700)).expect("its mode");
    wait_taken(&store.server);
    let failures = figure(&store.server, "load_failures_total", "needed", "");
    let told = store.server.log().matches("a plugin could not be loaded").count();
    assert!(failures >= 1.0 && told == 1, "{failures} failures: {}", store.server.log());
}

#[test]
fn a_reload_tries_again_what_failed_for_good() {
    let (store, _plugins) = start(
        |plugins| plugins.with("large", "pass-all", "on-fault: reject"),
        |config| config.flag("--plugins-compiler-memory-limit=1MiB").flag("--enable-lifecycle"),
    )
    .expect("tidepool starts");
    let log = store.server.log();
    assert!(log.contains("--plugins-compiler-memory-limit"), "{log}");
    assert_eq!(super::post(&store.server, IMPORT, b"a 1\n").status, 503);
    let url = format!("{}/-/reload", store.server.url());
    assert_eq!(Client::default().post(&url, &[], b"").expect("an answer").status, 200);
    let is_told =
        || (store.server.log().matches("a plugin could not be loaded").count() == 2).then_some(());
    wait::until("another try", TIMEOUT, is_told).expect("it is tried again");
}

#[test]
fn a_missing_directory_is_told_once_and_lets_nothing_by() {
    let (store, plugins) = start_loading(
        |plugins| plugins.with("needed", "pass-all", "world: transform\non-fault: reject"),
        |config| config,
    )
    .expect("tidepool starts");
    wait_loaded(&store.server);
    let Store { server, config, directory } = store;
    server.terminate().expect("it ends");
    let (there, away) = (directory.path().join("plugins"), directory.path().join("away"));
    fs::rename(&there, &away).expect("it was there");
    let server = config.start().expect("tidepool starts");
    wait_loaded(&server);
    assert_eq!(super::post(&server, IMPORT, b"a 1\n").status, 503);
    // Several looks, which come each second.
    let begun = std::time::Instant::now();
    let has_looked = || (begun.elapsed().as_secs() >= 4).then_some(());
    wait::until("some looks", TIMEOUT, has_looked).expect("time passes");
    fs::rename(&away, &there).expect("it is there again");
    wait_taken(&server);
    let log = server.log();
    let log = log.rsplit("tidepool starts").next().expect("this start");
    assert_eq!(log.matches("could not be read").count(), 1, "{log}");
    assert_eq!(log.matches("can be read again").count(), 1, "{log}");
    // Loaded plugins continue without the directory.
    fs::rename(&there, &away).expect("it was there");
    wait_for_log(&server, "the loaded plugins stay in use");
    let count = || server.log().matches("could not be read").count();
    let is_told = || (count() == 2).then_some(());
    wait::until("the missing directory", TIMEOUT, is_told).expect("it is logged");
    assert_eq!(super::post(&server, IMPORT, b"a 1\n").status, 204, "{}", server.log());
    drop(plugins);
}

#[test]
fn settings_that_can_never_hold_are_refused_at_the_start_and_at_a_reload() {
    let (store, mut plugins) = start(
        |plugins| plugins.with("pass", "pass-all", "world: transform\norder: 1"),
        |config| config.flag("--enable-lifecycle"),
    )
    .expect("tidepool starts");
    for wrong in ["schedule: 5m", "paths: [/w]", "grants: {directory: /no/such/place}"] {
        plugins.replace("order: 1", wrong);
        let url = format!("{}/-/reload", store.server.url());
        let response = Client::default().post(&url, &[], b"").expect("an answer");
        assert_eq!(response.status, 500, "{wrong}");
        assert!(response.text().contains("plugins"), "{}", response.text());
        plugins.replace(wrong, "order: 1");
    }
}
