//! `GET /federate`: the newest samples of selected series, for another Prometheus to scrape.
//!
//! Source: `web/federate.go` in prometheus/prometheus.

mod message;
mod text;

use super::aside;
use super::context::Context;
use super::gzip;
use super::reply::{self, Reply};
use super::request::Request;
use tidepool_protocol::prom::fields::{first_fields, whole_fields};
use tidepool_protocol::prom::media_type::MediaType;
use tidepool_protocol::prom::newest::{Newest, newest};
use tidepool_protocol::prom::read::{ReadFormat, ReadQuery};
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_protocol::prom::selector::parse_counted;
use tidepool_store::{ReadPart, StoreError, millis};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, GetAll, HeaderValue};
use hyper::{Response, StatusCode};
use std::borrow::Cow;
use std::pin::Pin;
use std::task::Poll;
use tidepool_exposition::{NameEscaping, NameValidation};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{PoolShare, TimeRange};
use tidepool_turns::{Pace, STEP_BYTES};

pub const PATH: &str = "/federate";

/// Number of series from which work moves to another thread; fewer need under a millisecond.
const ASIDE_SERIES_MIN: usize = 500;

/// Size of a piece of the response, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// The label of the measured target, which must not be replaced by that of the collector.
const INSTANCE: &str = "instance";

/// Content type of the protobuf format.
macro_rules! message_type {
    ($escaping:literal) => {
        concat!(
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; ",
            "encoding=delimited; escaping=",
            $escaping
        )
    };
}

/// Content type of the text format.
macro_rules! text_type {
    ($escaping:literal) => {
        concat!("text/plain; version=0.0.4; charset=utf-8; escaping=", $escaping)
    };
}

/// The format of a response and its escaping of names; together they are the content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    is_message: bool,
    escaping: NameEscaping,
}

pub async fn answer(context: &Context, request: Request) -> Reply {
    let format = Format::preferred(request.headers().get_all(ACCEPT));
    let takes_gzip = gzip::is_taken(request.headers().get_all(ACCEPT_ENCODING));
    let end_ms = system_now_ms();
    // As in upstream, the lookback is that of an instant query.
    let start_ms = end_ms.saturating_sub(millis(context.queries.lookback()));
    let mut count = SelectionCount::default();
    let mut queries = Vec::new();
    let parameters = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    for (_, selector) in parameters.filter(|(name, _)| name == "match[]") {
        match parse_counted(&selector, &mut count) {
            Ok(matchers) => {
                queries.push(ReadQuery { matchers, range: TimeRange { start_ms, end_ms } });
            }
            Err(error) => return reply::text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        }
    }
    let mut external: Vec<(String, String)> = context
        .http
        .external_labels
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // As in upstream, an empty `instance` keeps the collector from adding this node's address.
    if external.iter().all(|(name, _)| name != INSTANCE) {
        external.push((INSTANCE.to_owned(), String::new()));
        external.sort();
    }
    let (series, share) = match samples(context, queries).await {
        Ok(found) => found,
        Err(error) => return reply::error(&error),
    };
    let written = aside::run_if(series.len() > ASIDE_SERIES_MIN, move || {
        let written = match format.is_message {
            true => message::families(&series, &external, format.escaping),
            false => text::text(&series, &external, format.escaping).into_bytes(),
        };
        (written, share)
    });
    match written.await {
        Ok((written, share)) => {
            let body = Written { rest: written.into(), _share: share };
            let mut reply = Response::new(body.boxed());
            reply.headers_mut().insert(CONTENT_TYPE, format.content_type());
            if takes_gzip { gzip::compress(reply) } else { reply }
        }
        Err(error) => reply::error(&error),
    }
}

/// A response being sent. The memory share of the read is released after the last piece.
struct Written {
    rest: Bytes,
    _share: PoolShare,
}

impl Body for Written {
    type Data = Bytes;
    type Error = StoreError;

    /// Returns the response in pieces, so that compressing one piece takes a short time.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let piece = self.rest.len().min(PIECE_BYTES);
        let piece = (piece > 0).then(|| self.rest.split_to(piece));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Reads the newest samples, sorted by name and labels, within the memory limit for reads.
async fn samples(
    context: &Context,
    queries: Vec<ReadQuery>,
) -> Result<(Vec<Newest>, PoolShare), StoreError> {
    let mut series = Vec::new();
    let pool = context.store.read_memory();
    let mut share = pool.share();
    // As in upstream, no selector means an empty response, not an error.
    if queries.is_empty() {
        return Ok((series, share));
    }
    let mut bytes_held = 0;
    let mut pending = Vec::new();
    let mut pace = Pace::begin();
    let mut parts = context.store.read(queries, ReadFormat::TIME_SERIES, Vec::new()).await?;
    loop {
        match parts.recv().await {
            // The read was ended because the store is stopping.
            None => return Err(StoreError::Stopped),
            Some(part) => match part? {
                ReadPart::End => break,
                ReadPart::Bytes(bytes) => pending.extend_from_slice(&bytes),
            },
        }
        // A part may end within a field; the rest of the field is in the next part.
        let whole = whole_fields(&pending);
        let mut rest = &pending[..whole];
        while !rest.is_empty() {
            let (step, behind) = rest.split_at(first_fields(rest, STEP_BYTES));
            let found = newest(step).map_err(|error| {
                StoreError::Runtime(format!("the answer of the engine does not decode: {error}"))
            })?;
            rest = behind;
            // Doubled, because the text of a series is about as long as its data in memory.
            bytes_held += found.iter().map(|one| 2 * one.bytes()).sum::<usize>();
            if !share.grow_to(bytes_held + pending.capacity()) {
                let why = format!("all reads together may take {} bytes", pool.bytes_max());
                return Err(StoreError::ShortOfMemory(why));
            }
            series.extend(found);
            // Decoding a large part at once would block the network thread.
            pace.step().await;
        }
        pending.drain(..whole);
    }
    let is_long = series.len() > ASIDE_SERIES_MIN;
    let series = aside::run_if(is_long, move || in_order(series)).await?;
    Ok((series, share))
}

/// Sorts series, and removes duplicates that several selectors selected.
fn in_order(mut series: Vec<Newest>) -> Vec<Newest> {
    // Newest first among equal labels, so that `dedup_by` keeps the newest.
    series.sort_by(|a, b| (&a.name, &a.labels, b.time_ms).cmp(&(&b.name, &b.labels, a.time_ms)));
    series.dedup_by(|b, a| a.name == b.name && a.labels == b.labels);
    series
}

/// Iterates over a series' labels, and then over the external labels that the series lacks.
fn labels<'a>(
    own: &'a [(String, String)],
    external: &'a [(String, String)],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_absent = |(name, _): &&(String, String)| own.iter().all(|(other, _)| other != name);
    let added = external.iter().filter(is_absent);
    own.iter().chain(added).map(|(name, value)| (name.as_str(), value.as_str()))
}

impl Format {
    /// Returns the supported format with the highest weight; text if the client names none.
    fn preferred(accepted: GetAll<'_, HeaderValue>) -> Format {
        let mut kinds: Vec<(f64, MediaType<'_>)> = accepted
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .filter_map(|item| {
                let kind = MediaType::parse(item.trim())?;
                let weight = kind.values("q").next().map_or(Ok(1.0), str::parse::<f64>);
                Some((weight.ok()?, kind))
            })
            .filter(|(weight, _)| *weight > 0.0)
            .collect();
        kinds.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        // As in prometheus/common, `*/*` uses the escaping of the last unsupported format.
        let mut escaping = NameEscaping::Underscores;
        for (_, kind) in kinds {
            let named = kind.values("escaping").next();
            escaping = named.and_then(NameEscaping::from_name).unwrap_or(escaping);
            let has = |name: &str, wanted: &str| kind.values(name).any(|value| value == wanted);
            let is_message = kind.is("application/vnd.google.protobuf")
                && has("proto", "io.prometheus.client.MetricFamily")
                && has("encoding", "delimited");
            let is_text = kind.is("text/plain")
                && (kind.values("version").next().is_none() || has("version", "0.0.4"));
            if is_message || is_text || kind.is("text/*") || kind.is("*/*") {
                return Format { is_message, escaping };
            }
        }
        Format { is_message: false, escaping }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match (self.is_message, self.escaping) {
            (true, NameEscaping::AllowUtf8) => message_type!("allow-utf-8"),
            (true, NameEscaping::Underscores) => message_type!("underscores"),
            (true, NameEscaping::Dots) => message_type!("dots"),
            (true, NameEscaping::Values) => message_type!("values"),
            (false, NameEscaping::AllowUtf8) => text_type!("allow-utf-8"),
            (false, NameEscaping::Underscores) => text_type!("underscores"),
            (false, NameEscaping::Dots) => text_type!("dots"),
            (false, NameEscaping::Values) => text_type!("values"),
        })
    }
}

/// Escapes a name. A name that was valid before Prometheus 3 remains unchanged.
fn escaped(escaping: NameEscaping, name: &str) -> Cow<'_, str> {
    if is_legacy(name) { Cow::Borrowed(name) } else { escaping.escape(name) }
}

fn is_legacy(name: &str) -> bool {
    NameValidation::Legacy.is_metric_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderMap, InvalidHeaderValue};

    /// The `Accept` header of Prometheus 3.15 with its defaults.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
        application/openmetrics-text;version=0.0.1;q=0.5,\
        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

    #[test]
    fn formats_are_negotiated() -> Result<(), InvalidHeaderValue> {
        const MESSAGE: &str = "application/vnd.google.protobuf;\
            proto=io.prometheus.client.MetricFamily;encoding=delimited";
        for (value, is_message, escaping) in [
            ("", false, NameEscaping::Underscores),
            ("text/html", false, NameEscaping::Underscores),
            (PROMETHEUS, false, NameEscaping::AllowUtf8),
            (MESSAGE, true, NameEscaping::Underscores),
            (&format!("{MESSAGE};q=0.1,{PROMETHEUS}"), false, NameEscaping::AllowUtf8),
            (&format!("{MESSAGE};q=0.7,{PROMETHEUS}"), true, NameEscaping::Underscores),
            ("application/vnd.google.protobuf", false, NameEscaping::Underscores),
            ("text/plain;escaping=allow-utf-8", false, NameEscaping::AllowUtf8),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(value)?);
            let format = Format::preferred(headers.get_all(ACCEPT));
            assert_eq!(format, Format { is_message, escaping }, "{value}");
        }
        Ok(())
    }
}
