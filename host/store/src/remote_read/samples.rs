//! Makes answers of the type SAMPLES in constant memory.
//!
//! The answer is one message that begins with lengths: Snappy's length of the whole, and the length
//! of each query's result. So each query is read twice, first for its length and then for its
//! bytes, which are compressed and sent. Its cursor stays open and returns the same both times. A
//! small result is kept after the first pass instead. Limits are checked before the first byte.

use super::{Cut, Parts, Read, each_part};
use crate::StoreError;
use tidepool_protocol::prom::fragments::{BODY_BYTES_MAX, FragmentEncoder};
use tidepool_protocol::prom::read::{put_query_result_head, query_result_bytes};
use tidepool_runtime::{CallError, CursorHandle, Error, Instance, Limit};

/// Approximate number of stored bytes that one call measures.
const MEASURED_BYTES: u32 = 4 * 1024 * 1024;

/// Maximum size of all kept results together.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// The result of a query, before it is sent.
enum QueryResult {
    /// The encoded result as it will be sent.
    Kept(Vec<u8>),
    /// A result that must be read again, and its length.
    Measured { cursor: CursorHandle, bytes: u64 },
}

impl QueryResult {
    fn bytes(&self) -> u64 {
        match self {
            QueryResult::Kept(result) => result.len() as u64,
            QueryResult::Measured { bytes, .. } => *bytes,
        }
    }
}

impl Read {
    pub(super) fn samples(
        &self,
        instance: &mut Instance,
        parts: &Parts<'_>,
        bytes_max: u64,
    ) -> Result<(), Cut> {
        // A larger message cannot be encoded, whatever the flag allows.
        let bytes_max = if bytes_max == 0 { BODY_BYTES_MAX } else { bytes_max.min(BODY_BYTES_MAX) };
        let within = |bytes: u64| match bytes <= bytes_max {
            true => Ok(bytes),
            false => {
                let what = "bytes of a SAMPLES answer (--read-response-limit)".to_owned();
                Err(CallError::Refused(Error::LimitExceeded(Limit { what, max: bytes_max })))
            }
        };
        let (mut total_bytes, mut kept_bytes) = (0, 0);
        let mut results = Vec::with_capacity(self.queries.len());
        for query_index in 0..self.queries.len() {
            parts.check()?;
            let cursor = instance.select(&self.selection(query_index))?;
            // Cannot underflow: each kept result is smaller than the remaining room.
            let found = match keep(instance, cursor, KEPT_BYTES_MAX - kept_bytes)? {
                Some(result) => {
                    kept_bytes += result.len();
                    QueryResult::Kept(result)
                }
                None => {
                    let bytes = measure(instance, cursor, |bytes| {
                        // Checked during the measurement, so that a long answer is refused early.
                        within(total_bytes + bytes)?;
                        parts.check()
                    })?;
                    QueryResult::Measured { cursor, bytes }
                }
            };
            total_bytes = within(total_bytes + query_result_bytes(found.bytes()))?;
            results.push(found);
        }
        let failed = |error| StoreError::Runtime(format!("the answer was not made: {error}"));
        let mut out = Vec::new();
        let mut encoder = FragmentEncoder::begin(&mut out, total_bytes).map_err(failed)?;
        for found in results {
            let mut head = Vec::new();
            put_query_result_head(&mut head, found.bytes());
            encoder.put(&head, &mut out).map_err(failed)?;
            match found {
                QueryResult::Kept(result) => encoder.put(&result, &mut out).map_err(failed)?,
                QueryResult::Measured { cursor, bytes } => {
                    instance.rewind(cursor)?;
                    let mut bytes_left = bytes;
                    each_part(instance, cursor, |part| {
                        // The length was sent already, so more bytes would break the message.
                        let left = bytes_left.checked_sub(part.len() as u64);
                        bytes_left = left.ok_or(StoreError::DeletedWhileRead)?;
                        encoder.put(&part, &mut out).map_err(failed)?;
                        if out.is_empty() { Ok(()) } else { parts.send(std::mem::take(&mut out)) }
                    })?;
                    if bytes_left > 0 {
                        // The second pass has found fewer bytes than the first pass.
                        return Err(StoreError::DeletedWhileRead.into());
                    }
                    instance.close_cursor(cursor)?;
                }
            }
        }
        encoder.finish(&mut out).map_err(failed)?;
        parts.send(out)
    }
}

/// Returns a small result and closes its cursor. For a larger result, returns `None` and rewinds.
fn keep(
    instance: &mut Instance,
    cursor: CursorHandle,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, Cut> {
    let mut result = Vec::new();
    while result.len() < bytes_max {
        // The cast cannot truncate: the value is at most `KEPT_BYTES_MAX`.
        let part = instance.next_frames(cursor, (bytes_max - result.len()) as u32)?;
        if part.is_empty() {
            instance.close_cursor(cursor)?;
            return Ok(Some(result));
        }
        result.extend(part);
    }
    instance.rewind(cursor)?;
    Ok(None)
}

/// Returns the length of a result in bytes. An error of `check` ends the measurement.
fn measure(
    instance: &mut Instance,
    cursor: CursorHandle,
    check: impl Fn(u64) -> Result<(), Cut>,
) -> Result<u64, Cut> {
    loop {
        let measured = instance.measure(cursor, MEASURED_BYTES)?;
        check(measured.bytes)?;
        if measured.done {
            return Ok(measured.bytes);
        }
    }
}
