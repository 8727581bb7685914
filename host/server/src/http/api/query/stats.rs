//! Cost of a query for the parameter `stats`. Source: `util/stats` in prometheus/prometheus.

use serde_json::json;
use std::time::{Duration, Instant};
use tidepool_model::number::push_seconds;
use tidepool_protocol::prom::query::QueryStats;
use tidepool_query::{QueryEnd, QueryTimings};
use tidepool_runtime::QueryTimes;

/// Values of `stats` that upstream documents. Other values act like `true` and add a warning.
const TRUE: &str = "true";
const ALL: &str = "all";

/// Cost of a query. Times count from the request.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    times: QueryTimes,
    begun: Instant,
}

impl Stats {
    /// Starts the measurement of a query.
    pub fn new(times: QueryTimes) -> Stats {
        Stats { times, begun: Instant::now() }
    }

    /// Writes the cost as a further field of `data`.
    pub fn put_json(&self, bytes: &mut Vec<u8>, end: &QueryEnd) {
        let QueryEnd { stats, timings, .. } = end;
        let QueryTimings { queue, preparation, evaluation } = *timings;
        let timings = json!({
            "evalTotalTime": (preparation + evaluation).as_secs_f64(),
            // Zero, because series are sorted during the evaluation.
            "resultSortTime": 0,
            "queryPreparationTime": preparation.as_secs_f64(),
            "innerEvalTime": evaluation.as_secs_f64(),
            "execQueueTime": queue.as_secs_f64(),
            "execTotalTime": self.total().as_secs_f64(),
        });
        let text = format!(",\"stats\":{{\"timings\":{timings},\"samples\":{{");
        bytes.extend_from_slice(text.as_bytes());
        if !end.samples_per_step.is_empty() {
            bytes.extend_from_slice(b"\"totalQueryableSamplesPerStep\":");
            self.put_steps(bytes, &end.samples_per_step);
            bytes.push(b',');
        }
        let samples = format!(
            "\"totalQueryableSamples\":{},\"samplesRead\":{},\"peakSamples\":{}}}}}",
            stats.samples, stats.samples_read, stats.samples_peak
        );
        bytes.extend_from_slice(samples.as_bytes());
    }

    /// Converts the cost to a protobuf message.
    pub fn message(&self, end: &QueryEnd) -> QueryStats {
        let QueryTimings { queue, preparation, evaluation } = end.timings;
        QueryStats {
            exec_queue_time: queue.as_secs_f64(),
            query_preparation_time: preparation.as_secs_f64(),
            inner_eval_time: evaluation.as_secs_f64(),
            eval_total_time: (preparation + evaluation).as_secs_f64(),
            exec_total_time: self.total().as_secs_f64(),
            total_queryable_samples: end.stats.samples,
            samples_read: end.stats.samples_read,
            peak_samples: end.stats.samples_peak,
            total_queryable_samples_per_step: end.samples_per_step.clone(),
        }
    }

    fn total(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Writes an array of pairs: the time of a step, and its count.
    fn put_steps(&self, bytes: &mut Vec<u8>, counts: &[u64]) {
        let (start_ms, step_ms) = match self.times {
            QueryTimes::Instant(time_ms) => (time_ms, 0),
            QueryTimes::Range { start_ms, step_ms, .. } => (start_ms, step_ms),
        };
        bytes.push(b'[');
        for (step, count) in (0..).zip(counts) {
            bytes.extend_from_slice(if step == 0 { b"[" } else { b",[" });
            push_seconds(start_ms.saturating_add(step_ms.saturating_mul(step)), bytes);
            bytes.extend_from_slice(format!(",{count}]").as_bytes());
        }
        bytes.push(b']');
    }
}

/// Returns whether samples are counted per step.
pub fn is_per_step(value: &str) -> bool {
    value == ALL
}

/// Returns a warning about an undocumented value, with upstream's text.
pub fn warning(value: &str) -> Option<String> {
    match value {
        "" | TRUE | ALL => None,
        other => Some(format!(
            "value {other:?} for parameter \"stats\" is deprecated and will be rejected in the next \
             major release, use \"{TRUE}\" or \"{ALL}\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn end(samples_per_step: Vec<u64>) -> QueryEnd {
        let stats = tidepool_runtime::QueryStats {
            samples: 7,
            samples_read: 6,
            samples_peak: 5,
            memory_peak_bytes: 4,
            series: 3,
        };
        let timings = QueryTimings {
            queue: Duration::from_millis(250),
            preparation: Duration::from_millis(500),
            evaluation: Duration::from_secs(1),
        };
        QueryEnd { annotations: Vec::new(), stats, samples_per_step, timings }
    }

    fn written(times: QueryTimes, end: &QueryEnd) -> Result<Value, serde_json::Error> {
        let mut bytes = b"{\"a\":0".to_vec();
        Stats::new(times).put_json(&mut bytes, end);
        bytes.push(b'}');
        serde_json::from_slice(&bytes)
    }

    #[test]
    fn steps_have_their_times() -> Result<(), serde_json::Error> {
        let times = QueryTimes::Range { start_ms: 1_000, end_ms: 2_500, step_ms: 500 };
        let stats = &written(times, &end(vec![1, 2, 3, 1]))?["stats"];
        let steps = json!([[1, 1], [1.5, 2], [2, 3], [2.5, 1]]);
        assert_eq!(stats["samples"]["totalQueryableSamplesPerStep"], steps);
        assert_eq!(stats["samples"]["totalQueryableSamples"], 7);
        assert_eq!(stats["timings"]["evalTotalTime"], 1.5);
        assert_eq!(stats["timings"]["execQueueTime"], 0.25);
        let stats = &written(QueryTimes::Instant(0), &end(Vec::new()))?["stats"];
        assert_eq!(stats["samples"].get("totalQueryableSamplesPerStep"), None);
        assert_eq!(stats["samples"]["samplesRead"], 6);
        Ok(())
    }

    #[test]
    fn other_values_deserve_a_warning() {
        assert_eq!((warning(""), warning("true"), warning("all")), (None, None, None));
        assert!(warning("1").is_some_and(|text| text.starts_with("value \"1\" for parameter")));
        assert!(is_per_step("all") && !is_per_step("true"));
    }
}
