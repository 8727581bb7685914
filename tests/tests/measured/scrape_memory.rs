//! Memory of scrapes: of one page with very many series, and of what is remembered of series.

use std::fmt::Write as _;
use std::time::Duration;
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const SERIES: usize = 500_000;

/// Pages that have the same series together.
const PARTS: usize = 50;

const TIMEOUT: Duration = Duration::from_secs(300);

/// Series of a part.
const EACH: usize = SERIES / PARTS;

fn lines(parts: usize, scrape: u64) -> String {
    let mut page = String::new();
    for number in 0..parts * EACH {
        let (path, code) = (number % EACH / 5, 200 + number % 5);
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "http_requests_total{{method=\"GET\",handler=\"/api/v1/path/{path:06}\",code=\"{code}\",\
             zone=\"eu-west-{}\",service=\"frontend\"}} {scrape}",
            number / EACH
        );
    }
    page
}

/// All series.
fn whole(scrape: u64) -> String {
    lines(PARTS, scrape)
}

/// As many as one of the targets has that have as many together; their address tells them apart.
fn part(scrape: u64) -> String {
    lines(1, scrape)
}

/// Peak of memory that a server has needed to scrape all series twice.
fn peak_bytes(targets: &[Target], label: &str) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let addresses: Vec<String> =
        targets.iter().map(|target| format!("'{}'", target.address())).collect();
    let text = format!(
        "scrape_configs:\n  - job_name: wide\n    scrape_interval: 10s\n    static_configs:\n      \
         - targets: [{}]\n",
        addresses.join(", ")
    );
    let path = directory.path().join("tidepool.yml");
    std::fs::write(&path, text).expect("a file");
    let store = Store::start_with(|config| {
        config
            .flag(&format!("--config={}", path.display()))
            .flag("--no-host-metrics")
            .flag("--no-own-metrics")
    });
    let store = store.expect("tidepool starts");
    // Each sample, and the five of each report.
    let wanted = (2 * (SERIES + 5 * targets.len())) as f64;
    let stored = || {
        let samples = store.metric("prometheus_tsdb_head_samples_appended_total")?;
        (samples >= wanted).then_some(())
    };
    wait::until("two scrapes of all series", TIMEOUT, stored)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    let usage = store.server.usage().expect("its memory");
    println!(
        "{label}: peak {} MB, anonymous now {} MB, CPU {:?}",
        usage.peak_memory_bytes >> 20,
        usage.anonymous_memory_bytes >> 20,
        usage.cpu
    );
    usage.peak_memory_bytes
}

/// The story of a first scrape that held the labels of all its series at once. What the series need
/// in the store and in what scrapes remember is the same whether one page has them or fifty; what
/// is more must be far less than the page.
#[test]
fn a_page_of_half_a_million_series_is_not_held() {
    let body_bytes = whole(1).len() as u64;
    let parts: Vec<Target> =
        (0..PARTS).map(|_| Target::start_with(part)).collect::<Result<_, _>>().expect("targets");
    let in_parts = peak_bytes(&parts, "fifty pages");
    drop(parts);
    let at_once = peak_bytes(&[Target::start_with(whole).expect("a target")], "one page");
    let more = at_once.saturating_sub(in_parts);
    println!("body {} MB, one page needs {} MB more", body_bytes >> 20, more >> 20);
    assert!(more < body_bytes / 2, "{more} bytes more, of a body of {body_bytes}");
}
