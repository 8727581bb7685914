//! Streams the response to a query: the bytes from the engine, with a beginning and an end.

use super::stats::Stats;
use crate::http::api::pages::{Page, Progress, Rows};
use serde_json::Value;
use std::task::{Context, Poll, ready};
use tidepool_protocol::prom::query::{self, ResultType};
use tidepool_query::{QueryEnd, QueryPart};
use tidepool_runtime::{ResultFormat, ValueType};
use tidepool_store::StoreError;
use tokio::sync::mpsc::Receiver;

pub struct Answer {
    pub parts: Receiver<Result<QueryPart, StoreError>>,
    pub format: ResultFormat,
    /// Measures the cost of the query, if the request asks for it.
    pub stats: Option<Stats>,
    /// A warning that concerns the request itself.
    pub warning: Option<String>,
}

impl Rows for Answer {
    fn poll_rows(
        &mut self,
        context: &mut Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        let page = page.more_of_row();
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(QueryPart::Begin { kind, text })) => {
                // JSON needs no beginning: the engine's bytes contain the type of the result.
                if self.format == ResultFormat::Protobuf {
                    page.extend_from_slice(&query::begin(type_of(kind), text));
                }
                Ok(Progress::More)
            }
            Some(Ok(QueryPart::Bytes(bytes))) => {
                page.extend_from_slice(&bytes);
                Ok(Progress::More)
            }
            Some(Ok(QueryPart::End(end))) => {
                self.put_end(page, *end);
                Ok(Progress::END)
            }
            Some(Err(error)) => Err(error),
            // The query was ended because the client is slow or the store is stopping.
            None => Err(StoreError::Stopped),
        })
    }
}

impl Answer {
    /// Ends `data`, and adds warnings and infos.
    fn put_end(&mut self, bytes: &mut Vec<u8>, mut end: QueryEnd) {
        let annotations = std::mem::take(&mut end.annotations);
        let (warnings, infos): (Vec<_>, Vec<_>) =
            annotations.into_iter().partition(|annotation| annotation.is_warning);
        let mut warnings: Vec<String> = warnings.into_iter().map(|it| it.text).collect();
        warnings.extend(self.warning.take());
        let infos: Vec<String> = infos.into_iter().map(|it| it.text).collect();
        if self.format == ResultFormat::Protobuf {
            let stats = self.stats.as_ref().map(|stats| stats.message(&end));
            return bytes.extend_from_slice(&query::end(warnings, infos, stats));
        }
        if let Some(stats) = &self.stats {
            stats.put_json(bytes, &end);
        }
        bytes.push(b'}');
        for (name, texts) in [("warnings", warnings), ("infos", infos)] {
            if !texts.is_empty() {
                bytes.extend_from_slice(format!(",\"{name}\":{}", Value::from(texts)).as_bytes());
            }
        }
    }
}

fn type_of(kind: ValueType) -> ResultType {
    match kind {
        ValueType::Scalar => ResultType::Scalar,
        ValueType::String => ResultType::String,
        ValueType::Vector => ResultType::Vector,
        ValueType::Matrix => ResultType::Matrix,
    }
}
