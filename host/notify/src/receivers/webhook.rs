//! Notifications as HTTP requests.

use super::http::{Request, exchange};
use super::{Answered, BODY_BYTES_MAX, DeliveryError, Receiver, begin, fitted, json};
use crate::config::{TemplateText, WebhookConfig};
use crate::notification::{Excerpt, Notification};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::de::IgnoredAny;
use tidepool_client::{Client, ClientError};
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_rules::template::{Limits, NotificationView};

/// Maximum size of a header's value. What is longer is cut.
pub const HEADER_BYTES_MAX: usize = 4 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What the template of the body, and that of each header, may use. The largest expansions take
/// tenths of a second, in which this thread does nothing else.
const BODY_LIMITS: Limits = Limits { steps_max: 1_000_000, output_bytes_max: BODY_BYTES_MAX };
const HEADER_LIMITS: Limits = Limits { steps_max: 100_000, output_bytes_max: 64 * 1024 };

pub struct Webhook {
    config: WebhookConfig,
    client: Client,
}

impl Webhook {
    /// Reads the files of certificates that the configuration names. Does not connect.
    pub fn open(config: &WebhookConfig) -> Result<Webhook, ClientError> {
        Ok(Webhook { config: config.clone(), client: Client::open(&config.http)? })
    }

    fn request(&self, excerpt: &Excerpt<'_>) -> Result<(HeaderMap, Bytes), DeliveryError> {
        let has_templates = self.config.body.is_some() || !self.config.headers.is_empty();
        let view = has_templates.then(|| excerpt.view(system_now_ms()));
        let expanded = |place: &str, text: &TemplateText, limits: &Limits| match &view {
            None => Ok(String::new()),
            Some(view) => expanded(place, text, view, limits),
        };
        let (body, content_type) = match &self.config.body {
            None => (json(excerpt)?, JSON),
            Some(body) => {
                let body = expanded("body", body, &BODY_LIMITS)?;
                let is_json = serde_json::from_str::<IgnoredAny>(&body).is_ok();
                (body.into_bytes(), if is_json { JSON } else { TEXT })
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type);
        let mut configured = HeaderMap::new();
        for (name, text) in &self.config.headers {
            let value = expanded(&format!("headers.{name}"), text, &HEADER_LIMITS)?;
            configured.append(name, header_value(&value));
        }
        // The content type of the configuration replaces that from above.
        headers.extend(configured);
        Ok((headers, body.into()))
    }
}

impl Receiver for Webhook {
    fn deliver<'a>(
        &'a self,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<Answered, DeliveryError>> {
        Box::pin(async move {
            let alerts_max = self.config.alerts_max;
            let ((headers, body), alerts) =
                fitted(notification, alerts_max, |excerpt| self.request(excerpt))?;
            let (method, timeout) = (self.config.method.clone(), self.config.timeout);
            let request = Request { method, headers, body, timeout };
            let summary = exchange(&self.client, &self.config.url, request).await?;
            Ok(Answered { summary, alerts })
        })
    }
}

fn expanded(
    place: &str,
    text: &TemplateText,
    view: &NotificationView,
    limits: &Limits,
) -> Result<String, DeliveryError> {
    let expanded = text.expand(view, limits);
    expanded.map_err(|error| DeliveryError::Template { place: place.to_owned(), error })
}

/// Makes a header's value of any text: control characters, which could end it, become spaces.
fn header_value(text: &str) -> HeaderValue {
    let text = begin(text, HEADER_BYTES_MAX).replace(|c: char| c.is_ascii_control(), " ");
    let value = HeaderValue::from_bytes(text.trim().as_bytes());
    let mut value = value.unwrap_or(HeaderValue::from_static(""));
    // It may be a token of the receiver.
    value.set_sensitive(true);
    value
}
