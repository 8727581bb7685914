//! The measured servers: how each is started, and how its samples are counted.

use super::BenchError;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::peers::Release;
use tidepool_tests::process::{Launch, Server};
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::Version;
use tidepool_tests::{prometheus, tidepool, victoria_metrics, vmagent, wait};

/// Longest range of one counting request; longer ones would exceed the client's timeout.
const COUNTED_AT_ONCE_MS: i64 = 8 * 3_600_000;
/// Timeout for VictoriaMetrics, which shows accepted samples after a while.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Tidepool,
    /// A Prometheus with its remote-write receiver.
    Prometheus(Release),
    /// VictoriaMetrics as a single process.
    VictoriaMetrics,
    /// VictoriaMetrics' scraper, which stores nothing.
    Vmagent,
}

impl Contender {
    /// Returns the launch of the server with its data in `data` of this directory and these flags.
    pub fn launch(self, directory: &Path, flags: &[String]) -> Result<Launch, BenchError> {
        let mut launch = match self {
            Contender::Tidepool => tidepool::Config::new(directory).launch()?,
            Contender::Prometheus(release) => {
                prometheus::Config::new(release, directory)?.receiver().launch()?
            }
            Contender::VictoriaMetrics => victoria_metrics::launch(directory)?,
            Contender::Vmagent => vmagent::launch(directory)?,
        };
        launch.arguments.extend(flags.iter().map(Into::into));
        Ok(launch)
    }

    /// Returns flags to keep blocks of this number of days, without merging blocks of one day.
    pub fn flags_of_days(self, days: usize) -> Vec<String> {
        let words: &[&str] = match self {
            Contender::Tidepool => &["--max-block-duration=24h", "--retention-time="],
            Contender::Prometheus(_) => &[
                "--storage.tsdb.min-block-duration=2h",
                "--storage.tsdb.max-block-duration=24h",
                "--storage.tsdb.retention.time=",
            ],
            Contender::VictoriaMetrics | Contender::Vmagent => &[],
        };
        let mut flags: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        if let Some(retention) = flags.last_mut() {
            *retention += &format!("{days}d");
        }
        flags
    }

    /// Returns whether the server accepts this version of remote write.
    pub fn takes(self, version: Version) -> bool {
        match self {
            Contender::Prometheus(Release::V2)
            | Contender::VictoriaMetrics
            | Contender::Vmagent => version == Version::V1,
            Contender::Tidepool | Contender::Prometheus(Release::V3) => true,
        }
    }

    /// Returns whether the server answers remote reads and has Prometheus' log and blocks.
    pub fn is_like_prometheus(self) -> bool {
        !matches!(self, Contender::VictoriaMetrics | Contender::Vmagent)
    }

    /// Longest time for which accepted samples stay in memory alone.
    pub fn held_back(self) -> Duration {
        match self {
            // By default VictoriaMetrics writes its memory to disk every 5 s.
            Contender::VictoriaMetrics => Duration::from_secs(6),
            Contender::Tidepool | Contender::Prometheus(_) | Contender::Vmagent => Duration::ZERO,
        }
    }

    /// Returns an error unless the server has this number of samples in a range, both ends
    /// included.
    pub fn check(
        self,
        server: &Server,
        time_range_ms: (i64, i64),
        samples: u64,
    ) -> Result<(), BenchError> {
        let found = match self {
            // Chunks that 2.x still appends to may end in a byte of padding, which the tests'
            // decoder refuses.
            Contender::Prometheus(Release::V2) => return Ok(()),
            // vmagent's samples are counted at its destination.
            Contender::Vmagent => return Ok(()),
            Contender::VictoriaMetrics => {
                let found = wait::until("all samples", VISIBLE_TIMEOUT, || {
                    let found = counted(server, time_range_ms).ok()?;
                    (found == samples).then_some(found)
                });
                found.or_else(|_| counted(server, time_range_ms))?
            }
            Contender::Tidepool | Contender::Prometheus(Release::V3) => {
                streamed(server, time_range_ms)?
            }
        };
        match found == samples {
            true => Ok(()),
            false => Err(BenchError::Incomplete { contender: self, sent: samples, found }),
        }
    }
}

impl std::fmt::Display for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Contender::Tidepool => tidepool::NAME,
            Contender::Prometheus(Release::V2) => prometheus::NAME_V2,
            Contender::Prometheus(Release::V3) => prometheus::NAME_V3,
            Contender::VictoriaMetrics => victoria_metrics::NAME,
            Contender::Vmagent => vmagent::NAME,
        })
    }
}

/// Counts the samples of all series by decoding every chunk.
fn streamed(server: &Server, (start_ms, end_ms): (i64, i64)) -> Result<u64, BenchError> {
    let reader = Reader::new(&server.url());
    let mut found = 0;
    for start_ms in (start_ms..=end_ms).step_by(COUNTED_AT_ONCE_MS as usize) {
        let end_ms = end_ms.min(start_ms + COUNTED_AT_ONCE_MS - 1);
        reader.visit_parts(&[everything(start_ms, end_ms)], |part| {
            // Chunks are returned whole and may reach beyond the range.
            let times = part.samples.iter().map(|sample| sample.timestamp_ms);
            let times = times.chain(part.histograms.iter().map(|point| point.timestamp_ms));
            found += times.filter(|time_ms| (start_ms..=end_ms).contains(time_ms)).count() as u64;
            Ok(())
        })?;
    }
    Ok(found)
}

/// Counts the samples of all series by a query.
fn counted(server: &Server, (start_ms, end_ms): (i64, i64)) -> Result<u64, BenchError> {
    victoria_metrics::flush(server)?;
    let promql = format!("sum(count_over_time({{__name__!=''}}[{}ms]))", end_ms - start_ms + 1);
    let answer = prometheus::query(server, &promql, end_ms)?;
    Ok(answer.values().next().and_then(|value| value.parse().ok()).unwrap_or(0))
}
