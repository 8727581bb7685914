//! The priority of threads whose work is less urgent: reads, plugins and their compiler.

use libc::{SCHED_BATCH, SYS_sched_setattr, sched_attr, syscall};
use std::io;

/// Nice value: against a busy thread with nice value 0, a thread gets a ninth of the time.
const NICE: i32 = 10;

/// Time slice of such a thread: the longest that Linux accepts. Other threads have shorter slices,
/// so on waking up they preempt this thread instead of waiting for the end of its slice. Kernels
/// before 6.12 ignore the value.
const SLICE_NANOS: u64 = 100_000_000;

/// Gives this thread, and the threads that it starts later, a lower priority, so that they do not
/// delay writes where processors are few. Cannot be undone.
pub fn lower_priority() {
    if let Err(error) = set() {
        tracing::debug!(%error, "what can wait runs at the priority of writes");
    }
}

/// Calls `sched_setattr(2)` for this thread only.
#[allow(unsafe_code)]
fn set() -> io::Result<()> {
    let attributes = sched_attr {
        size: size_of::<sched_attr>() as u32,
        sched_policy: SCHED_BATCH as u32,
        sched_flags: 0,
        sched_nice: NICE,
        sched_priority: 0,
        sched_runtime: SLICE_NANOS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes from the pointer on, and writes none.
    let done = unsafe { syscall(SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nineteenth value is the nice value, the forty-first the policy (`proc_pid_stat(5)`).
    #[test]
    fn only_the_thread_that_asks_for_it_waits_for_others() -> io::Result<()> {
        let of_this_thread = || -> io::Result<(String, String)> {
            let stat = std::fs::read_to_string("/proc/thread-self/stat")?;
            let values: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
            Ok((values[16].to_owned(), values[38].to_owned()))
        };
        let before = of_this_thread()?;
        let lowered = std::thread::spawn(move || set().and_then(|()| of_this_thread()));
        let lowered = lowered.join().expect("it does not panic")?;
        assert_eq!(lowered, (NICE.to_string(), SCHED_BATCH.to_string()));
        assert_eq!(of_this_thread()?, before);
        Ok(())
    }
}
