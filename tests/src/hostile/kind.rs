//! Kinds of requests that run beside writes.

use super::{Contents, HostileError};
use crate::http::Client;
use crate::prometheus::percent_encode;
use crate::proto::prometheus::label_matcher::Type;
use crate::proto::prometheus::read_request::ResponseType;
use crate::proto::prometheus::{LabelMatcher, Query};
use crate::remote_read::{Reader, matcher, query, request};
use crate::remote_write::compress;
use prost::Message as _;

/// Maximum number of matchers in a request.
const MATCHERS: usize = 200;

/// Maximum number of selectors in a request.
const SELECTORS: usize = 100;

/// A kind of request that costs as much as the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Series by many negative matchers, none of which excludes any.
    SeriesNegative,
    /// Series that lack a label, requested repeatedly.
    SeriesEmpty,
    /// Series by an expression that is tried on each value.
    SeriesRegex,
    /// Series by the maximum number of selectors, each of which selects nearly all.
    SeriesSelectors,
    /// Label names of nearly all series.
    Labels,
    /// Label names by the maximum number of selectors.
    LabelsSelectors,
    /// All values of a label that differs in each series.
    Values,
    /// Values that match an expression, of series that no negative matcher excludes.
    ValuesRegex,
    /// All series and samples, streamed.
    ReadStreamed,
    /// All series and samples, in one message.
    ReadSamples,
    /// The maximum number of queries in one request.
    ReadQueries,
    /// Exemplars of nearly all series.
    Exemplars,
    /// Deletions by an expression that is tried on each value.
    Deletes,
    /// Cardinality of the head, in the longest lists.
    Cardinality,
    /// Metadata of all metric families.
    Metadata,
}

impl Kind {
    pub const ALL: [Kind; 15] = [
        Kind::SeriesNegative,
        Kind::SeriesEmpty,
        Kind::SeriesRegex,
        Kind::SeriesSelectors,
        Kind::Labels,
        Kind::LabelsSelectors,
        Kind::Values,
        Kind::ValuesRegex,
        Kind::ReadStreamed,
        Kind::ReadSamples,
        Kind::ReadQueries,
        Kind::Exemplars,
        Kind::Deletes,
        Kind::Cardinality,
        Kind::Metadata,
    ];

    /// Returns the name in tables and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Kind::SeriesNegative => "series-negative",
            Kind::SeriesEmpty => "series-empty",
            Kind::SeriesRegex => "series-regex",
            Kind::SeriesSelectors => "series-selectors",
            Kind::Labels => "labels",
            Kind::LabelsSelectors => "labels-selectors",
            Kind::Values => "values",
            Kind::ValuesRegex => "values-regex",
            Kind::ReadStreamed => "read-streamed",
            Kind::ReadSamples => "read-samples",
            Kind::ReadQueries => "read-queries",
            Kind::Exemplars => "exemplars",
            Kind::Deletes => "deletes",
            Kind::Cardinality => "tsdb",
            Kind::Metadata => "metadata",
        }
    }

    /// Returns the client that sends the requests.
    pub(super) fn asker(self, base_url: &str, contents: Contents) -> Asker {
        let api = |path: &str| format!("{base_url}/api/v1/{path}");
        let asker = |request| Asker { kind: self, client: Client::default(), request };
        let get = |path: &str| asker(Request::Get { url: api(path) });
        let form = |path: &str, name: &str, selectors: &[String]| {
            let pair = |text: &String| format!("{name}={}", percent_encode(text));
            let form = selectors.iter().map(pair).collect::<Vec<_>>().join("&");
            asker(Request::Form { url: api(path), form: form.into_bytes() })
        };
        let read = |queries: &[Query], kind| {
            let body = compress(&request(queries, kind).encode_to_vec());
            asker(Request::Read { reader: Reader::new(base_url), body })
        };
        // The selector's metric name takes one matcher.
        let negative = || vec![selector("!=", &values(contents, MATCHERS - 1))];
        let many = || -> Vec<String> {
            let all = values(contents, SELECTORS);
            all.into_iter().map(|value| selector("!=", &[value])).collect()
        };
        let all = || query(i64::MIN / 2, i64::MAX / 2, vec![name_matcher()]);
        match self {
            Kind::SeriesNegative => form("series", "match[]", &negative()),
            Kind::SeriesEmpty => {
                let empty = vec!["zz=\"\""; MATCHERS - 1].join(",");
                form("series", "match[]", &[format!("flood{{{empty}}}")])
            }
            Kind::SeriesRegex => {
                form("series", "match[]", &[selector("=~", &[".*[0-9]+.*7".to_owned()])])
            }
            Kind::SeriesSelectors => form("series", "match[]", &many()),
            Kind::Labels => form("labels", "match[]", &negative()),
            Kind::LabelsSelectors => form("labels", "match[]", &many()),
            Kind::Values => get("label/i/values"),
            Kind::ValuesRegex => {
                let others: Vec<String> = (0..60).map(|n| format!("i!=\"{n}\"")).collect();
                let text = format!("flood{{i=~\".*[0-9]+.*7\",{}}}", others.join(","));
                get(&format!("label/i/values?match[]={}", percent_encode(&text)))
            }
            Kind::ReadStreamed => read(&[all()], ResponseType::StreamedXorChunks),
            Kind::ReadSamples => read(&[all()], ResponseType::Samples),
            Kind::ReadQueries => {
                let one = |value: String| {
                    let matchers = vec![name_matcher(), matcher(Type::Neq, "i", &value)];
                    query(0, 1, matchers)
                };
                let queries: Vec<Query> =
                    values(contents, SELECTORS).into_iter().map(one).collect();
                read(&queries, ResponseType::StreamedXorChunks)
            }
            Kind::Exemplars => form("query_exemplars", "query", &negative()),
            Kind::Deletes => {
                let text = selector("=~", &[".*[0-9]+.*7".to_owned()]);
                // A time before all samples, so that only the search costs, not the deletion.
                let path = "admin/tsdb/delete_series?start=1&end=2";
                form(path, "match[]", &[text])
            }
            Kind::Cardinality => get("status/tsdb?limit=10000"),
            Kind::Metadata => get("metadata"),
        }
    }
}

fn name_matcher() -> LabelMatcher {
    matcher(Type::Eq, "__name__", "flood")
}

/// Returns some values of the label, spread over all its values.
fn values(contents: Contents, count: usize) -> Vec<String> {
    let step = (contents.series / count).max(1);
    (0..count).map(|number| (number * step).to_string()).collect()
}

fn selector(op: &str, values: &[String]) -> String {
    let matchers: Vec<String> = values.iter().map(|value| format!("i{op}\"{value}\"")).collect();
    format!("flood{{{}}}", matchers.join(","))
}

/// A client that repeats one request.
pub(super) struct Asker {
    kind: Kind,
    client: Client,
    request: Request,
}

enum Request {
    Get { url: String },
    Form { url: String, form: Vec<u8> },
    Read { reader: Reader, body: Vec<u8> },
}

impl Asker {
    /// Sends the request and reads the whole answer; returns whether it succeeded. An answer that
    /// the server is busy, or that a limit was exceeded, is no error.
    pub fn ask(&self) -> Result<bool, HostileError> {
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let response = match &self.request {
            Request::Get { url } => self.client.get(url)?,
            Request::Form { url, form } => self.client.post(url, &headers, form)?,
            Request::Read { reader, body } => reader.post_body(body)?,
        };
        match response.status {
            200..300 => Ok(true),
            400 | 422 | 429 | 503 => Ok(false),
            status => {
                let (what, body) = (self.kind.name(), response.text());
                Err(HostileError::Refused { what, status, body })
            }
        }
    }
}
