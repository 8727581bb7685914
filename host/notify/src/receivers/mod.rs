//! What delivers a notification, and what can go wrong with it.
//!
//! ```text
//! Notification ─▶ Excerpt: JSON or templates ─▶ webhook: a request
//!                                            └▶ command: a process, JSON on its standard input
//! health ─▶ heartbeat: a request at each interval, while all is well
//! ```
//!
//! Invariants: a delivery ends at its timeout, whatever the other side does; what is sent, and what
//! is kept of an answer, has a bound; no text that leaves this module has a receiver's URL.

pub mod command;
pub mod heartbeat;
mod http;
pub mod webhook;

use crate::config::{ReceiverConfig, ReceiverKind};
use crate::notification::{Excerpt, Notification};
use std::sync::Arc;
use std::time::Duration;
use tidepool_client::ClientError;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_rules::template::{Reason, TemplateError};

/// Maximum size of a request's body, and of a command's input.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of what is kept of an answer, or of a command's output.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024;

pub trait Receiver: Send + Sync {
    fn deliver<'a>(
        &'a self,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<Answered, DeliveryError>>;
}

/// A notification was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The answer with the beginning of its text, such as `200 OK: queued`.
    pub summary: String,
    /// How many alerts it had, the first of the notification: the receiver knows of no others.
    pub alerts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The receiver does not want this notification, and may want others.
    #[error("the receiver refuses the notification: {what}")]
    Refused { what: String },
    /// A template cannot be expanded for this notification, and may be for others.
    #[error("{place} cannot be made: {}; correct the template in the configuration", shown(error))]
    Template {
        /// The key of the configuration, such as `body`.
        place: String,
        error: TemplateError,
    },
    /// Even with a single alert.
    #[error("the notification has more than {bytes_max} bytes; shorten its annotations")]
    TooLarge { bytes_max: usize },
    #[error("{what}")]
    Failed {
        what: String,
        /// The pause that the receiver asks for, at most [`tidepool_client::RETRY_AFTER_MAX`].
        retry_after: Option<Duration>,
    },
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
}

impl DeliveryError {
    pub fn failed(what: impl Into<String>) -> DeliveryError {
        DeliveryError::Failed { what: what.into(), retry_after: None }
    }

    /// Whether only this notification failed: others to the same receiver may succeed.
    pub fn is_refusal(&self) -> bool {
        match self {
            DeliveryError::Refused { .. }
            | DeliveryError::Template { .. }
            | DeliveryError::TooLarge { .. } => true,
            DeliveryError::Failed { .. } | DeliveryError::Timeout(_) => false,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            DeliveryError::Failed { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether a notification with fewer alerts may succeed.
    fn is_of_size(&self) -> bool {
        match self {
            DeliveryError::TooLarge { .. } => true,
            DeliveryError::Template { error: TemplateError::Expansion(error), .. } => {
                !matches!(error.reason, Reason::Failed(_))
            }
            _ => false,
        }
    }
}

/// Makes the receiver of a configuration; `None` for a heartbeat, which has no notifications. Reads
/// the files of certificates that the configuration names, but does not connect.
pub fn open(config: &ReceiverConfig) -> Result<Option<Arc<dyn Receiver>>, ClientError> {
    Ok(match &config.kind {
        ReceiverKind::Webhook(webhook) => Some(Arc::new(webhook::Webhook::open(webhook)?)),
        ReceiverKind::Command(command) => {
            Some(Arc::new(command::CommandReceiver::new(command.clone())))
        }
        ReceiverKind::Heartbeat(_) => None,
    })
}

/// Makes a message of the first alerts, of half as many again and again while it is too large.
/// Returns their number, too.
fn fitted<'n, T>(
    notification: &'n Notification,
    alerts_max: usize,
    make: impl Fn(&Excerpt<'n>) -> Result<T, DeliveryError>,
) -> Result<(T, usize), DeliveryError> {
    let mut excerpt = notification.excerpt(alerts_max);
    loop {
        let count = excerpt.alerts().len();
        match make(&excerpt) {
            // An excerpt of 0 alerts would be one of all.
            Err(error) if error.is_of_size() && count > 1 => {
                excerpt = notification.excerpt(count / 2);
            }
            result => return result.map(|made| (made, count)),
        }
    }
}

/// Returns the JSON of a notification, if it is not too large.
fn json(excerpt: &Excerpt<'_>) -> Result<Vec<u8>, DeliveryError> {
    let json = excerpt.json();
    match json.len() > BODY_BYTES_MAX {
        true => Err(DeliveryError::TooLarge { bytes_max: BODY_BYTES_MAX }),
        false => Ok(json),
    }
}

/// Returns the beginning of an answer or output as one line of text.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(ANSWER_BYTES_MAX)]);
    let is_space = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns the text of Go alone: templates here have no name that the whole error could give.
fn shown(error: &TemplateError) -> String {
    match error {
        TemplateError::Expansion(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns the beginning of a text, as long as a limit allows.
fn begin(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests;
