//! Exports the interface `inspect`: verification and analysis.

use super::Component;
use super::bindings::exports::tidepool::tsdb::inspect::{
    self, Guest, GuestAnalysis, GuestLogVerification, GuestVerification,
};
use super::bindings::tidepool::tsdb::types as wit;
use super::bindings::tidepool::tsdb::wal;
use super::convert::ranked;
use super::imports::HostBlocks;
use crate::error::Error;
use crate::inspect::{
    Analysis, AnalysisOptions, AnalysisReport, BlockCheck, ChunkFigures, Distribution, Finding,
    LogCheck, LogCounts, Severity, list_blocks,
};
use std::cell::RefCell;
use std::rc::Rc;

impl Guest for Component {
    type Analysis = OpenAnalysis;
    type Verification = Verification;
    type LogVerification = LogVerification;

    fn blocks() -> Result<Vec<inspect::BlockState>, wit::Error> {
        let listed = list_blocks(&HostBlocks).map_err(Error::from)?;
        let state = |block| match block {
            Err(bad) => inspect::BlockState::Damaged(wit::Damage::from(bad)),
            Ok(meta) => inspect::BlockState::Sound(block_info(meta)),
        };
        Ok(listed.into_iter().map(state).collect())
    }

    fn analyze(
        block: String,
        options: inspect::AnalysisOptions,
    ) -> Result<inspect::Analysis, wit::Error> {
        let options = AnalysisOptions {
            matchers: options.matchers.into_iter().map(Into::into).collect(),
            items_max: options.items_max,
            chunks: options.chunks,
        };
        let analysis = Analysis::new(&HostBlocks, &block, &options)?;
        Ok(inspect::Analysis::new(OpenAnalysis(RefCell::new(analysis))))
    }
}

pub struct OpenAnalysis(RefCell<Analysis>);

impl GuestAnalysis for OpenAnalysis {
    fn next(&self) -> Result<inspect::AnalysisStep, wit::Error> {
        let step = self.0.borrow_mut().step()?;
        let report = step.report.map(Into::into);
        Ok(inspect::AnalysisStep { done: step.done, total: step.total, report })
    }
}

impl From<AnalysisReport> for inspect::AnalysisReport {
    fn from(report: AnalysisReport) -> inspect::AnalysisReport {
        inspect::AnalysisReport {
            label_names: report.label_names,
            series: report.series,
            label_pairs: report.label_pairs,
            label_pair_entries: report.label_pair_entries,
            pairs_by_churn: ranked(report.pairs_by_churn),
            names_by_churn: ranked(report.names_by_churn),
            pairs_by_series: ranked(report.pairs_by_series),
            names_by_value_bytes: ranked(report.names_by_value_bytes),
            names_by_values: ranked(report.names_by_values),
            metrics_by_series: ranked(report.metrics_by_series),
            chunks: report.chunks.map(Into::into),
        }
    }
}

impl From<ChunkFigures> for inspect::ChunkFigures {
    fn from(figures: ChunkFigures) -> inspect::ChunkFigures {
        let list = |numbers: Distribution| {
            let occurrence = |(number, times)| inspect::Occurrence { number, times };
            numbers.into_iter().map(occurrence).collect()
        };
        inspect::ChunkFigures {
            float_samples: list(figures.float_samples),
            float_bytes: list(figures.float_bytes),
            histogram_samples: list(figures.histogram_samples),
            histogram_bytes: list(figures.histogram_bytes),
            histogram_buckets: list(figures.histogram_buckets),
        }
    }
}

pub struct Verification(RefCell<BlockCheck>);

impl GuestVerification for Verification {
    fn new(block: String) -> Verification {
        Verification(RefCell::new(BlockCheck::new(Rc::new(HostBlocks), &block)))
    }

    fn next(&self) -> Result<inspect::CheckStep, wit::Error> {
        let step = self.0.borrow_mut().step().map_err(Error::from)?;
        Ok(inspect::CheckStep {
            done: step.done,
            bytes_done: step.bytes_done,
            bytes_total: step.bytes_total,
            findings: step.findings.into_iter().map(Into::into).collect(),
            series: step.found.series,
            chunks: step.found.chunks,
            samples: step.found.samples,
        })
    }
}

pub struct LogVerification(RefCell<LogCheck>);

impl GuestLogVerification for LogVerification {
    fn new(blocks_end_ms: i64) -> LogVerification {
        LogVerification(RefCell::new(LogCheck::new(blocks_end_ms)))
    }

    fn check(&self, log: wal::Log, records: Vec<Vec<u8>>) -> Vec<inspect::RecordFinding> {
        let findings = self.0.borrow_mut().check(log.into(), &records);
        let finding = |finding: crate::inspect::RecordFinding| inspect::RecordFinding {
            severity: finding.severity.into(),
            position: finding.record,
            reason: finding.what,
        };
        findings.into_iter().map(finding).collect()
    }

    fn counts(&self) -> inspect::LogCounts {
        let LogCounts { series, records, samples, lost_samples } = self.0.borrow().counts();
        inspect::LogCounts { series, records, samples, lost_samples }
    }
}

impl From<Finding> for inspect::Finding {
    fn from(finding: Finding) -> inspect::Finding {
        let Finding { severity, file, offset, what } = finding;
        inspect::Finding { severity: severity.into(), file, offset, reason: what }
    }
}

impl From<Severity> for inspect::Severity {
    fn from(severity: Severity) -> inspect::Severity {
        match severity {
            Severity::Error => inspect::Severity::Error,
            Severity::Warning => inspect::Severity::Warning,
        }
    }
}

fn block_info(meta: crate::block::BlockMeta) -> inspect::BlockInfo {
    inspect::BlockInfo {
        id: meta.ulid,
        min_time_ms: meta.min_time_ms,
        max_time_ms: meta.max_time_ms,
        level: meta.compaction.level,
        samples: meta.stats.num_samples,
        series: meta.stats.num_series,
        chunks: meta.stats.num_chunks,
    }
}
