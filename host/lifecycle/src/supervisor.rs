//! Notifies systemd that the store serves, reloads or stops, and that the head is alive
//! (sd_notify(3), sd_watchdog_enabled(3)). Without `NOTIFY_SOCKET` nothing is sent.
//!
//! The crate `sd-notify` is not used, because it sends on a blocking socket: a systemd that does
//! not read would block the network runtime.

use crate::shutdown::Shutdown;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram as Datagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::net::UnixDatagram;
use tokio::time::{sleep, timeout};

/// Time between two checks of a service that is starting, or restarting its head.
const START_POLL: Duration = Duration::from_millis(200);

/// Minimum time between two reports of a start's progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Time by which each progress extends systemd's timeout of the start.
const START_EXTENSION: Duration = Duration::from_secs(60);

/// Timeout for sending one notification.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// A service whose state is reported to systemd.
pub trait Service: Clone + Send + Sync + 'static {
    /// Returns whether the service serves requests.
    fn is_ready(&self) -> bool;

    /// Progress of the start, in bytes and in percent.
    fn progress(&self) -> (u64, u64);

    /// Waits for an answer of the head's thread; returns whether it answered.
    fn answers(&self) -> impl Future<Output = bool> + Send;
}

/// Sends notifications to systemd; clones share the socket.
#[derive(Clone, Default)]
pub struct Supervisor {
    socket: Option<Arc<UnixDatagram>>,
    /// Time without a notification after which systemd considers the process hung.
    watchdog: Option<Duration>,
    is_ready: Arc<AtomicBool>,
}

impl Supervisor {
    /// Reads the settings from the environment. Must be called inside of the async runtime.
    pub fn from_environment() -> Supervisor {
        let address = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty());
        let Some(address) = address else { return Supervisor::default() };
        let socket = match connect(&address) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(?address, %error, "NOTIFY_SOCKET cannot be used");
                None
            }
        };
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        // The variables may be meant for another process, which `WATCHDOG_PID` names.
        let is_other = |id: u64| id != u64::from(std::process::id());
        let watchdog = match number("WATCHDOG_PID").is_some_and(is_other) {
            true => None,
            false => number("WATCHDOG_USEC").filter(|micros| *micros > 0),
        };
        Supervisor { socket, watchdog: watchdog.map(Duration::from_micros), ..Self::default() }
    }

    /// Notifies systemd of the service's state until the stop signal.
    pub async fn follow(self, service: impl Service, mut shutdown: Shutdown) {
        if self.socket.is_none() {
            return;
        }
        let notices = async {
            self.wait_for_start(&service).await;
            self.is_ready.store(true, SeqCst);
            self.tell("READY=1\nSTATUS=Serving.").await;
            if let Some(limit) = self.watchdog {
                let liveness = Liveness { service, done_bytes: AtomicU64::new(0) };
                self.watch(limit, || liveness.wait_for_sign()).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = notices => {}
            () = shutdown.wait() => self.tell("STOPPING=1\nSTATUS=Stopping.").await,
        }
    }

    /// Notifies systemd that a reload begins; [`Supervisor::reloaded`] has to follow.
    pub async fn reloading(&self) {
        if self.socket.is_some() && self.is_ready.load(SeqCst) {
            let now = clock_gettime(ClockId::Monotonic);
            let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}")).await;
        }
    }

    /// Notifies systemd that the reload has ended.
    pub async fn reloaded(&self) {
        if self.is_ready.load(SeqCst) {
            self.tell("READY=1").await;
        }
    }

    /// Waits for the end of the start, and extends systemd's timeout while the replay progresses.
    async fn wait_for_start(&self, service: &impl Service) {
        let (mut last_bytes, mut notified) = (0, None::<Instant>);
        while !service.is_ready() {
            let (done_bytes, percent) = service.progress();
            let is_due = notified.is_none_or(|at| at.elapsed() > PROGRESS_EVERY);
            // Without progress the timeout stays, so that systemd ends a start that hangs.
            if is_due && done_bytes > last_bytes {
                (last_bytes, notified) = (done_bytes, Some(Instant::now()));
                let micros = START_EXTENSION.as_micros();
                let status = format!("STATUS=Replaying the log: {percent} %.");
                self.tell(&format!("EXTEND_TIMEOUT_USEC={micros}\n{status}")).await;
            }
            sleep(START_POLL).await;
        }
    }

    /// Notifies systemd of each sign of life, twice as often as required. No sign, no notification.
    async fn watch<F>(&self, limit: Duration, mut wait_for_sign: impl FnMut() -> F)
    where
        F: Future<Output = ()>,
    {
        loop {
            wait_for_sign().await;
            self.tell("WATCHDOG=1").await;
            sleep(limit / 2).await;
        }
    }

    async fn tell(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        let sent = timeout(TELL_TIMEOUT, socket.send(message.as_bytes())).await;
        let sent = sent.unwrap_or_else(|elapsed| Err(elapsed.into()));
        if let Err(error) = sent {
            tracing::warn!(%error, message, "could not notify systemd");
        }
    }
}

/// Detects whether a service is alive.
struct Liveness<S> {
    service: S,
    /// Progress of the start at the last check.
    done_bytes: AtomicU64,
}

impl<S: Service> Liveness<S> {
    /// Waits until the service answers or, after a restart of its head, makes progress. A timer or
    /// another thread would prove nothing about the head.
    async fn wait_for_sign(&self) {
        loop {
            if self.service.is_ready() && self.service.answers().await {
                return;
            }
            let (done_bytes, _) = self.service.progress();
            if done_bytes != self.done_bytes.swap(done_bytes, SeqCst) {
                return;
            }
            sleep(START_POLL).await;
        }
    }
}

/// Connects to a path, or to a name in Linux' abstract namespace after `@`.
fn connect(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(address)?,
        _ => return Err(io::Error::other("it is neither a path nor an abstract name")),
    };
    let socket = Datagram::unbound()?;
    socket.connect_addr(&address)?;
    // tokio requires a non-blocking socket, and a full socket must not block the runtime.
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// Returns the notifications so far.
    fn told(receiver: &Datagram) -> io::Result<Vec<String>> {
        let (mut told, mut buffer) = (Vec::new(), [0; 256]);
        loop {
            match receiver.recv(&mut buffer) {
                Ok(bytes) => told.push(String::from_utf8_lossy(&buffer[..bytes]).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(told),
                Err(error) => return Err(error),
            }
        }
    }

    #[tokio::test]
    async fn without_a_sign_of_life_there_is_silence() -> io::Result<()> {
        let name = format!("tidepool-test-{}", std::process::id());
        let receiver = Datagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        receiver.set_nonblocking(true)?;
        let socket = connect(OsStr::new(&format!("@{name}")))?;
        let supervisor = Supervisor { socket: Some(Arc::new(socket)), ..Supervisor::default() };
        let mut signs = 0;
        let (hangs, hung) = tokio::sync::oneshot::channel();
        let mut hangs = Some(hangs);
        let watch = supervisor.watch(Duration::from_millis(2), || {
            signs += 1;
            let is_hung = signs > 3;
            if is_hung {
                let _ = hangs.take().map(|hangs| hangs.send(()));
            }
            async move {
                if is_hung {
                    pending().await
                }
            }
        });
        tokio::select! {
            () = watch => {}
            _ = hung => {}
        }
        assert_eq!(told(&receiver)?, ["WATCHDOG=1"; 3]);
        // A reload before the start is over says nothing of readiness.
        supervisor.reloading().await;
        supervisor.reloaded().await;
        assert!(told(&receiver)?.is_empty());
        supervisor.is_ready.store(true, SeqCst);
        supervisor.reloading().await;
        supervisor.reloaded().await;
        let told = told(&receiver)?;
        assert!(told[0].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{told:?}");
        assert_eq!(told[1..], ["READY=1"]);
        Ok(())
    }

    #[tokio::test]
    async fn addresses_that_are_none_are_refused() {
        for address in ["", "relative/path", "vsock:2:1234", "/nowhere/notify"] {
            assert!(connect(OsStr::new(address)).is_err(), "{address:?}");
        }
    }
}
