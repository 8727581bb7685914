//! `GET` and `POST /api/v1/labels`, `GET /api/v1/label/<name>/values`, `GET` and `POST
//! /api/v1/series`.

use super::envelope::ApiError;
use super::pages::{Page, Progress, Rows, Shape, put_labels, put_text, stream};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use crate::prom::label_name::{decode_path_segment, unescape};
use crate::store::{LookupPart, StoreError};
use crate::wasm::{Label, Lookup};
use std::task::{Poll, ready};
use tokio::sync::mpsc::Receiver;

/// Answers with the names of labels.
pub async fn label_names(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let found = context.store.label_names(lookup(parameters)?).await?;
    Ok(stream(Shape::List, Found(found)).await?)
}

/// Answers with the values of a label.
pub async fn label_values(
    context: &Context,
    path: &str,
    parameters: &Parameters,
) -> Result<Reply, ApiError> {
    let segment = path.strip_prefix("/api/v1/label/").and_then(|rest| rest.strip_suffix("/values"));
    let segment = segment.unwrap_or_default();
    let name = decode_path_segment(segment).map(unescape).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(ApiError::BadData(format!("invalid label name: {segment:?}")));
    };
    let found = context.store.label_values(name, lookup(parameters)?).await?;
    Ok(stream(Shape::List, Found(found)).await?)
}

/// Answers with series.
pub async fn series(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let lookup = Lookup { matcher_sets: parameters.some_matcher_sets()?, ..lookup(parameters)? };
    let found = context.store.series(lookup).await?;
    Ok(stream(Shape::List, Found(found)).await?)
}

fn lookup(parameters: &Parameters) -> Result<Lookup, ApiError> {
    Ok(Lookup {
        limit: parameters.limit()?,
        range: parameters.range()?,
        matcher_sets: parameters.matcher_sets()?,
    })
}

/// What a lookup finds, on its way.
pub struct Found<T>(pub Receiver<Result<LookupPart<T>, StoreError>>);

/// One thing that a lookup finds.
pub trait Row: Send + 'static {
    fn put(&self, bytes: &mut Vec<u8>);
}

impl Row for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(bytes, self);
    }
}

impl Row for Vec<Label> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_labels(bytes, self);
    }
}

impl<T: Row> Rows for Found<T> {
    fn poll_rows(
        &mut self,
        context: &mut std::task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        Poll::Ready(match ready!(self.0.poll_recv(context)) {
            Some(Ok(LookupPart::Page(rows))) => {
                for row in &rows {
                    row.put(page.row());
                }
                Ok(Progress::More)
            }
            Some(Ok(LookupPart::End { is_truncated })) => Ok(Progress::End { is_truncated }),
            Some(Err(error)) => Err(error),
            // The lookup gave up, on a slow client or because the store stops.
            None => Err(StoreError::Stopped),
        })
    }
}
