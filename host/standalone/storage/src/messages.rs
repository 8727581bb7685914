//! Writes warnings and errors of `tidepool-disk` to standard error, if the host provides it.

use std::fmt::{self, Write as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

struct ToStderr;

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

/// Writes all later events to standard error. Further calls have no effect.
pub fn to_stderr() {
    // Fails only if a subscriber is already set, which is this one.
    let _ = tracing::subscriber::set_global_default(ToStderr);
}

impl Subscriber for ToStderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // `tracing` orders levels by verbosity, so errors are less than warnings.
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        eprintln!("tidepool: {level}: {}{}", line.message, line.fields);
    }

    // Unused, because `tidepool-disk` opens no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
