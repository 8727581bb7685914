//! Flags that limit the number of series and exemplars, and the size of label sets.

use clap::Args;
use tidepool_runtime::LabelLimits;
use tidepool_settings::duration::bytes;
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits on series")]
pub struct SeriesFlags {
    /// Maximum number of series in the head, 0 for no limit
    ///
    /// New series beyond the limit are refused with 429. Those by which scrapes report themselves,
    /// such as up, may exceed it by an eighth, and by 64 at least.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub max_series: u64,

    /// Maximum number of exemplars in memory, 0 to reject exemplars
    ///
    /// The oldest exemplars are dropped first.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub max_exemplars: u64,

    /// Maximum number of labels of a series, 0 for no limit
    ///
    /// A new series over this limit, or over one of the next two, is rejected. The rest of the
    /// request is stored.
    #[arg(long, value_name = "COUNT", default_value_t = 128)]
    max_label_names_per_series: u32,

    /// Maximum length of a label name, 0 for no limit
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = bytes)]
    max_label_name_length: u64,

    /// Maximum length of a label value, 0 for no limit
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = bytes)]
    max_label_value_length: u64,
}

impl SeriesFlags {
    pub const MARKS: Marks = Marks { short: &["max-series"], ..Marks::NONE };

    /// Returns the limits on the label sets of new series.
    pub fn label_limits(&self) -> LabelLimits {
        // A limit that exceeds 32 bits has no effect anyway.
        let limit = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        LabelLimits {
            labels_max: self.max_label_names_per_series,
            name_bytes_max: limit(self.max_label_name_length),
            value_bytes_max: limit(self.max_label_value_length),
        }
    }
}
