//! Answers that can be long, sent page by page as they are found.
//!
//! Memory does not grow with the answer. What fails before the second page still gets a proper
//! status; what fails later resets the connection, since half an answer must not look whole.

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

/// Bytes that a page has at least, but for the last.
pub const PAGE_BYTES: usize = 64 * 1024;

/// Content type of all answers in JSON.
pub const CONTENT_TYPE_JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What `data` is.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An array, with a value in each row.
    List,
    /// An object, with a name and a value in each row.
    Map,
    /// An object that the rows write themselves, with its end and what comes behind it.
    Fields,
    /// No JSON, but bytes of this content type, all of which the rows write.
    Message(&'static str),
}

/// What is left of an answer.
#[derive(Clone, Debug)]
pub enum Progress {
    /// More may follow.
    More,
    /// That was all.
    End {
        /// Whether the limit left something out.
        is_truncated: bool,
        /// Further warnings.
        warnings: Vec<String>,
    },
}

impl Progress {
    /// That was all, and there is nothing to remark.
    pub const END: Progress = Progress::End { is_truncated: false, warnings: Vec::new() };
}

/// Where an answer's rows come from.
pub trait Rows: Send + Sync + Unpin + 'static {
    /// Puts the next rows on a page.
    fn poll_rows(
        &mut self,
        context: &mut Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>>;

    /// Writes further fields of the answer, each behind a comma, once all rows are there.
    fn put_fields(&self, _bytes: &mut Vec<u8>) {}
}

/// The next bytes of an answer.
pub struct Page {
    bytes: Vec<u8>,
    has_rows: bool,
}

impl Page {
    /// Where the next row is written.
    pub fn row(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.has_rows, true) {
            self.bytes.push(b',');
        }
        &mut self.bytes
    }

    /// Where the last row goes on.
    pub fn more_of_row(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Answers with all rows.
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
    /// What ends `data`.
    data_end: &'static str,
    /// What ends the whole.
    end: &'static str,
    is_done: bool,
    /// Pages that were made before the answer began.
    ahead: VecDeque<Bytes>,
    /// Whether others have had their turn since the last page.
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
            // A client that takes pages as fast as they are made would hold a thread of the
            // network.
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

/// Writes a text as JSON has it.
pub fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Writing text to memory does not fail.
    let _ = serde_json::to_writer(bytes, text);
}

/// Writes labels as an object.
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

    /// Rows that are always there.
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
        // Two were made before.
        let ready: Vec<bool> = (0..8).map(|_| poll()).collect();
        assert_eq!(ready, [true, true, true, false, true, false, true, false]);
        Ok(())
    }
}
