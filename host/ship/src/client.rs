//! The HTTP client for object storage. It applies a bandwidth limit, and its timeouts allow for
//! slow uplinks.
//!
//! A part of five megabytes may take half an hour, so the time limit of a request grows with its
//! size. A connection whose bytes are not acknowledged ends within a minute. Bodies are sent in
//! small pieces as the limit allows, so that other traffic is not blocked for a whole part.

use super::pace::Pace;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidepool_client::parts::system_config;
use tidepool_client::{Ask, Client, ClientError, ConnectLimits, HttpClientConfig, StreamedBody};
use tokio::time::Sleep;
use url::Url;

/// Number of retries of a failed request; after them the block is given up for now.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for which sent bytes may go unacknowledged.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);

/// Minimum rate of a request in bytes per second, from which its time limit is computed.
const RATE_MIN: u64 = 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Makes clients with a bandwidth limit.
#[derive(Clone, Debug)]
struct PacedConnector {
    pace: Pace,
}

#[derive(Debug)]
struct PacedClient {
    client: Client,
    allows_http: bool,
    pace: Pace,
}

struct PacedBody {
    inner: HttpRequestBody,
    pace: Pace,
    sleep: Pin<Box<Sleep>>,
    /// The next piece, which is sent when the sleep ends.
    waiting: Option<Bytes>,
}

/// Opens the bucket of a URL, with endpoint and credentials from the environment.
pub fn cloud_store(
    scheme: ObjectStoreScheme,
    url: &str,
    pace: Pace,
) -> object_store::Result<Box<dyn ObjectStore>> {
    let connector = PacedConnector { pace };
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    };
    match scheme {
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry);
            Ok(Box::new(builder.with_http_connector(connector).build()?))
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry);
            Ok(Box::new(builder.with_http_connector(connector).build()?))
        }
        _ => {
            let builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry);
            Ok(Box::new(builder.with_http_connector(connector).build()?))
        }
    }
}

impl HttpConnector for PacedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let allows_http = allows_http.as_deref() == Some("true");
        let client = client(allows_http).map_err(|error| object_store::Error::Generic {
            store: "client",
            source: Box::new(error),
        })?;
        Ok(HttpClient::new(PacedClient { client, allows_http, pace: self.pace.clone() }))
    }
}

/// Creates a client. Proxies come from the environment, like all other settings.
fn client(allows_http: bool) -> Result<Client, ClientError> {
    // A system without trusted authorities is reported at the start. A bucket without TLS needs no
    // authority.
    if !allows_http {
        system_config()?;
    }
    let config =
        HttpClientConfig { enable_http2: Some(false), ..HttpClientConfig::of_environment() };
    let limits = ConnectLimits {
        connect: Some(CONNECT_TIMEOUT),
        unacknowledged: Some(UNACKNOWLEDGED_TIMEOUT),
    };
    Client::open_bounded(&config, limits)
}

#[async_trait]
impl HttpService for PacedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let unusable = |why: String| HttpError::new(HttpErrorKind::Unknown, ClientError::Url(why));
        let url =
            Url::parse(&parts.uri.to_string()).map_err(|error| unusable(error.to_string()))?;
        if url.scheme() == "http" && !self.allows_http {
            return Err(unusable("the URL is no https URL".to_owned()));
        }
        let bytes = body.content_length() as u64;
        // Neither the bandwidth limit nor a slow uplink may cause a timeout.
        let least = self.pace.least(bytes).max(Duration::from_secs(bytes / RATE_MIN));
        let (method, headers) = (parts.method, parts.headers);
        let ask = Ask { method, headers, timeout: Some(ANSWER_TIMEOUT + least), ..Ask::get(url) };
        let body = PacedBody {
            inner: body,
            pace: self.pace.clone(),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            waiting: None,
        };
        let body = StreamedBody::new(body.map_err(Into::into));
        let mut answer = self.client.send_stream(&ask, body).await.map_err(http_error)?;
        let mut response = hyper::Response::new(());
        *response.status_mut() = answer.status;
        *response.headers_mut() = std::mem::take(&mut answer.headers);
        let body = HttpResponseBody::new(answer.into_body().map_err(http_error));
        Ok(response.map(|()| body))
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if self.waiting.is_none() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
            // Reserved before the wait, so that concurrent requests share the limit.
            let at = self.pace.reserve(data.len());
            self.sleep.as_mut().reset(at);
            self.waiting = Some(data);
        }
        ready!(self.sleep.as_mut().poll(context));
        Poll::Ready(self.waiting.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The inner body does not include the piece that waits to be sent.
        let waiting = self.waiting.as_ref().map_or(0, Bytes::len) as u64;
        let inner = self.inner.size_hint().exact();
        inner.map_or_else(SizeHint::default, |bytes| SizeHint::with_exact(bytes + waiting))
    }
}

/// Converts an error. Its kind decides whether `object_store` retries the request.
fn http_error(error: ClientError) -> HttpError {
    let kind = match error {
        ClientError::Timeout(_) => HttpErrorKind::Timeout,
        ClientError::Unreachable(_) => HttpErrorKind::Connect,
        ClientError::Connection(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
