//! Ends a process whose head is stuck in a call. The head's machine code cannot be interrupted, and
//! without the head nothing can be stored or read. So the process ends, its supervisor starts it
//! again, and the new head replays the log.

use super::lock;
use super::snapshot::CALL_LIMIT;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_disk::wal::Logs;
use tidepool_runtime::Overdue;

/// The exit code: EX_SOFTWARE of sysexits(3). No command returns it for other reasons.
const EXIT_CODE: i32 = 70;

/// Maximum time for the last log line and for writing the buffered records.
const LAST_ACT_MAX: Duration = Duration::from_secs(5);

/// Logs why the process ends, writes the buffered records, and ends the process.
pub(super) fn end_process(overdue: Overdue, logs: &Arc<Mutex<Logs>>) {
    let (done, is_done) = channel();
    let logs = Arc::clone(logs);
    let last_act = move || {
        tell(overdue);
        if let Err(error) = lock(&logs).sync() {
            tracing::error!(%error, "could not sync the WAL");
        }
        // The receiver is gone if this took too long.
        let _ = done.send(());
    };
    // On a separate thread: the process must end even if writing to the log or the disk blocks.
    if std::thread::Builder::new().name("overdue".into()).spawn(last_act).is_ok() {
        let _ = is_done.recv_timeout(LAST_ACT_MAX);
    }
    std::process::exit(EXIT_CODE);
}

fn tell(overdue: Overdue) {
    let limit = overdue.limit;
    // The calls for the head snapshot have their own limit, without a flag.
    let (flag, raise) = match limit == CALL_LIMIT {
        true => ("", ""),
        false => (" (--head-timeout)", ", or raise --head-timeout if the machine is only slow"),
    };
    tracing::error!(
        call = limit.what,
        seconds = overdue.since.elapsed().as_secs_f64(),
        "a call of the head takes longer than {:?}{flag}, and cannot be interrupted: the process \
         ends with exit code {EXIT_CODE}. The next start replays the WAL. If this repeats, look \
         whether the disk hangs{raise}; otherwise report it with this line",
        limit.time
    );
}
