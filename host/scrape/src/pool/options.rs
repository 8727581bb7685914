//! Derives the options of a target's appender from the settings of its job.

use crate::append::{Mutator, Options, Rules};
use crate::histogram::schema_of_factor;
use crate::job::Job;
use crate::target::Target;

/// Returns the options of a target; `rules` relabel its series.
pub(crate) fn options(job: &Job, target: &Target, rules: Rules) -> Options {
    Options {
        mutator: Mutator {
            target: target.public_labels(),
            honor_labels: job.honor_labels,
            rules,
            validation: job.validation,
            limits: job.limits.labels,
        },
        honor_timestamps: job.honor_timestamps,
        track_timestamps_staleness: job.track_timestamps_staleness,
        sample_limit: job.limits.samples,
        bucket_limit: job.limits.buckets,
        schema_max: schema_of_factor(job.bucket_factor_min),
        extra_metrics: job.extra_metrics,
    }
}
