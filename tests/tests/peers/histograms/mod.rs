//! Native histograms of every kind, through whole processes, compared with real Prometheus and
//! promtool: `judged` sends the same to both, `asked` has both answer PromQL, `directories` moves
//! data from one to the other.

mod directories;
mod judged;
mod requested;

use tidepool_tests::peers::Release;
use tidepool_tests::prometheus;

/// Returns a Prometheus that accepts remote writes, including out-of-order samples.
fn receiver(directory: &std::path::Path, name: &str) -> prometheus::Config {
    prometheus::Config::new(Release::V3, &directory.join(name))
        .expect("the directory can be used")
        .receiver()
        .out_of_order_window("2h")
}
