//! Targets that a server lists, as JSON.
//!
//! Source: `discovery/http` of prometheus/prometheus; that the last list is kept is ours.

use super::file::target_groups;
use super::saved::Saved;
use super::{DiscoveryFigures, DiscoveryOptions, LIST_BYTES_MAX};
use crate::config::{Group, HttpConfig};
use crate::target::TargetGroup;
use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_client::{Ask, Client, ClientError};

/// The label that says which URL lists a target.
const URL_LABEL: &str = "__meta_url";

/// The header that tells the server how often it is asked, in seconds.
const INTERVAL: HeaderName = HeaderName::from_static("x-prometheus-refresh-interval-seconds");

/// Asks a server.
pub(super) struct HttpDiscovery {
    config: HttpConfig,
    client: Client,
    figures: Arc<DiscoveryFigures>,
    saved: Option<Saved>,
    /// The last list, and its groups.
    list: Bytes,
    groups: Vec<TargetGroup>,
    has_answered: bool,
    /// What was last wrong.
    wrong: Option<String>,
}

impl HttpDiscovery {
    /// Starts with the saved list. Sends no request.
    pub fn open(
        config: &HttpConfig,
        options: &DiscoveryOptions,
    ) -> Result<HttpDiscovery, ClientError> {
        let client = Client::open(&config.client)?;
        let saved = options.saved_dir.as_ref().map(|dir| Saved::new(dir, config.url.0.as_str()));
        let mut discovery = HttpDiscovery {
            config: config.clone(),
            client,
            figures: Arc::clone(&options.figures),
            saved,
            list: Bytes::new(),
            groups: Vec::new(),
            has_answered: false,
            wrong: None,
        };
        discovery.client.check(&discovery.ask())?;
        if let Some(list) = discovery.saved.as_ref().and_then(Saved::read) {
            match parse(&discovery.config, &list) {
                Ok(groups) => (discovery.list, discovery.groups) = (list, groups),
                // The next list replaces it.
                Err(error) => tracing::warn!(
                    url = %discovery.config.url,
                    error,
                    "the kept list of targets is damaged; there are none until the server answers"
                ),
            }
        }
        Ok(discovery)
    }

    pub fn interval(&self) -> Duration {
        self.config.refresh_interval
    }

    /// The groups of the list that was kept.
    pub fn known(&self) -> Vec<TargetGroup> {
        self.groups.clone()
    }

    /// Whether there is a list, of now or of an earlier run.
    pub fn has_answered(&self) -> bool {
        self.has_answered || !self.list.is_empty()
    }

    /// Asks; returns all groups if any has changed.
    pub async fn refresh(&mut self) -> Option<Vec<TargetGroup>> {
        let asked = match self.fetch().await {
            Ok(list) if self.has_answered && list == self.list => Ok(None),
            Ok(list) => self.parsed(&list).await.map(|groups| Some((list, groups))),
            Err(error) => Err(error),
        };
        match asked {
            Ok(changed) => {
                if self.wrong.take().is_some() {
                    tracing::info!(url = %self.config.url, "the list of targets can be read again");
                }
                let (list, groups) = changed?;
                self.has_answered = true;
                if list != self.list
                    && let Some(saved) = &self.saved
                    && let Err(error) = saved.write(list.clone()).await
                {
                    tracing::warn!(
                        url = %self.config.url,
                        %error,
                        "the list of targets could not be kept for the next start"
                    );
                }
                self.list = list;
                let changes = groups != self.groups;
                self.groups.clone_from(&groups);
                changes.then_some(groups)
            }
            Err(error) => {
                self.figures.http_failures.fetch_add(1, Relaxed);
                if self.wrong.as_ref() != Some(&error) {
                    let url = &self.config.url;
                    tracing::warn!(%url, error, "no list of targets; those of the last one stay");
                    self.wrong = Some(error);
                }
                None
            }
        }
    }

    fn ask(&self) -> Ask {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let seconds = self.config.refresh_interval.as_secs_f64().to_string();
        if let Ok(seconds) = HeaderValue::try_from(seconds) {
            headers.insert(INTERVAL, seconds);
        }
        Ask {
            headers,
            timeout: Some(self.config.refresh_interval),
            answer_bytes_max: LIST_BYTES_MAX,
            ..Ask::get(self.config.url.0.clone())
        }
    }

    async fn fetch(&self) -> Result<Bytes, String> {
        let in_words = |error: ClientError| error.to_string();
        let answer = self.client.send(self.ask()).await.map_err(in_words)?;
        if answer.status.as_u16() != 200 {
            return Err(format!("server returned HTTP status {}", answer.status));
        }
        let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().trim();
        if !is_json(kind) {
            return Err(format!("unsupported content type {kind:?}"));
        }
        answer.bytes().await.map_err(in_words)
    }

    /// Parses a list beside the threads of the network, which a long one would hold for a second.
    async fn parsed(&self, list: &Bytes) -> Result<Vec<TargetGroup>, String> {
        let (config, list) = (self.config.clone(), list.clone());
        let parsed = tokio::task::spawn_blocking(move || parse(&config, &list)).await;
        parsed.unwrap_or_else(|error| Err(error.to_string()))
    }
}

fn parse(config: &HttpConfig, list: &[u8]) -> Result<Vec<TargetGroup>, String> {
    // Nothing of the list, which may hold anything.
    let groups: Vec<Option<Group>> =
        serde_json::from_slice(list).map_err(|error| format!("not a list: {error}"))?;
    target_groups(groups, &config.url.to_string(), |group| {
        group.labels.insert(URL_LABEL.to_owned(), config.url_text.clone());
    })
}

/// Whether a content type is that of JSON in UTF-8.
fn is_json(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let (kind, parameter) = kind.split_once(';').unwrap_or((&kind, ""));
    let is_utf8 = matches!(parameter.trim_start(), "" | "charset=utf-8" | "charset=\"utf-8\"");
    kind == "application/json" && is_utf8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's `TestContentTypeRegex`.
    #[test]
    fn content_types_are_upstreams() {
        for (kind, expected) in [
            ("application/json;charset=utf-8", true),
            ("application/json; charset=utf-8", true),
            ("application/json;charset=\"utf-8\"", true),
            ("application/json", true),
            ("Application/JSON", true),
            ("application/json;charset=UTF-8", true),
            ("application/json;  charset=\"utf-8\"", true),
            ("application/json; charset=\"utf-8", false),
            ("text/plain", false),
            ("text/json", false),
            ("application/jsonl", false),
            ("", false),
        ] {
            assert_eq!(is_json(kind), expected, "{kind}");
        }
    }
}
