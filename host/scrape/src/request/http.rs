//! Scrapes a target over HTTP: sends the request, and parses the body as it arrives.

use super::{TIMEOUT_HEADER, accept_header, timeout_header};
use crate::append::{Appender, BodyReader, Histograms};
use crate::content_type::{ContentTypeError, format_of};
use crate::error::{ScrapeError, beginning};
use crate::job::Job;
use crate::metrics::Metrics;
use crate::protocol::Protocol;
use crate::source::{Scraping, Source};
use crate::target::{Target, names};
use hyper::StatusCode;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    USER_AGENT,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidepool_client::{Answer, Ask, Client, ClientError};
use tidepool_exposition::Format;
use tidepool_settings::redact::shown_request;
use tidepool_turns::{Gunzip, GunzipError, Pace, STEP_BYTES};

/// Content encodings that are refused. Any other value is treated as identity, as upstream does:
/// some exporters put a media type or a character set into the header.
const ENCODINGS: [&str; 7] = ["deflate", "br", "zstd", "compress", "x-compress", "snappy", "lz4"];

/// Maximum number of bytes that are read after an error, so that the connection can be reused.
const DISCARDED_BYTES_MAX: usize = 64 * 1024;

/// Bytes by which a compressed body may exceed the limit for uncompressed bodies.
const OVERHEAD_BYTES_MAX: u64 = 64 * 1024;

/// Source that requests a target over HTTP.
pub struct HttpSource {
    client: Client,
    /// The request of each scrape.
    ask: Ask,
    timeout: Duration,
    fallback: Option<Protocol>,
    histograms: Histograms,
    body_limit: u64,
    metrics: Arc<Metrics>,
    /// Summary of the last response; set for trial scrapes only.
    seen: Option<Arc<Mutex<ResponseSummary>>>,
}

/// Summary of a target's response, shown after a trial scrape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Head of the response; `None` until the head has arrived.
    pub head: Option<Head>,
    /// Bytes of the body as received, before decompression.
    pub body_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Status code and its reason phrase.
    pub status: String,
    /// Version of HTTP in the answer.
    pub version: String,
    /// URL that answered, after redirects, without parts that may be secret.
    pub url: String,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// Format by the content type, or by the fallback of the job.
    pub format: Option<Format>,
}

/// State of parsing one body into an appender.
struct BodyOf<'a> {
    format: Result<Format, ContentTypeError>,
    /// Parser of the body; `None` until the first byte arrives.
    reader: Option<BodyReader>,
    appender: &'a mut Appender,
    pace: Pace,
}

impl HttpSource {
    /// Creates a source for a target of a job. `body_bytes_max` limits the bodies of a job without
    /// `body_size_limit`.
    pub fn new(
        job: &Job,
        target: &Target,
        client: Client,
        user_agent: &str,
        body_bytes_max: u64,
        metrics: Arc<Metrics>,
    ) -> Result<HttpSource, ScrapeError> {
        let wrong = |reason: String| {
            ScrapeError::Settings(beginning(&format!("{}: {reason}", target.shown_url())))
        };
        let ask = Ask::get_text(target.url()).map_err(|error| wrong(error.to_string()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (ACCEPT, accept_header(&job.protocols, job.escaping)),
            (ACCEPT_ENCODING, if job.compression { "gzip" } else { "identity" }.to_owned()),
            (USER_AGENT, user_agent.to_owned()),
            (HeaderName::from_static(TIMEOUT_HEADER), timeout_header(target.timeout())),
        ] {
            let value =
                HeaderValue::try_from(value).map_err(|error| wrong(format!("{name}: {error}")))?;
            headers.insert(name, value);
        }
        let ask = Ask { headers, timeout: Some(target.timeout()), ..ask };
        // Checked once here, so that invalid settings do not have to fail in each scrape.
        client.check(&ask).map_err(|error| wrong(error.to_string()))?;
        Ok(HttpSource {
            client,
            ask,
            timeout: target.timeout(),
            fallback: job.fallback,
            histograms: Histograms {
                native: target.is_on(names::NATIVE_HISTOGRAMS, job.native_histograms),
                always_classic: target.is_on(names::ALWAYS_CLASSIC, job.always_classic_histograms),
                convert_classic: target
                    .is_on(names::CONVERT_CLASSIC, job.convert_classic_histograms),
            },
            body_limit: match job.limits.body_bytes {
                0 => body_bytes_max,
                bytes => bytes,
            },
            metrics,
            seen: None,
        })
    }

    /// Makes the source also record a summary of each response in `seen`.
    pub fn seen_by(mut self, seen: Arc<Mutex<ResponseSummary>>) -> HttpSource {
        self.seen = Some(seen);
        self
    }

    fn note(&self, change: impl FnOnce(&mut ResponseSummary)) {
        if let Some(seen) = &self.seen {
            change(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    async fn exchange(&self, appender: &mut Appender) -> Result<(), ScrapeError> {
        let mut answer = self.client.send(&self.ask).await.map_err(|error| self.failed(error))?;
        self.note(|seen| {
            *seen = ResponseSummary { head: Some(Head::of(&answer, self.fallback)), body_bytes: 0 };
        });
        let result = self.read(&mut answer, appender).await;
        if result.is_err() {
            discard(answer).await;
        }
        result
    }

    async fn read(&self, answer: &mut Answer, appender: &mut Appender) -> Result<(), ScrapeError> {
        if answer.status != StatusCode::OK {
            return Err(ScrapeError::Status(status_text(answer.status)));
        }
        let header = |name| answer.headers.get(name).map(HeaderValue::as_bytes);
        let encoding = header(CONTENT_ENCODING).unwrap_or_default();
        let encoding = String::from_utf8_lossy(encoding).trim().to_ascii_lowercase();
        let is_gzip = matches!(encoding.as_str(), "gzip" | "x-gzip");
        // A list is refused even if it contains gzip: only a single encoding was requested.
        let is_other = encoding.contains(',') || ENCODINGS.contains(&encoding.as_str());
        if is_other {
            return Err(ScrapeError::Encoding(beginning(&encoding)));
        }
        let format = format_of(header(CONTENT_TYPE), self.fallback);
        // An unknown format is an error only once a byte arrives: an empty body needs no format.
        let mut body = BodyOf { format, reader: None, appender, pace: Pace::begin() };
        let mut result = self.read_body(answer, is_gzip, &mut body).await;
        if result.is_ok() {
            result = body.end().await;
        }
        if let Some(reader) = body.reader {
            reader.reuse();
        }
        result
    }

    async fn read_body(
        &self,
        answer: &mut Answer,
        is_gzip: bool,
        body: &mut BodyOf<'_>,
    ) -> Result<(), ScrapeError> {
        let mut gunzip = None;
        let mut received_bytes = 0;
        while let Some(piece) = answer.chunk().await.map_err(|error| self.failed(error))? {
            self.note(|seen| seen.body_bytes += piece.len() as u64);
            // Received bytes are limited, too: compressed bytes that expand to nothing cost work.
            received_bytes += piece.len() as u64;
            self.check_size(received_bytes.saturating_sub(OVERHEAD_BYTES_MAX))?;
            let mut rest = &piece[..];
            if !is_gzip {
                // Without compression a piece may be large, and each step has to be short.
                for bytes in rest.chunks(STEP_BYTES) {
                    self.take(bytes, body).await?;
                }
                continue;
            }
            // Taken only when the body arrives, so that other targets can use the idle decompressor
            // while this target has not answered.
            let gunzip = gunzip.get_or_insert_with(Gunzip::idle);
            while let Some(bytes) = gunzip.next(&mut rest)? {
                self.take(bytes, body).await?;
            }
        }
        if let Some(gunzip) = gunzip {
            // A truncated body fails here, although all received bytes were parsed.
            gunzip.finish()?;
            gunzip.reuse();
        } else if is_gzip {
            // No byte arrived, but even an empty text has a gzip header.
            return Err(GunzipError::CutOff.into());
        }
        Ok(())
    }

    /// Parses uncompressed bytes, within the limit of the body, and lets other tasks have their
    /// turn.
    async fn take(&self, bytes: &[u8], body: &mut BodyOf<'_>) -> Result<(), ScrapeError> {
        if !bytes.is_empty() {
            body.appender.add_body_bytes(bytes.len() as u64);
            self.check_size(body.appender.body_bytes())?;
            if body.reader.is_none() {
                let format = body.format.clone()?;
                body.reader = Some(BodyReader::new(format, self.histograms));
            }
            if let Some(reader) = &mut body.reader {
                reader.put(bytes);
            }
        }
        body.take_all().await
    }

    fn check_size(&self, bytes: u64) -> Result<(), ScrapeError> {
        // Upstream refuses a body of exactly the limit, too.
        if bytes < self.body_limit {
            return Ok(());
        }
        self.metrics.exceeded_body_size_limit.add(1);
        Err(ScrapeError::BodySize { limit_bytes: self.body_limit })
    }

    fn failed(&self, error: ClientError) -> ScrapeError {
        match error {
            ClientError::Timeout(_) => ScrapeError::Timeout(self.timeout),
            error => {
                // Without secrets, because the API shows the text.
                let url = beginning(&shown_request(&self.ask.url_text()));
                ScrapeError::Request(format!("GET {url}: {}", beginning(&error.to_string())))
            }
        }
    }
}

impl BodyOf<'_> {
    /// Parses all complete items that were received, step by step.
    async fn take_all(&mut self) -> Result<(), ScrapeError> {
        if let Some(reader) = &mut self.reader {
            while reader.step(self.appender)? {
                self.appender.hold()?;
                self.pace.step().await;
            }
            self.appender.hold()?;
        }
        // A step even without items: a gzip member without data costs work, too.
        self.pace.step().await;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), ScrapeError> {
        if let Some(reader) = &mut self.reader {
            reader.put_end();
        }
        self.take_all().await
    }
}

impl Head {
    fn of(answer: &Answer, fallback: Option<Protocol>) -> Head {
        let header = |name| answer.headers.get(name).map(HeaderValue::as_bytes);
        let text = |name| header(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Head {
            status: status_text(answer.status),
            version: format!("{:?}", answer.version),
            url: shown_request(answer.url.as_str()),
            content_type: text(CONTENT_TYPE),
            content_encoding: text(CONTENT_ENCODING),
            format: format_of(header(CONTENT_TYPE), fallback).ok(),
        }
    }
}

fn status_text(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    format!("{} {reason}", status.as_u16()).trim_end().to_owned()
}

impl Source for HttpSource {
    fn scrape<'a>(&'a mut self, appender: &'a mut Appender) -> Scraping<'a> {
        Box::pin(self.exchange(appender))
    }
}

impl From<GunzipError> for ScrapeError {
    fn from(error: GunzipError) -> ScrapeError {
        ScrapeError::Gzip(error.to_string())
    }
}

/// Reads the rest of a short body, so that the connection can be reused.
async fn discard(mut answer: Answer) {
    let mut left = DISCARDED_BYTES_MAX;
    while let Ok(Some(piece)) = answer.chunk().await {
        match left.checked_sub(piece.len()) {
            Some(less) => left = less,
            None => return,
        }
    }
}
