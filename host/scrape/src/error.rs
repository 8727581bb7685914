//! Why a scrape failed. The API returns the texts as a target's last error.

use crate::content_type::ContentTypeError;
use crate::store::{Refused, StoreError};
use std::time::Duration;

/// Why a scrape failed: nothing of it is stored, and the target is down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeError {
    /// No answer: no connection, a broken one, a redirect that is not followed.
    #[error("{0}")]
    Request(String),
    /// The answer was not complete in time.
    #[error("the scrape was not complete within its timeout of {}", shown(.0))]
    Timeout(Duration),
    /// An answer, but not of success.
    #[error("server returned HTTP status {0}")]
    Status(String),
    /// The content type says no format that is known.
    #[error(transparent)]
    ContentType(#[from] ContentTypeError),
    /// The body is compressed in a way that was not asked for.
    #[error("the body has the content encoding {0:?}, which was not asked for")]
    Encoding(String),
    /// The body is not valid gzip.
    #[error("the body is not valid gzip: {0}")]
    Gzip(String),
    /// `body_size_limit` is exceeded.
    #[error("body size limit exceeded (body_size_limit: {limit_bytes} bytes)")]
    BodySize {
        /// The limit.
        limit_bytes: u64,
    },
    /// The body is not in the format of its content type.
    #[error("{0}")]
    Parse(String),
    /// A series has no metric name.
    #[error("missing metric name (__name__ label)")]
    NoMetricName,
    /// A name is not valid.
    #[error("invalid metric name or label names: {0}")]
    InvalidNames(String),
    /// A series has a label twice.
    #[error("label name {name:?} is not unique in a series of the metric {metric:?}")]
    RepeatedLabel {
        /// The label.
        name: String,
        /// The metric.
        metric: String,
    },
    /// A native histogram says nothing that can be stored: its buckets and its count do not belong
    /// together, or there is no such schema.
    #[error("the native histogram {series} is not valid: {why}")]
    Histogram {
        /// The series, as the target exposes it.
        series: String,
        /// What is wrong.
        why: String,
    },
    /// `label_limit` is exceeded.
    #[error("label_limit exceeded (metric: {metric}, number of labels: {labels}, limit: {limit})")]
    LabelLimit {
        /// The beginning of the metric's name.
        metric: String,
        /// Labels of the series.
        labels: usize,
        /// The limit.
        limit: u64,
    },
    /// `label_name_length_limit` is exceeded.
    #[error(
        "label_name_length_limit exceeded (metric: {metric}, label name: {name}, length: {bytes}, limit: {limit})"
    )]
    LabelNameLimit {
        /// The beginning of the metric's name.
        metric: String,
        /// The beginning of the label's name.
        name: String,
        /// Its length in bytes.
        bytes: usize,
        /// The limit.
        limit: u64,
    },
    /// `label_value_length_limit` is exceeded.
    #[error(
        "label_value_length_limit exceeded (metric: {metric}, label name: {name}, value: {value:?}, length: {bytes}, limit: {limit})"
    )]
    LabelValueLimit {
        /// The beginning of the metric's name.
        metric: String,
        /// The beginning of the label's name.
        name: String,
        /// The beginning of the value.
        value: String,
        /// Its length in bytes.
        bytes: usize,
        /// The limit.
        limit: u64,
    },
    /// `sample_limit` is exceeded.
    #[error("sample limit exceeded (sample_limit: {limit})")]
    SampleLimit {
        /// The limit.
        limit: u64,
    },
    /// `native_histogram_bucket_limit` is exceeded.
    #[error("histogram bucket limit exceeded (native_histogram_bucket_limit: {limit})")]
    BucketLimit {
        /// The limit.
        limit: u64,
    },
    /// `target_limit` is exceeded.
    #[error("target_limit exceeded (number of targets: {targets}, limit: {limit})")]
    TargetLimit {
        /// Targets of the job.
        targets: usize,
        /// The limit.
        limit: u64,
    },
    /// There is no room for what the scrape would hold.
    #[error(
        "no memory left for scrapes: this target would take {bytes} bytes, and all may take {limit_bytes} (--memory-limit)"
    )]
    Memory {
        /// What the target would hold.
        bytes: u64,
        /// What all may hold.
        limit_bytes: u64,
    },
    /// The target cannot be scraped with its settings.
    #[error("{0}")]
    Settings(String),
    /// The scrape was good, and the store refused some of its samples.
    #[error(
        "the store refused {} of the scrape's samples: {refused}{}",
        .refused.total(),
        .first.as_ref().map(|first| format!(" ({first})")).unwrap_or_default()
    )]
    Refused {
        /// How many.
        refused: Refused,
        /// What the store says of the first of them for which it says something.
        first: Option<String>,
    },
    /// The scrape was good, and none of it is stored.
    #[error("nothing of the scrape is stored: {0}")]
    Unstored(StoreError),
}

impl ScrapeError {
    /// Whether the body had not come as a whole when the scrape failed.
    pub fn is_without_body(&self) -> bool {
        use ScrapeError::{
            BodySize, Encoding, Gzip, Memory, Request, Settings, Status, TargetLimit, Timeout,
        };
        matches!(
            self,
            BodySize { .. }
                | Encoding(_)
                | Gzip(_)
                | Memory { .. }
                | Request(_)
                | Settings(_)
                | Status(_)
                | TargetLimit { .. }
                | Timeout(_)
        )
    }
}

/// Most bytes of a text of a target in a message, and so in the log and in the list of targets.
const SHOWN_BYTES_MAX: usize = 500;

/// The beginning of what a target says.
pub fn beginning(text: &str) -> String {
    match text.len() > SHOWN_BYTES_MAX {
        true => format!("{} …", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]),
        false => text.to_owned(),
    }
}

/// An error in what a target exposes.
pub(crate) fn parse_error(error: impl std::fmt::Display) -> ScrapeError {
    ScrapeError::Parse(beginning(&error.to_string()))
}

fn shown(duration: &Duration) -> String {
    tidepool_settings::duration::duration_text(*duration)
}
