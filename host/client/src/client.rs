//! The client: sends requests, with a token if configured, and limits them by a deadline.

use crate::answer::Deadline;
use crate::ask::Ask;
use crate::config::{Credentials, HttpClientConfig};
use crate::connect::ConnectLimits;
use crate::exchange::Exchange;
use crate::oauth2::TokenSource;
use crate::upload::StreamedBody;
use crate::{Answer, ClientError};
use hyper::header::AUTHORIZATION;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sends requests as configured. Clones share connections and tokens.
#[derive(Clone)]
pub struct Client {
    exchange: Exchange,
    tokens: Option<Arc<TokenSource>>,
}

impl Client {
    /// Reads all files that the configuration names, so that errors in them appear when the
    /// configuration is loaded, not in each request. Does not connect.
    pub fn open(config: &HttpClientConfig) -> Result<Client, ClientError> {
        Client::new(config, None, ConnectLimits::default())
    }

    /// Like [`Client::open`], but all requests use a Unix socket, whatever host their URL has.
    pub fn open_unix(config: &HttpClientConfig, socket: &Path) -> Result<Client, ClientError> {
        Client::new(config, Some(socket.to_owned()), ConnectLimits::default())
    }

    /// Like [`Client::open`], with limits on connections.
    pub fn open_bounded(
        config: &HttpClientConfig,
        limits: ConnectLimits,
    ) -> Result<Client, ClientError> {
        Client::new(config, None, limits)
    }

    fn new(
        config: &HttpClientConfig,
        unix_socket: Option<PathBuf>,
        limits: ConnectLimits,
    ) -> Result<Client, ClientError> {
        let tokens = match &config.credentials {
            Credentials::OAuth2(oauth2) => Some(Arc::new(TokenSource::open(oauth2)?)),
            _ => None,
        };
        Ok(Client { exchange: Exchange::open(config, unix_socket, limits)?, tokens })
    }

    /// Checks that a request could be made, which reports errors before the first request.
    pub fn check(&self, ask: &Ask) -> Result<(), ClientError> {
        self.exchange.check(ask)
    }

    /// Sends a request, follows redirects if configured, and returns the response's head.
    pub async fn send(&self, ask: impl Borrow<Ask>) -> Result<Answer, ClientError> {
        let ask = ask.borrow();
        let deadline = ask.timeout.and_then(Deadline::after);
        // The deadline also covers the request for a token, and all redirects.
        let exchange = async { self.exchange.send(&*self.with_token(ask).await?).await };
        let (answer, url) = Deadline::wait(deadline, exchange).await??;
        Ok(Answer::new(answer, url, deadline, ask.answer_bytes_max))
    }

    /// Sends a request with a streamed body instead of the body in `ask`. The request is sent once,
    /// and no redirect is followed.
    pub async fn send_stream(&self, ask: &Ask, body: StreamedBody) -> Result<Answer, ClientError> {
        let deadline = ask.timeout.and_then(Deadline::after);
        let exchange =
            async { self.exchange.send_stream(&*self.with_token(ask).await?, body).await };
        let answer = Deadline::wait(deadline, exchange).await??;
        Ok(Answer::new(answer, ask.url.clone(), deadline, ask.answer_bytes_max))
    }

    /// Adds a configured token as a header. A redirect to another host does not carry the header.
    async fn with_token<'a>(&self, ask: &'a Ask) -> Result<Cow<'a, Ask>, ClientError> {
        let mut ask = Cow::Borrowed(ask);
        // A header of the caller takes precedence, as it does over configured credentials.
        if let Some(tokens) = &self.tokens
            && !ask.headers.contains_key(AUTHORIZATION)
        {
            let value = tokens.authorization().await?;
            ask.to_mut().headers.insert(AUTHORIZATION, value);
        }
        Ok(ask)
    }
}

/// Shows the configuration without secrets.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", self.exchange.config()).finish_non_exhaustive()
    }
}
