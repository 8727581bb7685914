//! Scraping through kills, a full disk and targets whose series change all the time.

use super::configuration::start;
use super::scrape::{TIMEOUT, assert_page, counted, job, samples, series_of, wait_for_scrapes};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::series::{Random, STALE_MARKER_BITS};
use tidepool_tests::small_disk::on_small_disk;
use tidepool_tests::soak;
use tidepool_tests::target::{COUNTER, Target};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const JOB: &str = "page";

/// Number of kills: in each run of the tests, and in a soak. After each, targets are known after
/// five seconds.
const KILLS: (usize, usize) = (3, 40);

#[test]
fn a_kill_costs_no_scrape_that_was_seen_and_leaves_none_in_part() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let text = format!("scrape_configs:\n{}", job(JOB, &[&target], "50ms"));
    let flags = ["--wal-sync=always", "--block-duration=1s", "--max-block-duration=1s"];
    let (mut store, _) = start(directory.path(), &text, &flags);
    for kill in 0..soak::count(KILLS.0, KILLS.1) {
        let before = counted(&store, JOB).len();
        // A kill at another moment of the cycle each time.
        wait_for_scrapes(&store, JOB, before + 3 + kill % 5);
        let seen = counted(&store, JOB);
        store = store.restart(Server::kill).expect("tidepool starts again");
        let found = counted(&store, JOB);
        assert_eq!(found[..seen.len()], seen, "after kill {kill}");
        assert_page(&store, JOB, &target);
    }
}

#[test]
fn a_full_disk_pauses_scrapes_which_go_on_by_themselves() {
    let name = "scrape_violence::a_full_disk_pauses_scrapes_which_go_on_by_themselves";
    on_small_disk(name, 24, |disk| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = Target::start().expect("a target");
        let path = directory.path().join("tidepool.yml");
        let text = format!("scrape_configs:\n{}", job(JOB, &[&target], "100ms"));
        std::fs::write(&path, text).expect("a file");
        let config = Config::new(directory.path()).data_in(&disk.path().join("data"));
        let config = config.flag(&format!("--config={}", path.display()));
        let config = config.flag("--wal-sync=always").flag("--disk-reserve=4MiB");
        let server = config.start().expect("tidepool starts");
        let store = Store { server, config, directory };
        wait_for_scrapes(&store, JOB, 3);

        let filler = disk.fill(2 << 20);
        let paused = || (store.metric("tidepool_writes_paused")? == 1.0).then_some(());
        wait::until("the pause", TIMEOUT, paused).unwrap_or_else(|error| panic!("{error}"));
        let wait_for_asked = |more: u64| {
            let scrapes = target.scrapes();
            let asked = || (target.scrapes() >= scrapes + more).then_some(());
            wait::until("scrapes while the disk is full", TIMEOUT, asked)
                .unwrap_or_else(|error| panic!("{error}"));
        };
        // A scrape that was under way at the pause is stored before the next but one is requested.
        wait_for_asked(2);
        let stored = counted(&store, JOB);
        wait_for_asked(5);
        assert_eq!(counted(&store, JOB), stored, "nothing is stored on a full disk");
        let log = store.server.log();
        assert!(log.contains("a scrape could not be stored"), "{log}");

        filler.remove();
        wait_for_scrapes(&store, JOB, stored.len() + 5);
        assert_eq!(counted(&store, JOB)[..stored.len()], stored);
        assert_page(&store, JOB, &target);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_page(&store, JOB, &target);
    });
}

/// Number of series of a page, which takes several calls of the store.
const WIDE: usize = 20_000;

/// Values of a page have this many random bits, so that the log cannot compress them.
const NOISE_BITS: u32 = 20;

/// Returns a page whose values all have the number of the scrape before their random bits.
fn wide_page(scrape: u64) -> String {
    let mut page = format!("{COUNTER} {scrape}\n");
    let mut random = Random::new(scrape, 0);
    for number in 0..WIDE {
        let value = scrape << NOISE_BITS | random.below(1 << NOISE_BITS);
        page += &format!("wide{{number=\"{number}\"}} {value}\n");
    }
    page
}

/// Asserts that each stored scrape is complete, with its report, and from one page; returns their
/// number.
#[track_caller]
fn assert_whole(store: &Store) -> usize {
    let series = series_of(store, JOB);
    let up = samples(&series, "up");
    let good = up.iter().filter(|sample| sample.value == 1.0).map(|sample| sample.timestamp_ms);
    let mut found: BTreeMap<i64, (u64, usize)> = BTreeMap::new();
    for one in series.iter().filter(|one| one.labels.value("__name__") == "wide") {
        for sample in &one.samples {
            if sample.value.to_bits() == STALE_MARKER_BITS {
                continue;
            }
            let page = sample.value as u64 >> NOISE_BITS;
            let entry = found.entry(sample.timestamp_ms).or_insert((page, 0));
            assert_eq!(entry.0, page, "two pages at {}", sample.timestamp_ms);
            entry.1 += 1;
        }
    }
    let expected: BTreeMap<i64, usize> = good.map(|at_ms| (at_ms, WIDE)).collect();
    let found: BTreeMap<i64, usize> =
        found.into_iter().map(|(at_ms, (_, count))| (at_ms, count)).collect();
    assert_eq!(found, expected);
    found.len()
}

/// A scrape used to be stored 4,096 samples at a time, so that a kill left a part of it.
#[test]
fn kills_leave_large_scrapes_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(wide_page).expect("a target");
    let text = format!("scrape_configs:\n{}", job(JOB, &[&target], "250ms"));
    let (mut store, _) = start(directory.path(), &text, &["--wal-sync=always"]);
    let mut before = 0;
    for kill in 0..soak::count(KILLS.0, KILLS.1) {
        wait_for_scrapes(&store, JOB, before + 2);
        let scrapes = target.scrapes();
        let is_asked = || (target.scrapes() > scrapes).then_some(());
        wait::until("a scrape", TIMEOUT, is_asked).unwrap_or_else(|error| panic!("{error}"));
        // While the page is being sent, at another moment each time.
        std::thread::sleep(Duration::from_millis(7 * kill as u64));
        store = store.restart(Server::kill).expect("tidepool starts again");
        let found = assert_whole(&store);
        assert!(found >= before + 2, "{found} scrapes after kill {kill}");
        before = found;
    }
}

#[test]
fn a_full_disk_leaves_large_scrapes_whole() {
    let name = "scrape_violence::a_full_disk_leaves_large_scrapes_whole";
    on_small_disk(name, 64, |disk| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = Target::start_with(wide_page).expect("a target");
        let path = directory.path().join("tidepool.yml");
        let text = format!("scrape_configs:\n{}", job(JOB, &[&target], "250ms"));
        std::fs::write(&path, text).expect("a file");
        let config = Config::new(directory.path()).data_in(&disk.path().join("data"));
        let config = config.flag(&format!("--config={}", path.display()));
        // Without a reserve, a write fails in the middle of the scrape.
        let config = config.flag("--wal-sync=always").flag("--disk-reserve=0");
        let server = config.start().expect("tidepool starts");
        let store = Store { server, config, directory };
        wait_for_scrapes(&store, JOB, 2);
        let filler = disk.fill(48 << 10);
        let failed = || store.server.log().contains("a scrape could not be stored").then_some(());
        wait::until("a scrape that is not stored", TIMEOUT, failed)
            .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
        let stored = assert_whole(&store);
        filler.remove();
        wait_for_scrapes(&store, JOB, stored + 2);
        let stored = assert_whole(&store);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert!(assert_whole(&store) >= stored);
    });
}

/// Number of series that only one scrape has.
const NEW_EACH_SCRAPE: u64 = 200;

fn changing_page(scrape: u64) -> String {
    let mut page = format!("{COUNTER} {scrape}\n");
    for number in 0..NEW_EACH_SCRAPE {
        page += &format!("changing{{scrape=\"{scrape}\",number=\"{number}\"}} {number}\n");
    }
    page
}

/// Each series has the sample of its scrape, and becomes stale at the next one.
#[test]
fn series_that_change_with_each_scrape_are_stored_and_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(changing_page).expect("a target");
    let text = format!("scrape_configs:\n{}", job(JOB, &[&target], "100ms"));
    let (store, _) = start(directory.path(), &text, &[]);
    wait_for_scrapes(&store, JOB, 30);
    let series = series_of(&store, JOB);
    let up = samples(&series, "up");
    let next: BTreeMap<i64, i64> =
        up.windows(2).map(|pair| (pair[0].timestamp_ms, pair[1].timestamp_ms)).collect();
    let mut checked = 0;
    for scrape in samples(&series, COUNTER) {
        // A failed scrape is a marker of the counter.
        let Some(&next_ms) = next.get(&scrape.timestamp_ms) else { continue };
        if scrape.value.to_bits() == STALE_MARKER_BITS {
            continue;
        }
        let number = scrape.value.to_string();
        let of_it: Vec<_> =
            series.iter().filter(|one| one.labels.value("scrape") == number).collect();
        assert_eq!(of_it.len() as u64, NEW_EACH_SCRAPE, "scrape {number}");
        for one in of_it {
            let value: f64 = one.labels.value("number").parse().expect("a number");
            let [sample, end] = one.samples[..] else { panic!("{one:?}") };
            assert_eq!((sample.timestamp_ms, sample.value), (scrape.timestamp_ms, value));
            assert_eq!((end.timestamp_ms, end.value.to_bits()), (next_ms, STALE_MARKER_BITS));
        }
        checked += 1;
    }
    assert!(checked >= 20, "{checked} scrapes of {}", up.len());
}

/// A pipe in the place of a file that is reloaded held up all scrapes and all of HTTP, and the
/// program did not stop.
#[test]
fn a_pipe_in_the_place_of_a_file_holds_nothing_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let [token, credentials, list] =
        ["token", "credentials", "targets.json"].map(|name| directory.path().join(name));
    let (target, other) = (Target::start().expect("a target"), Target::start().expect("a target"));
    std::fs::write(&token, "secret").expect("a token");
    std::fs::write(&credentials, "bearer secret\n").expect("credentials");
    std::fs::write(&list, format!("[{{\"targets\":[\"{}\"]}}]", other.address())).expect("a list");
    let text = format!(
        "scrape_configs:\n{}  - job_name: guarded\n    scrape_interval: 100ms\n    \
         scrape_timeout: 100ms\n    authorization: {{credentials_file: '{}'}}\n    \
         file_sd_configs: [{{files: ['{}'], refresh_interval: 1s}}]\n",
        job(JOB, &[&target], "100ms"),
        token.display(),
        list.display(),
    );
    let admin = format!("--admin-credentials-file={}", credentials.display());
    let (store, _) = start(directory.path(), &text, &[&admin]);
    wait_for_scrapes(&store, JOB, 2);
    wait_for_scrapes(&store, "guarded", 2);
    for file in [&token, &credentials, &list] {
        std::fs::remove_file(file).expect("a file");
        mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    }
    let is_seen = |file: &std::path::Path| {
        let log = store.server.log();
        let name = file.display().to_string();
        log.lines().any(|line| line.contains(&name) && line.contains("not a regular file"))
    };
    for file in [&credentials, &list] {
        wait::until("a line of the log", TIMEOUT, || is_seen(file).then_some(()))
            .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    }
    let failed = || {
        let targets = Client::default().get(&(store.server.url() + "/api/v1/targets")).ok()?;
        targets.text().contains("not a regular file").then_some(())
    };
    wait::until("the error of the target", TIMEOUT, failed).unwrap_or_else(|e| panic!("{e}"));
    wait_for_scrapes(&store, JOB, counted(&store, JOB).len() + 3);
    store.server.terminate().expect("tidepool stops");
}
