//! Stores the samples of a rule.
//!
//! ```text
//! floats ─▶ columns, by the numbers of their series ─┐
//! markers ─▶ numbers of series that end              ├─▶ one job of the head
//! histograms ─▶ requests, by labels                  ─┘
//! ```
//!
//! While a plugin sees writes, all samples are sent as requests. Then refused samples are logged,
//! but not returned, because requests do not tell which they were.

use crate::histogram::{SharedHistogram, of_result};
use std::collections::HashMap;
use tidepool_model::STALE_NAN;
use tidepool_plugins::intake::Intake;
use tidepool_protocol::prom::rows::{
    LabelSet as Row, Piece, RequestWriter, RowSink as _, RowValue,
};
use tidepool_rules::engine::{NewSample, NewValue, Refusal};
use tidepool_rules::labels::LabelSet;
use tidepool_runtime::{Columns, Label, RefusalReason, RefusedRow, in_words};
use tidepool_store::{BodyRoom, ScrapeRows, StoreError};

/// Number of unused series that are not worth forgetting.
const KEPT_MIN: usize = 1000;

/// Attempts to store the samples of a rule while series are dropped in between.
const ATTEMPTS: usize = 3;

pub(crate) type Sample = NewSample<SharedHistogram>;

/// What of the samples was refused, with positions.
pub(crate) type Refused = Vec<(usize, Refusal)>;

/// Numbers of the series of a group, which spare a call of the head for each rule.
#[derive(Default)]
pub struct SeriesNumbers {
    /// Start of the head that assigned them.
    generation: u64,
    numbers: HashMap<LabelSet, u64>,
    /// Series that were looked up since the last evaluation began.
    used: usize,
}

impl SeriesNumbers {
    /// Begins an evaluation: forgets all numbers if most of them were not used in the last one.
    pub fn begin(&mut self) {
        if self.numbers.len() > 2 * self.used + KEPT_MIN {
            self.numbers.clear();
        }
        self.used = 0;
    }
}

/// Stores samples. Markers of series that have newer samples are left out.
pub async fn append(
    intake: &Intake,
    known: &mut SeriesNumbers,
    samples: &[Sample],
) -> Result<Refused, StoreError> {
    if samples.is_empty() {
        return Ok(Vec::new());
    }
    if intake.is_watched() {
        return append_requests(intake, samples).await;
    }
    known.used += samples.len();
    for _ in 1..ATTEMPTS {
        match append_at_once(intake, known, samples).await {
            Err(StoreError::SeriesGone) => known.numbers.clear(),
            stored => return stored,
        }
    }
    append_at_once(intake, known, samples).await
}

/// Returns the number of each sample's series, or why there is none.
async fn numbers(
    intake: &Intake,
    known: &mut SeriesNumbers,
    samples: &[Sample],
) -> Result<Vec<Result<u64, String>>, StoreError> {
    let is_new = |sample: &&Sample| !known.numbers.contains_key(&sample.series);
    let new: Vec<&Sample> = samples.iter().filter(is_new).collect();
    let mut refused = HashMap::new();
    if !new.is_empty() {
        let label_sets = new.iter().map(|sample| labels(&sample.series));
        let found = intake.store().series_numbers(label_sets).await?;
        if found.generation != known.generation && !known.numbers.is_empty() {
            return Err(StoreError::SeriesGone);
        }
        known.generation = found.generation;
        for (sample, number) in new.into_iter().zip(found.numbers) {
            match number {
                Ok(number) => drop(known.numbers.insert(sample.series.clone(), number)),
                Err(error) => drop(refused.insert(&sample.series, in_words(&error))),
            }
        }
    }
    let number = |sample: &Sample| match known.numbers.get(&sample.series) {
        Some(number) => Ok(*number),
        None => Err(refused.get(&sample.series).cloned().unwrap_or_default()),
    };
    Ok(samples.iter().map(number).collect())
}

async fn append_requests(intake: &Intake, samples: &[Sample]) -> Result<Refused, StoreError> {
    for Piece { version, body, .. } in pieces(samples, |_| true) {
        let outcome = intake.append(version, body, BodyRoom::none()).await?;
        if let Some(first) = outcome.refusals.first() {
            tracing::warn!(refused = outcome.refused, first = first.detail, "rule samples refused");
        }
    }
    Ok(Vec::new())
}

/// Stores the samples as one job of the head.
async fn append_at_once(
    intake: &Intake,
    known: &mut SeriesNumbers,
    samples: &[Sample],
) -> Result<Refused, StoreError> {
    let Sorted { columns, ended, ended_at_ms, unstored } =
        Sorted::new(samples, numbers(intake, known, samples).await?);
    let rows = ScrapeRows {
        bodies: pieces(samples, is_histogram)
            .into_iter()
            .map(|piece| (piece.version, piece.body.into()))
            .collect(),
        generation: known.generation,
        count: columns.series.len(),
        ended,
        ended_at_ms,
        rows: Box::new(move |range| Columns {
            series: columns.series[range.clone()].to_vec(),
            timestamps_ms: columns.timestamps_ms[range.clone()].to_vec(),
            values: columns.values[range].to_vec(),
        }),
    };
    let (of_bodies, rows) = intake.store().append_scrape(rows).await?;
    let first = of_bodies.refusals.first();
    Ok(unstored.refused(samples, &rows, first.map(|first| first.reason)))
}

pub(crate) fn is_histogram(sample: &Sample) -> bool {
    matches!(sample.value, NewValue::Histogram(_))
}

/// Samples with the numbers of their series, by what is stored in the same way.
pub(crate) struct Sorted {
    pub columns: Columns,
    pub ended: Vec<u64>,
    pub ended_at_ms: i64,
    pub unstored: Unstored,
}

/// What tells which samples were not stored.
#[derive(Default)]
pub(crate) struct Unstored {
    /// Positions of the rows of the columns.
    positions: Vec<usize>,
    /// Samples whose series has no number.
    refused: Refused,
}

impl Sorted {
    pub fn new(
        samples: &[Sample],
        numbers: impl IntoIterator<Item = Result<u64, String>>,
    ) -> Sorted {
        let mut columns =
            Columns { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() };
        let (mut ended, mut ended_at_ms, mut unstored) = (Vec::new(), 0, Unstored::default());
        for (position, (sample, number)) in samples.iter().zip(numbers).enumerate() {
            match (number, &sample.value) {
                (Err(why), _) => unstored.refused.push((position, Refusal::Other(why))),
                (Ok(number), NewValue::Stale) => {
                    ended.push(number);
                    ended_at_ms = sample.time_ms;
                }
                (Ok(number), NewValue::Float(value)) => {
                    unstored.positions.push(position);
                    columns.series.push(number);
                    columns.timestamps_ms.push(sample.time_ms);
                    columns.values.push(*value);
                }
                (Ok(_), NewValue::Histogram(_)) => {}
            }
        }
        Sorted { columns, ended, ended_at_ms, unstored }
    }
}

impl Unstored {
    /// Returns what was refused: rows of the columns, and histograms for a reason. Bodies do not
    /// tell which rows were refused. Those of a rule have one time, so mostly it is all of them.
    pub fn refused(
        self,
        samples: &[Sample],
        rows: &[RefusedRow],
        histograms: Option<RefusalReason>,
    ) -> Refused {
        let mut refused = self.refused;
        let position = |row: &RefusedRow| self.positions.get(row.row as usize).copied();
        refused.extend(rows.iter().filter_map(|row| Some((position(row)?, refusal(row.reason)))));
        if let Some(reason) = histograms {
            let all = samples.iter().enumerate().filter(|(_, sample)| is_histogram(sample));
            refused.extend(all.map(|(position, _)| (position, refusal(reason))));
        }
        refused
    }
}

/// Returns a label set as the store takes it.
pub(crate) fn labels(series: &LabelSet) -> Vec<Label> {
    let label = |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
    series.iter().map(label).collect()
}

/// Encodes samples as write requests.
pub(crate) fn pieces(samples: &[Sample], is_part: impl Fn(&Sample) -> bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut writer = RequestWriter::new(|piece| {
        pieces.push(piece);
        Ok(())
    });
    for sample in samples.iter().filter(|sample| is_part(sample)) {
        let pairs = sample.series.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let labels = Row::of(pairs.collect());
        let (time_ms, histogram);
        let value = match &sample.value {
            NewValue::Float(value) => RowValue::Float(*value),
            NewValue::Stale => RowValue::Float(STALE_NAN),
            NewValue::Histogram(shared) => {
                histogram = of_result(&shared.0, sample.time_ms);
                RowValue::Histogram(&histogram)
            }
        };
        time_ms = sample.time_ms;
        // Writing cannot fail, because the closure only pushes to a vector.
        let _ = writer.row(&labels, time_ms, value, &[]);
    }
    let _ = writer.finish();
    drop(writer);
    pieces
}

fn refusal(reason: RefusalReason) -> Refusal {
    match reason {
        RefusalReason::OutOfOrder => Refusal::OutOfOrder,
        RefusalReason::DuplicateSample => Refusal::Duplicate,
        RefusalReason::TooOld | RefusalReason::TooFarInFuture => Refusal::TooOld,
        RefusalReason::SeriesLimit => Refusal::Other("the store has --max-series series".into()),
        RefusalReason::MemoryLimit => Refusal::Other("the store is short of memory".into()),
        _ => Refusal::Other("the store refused the labels".into()),
    }
}
