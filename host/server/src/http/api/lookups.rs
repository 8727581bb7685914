//! `GET` and `POST /api/v1/labels`, `GET /api/v1/label/<name>/values`, `GET` and `POST
//! /api/v1/series`.

use super::envelope::ApiError;
use super::pages::{Page, Progress, Rows, Shape, put_labels, put_text, stream};
use super::parameters::Parameters;
use super::window::Window;
use crate::http::context::Context;
use crate::http::reply::Reply;
use std::task::{Poll, ready};
use tidepool_protocol::prom::label_name::{decode_path_segment, unescape};
use tidepool_runtime::{Label, Lookup};
use tidepool_store::{LookupPart, StoreError};
use tokio::sync::mpsc::Receiver;

pub async fn label_names(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let (lookup, window) = strings(parameters)?;
    let found = context.store.label_names(lookup).await?;
    Ok(stream(Shape::List, LookupStream { parts: found, window }).await?)
}

pub async fn label_values(
    context: &Context,
    path: &str,
    parameters: &Parameters,
) -> Result<Reply, ApiError> {
    let segment = path.strip_prefix("/api/v1/label/").and_then(|rest| rest.strip_suffix("/values"));
    let segment = segment.unwrap_or_default();
    // A name in a path may be percent-encoded and, within that, escaped with `U__`.
    let name = decode_path_segment(segment).map(unescape).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(ApiError::BadData(format!("invalid label name: {segment:?}")));
    };
    let (lookup, window) = strings(parameters)?;
    let found = context.store.label_values(name, lookup).await?;
    Ok(stream(Shape::List, LookupStream { parts: found, window }).await?)
}

pub async fn series(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let lookup = Lookup { matcher_sets: parameters.some_matcher_sets()?, ..lookup(parameters)? };
    let found = context.store.series(lookup).await?;
    Ok(stream(Shape::List, LookupStream { parts: found, window: None }).await?)
}

fn lookup(parameters: &Parameters) -> Result<Lookup, ApiError> {
    Ok(Lookup {
        limit: parameters.limit()?,
        range: parameters.range()?,
        matcher_sets: parameters.matcher_sets()?,
    })
}

/// Returns the lookup and the requested window. With a window, the lookup has no limit.
fn strings(parameters: &Parameters) -> Result<(Lookup, Option<Window>), ApiError> {
    let (lookup, window) = (lookup(parameters)?, Window::of(parameters)?);
    let limit = if window.is_some() { 0 } else { lookup.limit };
    Ok((Lookup { limit, ..lookup }, window))
}

/// Rows of a lookup, streamed as they are found.
pub struct LookupStream<T> {
    pub parts: Receiver<Result<LookupPart<T>, StoreError>>,
    /// The part of the rows that was requested; `None` for all rows.
    pub window: Option<Window>,
}

/// An entry of a lookup's result.
pub trait Row: Send + 'static {
    fn put(&self, bytes: &mut Vec<u8>);

    /// Counts the row and returns whether it is in the window. Only names and values use windows.
    fn is_in(&self, _window: &mut Window) -> bool {
        true
    }
}

impl Row for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(bytes, self);
    }

    fn is_in(&self, window: &mut Window) -> bool {
        window.takes(self)
    }
}

impl Row for Vec<Label> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_labels(bytes, self);
    }
}

impl<T: Row> Rows for LookupStream<T> {
    fn poll_rows(
        &mut self,
        context: &mut std::task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(LookupPart::Page(rows))) => {
                for row in &rows {
                    if self.window.as_mut().is_none_or(|window| row.is_in(window)) {
                        row.put(page.row());
                    }
                }
                Ok(Progress::More)
            }
            Some(Ok(LookupPart::End { is_truncated, damaged_blocks: warnings })) => {
                let is_cut_off = self.window.as_ref().is_some_and(Window::is_cut_off);
                Ok(Progress::End { is_truncated: is_truncated || is_cut_off, warnings })
            }
            Some(Err(error)) => Err(error),
            // The lookup was ended because the client is slow or the store is stopping.
            None => Err(StoreError::Stopped),
        })
    }

    fn put_fields(&self, bytes: &mut Vec<u8>) {
        if let Some(window) = &self.window {
            bytes.extend_from_slice(format!(",\"total\":{}", window.total()).as_bytes());
        }
    }
}
