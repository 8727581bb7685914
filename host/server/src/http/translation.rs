//! Translates bodies other than remote write: a blocking thread converts a body to pieces of remote
//! write, which are appended to the store one by one.
//!
//! ```text
//! body ─▶ translator: a blocking thread ──piece──▶ append ─▶ next piece
//! ```
//!
//! Besides its body, whose memory stays reserved to the end, a request has at most five pieces in
//! memory, and few requests are translated concurrently. The work for its rows is limited
//! (`prom/work`), and the translator ends if the client disconnects. If the store fails between two
//! pieces, the response asks the sender to retry: stored rows are then sent again.

use super::body::BufferedBody;
use super::context::Context;
use super::counters::HandlerCounters;
use super::reply::{self, Reply};
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_plugins::intake::Intake;
use tidepool_protocol::prom::points::{Points, Rejected};
use tidepool_protocol::prom::rows::{Piece, ReceiverClosed, RequestWriter};
use tidepool_protocol::prom::work::{Client, WorkLimit};
use tidepool_protocol::prom::write::{REFUSALS_MAX, may_clear};
use tidepool_runtime::WriteOutcome;
use tidepool_store::{BodyRoom, StoreError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Maximum wait for a permit. After it the sender is asked to retry.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// Outcome of a translated body.
pub struct Translated<R> {
    pub report: R,
    pub rows: u64,
    /// Rows that the store refused.
    pub refused: u64,
    /// Number of data points to which the refused rows belong.
    pub refused_points: u64,
    /// Reasons of the first refusals.
    pub refusals: Vec<String>,
    /// Whether a retry can succeed.
    pub may_clear: bool,
}

/// Reason for an incomplete translation.
enum Unfinished {
    Store(StoreError),
    /// The limit of work was reached; the number of rows stored before.
    Spent {
        rows: u64,
    },
}

/// Translates a body and stores its rows. `translate` must end early when a write, or
/// [`RowSink::go_on`](tidepool_protocol::prom::rows::RowSink::go_on), returns [`ReceiverClosed`].
pub async fn run<R, T>(
    context: &Context,
    counters: &HandlerCounters,
    held: BufferedBody,
    translate: T,
) -> Result<Translated<R>, Reply>
where
    R: Send + 'static,
    T: FnOnce(&[u8], &mut PieceWriter<'_>) -> Result<R, ReceiverClosed> + Send + 'static,
{
    let turn =
        tokio::time::timeout(TURN_WAIT, Arc::clone(&context.translation.turns).acquire_owned());
    let turn = match turn.await {
        Ok(Ok(turn)) => turn,
        Ok(Err(_)) => return Err(reply::error(&StoreError::Stopped)),
        Err(_) => return Err(reply::error(&StoreError::Overloaded)),
    };
    let store = context.intake();
    // Ends the translator if the client is gone. Its last piece is awaited, so pieces stay bounded.
    let client = Client::default();
    let _presence = client.presence();
    let limit = WorkLimit::of_body(held.bytes.len(), client);
    // A separate task, so that a dropped request does not abandon a piece in the store.
    match tokio::spawn(append_pieces(store, turn, held, limit, translate)).await {
        Ok(Ok(translated)) => Ok(translated),
        Ok(Err(Unfinished::Store(error))) => Err(reply::error(&error)),
        Ok(Err(Unfinished::Spent { rows })) => {
            counters.rows.fetch_add(rows, Relaxed);
            let message = format!(
                "the rows of this request repeat more label text than one request may; {rows} were \
                 stored before that; send shorter labels, or fewer rows in a request\n"
            );
            Err(reply::text(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Err(_) => {
            let message = "the request could not be translated: this is a fault of tidepool\n";
            Err(reply::text(StatusCode::INTERNAL_SERVER_ERROR, message))
        }
    }
}

pub type PieceWriter<'a> =
    RequestWriter<&'a mut (dyn FnMut(Piece) -> Result<(), ReceiverClosed> + 'a)>;

async fn append_pieces<R, T>(
    store: Intake,
    turn: OwnedSemaphorePermit,
    held: BufferedBody,
    limit: WorkLimit,
    translate: T,
) -> Result<Translated<R>, Unfinished>
where
    R: Send + 'static,
    T: FnOnce(&[u8], &mut PieceWriter<'_>) -> Result<R, ReceiverClosed> + Send + 'static,
{
    // One piece waits while another is stored; further pieces would only need memory.
    let (sender, mut pieces) = mpsc::channel(1);
    let BufferedBody { bytes, room } = held;
    let translating = tokio::task::spawn_blocking(move || {
        let mut hand_over = |piece| sender.blocking_send(piece).map_err(|_| ReceiverClosed);
        let mut writer = PieceWriter::new(&mut hand_over).with_limit(limit);
        let translated = translate(&bytes, &mut writer);
        let is_spent = writer.is_spent();
        (translated.and_then(|report| writer.finish().map(|()| report)), writer.rows(), is_spent)
    });
    let mut written = Written::default();
    while let Some(piece) = pieces.recv().await {
        // Pieces reserve no memory, or requests would wait for each other's reservations.
        let outcome = store.append(piece.version, piece.body, BodyRoom::beside(&room)).await;
        match outcome {
            Ok(outcome) => written.add(&piece.points, outcome),
            Err(error) => {
                // The translator ends when it sends its next piece.
                drop(pieces);
                let _ = translating.await;
                return Err(Unfinished::Store(error));
            }
        }
    }
    let translated = translating.await;
    // Released only now, because the translator used the body until it ended.
    drop((room, turn));
    let (report, rows, is_spent) =
        translated.map_err(|error| Unfinished::Store(StoreError::Runtime(error.to_string())))?;
    let Written { rows: stored, rejected, refusals, may_clear } = written;
    if is_spent {
        return Err(Unfinished::Spent { rows: stored });
    }
    let report = report.map_err(|ReceiverClosed| Unfinished::Store(StoreError::Stopped))?;
    let refused = rows.saturating_sub(stored);
    let refused_points = rejected.points();
    Ok(Translated { report, rows: stored, refused, refused_points, refusals, may_clear })
}

/// Sum of the store's outcomes over all pieces.
#[derive(Default)]
struct Written {
    rows: u64,
    rejected: Rejected,
    refusals: Vec<String>,
    may_clear: bool,
}

impl Written {
    /// Adds the outcome of a piece. Refused exemplars are ignored: no sender can correct them.
    fn add(&mut self, points: &Points, outcome: WriteOutcome) {
        let rows = outcome.samples_written + outcome.histograms_written;
        self.rows += rows;
        self.rejected.add(points, rows);
        self.may_clear |= may_clear(&outcome);
        let left = REFUSALS_MAX.saturating_sub(self.refusals.len());
        let details = outcome.refusals.into_iter().map(|refusal| refusal.detail);
        self.refusals.extend(details.take(left));
    }
}

impl<R> Translated<R> {
    /// Adds the stored rows, the refused rows and those in `rejected` to the counters.
    pub fn count(&self, counters: &HandlerCounters, rejected: u64) {
        counters.rows.fetch_add(self.rows, Relaxed);
        counters.rejected.fetch_add(self.refused + rejected, Relaxed);
    }
}
