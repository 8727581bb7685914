//! A body is parsed as it arrives: the memory of a scrape depends on its series, not on its bytes.

use std::time::Duration;
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const SERIES: usize = 1_000;
/// Number of series that a scraper adds: `up` and four more.
const REPORT_SERIES: usize = 5;
/// Scrapes before the body grows: series are known, and memory no longer grows with them.
const SMALL_SCRAPES: u64 = 3;
const LARGE_SCRAPES: u64 = 2;
const LARGE_BYTES: usize = 128 << 20;
/// Maximum memory for the large bodies: buffers that grow with the speed of the connection.
const MORE_BYTES_MAX: u64 = 4 << 20;
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the same series in each scrape, in later ones after very many comments.
fn page(scrape: u64) -> String {
    let mut page = String::new();
    if scrape > SMALL_SCRAPES {
        let comment = format!("# {}\n", "what nobody reads ".repeat(8));
        page = comment.repeat(LARGE_BYTES / comment.len() + 1);
    }
    for number in 0..SERIES {
        page += &format!("metric_{number}{{shard=\"{}\"}} {scrape}\n", number % 7);
    }
    page
}

#[test]
fn a_large_body_is_not_held() {
    let target = Target::start_with(page).expect("a target");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidepool.yml");
    let text = format!(
        "scrape_configs:\n  - job_name: large\n    scrape_interval: 3s\n    scrape_timeout: 3s\n    \
         body_size_limit: 1GB\n    static_configs: [{{targets: ['{}']}}]\n",
        target.address()
    );
    std::fs::write(&path, text).expect("a file");
    let config = format!("--config={}", path.display());
    let store = Store::start_with(|flags| flags.flag(&config)).expect("tidepool starts");
    let peak_bytes_after = |scrapes: u64| {
        // A scrape that takes too long on a busy machine stores only its report, and is repeated.
        let wanted = (scrapes as usize * (SERIES + REPORT_SERIES)) as f64;
        let stored = || {
            let samples = store.metric("prometheus_tsdb_head_samples_appended_total")?;
            (samples >= wanted).then_some(())
        };
        wait::until("scrapes that are stored", TIMEOUT, stored)
            .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
        store.server.usage().expect("its memory").peak_memory_bytes
    };
    let small = peak_bytes_after(SMALL_SCRAPES);
    let large = peak_bytes_after(SMALL_SCRAPES + LARGE_SCRAPES);
    let more = large.saturating_sub(small);
    println!("peak {} KB, {} KB more with bodies of {LARGE_BYTES}", small >> 10, more >> 10);
    assert!(more < MORE_BYTES_MAX, "{more} bytes more");
}
