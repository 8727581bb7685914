//! Metrics about the process, its disk and its answered requests, compared with the system's own.

use std::fs;
use std::time::Duration;
use tidepool_tests::clock;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, exchange, request_bytes};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn the_process_is_shown_as_client_libraries_show_it() {
    let store = Store::start().expect("tidepool starts");
    let figure = |name: &str| store.metric(name).unwrap_or_else(|| panic!("{name} is missing"));
    let proc = format!("/proc/{}", store.server.process_id());
    let started = figure("process_start_time_seconds");
    let now = clock::system_ms() as f64 / 1000.0;
    assert!(started <= now + 2.0 && started > now - 600.0, "{started} is not before {now}");
    // Connections come and go.
    let files = fs::read_dir(format!("{proc}/fd")).expect("its files").count() as f64;
    assert!((figure("process_open_fds") - files).abs() <= 4.0, "{files}");
    let limits = fs::read_to_string(format!("{proc}/limits")).expect("its limits");
    let files_max = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files_max = files_max.and_then(|line| line.split_whitespace().next());
    let files_max = files_max.and_then(|text| text.parse::<f64>().ok());
    assert_eq!(Some(figure("process_max_fds")), files_max.or(Some(u64::MAX as f64)));
    let resident = figure("process_resident_memory_bytes");
    assert!(figure("process_virtual_memory_bytes") > resident && resident > 1e6);
    assert!(figure("process_virtual_memory_max_bytes") > resident);
    let before = cpu_seconds(&proc);
    let cpu = figure("process_cpu_seconds_total");
    let after = cpu_seconds(&proc);
    // The system counts in ticks of a hundredth of a second, user and system time apart.
    assert!(cpu > 0.0 && before - 0.02 <= cpu && cpu <= after + 0.02, "{before} {cpu} {after}");
    for name in ["process_network_receive_bytes_total", "process_network_transmit_bytes_total"] {
        assert!(figure(name) > 0.0, "{name}");
    }
}

/// Returns the CPU time of a process by its directory in `/proc`.
fn cpu_seconds(proc: &str) -> f64 {
    let stat = fs::read_to_string(format!("{proc}/stat")).expect("its figures");
    // The name, which is the second field, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn the_disk_and_the_data_directory_are_shown() {
    let store = Store::start().expect("tidepool starts");
    let figure = |name: &str| store.metric(name).unwrap_or_else(|| panic!("{name} is missing"));
    let disk = rustix::fs::statvfs(store.config.data_dir()).expect("a file system");
    assert_eq!(figure("tidepool_disk_size_bytes"), (disk.f_blocks * disk.f_frsize) as f64);
    assert!(figure("tidepool_disk_free_bytes") <= figure("tidepool_disk_size_bytes"));
    let before = figure("tidepool_data_directory_bytes");
    let series = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204);
    assert!(figure("tidepool_data_directory_bytes") > before);
}

/// Whatever the requests, there are only as many histograms as endpoints and statuses.
#[test]
fn requests_are_measured_by_handler_and_status() {
    let store = Store::start().expect("tidepool starts");
    let client = Client::default();
    let get = |path: &str| client.get(&(store.server.url() + path)).expect("an answer").status;
    let series = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204);
    for number in 0..50 {
        assert_eq!(get(&format!("/nowhere/{number}")), 404);
        assert_eq!(get(&format!("/api/v1/label/l{number}/values")), 200);
    }
    assert_eq!(get("/api/v1/write"), 405);
    let name = "prometheus_http_request_duration_seconds";
    let of = |part: &str, labels: &str| store.metric(&format!("{name}_{part}{{{labels}}}"));
    let write = "handler=\"/api/v1/write\",code=\"204\"";
    let wrong = "handler=\"/api/v1/write\",code=\"405\"";
    let values = "handler=\"/api/v1/label/:name/values\",code=\"200\"";
    // An answer is counted once it is sent, which its client may see slightly earlier.
    let other = "handler=\"other\",code=\"404\"";
    for (labels, count) in [(write, 1.0), (wrong, 1.0), (values, 50.0), (other, 50.0)] {
        let is_counted = || (of("count", labels) == Some(count)).then_some(());
        wait::until(labels, TIMEOUT, is_counted).expect("it is counted");
    }
    assert_eq!(of("bucket", &format!("{write},le=\"+Inf\"")), Some(1.0));
    let seconds = of("sum", write).expect("a sum");
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
    let page = client.get(&(store.server.url() + "/metrics")).expect("an answer").text();
    let histograms = page.lines().filter(|line| line.starts_with(&format!("{name}_count{{")));
    assert!(histograms.count() < 10, "{page}");
}

/// A query has a size limit of its own; the refusal of a longer one names it.
#[test]
fn questions_that_are_too_long_are_told_by_which_bound() {
    let refusal = |flag: &str, path: &str, bytes: usize| {
        let store = Store::start_with(|config| config.flag(flag)).expect("tidepool starts");
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let message = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
        let headers = if path == "/api/v1/series" { &form[..] } else { &message[..] };
        let request = request_bytes("POST", path, headers, bytes, &vec![b'x'; bytes]);
        let response = exchange(store.server.address(), request, TIMEOUT).expect("an answer");
        assert_eq!(response.status, 413, "{}", response.text());
        response.text()
    };
    for path in ["/api/v1/series", "/api/v1/read"] {
        let told = refusal("--max-request-size=4MiB", path, (1 << 20) + 1);
        assert!(told.contains("1048576") && told.contains("fixed"), "{told}");
        assert!(!told.contains("--max-request-size"), "{told}");
        let told = refusal("--max-request-size=64KiB", path, (64 << 10) + 1);
        assert!(told.contains("65536") && told.contains("--max-request-size"), "{told}");
    }
    let told = refusal("--max-request-size=4MiB", "/api/v1/write", (4 << 20) + 1);
    assert!(told.contains("4194304") && told.contains("--max-request-size"), "{told}");
}
