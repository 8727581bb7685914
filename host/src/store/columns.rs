//! Rows by the numbers of their series: for writers inside of the process that store the same
//! series again and again, and need not tell their labels each time.

use super::head::Rows;
use super::{BodyRoom, Store, StoreError};
use crate::wasm::{CallError, Columns, Error, Label, WriteOutcome};

/// Most series whose numbers are asked for in one call, so that writes do not wait for long.
const NUMBERS_PER_CALL: usize = 256;

/// Numbers of series.
#[derive(Debug)]
pub struct SeriesNumbers {
    /// Of which start of the head they are: [`Store::append_columns`] wants it.
    pub generation: u64,
    /// For each label set its number, or why it can have none.
    pub numbers: Vec<Result<u64, Error>>,
}

impl Store {
    /// The numbers of series, which are created if needed. They are valid until the series is
    /// dropped or the head restarts.
    pub async fn series_numbers(
        &self,
        mut label_sets: Vec<Vec<Label>>,
    ) -> Result<SeriesNumbers, StoreError> {
        let mut all: Option<SeriesNumbers> = None;
        while !label_sets.is_empty() {
            let later = label_sets.split_off(label_sets.len().min(NUMBERS_PER_CALL));
            let now = std::mem::replace(&mut label_sets, later);
            let state = self.shared.head.clone();
            let found = self.shared.head.call(move |head| {
                let numbers = now.iter().map(|labels| match head.instance.series_ref(labels) {
                    Ok(number) => Ok(Ok(number)),
                    Err(CallError::Refused(why)) => Ok(Err(why)),
                    Err(error) => Err(error),
                });
                let numbers = numbers.collect::<Result<Vec<_>, CallError>>()?;
                Ok(SeriesNumbers { generation: state.generation(), numbers })
            });
            let found = found.await?;
            match &mut all {
                None => all = Some(found),
                Some(all) if all.generation == found.generation => {
                    all.numbers.extend(found.numbers)
                }
                // The head restarted in between.
                Some(_) => return Err(StoreError::SeriesGone),
            }
        }
        let nothing = SeriesNumbers { generation: self.shared.head.generation(), numbers: vec![] };
        Ok(all.unwrap_or(nothing))
    }

    /// Stores rows of series by their numbers, as [`Store::append`] stores bodies. With
    /// [`StoreError::SeriesGone`] nothing was stored: the numbers have to be asked for again.
    pub async fn append_columns(
        &self,
        generation: u64,
        rows: Columns,
    ) -> Result<WriteOutcome, StoreError> {
        self.append_rows(Rows::Columns { generation, rows }, BodyRoom::none()).await
    }

    /// Marks the end of series by their numbers, unless they have values at that time or later.
    pub async fn end_series(
        &self,
        generation: u64,
        series: Vec<u64>,
        at_ms: i64,
    ) -> Result<WriteOutcome, StoreError> {
        self.append_rows(Rows::Ends { generation, series, at_ms }, BodyRoom::none()).await
    }
}
