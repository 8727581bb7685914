//! Lookups of labels. Like a read, each lookup has its own instance and thread.

use super::StoreError;
use super::reading::{Part, Reading, ReceiverGone};
use tidepool_runtime::{CallError, Instance, Label, Lookup};
use tokio::sync::mpsc::Sender;

/// Minimum size of a page that one call of the instance returns, except for the last page.
pub(super) const PART_BYTES: u32 = 64 * 1024;

/// A part of a lookup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupPart<T> {
    /// At least one item: names and values ascend by bytes, series by labels, without repetition.
    Page(Vec<T>),
    /// The end of a complete answer. Without this part the answer was interrupted.
    End {
        /// Whether items are missing because of the lookup's limit.
        is_truncated: bool,
        /// Warnings, one for each damaged block that was not read.
        damaged_blocks: Vec<String>,
    },
}

/// A page may contain long texts, so only the end is small.
impl<T> Part for LookupPart<T> {
    fn is_small(&self) -> bool {
        self.is_last()
    }

    fn is_last(&self) -> bool {
        matches!(self, LookupPart::End { .. })
    }
}

/// A lookup of label names or values.
pub(super) enum Strings {
    LabelNames,
    LabelValues(String),
}

impl Strings {
    /// Answers a lookup of names or values. An error is sent as the last part.
    pub fn run(
        self,
        reading: &Reading,
        lookup: &Lookup,
        parts: &Sender<Result<LookupPart<String>, StoreError>>,
    ) {
        reading.answer_parts(parts, |instance, send| {
            let strings = match &self {
                Strings::LabelNames => instance.label_names(lookup)?,
                Strings::LabelValues(name) => instance.label_values(name, lookup)?,
            };
            let next = |instance: &mut Instance| instance.next_strings(strings, PART_BYTES);
            give(reading, instance, send, next, |instance| {
                instance.strings_are_truncated(strings)
            })?;
            Ok(instance.close_strings(strings)?)
        });
    }
}

/// Answers a lookup of series. An error is sent as the last part.
pub(super) fn run_series(
    reading: &Reading,
    lookup: &Lookup,
    parts: &Sender<Result<LookupPart<Vec<Label>>, StoreError>>,
) {
    reading.answer_parts(parts, |instance, send| {
        let cursor = instance.series(lookup)?;
        let next = |instance: &mut Instance| instance.next_labels(cursor, PART_BYTES);
        give(reading, instance, send, next, |instance| instance.cursor_is_truncated(cursor))?;
        Ok(instance.close_cursor(cursor)?)
    });
}

/// Sends pages until there are no more items, then the end.
pub(super) fn give<T>(
    reading: &Reading,
    instance: &mut Instance,
    send: &dyn Fn(LookupPart<T>) -> Result<(), ReceiverGone>,
    next: impl Fn(&mut Instance) -> Result<Vec<T>, CallError>,
    is_truncated: impl Fn(&mut Instance) -> Result<bool, CallError>,
) -> Result<(), StoreError> {
    loop {
        let page = next(instance)?;
        let is_end = page.is_empty();
        let part = match is_end {
            true => LookupPart::End {
                is_truncated: is_truncated(instance)?,
                damaged_blocks: reading.shared.damaged_in_reads(instance)?,
            },
            false => LookupPart::Page(page),
        };
        // If the receiver is gone, the lookup ends without an error.
        if send(part).is_err() || is_end {
            return Ok(());
        }
    }
}
