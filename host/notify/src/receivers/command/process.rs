//! A process with its group, from its start until both have ended.
//!
//! A thread waits for the process and reaps it. The process group has the identifier of the
//! process, which the system may give to another once the process is reaped. So the group is killed
//! only before that, under the lock of [`Group`].

use super::ANSWER_BYTES_MAX;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// Maximum wait for the rest of the output, which a process outside of the group may hold open; and
/// beyond the deadline for the end of a process that is killed, which a device may hold up.
const REST_WAIT: Duration = Duration::from_secs(1);

pub(super) struct Process {
    input: pipe::Sender,
    output: pipe::Receiver,
    group: Group,
    ended: JoinHandle<io::Result<ExitStatus>>,
}

pub(super) struct Ended {
    /// `None` if the process was killed at its deadline.
    pub status: Option<io::Result<ExitStatus>>,
    /// The beginning of standard output and error.
    pub output: Vec<u8>,
}

/// The process group while its process is not reaped. It is killed when this is dropped.
struct Group(Arc<Mutex<Option<Pid>>>);

struct Pipes {
    input: OwnedFd,
    output: OwnedFd,
}

impl Process {
    /// Starts a process, which keeps its turn until it is reaped.
    pub async fn start(command: Command, turn: OwnedMutexGuard<()>) -> io::Result<Process> {
        // Before the channel, so that it is dropped after that: either the thread finds that nobody
        // waits for the pipes, or the group knows the process.
        let group = Group(Arc::default());
        let (sender, pipes) = oneshot::channel();
        let of_thread = group.0.clone();
        let ended = tokio::task::spawn_blocking(move || {
            let status = run(command, &of_thread, sender);
            drop(turn);
            status
        });
        let stopped = |_| io::Error::other("the program is about to stop");
        let Pipes { input, output } = pipes.await.map_err(stopped)??;
        let input = pipe::Sender::from_owned_fd(input)?;
        let output = pipe::Receiver::from_owned_fd(output)?;
        Ok(Process { input, output, group, ended })
    }

    /// Writes the input, and waits for the end of the process, but at most until the deadline.
    pub async fn finish(self, input: Vec<u8>, deadline: Instant) -> Ended {
        let Process { input: mut writer, output: mut reader, group, mut ended } = self;
        let mut output = Vec::new();
        let mut exchange = Box::pin(async {
            let write = async {
                // A process may accept a notification without reading it.
                let _ = writer.write_all(&input).await;
                drop(writer);
            };
            tokio::join!(write, read(&mut reader, &mut output));
        });
        let mut is_exchanged = false;
        let status = loop {
            tokio::select! {
                status = &mut ended => break Some(status.unwrap_or_else(|error| {
                    Err(io::Error::other(error))
                })),
                () = &mut exchange, if !is_exchanged => is_exchanged = true,
                () = sleep_until(deadline) => {
                    group.kill();
                    let _ = timeout(REST_WAIT, &mut ended).await;
                    break None;
                }
            }
        };
        if !is_exchanged {
            let wait_end = deadline.min(Instant::now() + REST_WAIT);
            let _ = timeout_at(wait_end, &mut exchange).await;
        }
        drop(exchange);
        Ended { status, output }
    }
}

impl Group {
    fn kill(&self) {
        kill(*self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        // An error means that no process of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Runs a process from its start to its end, and kills what it leaves in its group.
fn run(
    mut command: Command,
    group: &Mutex<Option<Pid>>,
    pipes: oneshot::Sender<io::Result<Pipes>>,
) -> io::Result<ExitStatus> {
    let (mut child, output) = match spawn(&mut command) {
        Ok(spawned) => spawned,
        Err(error) => {
            let _ = pipes.send(Err(error));
            return Err(io::Error::other("it did not start"));
        }
    };
    // The command has the other end of the output, which would never end.
    drop(command);
    let id = Pid::from_child(&child);
    let lock = || group.lock().unwrap_or_else(PoisonError::into_inner);
    *lock() = Some(id);
    let is_wanted = match child.stdin.take() {
        Some(input) => pipes.send(Ok(Pipes { input: input.into(), output })).is_ok(),
        None => false,
    };
    if !is_wanted {
        kill(*lock());
    }
    // Without reaping it, which keeps its identifier from others.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(id), options) {}
    let mut group = lock();
    kill(*group);
    let status = child.wait();
    *group = None;
    status
}

fn spawn(command: &mut Command) -> io::Result<(Child, OwnedFd)> {
    let (output, writer) = io::pipe()?;
    command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    Ok((command.spawn()?, output.into()))
}

/// Reads to the end, so that no process waits for room, and keeps the beginning.
async fn read(reader: &mut pipe::Receiver, kept: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let room = ANSWER_BYTES_MAX - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
}
