//! Limits the number of log lines of one kind, because a target or a sender that repeats a fault
//! repeats its line. Lines are of one kind if the same statement of the code writes them.
//!
//! Of each kind, at most [`LINES_MAX`] lines are written in [`WINDOW`]. Further lines are counted,
//! and one line reports their number later. The levels debug and trace are not limited.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Maximum number of lines of one kind in a [`WINDOW`].
const LINES_MAX: u32 = 100;

/// Time after which the count of lines starts again at zero.
const WINDOW: Duration = Duration::from_secs(10);

/// Maximum length of the message that identifies a kind in a report.
const MESSAGE_CHARS_MAX: usize = 100;

/// Drops the lines of a kind that exceed its limit.
#[derive(Clone, Default)]
pub(super) struct Limit(Arc<Mutex<Kinds>>);

#[derive(Default)]
struct Kinds {
    by_place: HashMap<Identifier, Kind>,
    /// Whether a thread is waiting to report dropped lines.
    is_reporting: bool,
}

struct Kind {
    began: Instant,
    lines: u32,
    suppressed: u64,
    source: &'static str,
    /// Message of the first dropped line.
    message: String,
}

impl Limit {
    /// Counts a line; returns whether the line is to be written.
    fn admits(&self, event: &Event<'_>) -> bool {
        let metadata = event.metadata();
        // The reports of dropped lines must not be dropped themselves.
        if *metadata.level() > Level::INFO || metadata.target() == module_path!() {
            return true;
        }
        let now = Instant::now();
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.by_place.entry(metadata.callsite()).or_insert_with(|| Kind {
            began: now,
            lines: 0,
            suppressed: 0,
            source: metadata.target(),
            message: String::new(),
        });
        if now.duration_since(kind.began) >= WINDOW {
            (kind.began, kind.lines) = (now, 0);
        }
        if kind.lines < LINES_MAX {
            kind.lines += 1;
            return true;
        }
        kind.suppressed += 1;
        // Only the first message is formatted, since the limit is meant to save work.
        if kind.suppressed == 1 {
            let mut message = Message::default();
            event.record(&mut message);
            kind.message = message.0;
        }
        if !kinds.is_reporting {
            // If no thread can be started, the next dropped line tries again.
            kinds.is_reporting = self.clone().report_later();
        }
        false
    }

    fn report_later(self) -> bool {
        // A thread of its own, because lines come from threads that must not wait.
        let report = move || {
            std::thread::sleep(WINDOW);
            for (source, message, lines) in self.take() {
                tracing::warn!(source, message, lines, "log lines of one kind were left out");
            }
        };
        std::thread::Builder::new().name("log-limit".into()).spawn(report).is_ok()
    }

    /// Takes the dropped lines since the last call: target, message and number.
    fn take(&self) -> Vec<(&'static str, String, u64)> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the same lock as the counts, so that a report follows every counted line.
        kinds.is_reporting = false;
        let suppressed = kinds.by_place.values_mut().filter(|kind| kind.suppressed > 0);
        suppressed
            .map(|kind| {
                let message = std::mem::take(&mut kind.message);
                (kind.source, message, std::mem::take(&mut kind.suppressed))
            })
            .collect()
    }
}

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.admits(event)
    }
}

/// The first [`MESSAGE_CHARS_MAX`] characters of an event's message.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}").chars().take(MESSAGE_CHARS_MAX).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tracing_subscriber::layer::SubscriberExt as _;

    /// Counts the events that the limit admits.
    #[derive(Clone, Default)]
    struct Written(Arc<AtomicU32>);

    impl<S: Subscriber> Layer<S> for Written {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Twenty targets wrote 174 MB into a log in eight seconds.
    #[test]
    fn lines_of_one_kind_are_limited_and_counted() {
        let (limit, written) = (Limit::default(), Written::default());
        let subscriber = tracing_subscriber::registry().with(limit.clone()).with(written.clone());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..LINES_MAX + 50 {
                tracing::warn!(number, "a target repeats itself");
            }
            tracing::warn!("another kind");
        });
        assert_eq!(written.0.load(Ordering::Relaxed), LINES_MAX + 1);
        let expected = (module_path!(), "a target repeats itself".to_owned(), 50);
        assert_eq!(limit.take(), [expected]);
        assert!(limit.take().is_empty(), "said once");
    }
}
