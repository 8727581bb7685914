//! Reasons why a scrape failed. The API returns the texts as a target's last error.

use crate::content_type::ContentTypeError;
use crate::store::{Refused, StoreError};
use std::time::Duration;

/// Reasons why a scrape failed: none of its samples are stored, and `up` is 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeError {
    /// No response: no connection, a broken connection, or a redirect that is not followed.
    #[error("{0}")]
    Request(String),
    /// The response was not complete in time.
    #[error("the scrape was not complete within its timeout of {}", shown(.0))]
    Timeout(Duration),
    /// The status of the response is not 200.
    #[error("server returned HTTP status {0}")]
    Status(String),
    /// The content type names no known format.
    #[error(transparent)]
    ContentType(#[from] ContentTypeError),
    /// The body has a content encoding that was not requested.
    #[error("the body has the content encoding {0:?}, which was not asked for")]
    Encoding(String),
    #[error("the body is not valid gzip: {0}")]
    Gzip(String),
    #[error("body size limit exceeded (body_size_limit: {limit_bytes} bytes)")]
    BodySize {
        /// Limit of the job, or the default of all jobs.
        limit_bytes: u64,
    },
    /// The body is not in the format of its content type.
    #[error("{0}")]
    Parse(String),
    #[error("missing metric name (__name__ label)")]
    NoMetricName,
    #[error("invalid metric name or label names: {0}")]
    InvalidNames(String),
    #[error("label name {name:?} is not unique in a series of the metric {metric:?}")]
    RepeatedLabel {
        name: String,
        /// The beginning of the metric's name.
        metric: String,
    },
    /// A native histogram is invalid: its count differs from that of its buckets, or its schema
    /// does not exist.
    #[error("the native histogram {series} is not valid: {why}")]
    Histogram {
        /// The series in the text that the target exposes.
        series: String,
        why: String,
    },
    #[error("label_limit exceeded (metric: {metric}, number of labels: {labels}, limit: {limit})")]
    LabelLimit {
        /// The beginning of the metric's name.
        metric: String,
        /// Number of labels of the series.
        labels: usize,
        limit: u64,
    },
    #[error(
        "label_name_length_limit exceeded (metric: {metric}, label name: {name}, length: {bytes}, limit: {limit})"
    )]
    LabelNameLimit {
        /// The beginning of the metric's name.
        metric: String,
        /// The beginning of the label's name.
        name: String,
        /// Length of the name in bytes.
        bytes: usize,
        limit: u64,
    },
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
        /// Length of the value in bytes.
        bytes: usize,
        limit: u64,
    },
    #[error("sample limit exceeded (sample_limit: {limit})")]
    SampleLimit {
        /// Value of `sample_limit` of the job.
        limit: u64,
    },
    #[error("histogram bucket limit exceeded (native_histogram_bucket_limit: {limit})")]
    BucketLimit {
        /// Value of `native_histogram_bucket_limit` of the job.
        limit: u64,
    },
    #[error("target_limit exceeded (number of targets: {targets}, limit: {limit})")]
    TargetLimit {
        /// Number of targets of the job.
        targets: usize,
        limit: u64,
    },
    /// The memory bound of all targets refused the scrape.
    #[error(
        "no memory left for scrapes: this target would take {bytes} bytes, and all may take {limit_bytes} (--memory-limit)"
    )]
    Memory {
        /// Bytes that the target would need.
        bytes: u64,
        /// Maximum bytes of all targets together.
        limit_bytes: u64,
    },
    /// The target cannot be scraped with its settings.
    #[error("{0}")]
    Settings(String),
    /// The scrape succeeded, but the store refused some of its samples.
    #[error(
        "the store refused {} of the scrape's samples: {refused}{}",
        .refused.total(),
        .first.as_ref().map(|first| format!(" ({first})")).unwrap_or_default()
    )]
    Refused {
        refused: Refused,
        /// The store's first explanation of a refusal, if it has any.
        first: Option<String>,
    },
    /// The scrape succeeded, but the store stored none of it.
    #[error("nothing of the scrape is stored: {0}")]
    Unstored(StoreError),
}

impl ScrapeError {
    /// Returns whether the scrape failed before the whole body had arrived.
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

/// Maximum length in bytes of a target's text in a message, which appears in the log and in the
/// list of targets.
const SHOWN_BYTES_MAX: usize = 500;

/// Returns the beginning of a target's text, for a message.
pub fn beginning(text: &str) -> String {
    // Cuts at a character boundary, because cutting within a character panics.
    match text.len() > SHOWN_BYTES_MAX {
        true => format!("{} …", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]),
        false => text.to_owned(),
    }
}

/// Makes the error for a fault in an exposition.
pub(crate) fn parse_error(error: impl std::fmt::Display) -> ScrapeError {
    ScrapeError::Parse(beginning(&error.to_string()))
}

fn shown(duration: &Duration) -> String {
    tidepool_settings::duration::duration_text(*duration)
}
