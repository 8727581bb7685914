//! `GET` and `POST /api/v1/query_exemplars`: exemplars of the series that the selectors of an
//! expression match.

use super::envelope::ApiError;
use super::pages::{Page, Progress, Rows, Shape, put_labels, stream};
use super::parameters::Parameters;
use super::query::of_query;
use crate::http::context::Context;
use crate::http::reply::Reply;
use std::task::{Poll, ready};
use tidepool_model::number::{push_json, push_seconds};
use tidepool_runtime::{Exemplar, Label, SeriesExemplars};
use tidepool_store::{LookupPart, StoreError};
use tokio::sync::mpsc::Receiver;

pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let range = parameters.range()?;
    if range.end_ms < range.start_ms {
        let why = "end timestamp must not be before start timestamp";
        return Err(ApiError::BadData(why.to_owned()));
    }
    let query = parameters.first("query").to_owned();
    let sets = context.queries.selectors(query).await.map_err(of_query)?;
    let parts = context.store.exemplars(sets, range).await?;
    Ok(stream(Shape::List, ExemplarStream { parts, series: None }).await?)
}

/// Exemplars by series, streamed as they are found.
struct ExemplarStream {
    parts: Receiver<Result<LookupPart<SeriesExemplars>, StoreError>>,
    /// The series whose row is not complete yet.
    series: Option<Vec<Label>>,
}

impl Rows for ExemplarStream {
    fn poll_rows(
        &mut self,
        context: &mut std::task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(LookupPart::Page(series))) => {
                series.into_iter().for_each(|series| self.put(series, page));
                Ok(Progress::More)
            }
            Some(Ok(LookupPart::End { is_truncated, damaged_blocks: warnings })) => {
                if self.series.take().is_some() {
                    end_row(page);
                }
                Ok(Progress::End { is_truncated, warnings })
            }
            Some(Err(error)) => Err(error),
            // The read was ended because the client is slow or the store is stopping.
            None => Err(StoreError::Stopped),
        })
    }
}

impl ExemplarStream {
    /// Writes exemplars of a series, which may continue the row of the previous call.
    fn put(&mut self, found: SeriesExemplars, page: &mut Page) {
        let SeriesExemplars { labels, exemplars } = found;
        // The engine may split the exemplars of a series into several parts.
        let goes_on = self.series.as_ref().is_some_and(|before| is_same(before, &labels));
        if !goes_on {
            if self.series.is_some() {
                end_row(page);
            }
            let row = page.row();
            row.extend_from_slice(b"{\"seriesLabels\":");
            put_labels(row, &labels);
            row.extend_from_slice(b",\"exemplars\":[");
        }
        self.series = Some(labels);
        for (index, exemplar) in exemplars.iter().enumerate() {
            put_exemplar(page.more_of_row(), exemplar, goes_on || index > 0);
        }
    }
}

fn is_same(a: &[Label], b: &[Label]) -> bool {
    let is_pair = |(a, b): (&Label, &Label)| a.name == b.name && a.value == b.value;
    a.len() == b.len() && a.iter().zip(b).all(is_pair)
}

fn end_row(page: &mut Page) {
    page.more_of_row().extend_from_slice(b"]}");
}

fn put_exemplar(bytes: &mut Vec<u8>, exemplar: &Exemplar, is_next: bool) {
    bytes.extend_from_slice(if is_next { b",{\"labels\":" } else { b"{\"labels\":" });
    put_labels(bytes, &exemplar.labels);
    bytes.extend_from_slice(b",\"value\":\"");
    push_json(exemplar.value, bytes);
    bytes.extend_from_slice(b"\",\"timestamp\":");
    push_seconds(exemplar.timestamp_ms, bytes);
    bytes.push(b'}');
}
