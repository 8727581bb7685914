//! Obtains tokens by client credentials (RFC 6749, section 4.4), and reuses each until it expires.
//!
//! Source: golang.org/x/oauth2, `internal/token.go`: the client sends its credentials in the header
//! `Authorization`, and as parameters if the server rejects the header; the accepted style is kept.

use crate::ask::Ask;
use crate::config::{HttpClientConfig, OAuth2Config};
use crate::connect::ConnectLimits;
use crate::credentials::{basic, secret_value};
use crate::exchange::Exchange;
use crate::files::off_network;
use crate::{Answer, ClientError};
use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use std::time::Duration;
use tidepool_settings::Secret;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Time before the expiry of a token at which the token is replaced.
const MARGIN: Duration = Duration::from_secs(10);

/// Maximum size of a token server's response.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Maximum length of the server's error text in an error.
const TEXT_CHARS_MAX: usize = 256;

/// Obtains tokens, and keeps the last token.
pub(crate) struct TokenSource {
    config: OAuth2Config,
    exchange: Exchange,
    /// Locked during a request for a token; other requests wait for its result.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// Style in which the client sends its credentials; `None` until the server accepted one.
    style: Option<Style>,
}

struct Token {
    value: HeaderValue,
    /// Client secret with which the token was obtained.
    secret: String,
    /// Time until which the token is used; `None` if it does not expire.
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Header,
    Parameters,
}

/// The fields of a token response that are used.
#[derive(Deserialize)]
struct Given {
    access_token: String,
    #[serde(default)]
    token_type: String,
    /// Number of seconds, which some servers write as text.
    #[serde(default)]
    expires_in: Option<Seconds>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

impl TokenSource {
    /// Reads the files that the configuration names; requests no token yet.
    pub fn open(config: &OAuth2Config) -> Result<TokenSource, ClientError> {
        let in_oauth2 = |error| ClientError::OAuth2(Box::new(error));
        let http = HttpClientConfig {
            tls: config.tls.clone(),
            proxy: config.proxy.clone(),
            ..HttpClientConfig::default()
        };
        let exchange = Exchange::open(&http, None, ConnectLimits::default()).map_err(in_oauth2)?;
        let source = TokenSource { config: config.clone(), exchange, state: Mutex::default() };
        read_secret(&source.config.client_secret)?;
        Ok(source)
    }

    /// Returns the value of the header `Authorization` for a request.
    pub async fn authorization(&self) -> Result<HeaderValue, ClientError> {
        let secret = match &self.config.client_secret {
            text @ Secret::Text(_) => read_secret(text)?,
            Secret::File(_) => {
                let client_secret = self.config.client_secret.clone();
                off_network(move || read_secret(&client_secret)).await?
            }
        };
        let mut state = self.state.lock().await;
        // A token of another client secret is not reused.
        if let Some(token) = &state.token
            && token.secret == secret
            && token.until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(token.value.clone());
        }
        state.token = None;
        let asked = self.ask(&mut state, &secret).await;
        let (value, until) = asked.map_err(|error| ClientError::OAuth2(Box::new(error)))?;
        state.token = Some(Token { value: value.clone(), secret, until });
        Ok(value)
    }

    async fn ask(
        &self,
        state: &mut State,
        secret: &str,
    ) -> Result<(HeaderValue, Option<Instant>), ClientError> {
        // Taken before the request, so that the token is not used after its expiry.
        let asked_at = Instant::now();
        let mut answer = self.request(state.style.unwrap_or(Style::Header), secret).await?;
        // Only before any style was accepted; afterwards, a failure has another cause.
        if !answer.0.is_success() && state.style.is_none() {
            answer = self.request(Style::Parameters, secret).await?;
            state.style = Some(Style::Parameters).filter(|_| answer.0.is_success());
        } else if answer.0.is_success() {
            state.style.get_or_insert(Style::Header);
        }
        let (status, body) = answer;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            let text: String = text.trim().chars().take(TEXT_CHARS_MAX).collect();
            return Err(self.refused(format!("{status}: {text}")));
        }
        // The error omits the text, which may contain the token.
        let given: Given = serde_json::from_slice(&body)
            .map_err(|_| self.refused("with no token in JSON".into()))?;
        if given.access_token.is_empty() {
            return Err(self.refused("with an empty token".into()));
        }
        let kind = match given.token_type.as_str() {
            "" => "Bearer",
            kind if kind.eq_ignore_ascii_case("bearer") => "Bearer",
            kind => kind,
        };
        let value = secret_value("the token", &format!("{kind} {}", given.access_token))?;
        let lasts = given.expires_in.and_then(|seconds| seconds.duration());
        let until = lasts.and_then(|lasts| asked_at.checked_add(lasts.saturating_sub(MARGIN)));
        Ok((value, until))
    }

    async fn request(
        &self,
        style: Style,
        secret: &str,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let (answer, url) = self.exchange.send(&self.question(style, secret)?).await?;
        // No deadline here: the deadline of the request that needs the token applies.
        let answer = Answer::new(answer, url, None, ANSWER_BYTES_MAX);
        let status = answer.status;
        Ok((status, answer.bytes().await?))
    }

    fn question(&self, style: Style, secret: &str) -> Result<Ask, ClientError> {
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("grant_type", "client_credentials");
        if !self.config.scopes.is_empty() {
            body.append_pair("scope", &self.config.scopes.join(" "));
        }
        body.extend_pairs(&self.config.endpoint_params);
        let id = &self.config.client_id;
        match style {
            Style::Header => {
                // Form-encoded, as RFC 6749, section 2.3.1 requires.
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let value = basic("client_id", &encoded(id), &encoded(secret))?;
                headers.insert(AUTHORIZATION, value);
            }
            Style::Parameters => {
                body.append_pair("client_id", id);
                // As upstream, an empty secret is omitted.
                if !secret.is_empty() {
                    body.append_pair("client_secret", secret);
                }
            }
        }
        Ok(Ask {
            method: Method::POST,
            headers,
            body: Bytes::from(body.finish()),
            ..Ask::get(self.config.token_url.0.clone())
        })
    }

    fn refused(&self, what: String) -> ClientError {
        ClientError::Token { url: self.config.token_url.to_string(), what }
    }
}

impl Seconds {
    /// Returns the duration; `None` if the token does not expire.
    fn duration(self) -> Option<Duration> {
        let seconds = match self {
            Seconds::Number(seconds) => seconds,
            Seconds::Text(text) => text.parse().ok()?,
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
    }
}

/// Reads the current secret of the client.
fn read_secret(secret: &Secret) -> Result<String, ClientError> {
    Ok(secret.read("oauth2.client_secret_file")?)
}
