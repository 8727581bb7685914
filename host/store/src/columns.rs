//! Appends by series number, for writers inside of the process that store the same series
//! repeatedly and so need not send the labels each time.

use super::head::{Rows, ScrapeRows, Stored};
use super::{BodyRoom, Store, StoreError};
use tidepool_runtime::{CallError, Error, Label, RefusedRow, WriteOutcome};

/// Maximum number of label sets in one call of the head, which limits how long writes wait.
const NUMBERS_PER_CALL: usize = 256;

#[derive(Debug)]
pub struct SeriesNumbers {
    /// Start of the head by which the numbers are valid: [`ScrapeRows::generation`].
    pub generation: u64,
    /// The number for each label set, or the reason why it has none.
    pub numbers: Vec<Result<u64, Error>>,
}

impl Store {
    /// Returns the numbers of series, creating missing series. A number is valid until its series
    /// is dropped or the head restarts. At most a few hundred label sets are in memory at once.
    pub async fn series_numbers(
        &self,
        label_sets: impl Iterator<Item = Vec<Label>> + Send,
    ) -> Result<SeriesNumbers, StoreError> {
        self.shared.check_replayed()?;
        let mut all: Option<SeriesNumbers> = None;
        let mut label_sets = label_sets.peekable();
        while label_sets.peek().is_some() {
            let now: Vec<Vec<Label>> = label_sets.by_ref().take(NUMBERS_PER_CALL).collect();
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
                // The head restarted between two calls, so the earlier numbers are invalid.
                Some(_) => return Err(StoreError::SeriesGone),
            }
        }
        let nothing = SeriesNumbers { generation: self.shared.head.generation(), numbers: vec![] };
        Ok(all.unwrap_or(nothing))
    }

    /// Stores a scrape. Nothing is read between its parts; other writes may run between them. After
    /// [`StoreError::SeriesGone`] the caller must request the numbers again and store all rows
    /// again. The refused rows are returned separately, not among the refusals of the outcome.
    pub async fn append_scrape(
        &self,
        rows: ScrapeRows,
    ) -> Result<(WriteOutcome, Vec<RefusedRow>), StoreError> {
        let stored = self.append_rows(Rows::Scrape(rows), BodyRoom::none()).await?;
        let Stored { written, refused_rows } = stored;
        Ok((written, refused_rows))
    }
}
