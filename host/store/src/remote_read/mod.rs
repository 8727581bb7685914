//! Remote reads. Each has its own instance and thread.

mod chunk_files;
mod samples;
mod streamed;

use super::StoreError;
use super::reading::{Part, Reading, ReceiverGone, SMALL_BYTES_MAX};
use bytes::Bytes;
use tidepool_protocol::prom::read::{ReadFormat, ReadQuery};
use tidepool_runtime::{CursorHandle, Instance, Label, Selection};
use tokio::sync::mpsc::Sender;

/// Minimum size of the frames that one call of the instance returns, except for the last call.
const PART_BYTES: u32 = 256 * 1024;

/// A part of a read's answer.
#[derive(Debug)]
pub enum ReadPart {
    Bytes(Bytes),
    /// The end of a complete answer. Without this part the answer was interrupted.
    End,
}

/// The queries of a remote read, and the format of its answer.
pub(super) struct Read {
    pub queries: Vec<ReadQuery>,
    pub format: ReadFormat,
    /// Labels that are added to each series, unless the series has a label of that name.
    pub external_labels: Vec<Label>,
}

impl Part for ReadPart {
    fn is_small(&self) -> bool {
        match self {
            ReadPart::Bytes(bytes) => bytes.len() <= SMALL_BYTES_MAX,
            ReadPart::End => true,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, ReadPart::End)
    }
}

/// Reason for which an answer ended early.
enum Cut {
    ReceiverGone,
    Failed(StoreError),
}

impl<E: Into<StoreError>> From<E> for Cut {
    fn from(error: E) -> Cut {
        Cut::Failed(error.into())
    }
}

/// Sends parts to the receiver of the read's answer.
struct Parts<'a> {
    send: &'a dyn Fn(ReadPart) -> Result<(), ReceiverGone>,
    is_gone: &'a dyn Fn() -> bool,
}

impl Parts<'_> {
    fn send(&self, bytes: Vec<u8>) -> Result<(), Cut> {
        let sent = (self.send)(ReadPart::Bytes(bytes.into()));
        sent.map_err(|ReceiverGone| Cut::ReceiverGone)
    }

    /// Returns an error if the receiver is gone, so that work ends that sends no part for a while.
    fn check(&self) -> Result<(), Cut> {
        if (self.is_gone)() { Err(Cut::ReceiverGone) } else { Ok(()) }
    }
}

impl Read {
    /// Answers the queries one after the other.
    pub fn run(self, reading: &Reading, parts: &Sender<Result<ReadPart, StoreError>>) {
        reading.answer_parts(parts, |instance, send| {
            let outlet = Parts { send, is_gone: &|| parts.is_closed() };
            let answered = match self.format.message_bytes_max {
                Some(bytes_max) => self.samples(instance, &outlet, bytes_max),
                None => self.stream(instance, &outlet),
            };
            match answered {
                Ok(()) => {
                    // The receiver may be dropped: the client disconnected.
                    let _ = send(ReadPart::End);
                    Ok(())
                }
                // The client has disconnected, so it needs neither an end nor an error.
                Err(Cut::ReceiverGone) => Ok(()),
                Err(Cut::Failed(error)) => Err(error),
            }
        });
    }

    fn selection(&self, query_index: usize) -> Selection {
        let query = &self.queries[query_index];
        let ReadFormat { frames: format, frame_bytes_max, samples_max, .. } = self.format;
        Selection {
            matchers: query.matchers.clone(),
            range: query.range,
            format,
            // The cast cannot truncate, because `SelectionCount` limits the number of queries.
            query_index: query_index as u32,
            frame_bytes_max,
            samples_max,
            external_labels: self.external_labels.clone(),
        }
    }
}

/// Passes all frames of a cursor to `give`, call by call.
fn each_part(
    instance: &mut Instance,
    cursor: CursorHandle,
    mut give: impl FnMut(Vec<u8>) -> Result<(), Cut>,
) -> Result<(), Cut> {
    loop {
        let frames = instance.next_frames(cursor, PART_BYTES)?;
        if frames.is_empty() {
            return Ok(());
        }
        give(frames)?;
    }
}
