//! Warnings and infos of an answer, with the texts of upstream.
//!
//! Source: prometheus/prometheus, `util/annotations`.

mod note;
mod remarks;

pub use note::{HistogramOperation, Note};

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::syntax::Span;

/// Severity of an annotation, as upstream's API separates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The answer is probably not as intended.
    Warning,
    /// The answer may not be as intended.
    Info,
}

/// A remark about the evaluation of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// Whether this is a warning or an info.
    pub severity: Severity,
    /// The text without severity and position.
    pub text: String,
    /// Part of the expression that the annotation is about.
    pub span: Option<Span>,
    /// Figures that are combined when annotations with the same text are merged.
    pub detail: Detail,
}

/// Figures that are appended to the text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Detail {
    /// The text has no figures.
    #[default]
    Nothing,
    /// Number of occurrences; shown if greater than one.
    Count(u64),
    /// Extent of the corrections to classic buckets whose counts were not monotonic.
    Monotonicity(Monotonicity),
}

/// Classic buckets whose counts were raised to make them monotonic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monotonicity {
    /// First evaluation time, in milliseconds since the epoch.
    pub first_ms: i64,
    /// Last evaluation time, in milliseconds since the epoch.
    pub last_ms: i64,
    /// Lowest upper bound of a raised bucket.
    pub min_bucket: f64,
    /// Highest upper bound of a raised bucket.
    pub max_bucket: f64,
    /// Largest number of observations that was added to a bucket.
    pub max_diff: f64,
    /// Number of evaluated histograms with raised buckets.
    pub samples: u64,
}

impl Annotation {
    /// Returns the complete text, as upstream's API does: `PromQL info: … (line:column)`.
    pub fn message(&self, query: &str) -> String {
        let mut text = match self.severity {
            Severity::Warning => "PromQL warning: ",
            Severity::Info => "PromQL info: ",
        }
        .to_string();
        text.push_str(&self.text);
        match &self.detail {
            Detail::Nothing => {}
            Detail::Count(count) if *count < 2 => {}
            Detail::Count(count) => text.push_str(&format!(" ({count} occurrences)")),
            Detail::Monotonicity(m) => m.describe(&mut text),
        }
        if let Some(span) = self.span {
            let (line, column) = line_and_column(query, span.start as usize);
            text.push_str(&format!(" ({line}:{column})"));
        }
        text
    }
}

impl Monotonicity {
    fn describe(&self, text: &mut String) {
        text.push_str(&format!(
            ", from buckets {} to {}, with a max diff of {}, over {} samples from {} to {}",
            tidepool_model::number::general(self.min_bucket),
            tidepool_model::number::general(self.max_bucket),
            tidepool_model::number::general_rounded(self.max_diff, 2),
            self.samples,
            crate::date::rfc3339(self.first_ms.div_euclid(1000)),
            crate::date::rfc3339(self.last_ms.div_euclid(1000)),
        ));
    }

    fn merge(&mut self, other: &Monotonicity) {
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
        self.min_bucket = self.min_bucket.min(other.min_bucket);
        self.max_bucket = self.max_bucket.max(other.max_bucket);
        self.max_diff = self.max_diff.max(other.max_diff);
        self.samples += other.samples;
    }
}

/// Returns line and column of a byte of a query; both start at one, columns are bytes.
fn line_and_column(query: &str, byte: usize) -> (usize, usize) {
    let before = &query.as_bytes()[..byte.min(query.len())];
    let lines = before.iter().filter(|b| **b == b'\n').count();
    let column = match before.iter().rposition(|b| *b == b'\n') {
        // A column counts from the line break, which is column 0.
        Some(line_end) => before.len() - line_end,
        None => before.len() + 1,
    };
    (lines + 1, column)
}

/// Returns whether upstream evaluates `part` after `other`, or both are the same part.
fn is_later(part: Span, other: Span) -> bool {
    // An operation is evaluated after its operands, and operands from left to right.
    let contains = |a: Span, b: Span| a.start <= b.start && b.end <= a.end;
    contains(part, other) || !contains(other, part) && part.start > other.start
}

/// Maximum number of texts that are kept for each severity; further texts are only counted.
const KEPT_MAX: usize = 1000;

/// Maximum number of texts per severity that are only counted; further texts are ignored.
const COUNTED_MAX: usize = 50_000;

/// Annotations of one query, bounded to some megabytes. Annotations with the same text are merged.
/// The merged one has the position that upstream evaluates last (operands in order, then their
/// operator); if it has figures, the one evaluated first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// Kept annotations by severity and text, each with the part of the expression that added it.
    entries: Vec<(Annotation, Span)>,
    /// Part of the expression that is being evaluated.
    noting: Span,
    /// Hashes of texts that are not kept, by severity.
    others: [BTreeSet<u64>; 2],
}

impl Annotations {
    /// Sets the part of the expression that annotates from now on; returns the previous part.
    pub fn set_noting(&mut self, noting: Span) -> Span {
        std::mem::replace(&mut self.noting, noting)
    }

    /// Adds an annotation for a metric, whose name may be empty.
    pub fn note(&mut self, note: Note<'_>, metric: &str, span: Span) {
        self.insert(note.annotation(metric, span));
    }

    /// Adds an annotation, or merges it into the annotation with the same text.
    fn insert(&mut self, annotation: Annotation) {
        let place = self.entries.binary_search_by(|(entry, _)| {
            (entry.severity, &entry.text).cmp(&(annotation.severity, &annotation.text))
        });
        let place = match place {
            Ok(place) => place,
            Err(place) => return self.insert_new(place, annotation),
        };
        let (entry, noted) = &mut self.entries[place];
        // Annotations with figures keep the position evaluated first, all others the last.
        let is_taken = match (&mut entry.detail, &annotation.detail) {
            (Detail::Count(count), Detail::Count(more)) => {
                *count += more;
                is_later(*noted, self.noting)
            }
            (Detail::Monotonicity(figures), Detail::Monotonicity(more)) => {
                figures.merge(more);
                is_later(*noted, self.noting)
            }
            _ => is_later(self.noting, *noted),
        };
        if is_taken {
            entry.span = annotation.span;
            *noted = self.noting;
        }
    }

    fn insert_new(&mut self, place: usize, annotation: Annotation) {
        let severity = annotation.severity;
        let is_other = |(entry, _): &(Annotation, Span)| entry.severity != severity;
        let kept = match severity {
            Severity::Warning => self.entries.partition_point(|entry| !is_other(entry)),
            // Entries are sorted by severity, so all entries from the first info on are infos.
            Severity::Info => self.entries.len() - self.entries.partition_point(is_other),
        };
        if kept < KEPT_MAX {
            return self.entries.insert(place, (annotation, self.noting));
        }
        let others = &mut self.others[severity as usize];
        if others.len() < COUNTED_MAX {
            // Only the number of texts is shown, so hashes suffice; a collision hides one text.
            let mut hasher = DefaultHasher::new();
            annotation.text.hash(&mut hasher);
            others.insert(hasher.finish());
        }
    }

    /// Returns whether there are no annotations.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Iterates over the kept annotations, warnings first.
    pub fn iter(&self) -> impl Iterator<Item = &Annotation> + Clone {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// Returns the texts of one severity as upstream's API does: at most `limit` texts, then the
    /// number of omitted texts. Limit 0 returns all kept texts.
    pub fn messages(&self, severity: Severity, query: &str, limit: usize) -> Vec<String> {
        let all = self.iter().filter(|entry| entry.severity == severity);
        let kept = all.clone().count();
        let shown = if limit == 0 { kept } else { limit.min(kept) };
        let count = kept + self.others[severity as usize].len();
        let mut messages: Vec<_> = all.take(shown).map(|entry| entry.message(query)).collect();
        if count > shown {
            let kind = match severity {
                Severity::Warning => "warning",
                Severity::Info => "info",
            };
            messages.push(format!("{} more {kind} annotations omitted", count - shown));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { start: 5, end: 12 };

    #[test]
    fn messages_end_with_line_and_column() {
        let mut annotations = Annotations::default();
        annotations.note(Note::MixedFloatsHistograms, "m", SPAN);
        let messages = annotations.messages(Severity::Warning, "rate(m[5m])", 10);
        let text = "PromQL warning: encountered a mix of histograms and floats for metric name \
                    \"m\" (1:6)";
        assert_eq!(messages, [text]);
        let messages = annotations.messages(Severity::Warning, "rat\n(m[5m])", 10);
        assert!(messages[0].ends_with(" (2:2)"), "{messages:?}");
    }

    #[test]
    fn equal_messages_are_one_with_the_place_that_is_evaluated_last() {
        let span = |start, end| Span { start, end };
        // Parts of `f(g(a) + g(b))`: the noting part, and the position that it notes.
        let parts =
            [(span(2, 6), span(4, 5)), (span(9, 13), span(11, 12)), (span(0, 14), span(2, 13))];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
            let mut annotations = Annotations::default();
            for (seen, part) in order.into_iter().enumerate() {
                annotations.set_noting(parts[part].0);
                annotations.note(Note::MixedFloatsHistograms, "m", parts[part].1);
                let last = *order[..=seen].iter().max().unwrap();
                let spans: Vec<_> = annotations.iter().map(|entry| entry.span).collect();
                assert_eq!(spans, [Some(parts[last].1)]);
            }
        }
    }

    #[test]
    fn beyond_the_limit_they_are_counted() {
        let mut annotations = Annotations::default();
        for i in 0..12 {
            annotations.note(Note::MixedFloatsHistograms, &format!("m{i}"), SPAN);
        }
        let messages = annotations.messages(Severity::Warning, "rate(m[5m])", 10);
        assert_eq!(messages.len(), 11);
        assert_eq!(messages[10], "2 more warning annotations omitted");
        assert_eq!(annotations.messages(Severity::Warning, "rate(m[5m])", 0).len(), 12);
    }

    #[test]
    fn of_very_many_there_is_only_the_number() {
        let mut annotations = Annotations::default();
        for _ in 0..2 {
            for i in 0..KEPT_MAX + 20 {
                annotations.note(Note::MixedFloatsHistograms, &format!("m{i}"), SPAN);
                annotations.note(Note::PossibleNonCounter, &format!("m{}", i % 7), SPAN);
            }
        }
        let messages = annotations.messages(Severity::Warning, "rate(m[5m])", 10);
        assert_eq!(messages[10], format!("{} more warning annotations omitted", KEPT_MAX + 10));
        assert_eq!(annotations.messages(Severity::Info, "rate(m[5m])", 10).len(), 7);
    }

    #[test]
    fn forced_monotonicity_shows_the_worst() {
        let mut annotations = Annotations::default();
        let at = |time_ms, bucket, diff| {
            Note::ForcedMonotonicity(Monotonicity {
                first_ms: time_ms,
                last_ms: time_ms,
                min_bucket: bucket,
                max_bucket: bucket,
                max_diff: diff,
                samples: 1,
            })
        };
        annotations.note(at(3_000_000, 0.2, 1.0), "", SPAN);
        annotations.note(at(0, 5.0, 20.0), "", SPAN);
        let messages = annotations.messages(Severity::Info, "rate(m[5m])", 10);
        assert_eq!(messages.len(), 1);
        let end = ", from buckets 0.2 to 5, with a max diff of 20, over 2 samples from \
                   1970-01-01T00:00:00Z to 1970-01-01T00:50:00Z (1:6)";
        assert!(messages[0].ends_with(end), "{messages:?}");
    }
}
