//! The journal's limits, a full disk, and snapshots.

use super::super::rules::import;
use super::super::scrape::api;
use super::*;
use std::fmt::Write as _;
use tidepool_tests::admin::Admin;
use tidepool_tests::small_disk::on_small_disk;
use tidepool_tests::tidepool::Config;

fn dropped(store: &Store, name: &str) -> u64 {
    let receivers = api(&store.server, "alerts/receivers")["receivers"].clone();
    let found = receivers.as_array().expect("a list").iter().find(|one| one["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name}: {receivers}"));
    found["dropped"].as_u64().expect("a number")
}

#[test]
fn what_the_journal_has_no_room_for_is_counted_and_the_rest_is_told() {
    const ALERTS: usize = 50;
    const ROUNDS: usize = 20;
    let directory = tempfile::tempdir().expect("a directory");
    let (away, well) = (Service::start(), Service::start());
    away.answers(503);
    let text = "x".repeat(400);
    let rules = format!("  - {{alert: Big, expr: big > 0, annotations: {{text: {text}}}}}\n");
    let receivers = away.config("away") + &well.config("well");
    let flags = ["--alert-journal-size=256KiB"];
    let store = start_with(directory.path(), &rules, &receivers, &flags);
    // The other receiver hears of all of them, and says how many there were.
    for round in 1..=ROUNDS {
        let mut samples = String::new();
        for number in 0..ALERTS {
            writeln!(samples, "big{{number=\"{number}\"}} {}", round % 2).expect("a string");
        }
        import(&store, &samples);
        wait_for(&store, "a round", || (ids(&well.told()).len() == round * ALERTS).then_some(()));
    }
    let all = ids(&well.told());
    assert_eq!(dropped(&store, "well"), 0);
    let kept = log(&store);
    assert!(kept.len() < all.len(), "400 KB are more than 256 KiB");
    wait_for(&store, "a count", || (dropped(&store, "away") > 0).then_some(()));
    let said = "the limits of the alert journal dropped events before they were delivered";
    wait_for(&store, said, || {
        let log = store.server.log();
        log.lines().any(|line| line.contains(said) && line.contains("away")).then_some(())
    });
    let history = api(&store.server, "alerts/history?limit=1");
    assert!(history["oldestTime"].is_string(), "{history}");
    // Each event is either told or counted.
    away.accepts();
    wait_for(&store, "the rest", || {
        let told = ids(&away.told());
        kept.iter().all(|event| told.contains(&id(event))).then_some(())
    });
    let told = ids(&away.told());
    assert!(told.is_subset(&all));
    assert_eq!(told.len() as u64 + dropped(&store, "away"), all.len() as u64);
}

#[test]
fn alerts_are_told_while_the_disk_is_full_and_stored_later() {
    let name = "notifications::limits::alerts_are_told_while_the_disk_is_full_and_stored_later";
    on_small_disk(name, 16, |disk| {
        let directory = tempfile::tempdir().expect("a directory");
        let service = Service::start();
        let rules = "  - {alert: Blink, expr: vector(time() % 1) > 0.5}\n";
        fs::write(directory.path().join("rules.yml"), group(rules)).expect("a file");
        let path = directory.path().join("tidepool.yml");
        fs::write(&path, config(&service.config("hook"))).expect("a file");
        let settings = Config::new(directory.path())
            .data_in(&disk.path().join("data"))
            .flag(&format!("--config={}", path.display()))
            .flag("--no-config-auto-reload");
        let server = settings.start().expect("tidepool starts");
        let store = Store { server, config: settings, directory };
        let told = || ids(&service.told());
        wait_for(&store, "two events", || (told().len() >= 2).then_some(()));
        // Segments may have room in pages that are theirs already.
        let unwritten = || store.metric("tidepool_alert_journal_unwritten_events");
        let filler = disk.fill(0);
        wait_for(&store, "events that are not written", || (unwritten()? >= 3.0).then_some(()));
        let known = told().len();
        wait_for(&store, "more events", || (told().len() >= known + 4).then_some(()));
        filler.remove();
        wait_for(&store, "events to be written", || (unwritten()? == 0.0).then_some(()));
        let told = told();
        let stored: BTreeSet<String> = log(&store).iter().map(id).collect();
        assert!(told.is_subset(&stored), "{:?}", told.difference(&stored));
    });
}

#[test]
fn a_restored_snapshot_tells_nothing_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let rules = "  - {alert: Ended, expr: a > 0}\n  - {alert: Fires, expr: b > 0}\n  \
                 - {alert: Later, expr: c > 0}\n";
    let flags = ["--enable-admin-api"];
    let store = start_with(directory.path(), rules, &service.config("hook"), &flags);
    import(&store, "a 1\nb 1\n");
    wait_for(&store, "two alerts", || (ids(&service.told()).len() == 2).then_some(()));
    import(&store, "a 0\n");
    wait_for(&store, "an end", || (ids(&service.told()).len() == 3).then_some(()));
    // The receiver's answer is known.
    wait_for(&store, "nothing undelivered", || {
        let state = api(&store.server, "alerts/receivers")["receivers"][0].clone();
        (state["undelivered"] == 0 && state["sent"].as_u64() >= Some(2)).then_some(())
    });
    // The position is written at most each ten seconds.
    let path = store.config.data_dir().join("alerts/receivers/hook.json");
    wait_for(&store, "the position on the disk", || {
        let file: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        (file["position"]["through"] == 3).then_some(())
    });
    let name = Admin::new(&store.server.url()).snapshot(false);
    let snapshot = store.config.data_dir().join("snapshots").join(name);
    let known = ids(&service.told());
    let Store { server, config, directory } = store;
    server.kill().expect("it ends");
    let config = config.data_in(&snapshot);
    let before = service.accepted().len();
    let store = Store { server: config.start().expect("tidepool starts"), config, directory };
    import(&store, "c 1\n");
    let since = || -> Vec<Told> { service.accepted()[before..].iter().flat_map(told).collect() };
    wait_for(&store, "the new alert", || {
        ids(&since()).difference(&known).next().is_some().then_some(())
    });
    // A notification of it has the other alert that fires, which is no news.
    let ended = since().into_iter().filter(|told| told.alert["labels"]["alertname"] == "Ended");
    assert_eq!(ended.count(), 0, "{:?}", since());
    let bodies = service.accepted().split_off(before);
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(bodies[0]["notification_reason"], "new alerts added");
}
