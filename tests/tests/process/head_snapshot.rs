//! A clean stop writes a head snapshot, and the next start needs no log: it has the same data,
//! whatever follows, and never uses a snapshot if anything has changed since.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidepool_tests::arguments;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::head_snapshot::{FILE, was_used};
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, recent_data, send_all};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::{Config, READY_PATH, Store, WalSync};

/// Variable with another number of series, for a measurement by hand.
const SERIES_VARIABLE: &str = "HEAD_SNAPSHOT_SERIES";

fn path(config: &Config) -> PathBuf {
    config.data_dir().join(FILE)
}

/// Starts the server, asks repeatedly whether it is ready, and returns the elapsed time and the CPU
/// time until then.
fn timed_start(config: &Config) -> (Server, Duration, Duration) {
    let launch = config.launch().expect("a free port");
    let start = Instant::now();
    let server = launch.spawn().expect("tidepool runs");
    let url = format!("{}{READY_PATH}", server.url());
    let client = Client::default();
    while !client.get(&url).is_ok_and(|answer| answer.status == 200) {
        assert!(start.elapsed() < Duration::from_secs(120), "{}", server.log());
        std::thread::sleep(Duration::from_millis(1));
    }
    let (wall, usage) = (start.elapsed(), server.usage().expect("it runs"));
    (server, wall, usage.cpu)
}

#[test]
fn a_clean_stop_leaves_nothing_to_replay() {
    let series = std::env::var(SERIES_VARIABLE).ok().and_then(|text| text.parse().ok());
    let shape = Shape {
        seed: 71,
        series: series.unwrap_or(10_000),
        scrapes: 120,
        start_ms: now_ms() - 120 * 15_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    };
    let data = Dataset::generate(shape);
    let store = Store::start().expect("tidepool starts");
    let empty_dir = tempfile::tempdir().expect("a temporary directory");
    let (empty, wall, cpu) = timed_start(&Config::new(empty_dir.path()));
    println!("empty: ready after {wall:?}, {cpu:?} of CPU");
    drop(empty);

    send_all(&store, Version::V2, &data);
    let (mut server, config) = (store.server, store.config);
    let _directory = store.directory;
    let mut ends: [fn(Server) -> _; 6] = [Server::terminate; 6];
    ends[3] = Server::kill;
    for end in ends {
        let ending = end(server).expect("it ends");
        let bytes = fs::metadata(path(&config)).map_or(0, |file| file.len());
        let (started, wall, cpu) = timed_start(&config);
        let memory = started.metric("tidepool_head_memory_bytes").expect("the metric");
        println!(
            "{}: took {:?}, left {bytes} bytes; ready after {wall:?}, {cpu:?} of CPU, {memory} bytes",
            ending.status, ending.took
        );
        server = started;
        assert_eq!(was_used(&server), ending.status.success());
        assert!(!path(&config).exists(), "it is of no use any more");
    }
}

/// With every policy, a store that is alternately stopped and killed, and written to in between.
#[test]
fn nothing_is_lost_after_a_start_from_a_snapshot() {
    for policy in [WalSync::Always, WalSync::Interval, WalSync::Off] {
        let mut store = Store::start_with(|c| c.wal_sync(policy)).expect("tidepool starts");
        let data = recent_data(72, 200, 240);
        let requests = data.requests(2_000);
        for (number, rows) in requests.iter().enumerate() {
            let response = store.writer().send(Version::V2, rows).expect("an answer");
            assert_eq!(response.status, 204, "{}", response.text());
            let end = match number % 3 {
                0 => Server::terminate,
                1 => Server::kill,
                _ => continue,
            };
            store = store.restart(end).expect("tidepool starts again");
            assert_eq!(was_used(&store.server), number % 3 == 0, "{policy:?}");
        }
        assert_holds(&store, &data);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_holds(&store, &data);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_holds(&store, &data);
    }
}

/// Blocks are cut and the log is truncated before and after a start from a snapshot.
#[test]
fn blocks_are_cut_after_a_start_from_a_snapshot() {
    let mut store = Store::start_with(|c| c.block_duration("10m")).expect("tidepool starts");
    let data = tidepool_tests::sender::hours_of_data(73);
    let requests = data.requests(2_000);
    for (number, rows) in requests.iter().enumerate() {
        let response = store.writer().send(Version::V2, rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        if number % 8 == 7 {
            store = store.restart(Server::terminate).expect("tidepool starts again");
            assert!(was_used(&store.server));
        }
    }
    assert_holds(&store, &data);
    tidepool_tests::sender::wait_for_blocks(&store, &data, 600_000);
    for end in [Server::terminate, Server::kill] {
        store = store.restart(end).expect("tidepool starts again");
        assert_holds(&store, &data);
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => fs::copy(entry.path(), &target).map(drop).expect("a copy"),
        }
    }
}

#[test]
fn a_damaged_snapshot_costs_only_time() {
    let store = Store::start().expect("tidepool starts");
    let data = recent_data(75, 100, 130);
    send_all(&store, Version::V2, &data);
    let Store { server, config, directory } = store;
    server.terminate().expect("it ends");
    let whole = fs::read(path(&config)).expect("a snapshot");
    let kept = directory.path().join("kept");
    fs::rename(config.data_dir(), &kept).expect("it can be renamed");

    let mut damages: Vec<Vec<u8>> = Vec::new();
    for number in 0..12 {
        let mut bytes = whole.clone();
        bytes[whole.len() * number / 12 + number] ^= 1 << (number % 8);
        damages.push(bytes);
    }
    damages.extend([0, 1, 16, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec()));
    damages.push(vec![0; whole.len()]);
    for (number, damaged) in damages.into_iter().enumerate() {
        copy_dir(&kept, config.data_dir());
        fs::write(path(&config), damaged).expect("it can be written");
        let server = config.start().expect("tidepool starts");
        assert!(!was_used(&server), "damage {number}");
        assert!(server.log().contains("head snapshot cannot be used"), "{}", server.log());
        assert!(!path(&config).exists());
        let store =
            Store { server, config: config.clone(), directory: tempfile::tempdir().expect("") };
        assert_holds(&store, &data);
        drop(store);
        fs::remove_dir_all(config.data_dir()).expect("it can be removed");
    }
    // The copies themselves are no reason to ignore the snapshot.
    copy_dir(&kept, config.data_dir());
    let server = config.start().expect("tidepool starts");
    assert!(was_used(&server));
    assert_holds(&Store { server, config, directory }, &data);
}

/// A tool that writes to the logs makes the snapshot outdated.
#[test]
fn a_snapshot_from_before_a_tool_is_not_used() {
    let store = Store::start().expect("tidepool starts");
    let data = recent_data(76, 60, 200);
    send_all(&store, Version::V2, &data);
    let Store { server, config, directory } = store;
    server.terminate().expect("it ends");
    let data_dir = config.data_dir();
    // These commands only read.
    tsdb(arguments!["list", data_dir]);
    tsdb(arguments!["dump", data_dir]);
    let server = config.start().expect("tidepool starts");
    assert!(was_used(&server));
    server.terminate().expect("it ends");
    assert!(path(&config).exists());
    tsdb(arguments!["compact", "--head", data_dir]);
    let server = config.start().expect("tidepool starts");
    assert!(!was_used(&server));
    assert_holds(&Store { server, config, directory }, &data);
}

#[test]
fn it_can_be_turned_off() {
    let off = |config: Config| config.flag("--head-snapshot=false");
    let store = Store::start_with(off).expect("tidepool starts");
    let data = recent_data(77, 20, 100);
    send_all(&store, Version::V2, &data);
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert!(!was_used(&store.server));
    let Store { server, config, directory } = store;
    server.terminate().expect("it ends");
    assert!(!path(&config).exists());

    // A snapshot written with the flag on is neither used nor kept with the flag off.
    let on = Config::new(directory.path());
    on.start().expect("tidepool starts").terminate().expect("it ends");
    assert!(path(&on).exists());
    let server = config.start().expect("tidepool starts");
    assert!(!was_used(&server) && !path(&config).exists());
    assert_holds(&Store { server, config, directory }, &data);
}
