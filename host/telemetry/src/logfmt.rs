//! Log lines in logfmt, as Prometheus writes them: only `key=value` pairs, quoted where necessary.
//!
//! ```text
//! time=2026-01-02T03:04:05.678901Z level=INFO source=tidepool msg=listening address=127.0.0.1:9201
//! ```
//!
//! The crate `tracing-logfmt` is not used, because its keys are fixed (`ts`, `target`).

use std::fmt::{self, Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes one line for each event, with the fields of the event's spans at the end.
pub(super) struct Logfmt;

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        writer.write_str("time=")?;
        SystemTime.format_time(&mut writer)?;
        let metadata = event.metadata();
        write!(writer, " level={} source={}", metadata.level(), metadata.target())?;
        let mut message = String::new();
        put_value(&mut message, &fields.message);
        write!(writer, " msg={message}{}", fields.others)?;
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(writer, " {fields}")?;
            }
        }
        writeln!(writer)
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
            return;
        }
        // Writing to a string does not fail.
        let _ = write!(self.others, " {}=", field.name());
        put_value(&mut self.others, value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }
}

/// Appends a value, in quotes if readers of logfmt would not read it as one word.
fn put_value(out: &mut String, value: &str) {
    let is_plain =
        |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=' | '\\');
    match !value.is_empty() && value.chars().all(is_plain) {
        true => out.push_str(value),
        false => {
            // Writing to a string does not fail.
            let _ = write!(out, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_event_is_one_line_of_pairs() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .event_format(Logfmt)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "tidepool", port = 9201, name = "edge", "listening");
            let error = "two\nlines";
            let _request = tracing::info_span!("request", request_id = 7).entered();
            tracing::error!(target: "a::b", %error, empty = "", text = "a \"b\" c=d", "no luck today");
        });
        let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let without_time = |line: &str| line.split_once(' ').map(|(_, rest)| rest.to_owned());
        let rest: Vec<_> = text.lines().filter_map(without_time).collect();
        let expected = [
            "level=WARN source=tidepool msg=listening port=9201 name=edge",
            r#"level=ERROR source=a::b msg="no luck today" error="two\nlines" empty="" text="a \"b\" c=d" request_id=7"#,
        ];
        assert_eq!(rest, expected);
        assert!(text.starts_with("time=2"), "{text}");
    }
}
