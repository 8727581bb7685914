//! A day of scraping in which most targets are replaced every two hours: the memory of the scraper,
//! its caches and the head depends on the current targets, not on earlier ones.
//!
//! The day is one of data: the program's clock advances by five minutes whenever all targets were
//! scraped.

use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock;
use tidepool_tests::fake_clock::FakeClock;
use tidepool_tests::process::Server;
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Config;
use tidepool_tests::wait;

const TARGETS: usize = 40;
const SERIES_PER_TARGET: usize = 50;
/// Number of series that a scraper adds: `up` and four more.
const REPORT_SERIES: usize = 5;
/// Number of new targets among ten in each generation.
const REPLACED_OF_TEN: usize = 6;
const GENERATIONS: usize = 12;
const GENERATION_MS: i64 = 2 * HOUR_MS;
const STEP_MS: i64 = 5 * 60_000;
const HOUR_MS: i64 = 3_600_000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Memory of an idle node, and maximum additional memory for each series in its head: chunks,
/// labels, indexes and the scraper's cache of its text.
const IDLE_BYTES: f64 = 8e6;
const BYTES_PER_SERIES_MAX: f64 = 2_560.0;
/// Largest ratio of the second half of the day to the first: the allocator keeps some.
const GROWTH_MAX: f64 = 1.25;

fn page(scrape: u64) -> String {
    (0..SERIES_PER_TARGET)
        .map(|number| format!("metric_{number}{{shard=\"{}\"}} {scrape}\n", number % 7))
        .collect()
}

/// Writes the list of targets to its file.
fn list(directory: &Path, target: &Target, generation: usize) {
    let one = |number: usize| {
        let generation = if number % 10 < REPLACED_OF_TEN { generation } else { 0 };
        format!(
            "{{\"targets\": [\"{}\"], \"labels\": {{\"pod\": \"pod-{number}-{generation}\"}}}}",
            target.address()
        )
    };
    let all: Vec<String> = (0..TARGETS).map(one).collect();
    let new = directory.join("new");
    fs::write(&new, format!("[{}]", all.join(", "))).expect("a file");
    fs::rename(new, directory.join("targets.json")).expect("a file");
}

#[track_caller]
fn wait_for(server: &Server, what: &str, name: &str, reached: impl Fn(f64) -> bool) {
    let look = || server.metric(name).filter(|value| reached(*value));
    wait::until(what, TIMEOUT, look).unwrap_or_else(|error| {
        panic!("{error}: {name} is {:?}; the log says:\n{}", server.metric(name), server.log())
    });
}

#[test]
fn a_day_of_scraping_changing_targets_leaves_no_trace_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(page).expect("a target");
    list(directory.path(), &target, 0);
    let path = directory.path().join("tidepool.yml");
    let text = format!(
        "scrape_configs:\n  - job_name: churn\n    scrape_interval: 200ms\n    \
         scrape_timeout: 200ms\n    file_sd_configs: [{{files: ['{}'], refresh_interval: 1s}}]\n",
        directory.path().join("targets.json").display()
    );
    fs::write(&path, text).expect("a file");
    let mut now_ms = clock::now_ms();
    let clock = FakeClock::new(directory.path(), now_ms).expect("a clock");
    let config = Config::new(directory.path()).started_by(clock.starter().expect("libfaketime"));
    let server = config.flag(&format!("--config={}", path.display())).start();
    let server = server.unwrap_or_else(|error| panic!("{}", wait::chain(&error)));

    let of_target = SERIES_PER_TARGET + REPORT_SERIES;
    let replaced = TARGETS * REPLACED_OF_TEN / 10 * of_target;
    let living = TARGETS * of_target - replaced;
    let (mut series_most, mut memory_bytes) = (0.0f64, Vec::new());
    for generation in 0..GENERATIONS {
        list(directory.path(), &target, generation);
        let created = living + (generation + 1) * replaced;
        let name = "prometheus_tsdb_head_series_created_total";
        wait_for(&server, "all series of the generation", name, |value| value >= created as f64);
        for _ in 0..GENERATION_MS / STEP_MS {
            now_ms += STEP_MS;
            clock.set(now_ms).expect("a clock");
            let name = "prometheus_tsdb_head_max_time_seconds";
            wait_for(&server, "a scrape", name, |seconds| seconds * 1e3 >= now_ms as f64);
        }
        // Data comes a thousand times as fast as on a node; cuts must keep up.
        let name = "prometheus_tsdb_head_min_time_seconds";
        wait_for(&server, "the cut", name, |oldest_s| {
            now_ms as f64 - oldest_s * 1e3 <= 3.5 * HOUR_MS as f64
        });
        let series = server.metric("prometheus_tsdb_head_series").expect("the metric");
        series_most = series_most.max(series);
        // A merge may be running, which frees its memory at its end.
        let most_bytes = match memory_bytes.get(..GENERATIONS / 2) {
            Some(first) => first.iter().copied().fold(0.0, f64::max) * GROWTH_MAX,
            None => f64::INFINITY,
        };
        let mut least_bytes = f64::INFINITY;
        let look = || {
            least_bytes =
                server.anonymous_memory().map_or(least_bytes, |b| least_bytes.min(b as f64));
            (least_bytes <= most_bytes).then_some(())
        };
        // The lowest value is judged below.
        let _ = wait::until("the end of a merge", TIMEOUT, look);
        memory_bytes.push(least_bytes);
    }
    println!("{series_most} series at most, memory {memory_bytes:?}");
    // Three and a half hours touch three generations, and one more is just beginning.
    assert!(series_most <= (living + 4 * replaced) as f64, "{series_most} series at a time");
    let bound = IDLE_BYTES + BYTES_PER_SERIES_MAX * series_most;
    assert!(memory_bytes.iter().all(|bytes| *bytes <= bound), "{bound}: {memory_bytes:?}");
    let most = |half: &[f64]| half.iter().copied().fold(0.0, f64::max);
    let (first, second) = memory_bytes.split_at(GENERATIONS / 2);
    assert!(most(second) <= most(first) * GROWTH_MAX, "{memory_bytes:?}");
}
