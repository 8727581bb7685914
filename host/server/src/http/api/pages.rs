//! Long responses, sent page by page as results arrive.
//!
//! Memory use does not grow with the response. An error before the second page is sent as an error
//! response. A later error resets the connection, since half a response must not look complete.

use super::envelope::TRUNCATED;
use crate::http::reply::{Reply, full};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tidepool_runtime::Label;
use tidepool_store::StoreError;

/// Minimum size of a page in bytes, except for the last.
pub const PAGE_BYTES: usize = 64 * 1024;

/// Content type of all JSON responses.
pub const CONTENT_TYPE_JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Form of `data` in a response.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An array with one value per row.
    List,
    /// An object with a name and a value per row.
    Map,
    /// An object that the rows write themselves, including its end and further fields.
    Fields,
    /// Bytes of this content type instead of JSON, written by the rows.
    Message(&'static str),
}

/// State of a response after a step.
#[derive(Clone, Debug)]
pub enum Progress {
    More,
    End {
        /// Whether rows were left out because of a limit.
        is_truncated: bool,
        /// Warnings of the response besides that of a limit.
        warnings: Vec<String>,
    },
}

impl Progress {
    pub const END: Progress = Progress::End { is_truncated: false, warnings: Vec::new() };
}

/// Source of a response's rows.
pub trait Rows: Send + Sync + Unpin + 'static {
    /// Writes the next rows to a page.
    fn poll_rows(
        &mut self,
        context: &mut Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>>;

    /// Writes further fields of the response, each after a comma. Called after the last row.
    fn put_fields(&self, _bytes: &mut Vec<u8>) {}
}

/// Bytes of a response that are not sent yet.
pub struct Page {
    bytes: Vec<u8>,
    has_rows: bool,
}

impl Page {
    /// Returns the buffer for a new row.
    pub fn row(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.has_rows, true) {
            self.bytes.push(b',');
        }
        &mut self.bytes
    }

    /// Returns the buffer for continuing the last row.
    pub fn more_of_row(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Builds a response that streams all rows.
pub async fn stream<R: Rows>(shape: Shape, rows: R) -> Result<Reply, StoreError> {
    let (begin, data_end, end) = match shape {
        Shape::List => ("{\"status\":\"success\",\"data\":[", "]", "}"),
        Shape::Map => ("{\"status\":\"success\",\"data\":{", "}", "}"),
        Shape::Fields => ("{\"status\":\"success\",\"data\":{", "", "}"),
        Shape::Message(_) => ("", "", ""),
    };
    let content_type = match shape {
        Shape::Message(content_type) => HeaderValue::from_static(content_type),
        _ => CONTENT_TYPE_JSON,
    };
    let page = Page { bytes: begin.into(), has_rows: false };
    let mut body = PagedBody {
        rows,
        page,
        data_end,
        end,
        is_done: false,
        ahead: VecDeque::new(),
        has_rested: true,
    };
    // Two pages are made ahead: a short response gets a length, and an early error a status.
    while body.ahead.len() < 2 {
        match poll_fn(|context| body.poll_page(context)).await.transpose()? {
            Some(page) => body.ahead.push_back(page),
            None => {
                let whole = body.ahead.pop_front().unwrap_or_default();
                return Ok(full(StatusCode::OK, content_type, whole));
            }
        }
    }
    let mut reply = Response::new(body.boxed());
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(reply)
}

struct PagedBody<R> {
    rows: R,
    page: Page,
    /// Text that ends `data`, after the last row.
    data_end: &'static str,
    /// Text that ends the response.
    end: &'static str,
    is_done: bool,
    /// Pages made before the response began.
    ahead: VecDeque<Bytes>,
    /// Whether other tasks had a chance to run since the last page.
    has_rested: bool,
}

impl<R: Rows> PagedBody<R> {
    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        while !self.is_done {
            match ready!(self.rows.poll_rows(context, &mut self.page)) {
                Err(error) => {
                    self.is_done = true;
                    return Poll::Ready(Some(Err(error)));
                }
                Ok(Progress::More) if self.page.bytes.len() < PAGE_BYTES => continue,
                Ok(Progress::More) => {}
                Ok(Progress::End { is_truncated, mut warnings }) => {
                    self.is_done = true;
                    self.page.bytes.extend_from_slice(self.data_end.as_bytes());
                    if is_truncated {
                        warnings.insert(0, TRUNCATED.to_owned());
                    }
                    if !warnings.is_empty() {
                        let warnings = format!(",\"warnings\":{}", Value::from(warnings));
                        self.page.bytes.extend_from_slice(warnings.as_bytes());
                    }
                    self.rows.put_fields(&mut self.page.bytes);
                    self.page.bytes.extend_from_slice(self.end.as_bytes());
                }
            }
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.page.bytes).into())));
        }
        Poll::Ready(None)
    }
}

impl<R: Rows> Body for PagedBody<R> {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let page = match self.ahead.pop_front() {
            Some(page) => Poll::Ready(Some(Ok(page))),
            // Yields first: a client that reads as fast as pages are made would block the thread.
            None if !std::mem::replace(&mut self.has_rested, true) => {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => {
                let page = self.poll_page(context);
                self.has_rested = page.is_pending();
                page
            }
        };
        page.map(|page| page.map(|page| page.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done && self.ahead.is_empty()
    }
}

/// Writes a JSON string with its quotes.
pub fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Writing text to memory does not fail.
    let _ = serde_json::to_writer(bytes, text);
}

/// Writes labels as a JSON object.
pub fn put_labels(bytes: &mut Vec<u8>, labels: &[Label]) {
    bytes.push(b'{');
    for (index, Label { name, value }) in labels.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        put_text(bytes, name);
        bytes.push(b':');
        put_text(bytes, value);
    }
    bytes.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A source that always has rows.
    struct Endless;

    impl Rows for Endless {
        fn poll_rows(
            &mut self,
            _: &mut Context<'_>,
            page: &mut Page,
        ) -> Poll<Result<Progress, StoreError>> {
            page.row().extend_from_slice(&[b'1'; PAGE_BYTES]);
            Poll::Ready(Ok(Progress::More))
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_between_pages() -> Result<(), StoreError> {
        let mut body = stream(Shape::List, Endless).await?.into_body();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || Pin::new(&mut body).poll_frame(&mut context).is_ready();
        // Two pages were made before the response began.
        let ready: Vec<bool> = (0..8).map(|_| poll()).collect();
        assert_eq!(ready, [true, true, true, false, true, false, true, false]);
        Ok(())
    }
}
